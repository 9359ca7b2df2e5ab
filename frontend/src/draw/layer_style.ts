/** What a drawing knows of a feature, and what a kind may add to the data of its features. */

export interface DrawFeature {
  readonly id: string;
  readonly kind: string;
  readonly lat: number | null;
  readonly lon: number | null;
  readonly observed_at: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface ObjectLook {
  /** `#rrggbb`. */
  color: string;
  /** 0..1 */
  alpha: number;
  /** Diameter of a point, width of a line or of an area's border. */
  size_px: number;
  /** Share of `alpha` that the inside of an area has; null: the page's own. */
  fill_alpha: number | null;
}

/** Where a feature is drawn now. */
export interface DrawnPlace {
  readonly altitude_m: number;
}

/** What a `kind_<kind>.ts` gives out, for a kind whose place or values do not stand in its data. */
export interface KindDrawing {
  /** True when the place follows from orbital elements and the time, not from lat and lon. */
  readonly moving: boolean;
  /** Values by the names that looks and cards call them; before those of the data. */
  values(data: DrawFeature["data"], place: DrawnPlace | null): Readonly<Record<string, unknown>>;
}
