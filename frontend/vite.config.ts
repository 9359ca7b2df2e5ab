import { readFileSync } from "node:fs";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { precompress } from "./precompress.ts";

const here = dirname(fileURLToPath(import.meta.url));
const engine = join(here, "node_modules/@cesium/engine");
const { version } = JSON.parse(readFileSync(join(engine, "package.json"), "utf8")) as { version: string };
/** Where its workers lie: named after the version, so that browsers may keep them for ever. */
const cesiumBase = `assets/cesium-${version}/`;
const outDir = resolve(here, "../src/planetwire/web/static");
const backend = process.env.PLANETWIRE_DEV_BACKEND ?? "http://127.0.0.1:8000";

/** The orbit library's WebAssembly runtimes: exported beside what we use, never imported, and written for Node too. */
const UNUSED_RUNTIMES = [/^#wasm-(single|multi)-thread$/];

/** The workers that a globe without terrain and without tilesets starts. */
const CESIUM_WORKERS = [
  "createVerticesFromHeightmap.js",
  "incrementallyBuildTerrainPicker.js",
  "transferTypedArrayTest.js",
];

/** Those workers and all that they import, by name in the package's folder of workers. */
function cesiumWorkers(): readonly string[] {
  const found = new Set<string>();
  const left = [...CESIUM_WORKERS];
  for (let name = left.pop(); name !== undefined; name = left.pop()) {
    if (found.has(name)) continue;
    found.add(name);
    const text = readFileSync(join(engine, "Build/Workers", name), "utf8");
    for (const match of text.matchAll(/(?:from|import)\s*\(?["']\.\/([\w.-]+\.js)["']/g)) left.push(match[1] ?? "");
  }
  return [...found];
}

/** Copies the globe's workers on build, and serves the same files from the package in development. */
function cesiumFiles(): Plugin {
  const names = cesiumWorkers();
  return {
    name: "planetwire-cesium-files",
    configureServer(server) {
      server.middlewares.use(`/${cesiumBase}Workers`, async (request, response, next) => {
        const name = (request.url ?? "/").slice(1).split("?")[0] ?? "";
        if (!names.includes(name)) return next();
        response.setHeader("Content-Type", "text/javascript");
        response.end(await readFile(join(engine, "Build/Workers", name)));
      });
    },
    async writeBundle() {
      const target = join(outDir, cesiumBase, "Workers");
      await mkdir(target, { recursive: true });
      await Promise.all(names.map((name) => copyFile(join(engine, "Build/Workers", name), join(target, name))));
    },
  };
}

export default defineConfig({
  base: "/",
  plugins: [react(), cesiumFiles(), precompress(outDir)],
  define: { CESIUM_BASE_URL: JSON.stringify(`/${cesiumBase}`) },
  worker: { format: "es", rolldownOptions: { external: UNUSED_RUNTIMES } },
  build: {
    outDir,
    emptyOutDir: true,
    target: "es2022",
    rolldownOptions: { external: UNUSED_RUNTIMES },
    // The globe's engine is one large lazy chunk by nature; everything else stays far below.
    chunkSizeWarningLimit: 5_000,
  },
  server: {
    host: "127.0.0.1",
    port: 5173,
    proxy: {
      "/api": { target: backend },
      "/ws": { target: backend, ws: true },
      "/healthz": { target: backend },
      "/readyz": { target: backend },
    },
  },
});
