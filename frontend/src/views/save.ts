/** Hands a file to the browser's downloads. */
export function save(name: string, blob: Blob): void {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The download has the content by then; the address alone would keep it in memory.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
