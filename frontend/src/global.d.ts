/** Where the globe's runtime files are served from; set at build time. */
declare const CESIUM_BASE_URL: string;

/** Hooks for browser tests; each page fills in its own part and removes it when it is left. */
interface PlanetwireHooks {
  terminal?: {
    /** Number of points held for a series of a city, or of all of its series. */
    points(city: string, series?: string): number;
    /** State of the event stream. */
    readonly connection: string;
    /** Cities the stream asks for, sorted. */
    readonly cities: readonly string[];
    /** Values of a series as `[epoch_ms, temp_c]`. */
    values(city: string, series: string): readonly (readonly [number, number])[];
  };
  [page: string]: unknown;
}

interface Window {
  __planetwire?: PlanetwireHooks;
}
