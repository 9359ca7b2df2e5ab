// @vitest-environment happy-dom
import type { PrimitiveCollection } from "@cesium/engine";
import { expect, it } from "vitest";
import { onClick } from "./globe_pick";
import type { PointId } from "./globe_points";
import type { GlobeScene } from "./globe_scene";

const RANKS = ["points", "lines", "areas"] as const;
type Rank = (typeof RANKS)[number];

/** A globe on which these ranks have something under every click. */
function globe(hits: readonly Rank[]) {
  const canvas = document.createElement("canvas");
  document.body.append(canvas);
  const ranks = RANKS.map(() => ({ show: true }) as PrimitiveCollection);
  const asked: [Rank | undefined, number][] = [];
  const picked: (PointId | null)[] = [];
  const pick = (_: unknown, wide_px: number) => {
    const shown = RANKS.filter((_, index) => ranks[index]?.show);
    asked.push([shown.length === 1 ? shown[0] : undefined, wide_px]);
    const found = shown.find((rank) => hits.includes(rank));
    return found && { id: { layer: found, feature: "1" } };
  };
  const stage = { scene: { pick }, canvas } as unknown as GlobeScene;
  const stop = onClick(stage, ranks, (one) => picked.push(one));
  const click = (pointerType: string) => {
    for (const type of ["pointerdown", "pointerup"]) {
      const event = { pointerType, pointerId: 1, button: 0, clientX: 5, clientY: 5, bubbles: true };
      canvas.dispatchEvent(new PointerEvent(type, event));
    }
  };
  return { asked, picked, ranks, click, stop };
}

it.each([
  [["areas", "lines", "points"], "points"],
  [["areas", "lines"], "lines"],
  [["areas"], "areas"],
] as const)("of %j a click means %s", (hits, wanted) => {
  const made = globe(hits);
  made.click("mouse");
  expect(made.picked).toEqual([{ layer: wanted, feature: "1" }]);
  expect(made.asked.at(-1)?.[0]).toBe(wanted);
  expect(made.ranks.every(({ show }) => show)).toBe(true);
  made.stop();
});

it("a click beside everything means nothing, and what was hidden stays so", () => {
  const made = globe([]);
  (made.ranks[1] as PrimitiveCollection).show = false;
  made.click("mouse");
  expect(made.picked).toEqual([null]);
  expect(made.ranks.map(({ show }) => show)).toEqual([true, false, true]);
  made.stop();
});

it("a finger reaches twice as far as a mouse", () => {
  const made = globe(["points"]);
  made.click("touch");
  made.click("mouse");
  expect(made.asked.map(([, wide_px]) => wide_px)).toEqual([25, 11]);
  made.stop();
});
