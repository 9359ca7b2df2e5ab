/** How an object of a layer looks on the globe: the shape that every kind's file fills in. */

/** What a drawing needs to know of a feature. */
export interface DrawFeature {
  readonly id: string;
  readonly kind: string;
  readonly lat: number | null;
  readonly lon: number | null;
  readonly observed_at: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface PointLook {
  /** `#rrggbb`. */
  color: string;
  /** 0..1 */
  alpha: number;
  size_px: number;
}

export interface KindStyle {
  /** True when the place follows from orbital elements and the time, not from lat and lon. */
  readonly moving: boolean;
  look(feature: DrawFeature, now_ms: number): PointLook;
}
