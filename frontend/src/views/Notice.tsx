/** A page-sized message. */
import type { ReactNode } from "react";

export function Notice({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="notice" role="status">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
