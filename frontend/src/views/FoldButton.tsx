/** Opens and closes what stands below it. */
import { ChevronIcon } from "./icons";

interface FoldButtonProps {
  open: boolean;
  /** What it opens, for who hears it or points at it. */
  label: string;
  /** Its place in the layout around it. */
  className: string;
  onToggle(): void;
}

export function FoldButton({ open, label, className, onToggle }: FoldButtonProps) {
  return (
    <button
      type="button"
      className={`button button--quiet button--icon ${className}`}
      aria-expanded={open}
      aria-label={label}
      title={label}
      onClick={onToggle}
    >
      <ChevronIcon />
    </button>
  );
}
