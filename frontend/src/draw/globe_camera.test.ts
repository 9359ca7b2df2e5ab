// @vitest-environment happy-dom
import type { Scene } from "@cesium/engine";
import { afterEach, expect, it, vi } from "vitest";
import { createCamera } from "./globe_camera";

function flights(reduced: boolean): number[] {
  vi.stubGlobal("matchMedia", (query: string) => ({ matches: reduced && query.includes("reduced-motion") }));
  const flown: number[] = [];
  const camera = {
    frustum: {},
    positionCartographic: { height: 1e7 },
    flyTo: ({ duration }: { duration: number }) => flown.push(duration),
    setView: () => undefined,
  };
  const scene = { camera, requestRender: () => undefined } as unknown as Scene;
  const view = createCamera(scene, document.createElement("canvas"));
  view.fly(35, 139, 0);
  view.home(true);
  return flown;
}

afterEach(() => vi.unstubAllGlobals());

it("flies, and for those who asked for less motion is there at once", () => {
  expect(flights(false).every((duration) => duration > 0.5)).toBe(true);
  expect(flights(true)).toEqual([0, 0]);
});
