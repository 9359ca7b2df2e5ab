/** The drawn part of a chart tile. */
import { useEffect, useRef } from "react";
import { type ChartModel, CityChart, type Pointed } from "../draw/chart";

interface CityCanvasProps {
  model: ChartModel;
  label: string;
  onPoint: (pointed: Pointed | null) => void;
}

const SYNC_KEY = "terminal";

export function CityCanvas({ model, label, onPoint }: CityCanvasProps) {
  const parent = useRef<HTMLDivElement>(null);
  const chart = useRef<CityChart | null>(null);
  const report = useRef(onPoint);
  report.current = onPoint;

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
          report.current(latest);
        });
      },
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
