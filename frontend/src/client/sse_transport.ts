/** The browser's EventSource behind the two events that the stream needs. */

export interface SourceEvents {
  onMessage: (data: string) => void;
  /** The source has failed; it must be closed and a new one opened at the right position. */
  onLost: () => void;
}

export interface Source {
  close(): void;
}

export type OpenSource = (url: string, events: SourceEvents) => Source;

/** EventSource would reconnect by itself to the old address, whose position is stale by then: any error ends it. */
export const openEventSource: OpenSource = (url, { onMessage, onLost }) => {
  const source = new EventSource(url);
  source.onmessage = (event: MessageEvent<unknown>) => {
    if (typeof event.data === "string") onMessage(event.data);
  };
  source.onerror = () => {
    source.close();
    onLost();
  };
  return { close: () => source.close() };
};
