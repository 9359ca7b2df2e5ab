import { describe, expect, it } from "vitest";

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

  it("no layer's name stands in the page: a layer comes from the registry alone", () => {
    const named = own.filter(
      ([path, text]) => !path.startsWith("/src/testing/") && /["'](satellites|earthquakes)["']/.test(text),
    );
    expect(named.map(([path]) => path)).toEqual([]);
  });
});
