/** The drawn part of a chart tile. */
import { type Ref, useEffect, useImperativeHandle, useRef } from "react";
import { type ChartModel, CityChart, type Pointed } from "../draw/chart";

export interface CanvasHandle {
  /** What is drawn now; null while there is no room for it. */
  canvas: () => HTMLCanvasElement | null;
}

interface CityCanvasProps {
  ref?: Ref<CanvasHandle>;
  model: ChartModel;
  label: string;
  onPoint: (pointed: Pointed | null) => void;
  onLineMoved: (index: number, temp_c: number) => void;
}

const SYNC_KEY = "terminal";

export function CityCanvas({ ref, model, label, onPoint, onLineMoved }: CityCanvasProps) {
  const parent = useRef<HTMLDivElement>(null);
  const chart = useRef<CityChart | null>(null);
  const report = useRef({ onPoint, onLineMoved });
  report.current = { onPoint, onLineMoved };
  useImperativeHandle(ref, () => ({ canvas: () => chart.current?.canvas ?? null }), []);

  useEffect(() => {
    if (!parent.current) return;
    let pending: number | null = null;
    let latest: Pointed | null = null;
    const made = new CityChart(parent.current, {
      sync_key: SYNC_KEY,
      // The pointer moves more often than the screen is drawn.
      onPoint: (pointed) => {
        latest = pointed;
        pending ??= requestAnimationFrame(() => {
          pending = null;
          report.current.onPoint(latest);
        });
      },
      onLineMoved: (index, temp_c) => report.current.onLineMoved(index, temp_c),
    });
    chart.current = made;
    return () => {
      if (pending !== null) cancelAnimationFrame(pending);
      made.destroy();
      chart.current = null;
    };
  }, []);

  useEffect(() => chart.current?.update(model), [model]);

  return <div ref={parent} className="tile__canvas" role="img" aria-label={label} />;
}
