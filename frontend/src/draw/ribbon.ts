/** Strokes as triangles that the graphics card makes as wide as wanted: four vertices between any two places. */
import type { Path } from "./shape_mesh";

/** As the vertex shader of strokes in `globe_shapes.ts` takes them. */
export interface Ribbon {
  readonly at: Float64Array;
  readonly before: Float64Array;
  readonly after: Float64Array;
  /** The side, -1 or 1, and the width in pixels: negative where the segment that the vertex belongs to ends. */
  readonly side: Float32Array;
  readonly triangles: Uint32Array;
}

export function segmentsOf(paths: readonly Path[]): number {
  return paths.reduce((sum, path) => sum + Math.max(0, path.length / 3 - 1), 0);
}

/** The place of a path; before its first and after its last those in the same direction, so that its ends are square. */
function place(path: Path, index: number, axis: number): number {
  const last = path.length / 3 - 1;
  const value = (at: number) => path[at * 3 + axis] as number;
  if (index < 0) return 2 * value(0) - value(1);
  if (index > last) return 2 * value(last) - value(last - 1);
  return value(index);
}

export function ribbonOf(paths: readonly Path[], width_px: number): Ribbon {
  const segments = segmentsOf(paths);
  const ribbon: Ribbon = {
    at: new Float64Array(segments * 12),
    before: new Float64Array(segments * 12),
    after: new Float64Array(segments * 12),
    side: new Float32Array(segments * 8),
    triangles: new Uint32Array(segments * 6),
  };
  let vertex = 0;
  let corner = 0;
  for (const path of paths) {
    for (let index = 0; index + 1 < path.length / 3; index += 1) {
      ribbon.triangles.set([vertex, vertex + 2, vertex + 1, vertex + 1, vertex + 2, vertex + 3], corner);
      corner += 6;
      for (const [step, side] of CORNERS) {
        for (let axis = 0; axis < 3; axis += 1) {
          ribbon.at[vertex * 3 + axis] = place(path, index + step, axis);
          ribbon.before[vertex * 3 + axis] = place(path, index + step - 1, axis);
          ribbon.after[vertex * 3 + axis] = place(path, index + step + 1, axis);
        }
        ribbon.side[vertex * 2] = side;
        ribbon.side[vertex * 2 + 1] = step === 0 ? width_px : -width_px;
        vertex += 1;
      }
    }
  }
  return ribbon;
}

const CORNERS = [
  [0, -1],
  [0, 1],
  [1, -1],
  [1, 1],
] as const;
