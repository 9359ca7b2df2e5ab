/** Light notices: one on screen per key, however often it is raised. */
import { toast } from "sonner";

export type ToastKind = "error" | "warning" | "success" | "info";

/** Shows the message, or updates the one already shown under this key. */
export function toastOnce(key: string, kind: ToastKind, message: string, description?: string): void {
  toast[kind](message, { id: key, description });
}

export function dropToast(key: string): void {
  toast.dismiss(key);
}
