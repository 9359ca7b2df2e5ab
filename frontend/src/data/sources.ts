/** The Sources page's state: the list of sources, their jobs, and the socket on which the jobs' changes arrive. */
import { createStore, type StoreApi } from "zustand/vanilla";
import type { Http } from "../client/http";
import type { Timers } from "../client/timers";
import { createEarthSocket, type EarthSocket, type SocketLike } from "../client/websocket";
import type { SocketState } from "../client/websocket_states";
import { createJobs, type Jobs } from "./jobs";

export interface SourcesView {
  readonly connection: SocketState;
  /** Whether the socket was live at any time since the page was opened. */
  readonly was_live: boolean;
}

export interface SourcesDeps {
  http: Http;
  timers: Timers;
  random(): number;
  /** Null where no ledger runs, and so no job: then the list is read again now and then. */
  open: (() => SocketLike) | null;
}

export interface Sources {
  readonly store: StoreApi<SourcesView>;
  readonly jobs: Jobs;
  start(): void;
  wake(): void;
  stop(): void;
}

export function createSources({ http, timers, random, open }: SourcesDeps): Sources {
  const store = createStore<SourcesView>(() => ({ connection: "idle", was_live: false }));
  const jobs = createJobs({ http, timers, random, ledger: open !== null });
  const socket = open === null ? null : joinedTo(open);

  function joinedTo(opens: () => SocketLike): EarthSocket {
    return createEarthSocket({
      open: opens,
      timers,
      channels: ["datasource_tasks"],
      handlers: {
        onState: (connection) =>
          store.setState({ connection, was_live: connection === "live" || store.getState().was_live }),
        // Read after the subscription: a change in between comes by one way or by both.
        onJoined: () => void jobs.reload(),
        onEvent: () => undefined,
        onJob: jobs.take,
        onLayers: () => void jobs.reload(),
        onResync: () => void jobs.reload(),
      },
    });
  }

  return {
    store,
    jobs,
    start() {
      void jobs.reload();
      socket?.start();
    },
    wake() {
      if (socket === null) void jobs.reload();
      else socket.wake();
    },
    stop() {
      socket?.stop();
      jobs.stop();
    },
  };
}
