/** Small line icons; the button that holds one carries the words. */
import type { ReactNode } from "react";

function Icon({ children }: { children: ReactNode }) {
  return (
    <svg
      className="icon"
      viewBox="0 0 16 16"
      width="16"
      height="16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export const PlusIcon = () => (
  <Icon>
    <path d="M8 3v10M3 8h10" />
  </Icon>
);
export const MinusIcon = () => (
  <Icon>
    <path d="M3 8h10" />
  </Icon>
);
export const HomeIcon = () => (
  <Icon>
    <circle cx="8" cy="8" r="5.500" />
    <path d="M2.500 8h11M8 2.500c4 3.500 4 7.500 0 11M8 2.500c-4 3.500-4 7.500 0 11" />
  </Icon>
);
export const PauseIcon = () => (
  <Icon>
    <path d="M5.500 3.500v9M10.500 3.500v9" />
  </Icon>
);
export const PlayIcon = () => (
  <Icon>
    <path d="M5 3.200v9.600l7.500-4.800z" />
  </Icon>
);
export const CloseIcon = () => (
  <Icon>
    <path d="M4 4l8 8M12 4l-8 8" />
  </Icon>
);
export const ChevronIcon = () => (
  <Icon>
    <path d="M4 6l4 4 4-4" />
  </Icon>
);
