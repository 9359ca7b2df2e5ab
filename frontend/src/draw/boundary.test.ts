import { describe, expect, it } from "vitest";
import { LAYERS_EXAMPLE } from "../testing/layers";

/** As the server declares it. */
interface Shipped {
  id: string;
  kind: string;
  title: string;
  title_zh: string;
  sources: readonly string[];
  look: { color: { value?: string } | null; size: { value?: string }; late: { value?: string } | null };
  card: readonly { values: readonly string[] }[];
}

const sources = import.meta.glob<string>(["/src/**/*.ts", "/src/**/*.tsx"], {
  query: "?raw",
  import: "default",
  eager: true,
});

const own = Object.entries(sources).filter(([path]) => !path.includes(".test."));

describe("who may know what", () => {
  it("only the globe's own files import Cesium", () => {
    const users = own.filter(([, text]) => text.includes('from "@cesium/')).map(([path]) => path);
    expect(users.length).toBeGreaterThan(0);
    expect(users.filter((path) => !path.startsWith("/src/draw/globe"))).toEqual([]);
  });

  it("client, data and draw know no React", () => {
    const plain = own.filter(([path]) => /^\/src\/(client|data|draw)\//.test(path));
    expect(plain.length).toBeGreaterThan(20);
    expect(plain.filter(([, text]) => /from "react/.test(text)).map(([path]) => path)).toEqual([]);
  });
});

describe("datasets", () => {
  const texts = import.meta.glob<string>("/src/**/*.{json,css}", { query: "?raw", import: "default", eager: true });
  // What may know a dataset: tests, what tests are written with, and the drawing of a kind of its own.
  const shared = [...own, ...Object.entries(texts)].filter(
    ([path]) => !/^\/src\/(testing|__tests__)\/|\/kind_\w+\.ts$|\.fixture\.json$/.test(path),
  );
  const shipped = LAYERS_EXAMPLE.items.map((item) => item as unknown as Shipped).filter(({ kind }) => kind !== "meta");
  /** Names that are there for another reason. (The Terminal's sources of readings are in no list of layers.) */
  const REASONS: Readonly<Record<string, string>> = {
    city_observation_patch: "a frame of the Terminal's stream",
    "satellite.js": "the library that propagates elements, whosever they are",
  };

  function namesIn(text: string, names: RegExp): boolean {
    return names.test(Object.keys(REASONS).reduce((rest, name) => rest.replaceAll(name, ""), text));
  }

  function naming(names: RegExp): string[] {
    return shared.filter(([, text]) => namesIn(text, names)).map(([path]) => path);
  }

  it("are shipped, and looked for in all that is shared", () => {
    expect(shipped.length).toBeGreaterThan(2);
    expect(shared.length).toBeGreaterThan(120);
    expect(shared.map(([path]) => path)).toContain("/src/i18n/zh/earth.json");
    expect(own.map(([path]) => path).filter((path) => !shared.some(([each]) => each === path))).toEqual(
      expect.arrayContaining(["/src/draw/kind_satellite.ts"]),
    );
  });

  // S72: a layer is added by its declaration alone.
  it.each(shipped.map((layer) => [layer.id, layer] as const))("nothing shared names %s", (id, layer) => {
    // `weather_stations`: also weather_station, weatherStation and "weather station".
    const one = id.replace(/s$/, "").replaceAll("_", "[-_ ]?");
    expect(naming(new RegExp([one, layer.title, layer.title_zh, ...layer.sources].join("|"), "i"))).toEqual([]);
  });

  it.each(shipped.map((layer) => [layer.id, layer] as const))("nothing shared reads the data of %s", (_, layer) => {
    const sized = layer.look.size.value;
    const named = [layer.look.color?.value, sized, layer.look.late?.value, ...layer.card.flatMap((row) => row.values)];
    const values = named.filter((name) => name && name !== "observed_at" && name !== "kind");
    expect(values.length).toBeGreaterThan(2);
    expect(naming(new RegExp(`\\bdata(\\.|\\["|: \\{ ?)(${values.join("|")})\\b`))).toEqual([]);
  });
});
