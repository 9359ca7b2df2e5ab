/** A clock for ages: renders again at every step, in step for all components, and not in a hidden tab. */
import { useSyncExternalStore } from "react";

type Listener = () => void;

const clocks = new Map<number, { listeners: Set<Listener>; timer: number | null; now: number }>();

function clockOf(step_ms: number) {
  let clock = clocks.get(step_ms);
  if (!clock) {
    clock = { listeners: new Set(), timer: null, now: Date.now() };
    clocks.set(step_ms, clock);
  }
  return clock;
}

function subscribe(step_ms: number, listener: Listener): () => void {
  const clock = clockOf(step_ms);
  const tick = () => {
    if (document.hidden) return;
    clock.now = Date.now();
    for (const each of clock.listeners) each();
  };
  clock.listeners.add(listener);
  if (clock.timer === null) {
    clock.timer = window.setInterval(tick, step_ms);
    document.addEventListener("visibilitychange", tick);
    clock.now = Date.now();
    // The last reader leaves no timer behind.
    stops.set(step_ms, () => {
      if (clock.timer !== null) window.clearInterval(clock.timer);
      document.removeEventListener("visibilitychange", tick);
      clock.timer = null;
    });
  }
  return () => {
    clock.listeners.delete(listener);
    if (clock.listeners.size === 0) stops.get(step_ms)?.();
  };
}

const stops = new Map<number, () => void>();
const subscribers = new Map<number, (listener: Listener) => () => void>();

function subscriberOf(step_ms: number): (listener: Listener) => () => void {
  let subscriber = subscribers.get(step_ms);
  if (!subscriber) {
    subscriber = (listener) => subscribe(step_ms, listener);
    subscribers.set(step_ms, subscriber);
  }
  return subscriber;
}

/** Milliseconds since 1970, advancing every `step_ms`. */
export function useNow(step_ms = 1_000): number {
  return useSyncExternalStore(subscriberOf(step_ms), () => clockOf(step_ms).now);
}
