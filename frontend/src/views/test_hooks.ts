/** `window.__planetwire`: the numbers behind the pixels, for browser tests and the curious. */

/** Publishes one page's part; the returned function takes it away again. */
export function publishHooks<K extends string>(page: K, hooks: PlanetwireHooks[K]): () => void {
  const all: PlanetwireHooks = window.__planetwire ?? {};
  all[page] = hooks;
  window.__planetwire = all;
  return () => {
    if (all[page] === hooks) delete all[page];
  };
}
