/** What a click or a tap means: the nearest thing under it, a point before a line, and a line before an area. */
import {
  type Cartesian2,
  type PrimitiveCollection,
  ScreenSpaceEventHandler,
  ScreenSpaceEventType,
} from "@cesium/engine";
import type { PointId } from "./globe_points";
import type { GlobeScene } from "./globe_scene";

/** A click need not be exact, since points are two pixels wide; a finger cannot be. */
const PICK_PX = 11;
const TOUCH_PX = 25;

/** `ranks`: an area fills all that is around the points and lines on it, so that it has what these leave. */
export function onClick(
  { scene, canvas }: GlobeScene,
  ranks: readonly PrimitiveCollection[],
  onPick: (picked: PointId | null) => void,
): () => void {
  let wide_px = PICK_PX;
  const onPointer = ({ pointerType }: PointerEvent) => {
    wide_px = pointerType === "touch" ? TOUCH_PX : PICK_PX;
  };
  canvas.addEventListener("pointerdown", onPointer);

  function hit(position: Cartesian2): PointId | null {
    const shown = ranks.map(({ show }) => show);
    try {
      for (const rank of ranks) {
        for (const other of ranks) other.show = other === rank;
        const found = scene.pick(position, wide_px, wide_px) as { id?: PointId } | undefined;
        if (found?.id?.layer) return found.id;
      }
      return null;
    } finally {
      ranks.forEach((rank, index) => {
        rank.show = shown[index] ?? true;
      });
    }
  }

  const mouse = new ScreenSpaceEventHandler(canvas);
  mouse.setInputAction(
    ({ position }: { position: Cartesian2 }) => onPick(hit(position)),
    ScreenSpaceEventType.LEFT_CLICK,
  );
  return () => {
    mouse.destroy();
    canvas.removeEventListener("pointerdown", onPointer);
  };
}
