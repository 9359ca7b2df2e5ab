import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ManualTimers, manualTimers } from "../testing/clock";
import { createBackoff } from "./backoff";
import type { EarthEvent } from "./earth_types";
import { createEarthSocket, HEALTHY_MS, JOIN_MS, PROBE_MS, SILENCE_MS, type SocketLike } from "./websocket";
import { hasSocket, SOCKET_SIGNALS, SOCKET_STATES, SOCKET_TABLE, type SocketState } from "./websocket_states";

const EPOCH = "abcdefghijkl";
const OTHER = "zzzzzzzzzzzz";

class FakeSocket implements SocketLike {
  sent: string[] = [];
  open = false;
  closed = false;
  onopen: SocketLike["onopen"] = null;
  onmessage: SocketLike["onmessage"] = null;
  onclose: SocketLike["onclose"] = null;
  send(text: string): void {
    this.sent.push(text);
  }
  close(): void {
    this.closed = true;
  }
  accept(): void {
    if (this.closed) return;
    this.open = true;
    this.onopen?.({} as never);
  }
  say(frame: unknown): void {
    if (!this.closed) this.onmessage?.({ data: typeof frame === "string" ? frame : JSON.stringify(frame) } as never);
  }
  break(): void {
    if (this.closed) return;
    this.closed = true;
    this.onclose?.({} as never);
  }
}

function setUp(timers: ManualTimers = manualTimers()) {
  const sockets: FakeSocket[] = [];
  const states: SocketState[] = [];
  const events: EarthEvent[] = [];
  const joins: boolean[] = [];
  const resyncs: string[] = [];
  const jobs: number[] = [];
  const debug: string[] = [];
  const socket = createEarthSocket({
    open: () => {
      const made = new FakeSocket();
      sockets.push(made);
      return made;
    },
    timers,
    backoff: createBackoff({ random: () => 0 }),
    debug: (message) => debug.push(message),
    handlers: {
      onState: (state) => states.push(state),
      onJoined: (resumed) => joins.push(resumed),
      onEvent: (event) => events.push(event),
      onJob: (job) => jobs.push(job.id),
      onLayers: () => undefined,
      onResync: (reason) => resyncs.push(reason),
    },
  });
  const last = () => sockets[sockets.length - 1] as FakeSocket;
  const join = (head = 0) => {
    last().accept();
    last().say({ type: "connected", epoch: EPOCH, heads: { earth_updates: head } });
    last().say({ type: "subscribed", channels: ["earth_updates"], heads: { earth_updates: head } });
  };
  return { socket, sockets, states, events, joins, resyncs, jobs, debug, last, join, timers };
}

function changed(revision: number, prev = 0, epoch = EPOCH, layer = "satellites") {
  return {
    channel: "earth_updates",
    epoch,
    revision,
    prev_revision: prev,
    data: { event: "earth.layer.changed", layers: [layer], refresh_strategy: "reload" },
  };
}

describe("the table of states", () => {
  it("has a move for every state and signal, and only known states in it", () => {
    for (const state of SOCKET_STATES) {
      for (const signal of SOCKET_SIGNALS) expect(SOCKET_STATES).toContain(SOCKET_TABLE[state][signal]);
      expect(SOCKET_TABLE[state].stop).toBe("idle");
    }
  });
});

describe("joining", () => {
  it("subscribes to both channels as soon as it is open, and is live once told so", () => {
    const { socket, last, join, states, joins } = setUp();
    socket.start();
    join(7);
    expect(JSON.parse(last().sent[0] ?? "")).toEqual({ subscribe: ["earth_updates", "datasource_tasks"] });
    expect(states).toEqual(["connecting", "joining", "live"]);
    expect(joins).toEqual([false]);
  });

  it("resumes from the head it was told when nothing happened since", () => {
    const { socket, last, join, timers, joins } = setUp();
    socket.start();
    join(7);
    last().break();
    timers.advance(1_000);
    join(7);
    expect(JSON.parse(last().sent[0] ?? "").since).toEqual({ earth_updates: `${EPOCH}-7` });
    expect(joins).toEqual([false, true]);
  });

  it("resumes from the last event", () => {
    const { socket, last, join, timers } = setUp();
    socket.start();
    join(7);
    last().say(changed(9, 5));
    last().break();
    timers.advance(1_000);
    last().accept();
    expect(JSON.parse(last().sent[0] ?? "").since).toEqual({ earth_updates: `${EPOCH}-9` });
  });

  it("takes the cursor of a heartbeat: all up to it was sent", () => {
    const { socket, last, join } = setUp();
    socket.start();
    join(7);
    last().say({ type: "heartbeat", cursor: `${EPOCH}-40` });
    last().say({ type: "heartbeat", cursor: `${OTHER}-90` });
    expect(socket.cursor).toEqual({ epoch: EPOCH, revision: 40 });
  });
});

describe("events", () => {
  it("hands rising revisions on and drops what it had", () => {
    const { socket, last, join, events } = setUp();
    socket.start();
    join(3);
    for (const revision of [3, 4, 4, 2, 6]) last().say(changed(revision));
    expect(events.map((event) => event.revision)).toEqual([4, 6]);
  });

  it("passes rows of jobs on", () => {
    const { socket, last, join, jobs } = setUp();
    socket.start();
    join();
    last().say({ channel: "datasource_tasks", data: { id: 12, task_type: "collect", status: "running" } });
    expect(jobs).toEqual([12]);
  });

  it("ignores what it does not know, with a debug line, and stays", () => {
    const { socket, last, join, debug } = setUp();
    socket.start();
    join();
    for (const odd of ["{", "[]", "7", { type: "news" }, { channel: "earth_updates", data: { event: "x" } }, {}]) {
      last().say(odd as never);
    }
    last().say({ type: "error", code: "unknown_message" });
    expect(debug).toHaveLength(7);
    expect(socket.state).toBe("live");
  });

  it("keeps an event with a strategy of later versions as a reload", () => {
    const { socket, last, join, events } = setUp();
    socket.start();
    join();
    const frame = changed(1);
    last().say({ ...frame, data: { ...frame.data, refresh_strategy: "morph" } });
    expect(events[0]?.change.refresh_strategy).toBe("reload");
  });
});

describe("an unbroken run that ends", () => {
  it("asks for a resync when the epoch changed, and forgets the old cursor", () => {
    const { socket, last, join, timers, resyncs, events } = setUp();
    socket.start();
    join(50);
    last().break();
    timers.advance(1_000);
    last().accept();
    last().say({ type: "connected", epoch: OTHER, heads: { earth_updates: 2 } });
    last().say({ type: "subscribed", heads: { earth_updates: 2 } });
    last().say(changed(3, 0, OTHER));
    expect(resyncs).toEqual(["epoch_changed"]);
    expect(events.map((event) => event.revision)).toEqual([3]);
    expect(socket.cursor).toEqual({ epoch: OTHER, revision: 3 });
  });

  it("passes resync_required on and goes on live", () => {
    const { socket, last, join, resyncs, events } = setUp();
    socket.start();
    join(50);
    last().say({ type: "resync_required", channel: "earth_updates", reason: "replay_window_exceeded" });
    last().say(changed(51));
    expect(resyncs).toEqual(["replay_window_exceeded"]);
    expect(events).toHaveLength(1);
    expect(socket.state).toBe("live");
  });

  it("keeps the layers' cursor when only the jobs' channel was cut", () => {
    const { socket, last, join } = setUp();
    socket.start();
    join(50);
    last().say({ type: "resync_required", channel: "datasource_tasks", reason: "slow_consumer" });
    expect(socket.cursor?.revision).toBe(50);
  });
});

describe("silence and return", () => {
  it("drops a line that is silent longer than two heartbeats and a half", () => {
    const { socket, last, join, timers, states } = setUp();
    socket.start();
    join();
    timers.advance(SILENCE_MS - 1);
    last().say({ type: "heartbeat" });
    timers.advance(SILENCE_MS - 1);
    expect(socket.state).toBe("live");
    timers.advance(1);
    expect(states.at(-1)).toBe("waiting");
  });

  it("gives up an attempt that never gets as far as subscribed", () => {
    const { socket, last, timers } = setUp();
    socket.start();
    last().accept();
    timers.advance(JOIN_MS);
    expect(socket.state).toBe("waiting");
    expect(last().closed).toBe(true);
  });

  it("probes on return to the tab and reconnects when nothing answers", () => {
    const { socket, last, join, timers } = setUp();
    socket.start();
    join();
    socket.wake();
    expect(last().sent.at(-1)).toBe('{"ping":1}');
    timers.advance(PROBE_MS);
    expect(socket.state).toBe("waiting");
  });

  it("stays when the probe is answered", () => {
    const { socket, last, join, timers } = setUp();
    socket.start();
    join();
    socket.wake();
    last().say({ type: "pong" });
    timers.advance(PROBE_MS * 2);
    expect(socket.state).toBe("live");
  });

  it("does not wait any longer when the network is back", () => {
    const { socket, sockets, last, join } = setUp();
    socket.start();
    join();
    last().break();
    expect(sockets).toHaveLength(1);
    socket.wake();
    expect(sockets).toHaveLength(2);
    expect(socket.state).toBe("connecting");
  });

  it("says offline after three failures in a row, keeps trying, and recovers", () => {
    const { socket, last, join, timers } = setUp();
    socket.start();
    for (let failure = 0; failure < 3; failure += 1) {
      last().break();
      if (failure < 2) timers.advance(1_000);
    }
    expect(socket.state).toBe("offline");
    timers.advance(1_000);
    join();
    expect(socket.state).toBe("live");
  });

  it("waits longer each time, and short again after a minute of health", () => {
    const waits: number[] = [];
    let attempts = 0;
    const backoff = {
      next: () => {
        attempts += 1;
        waits.push(attempts);
        return 10;
      },
      reset: () => {
        attempts = 0;
      },
      get attempts() {
        return attempts;
      },
    };
    const timers = manualTimers();
    const sockets: FakeSocket[] = [];
    const nothing = () => undefined;
    const socket = createEarthSocket({
      open: () => sockets[sockets.push(new FakeSocket()) - 1] as FakeSocket,
      timers,
      backoff,
      handlers: {
        onState: nothing,
        onJoined: nothing,
        onEvent: nothing,
        onJob: nothing,
        onLayers: nothing,
        onResync: nothing,
      },
    });
    const live = (for_ms: number) => {
      sockets.at(-1)?.accept();
      sockets.at(-1)?.say({ type: "subscribed" });
      timers.advance(for_ms);
      sockets.at(-1)?.break();
      timers.advance(10);
    };
    socket.start();
    live(100);
    live(100);
    live(HEALTHY_MS);
    expect(waits).toEqual([1, 2, 1]);
  });
});

describe("stopping", () => {
  it("leaves no socket and no timer behind", () => {
    const { socket, last, join, timers } = setUp();
    socket.start();
    join();
    socket.stop();
    expect([last().closed, timers.pending, socket.state]).toEqual([true, 0, "idle"]);
  });

  it("lets a socket that has not opened yet open before it closes it", () => {
    const { socket, last } = setUp();
    socket.start();
    socket.stop();
    expect(last().closed).toBe(false);
    last().onopen?.({} as never);
    expect(last().closed).toBe(true);
  });
});

describe("whatever the server and the network do", () => {
  type Rig = ReturnType<typeof setUp>;

  const MOVES: Readonly<Record<string, (rig: Rig) => void>> = {
    accept: ({ last }) => last().accept(),
    break: ({ last }) => last().break(),
    wake: ({ socket }) => socket.wake(),
    stop: ({ socket }) => socket.stop(),
    start: ({ socket }) => socket.start(),
    connected: ({ last }) => last().say({ type: "connected", epoch: EPOCH }),
    subscribed: ({ last }) => last().say({ type: "subscribed", heads: { earth_updates: 4 } }),
    heartbeat: ({ last }) => last().say({ type: "heartbeat", cursor: `${EPOCH}-5` }),
    odd: ({ last }) => last().say("{odd"),
    silence: ({ timers }) => timers.advance(90_000),
    moment: ({ timers }) => timers.advance(700),
  };
  const RESTARTS: typeof MOVES = {
    resync: ({ last }) => last().say({ type: "resync_required", reason: "slow_consumer" }),
    other_epoch: ({ last }) => last().say({ type: "connected", epoch: OTHER }),
  };

  function steps(moves: typeof MOVES) {
    const named = fc.constantFrom(...Object.keys(moves)).map((name) => moves[name] as (rig: Rig) => void);
    const event = fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 0, max: 12 })).map(
      ([revision, prev]) =>
        ({ last }: Rig) =>
          last().say(changed(revision, prev)),
    );
    return fc.array(fc.oneof(named, event), { maxLength: 60 });
  }

  function play(moves: readonly ((rig: Rig) => void)[]): Rig {
    const rig = setUp();
    rig.socket.start();
    for (const move of moves) {
      move(rig);
      const used = rig.sockets.filter((each) => !each.closed && each.onmessage !== null);
      expect(used.length).toBe(hasSocket(rig.socket.state) ? 1 : 0);
    }
    return rig;
  }

  it("there is never a second open socket, and state and socket agree", () => {
    fc.assert(
      fc.property(steps({ ...MOVES, ...RESTARTS }), (moves) => void play(moves)),
      { numRuns: 300 },
    );
  });

  it("revisions handed on rise, until a resync or a new epoch says otherwise", () => {
    fc.assert(
      fc.property(steps(MOVES), (moves) => {
        const revisions = play(moves).events.map((event) => event.revision);
        expect(revisions).toEqual([...new Set(revisions)].sort((a, b) => a - b));
      }),
      { numRuns: 300 },
    );
  });
});
