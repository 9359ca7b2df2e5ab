import { cp, mkdir, readFile } from "node:fs/promises";
import { dirname, join, normalize, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const here = dirname(fileURLToPath(import.meta.url));
const engine = join(here, "node_modules/@cesium/engine");
const outDir = resolve(here, "../src/planetwire/web/static");
const backend = process.env.PLANETWIRE_DEV_BACKEND ?? "http://127.0.0.1:8000";

/** What the globe asks for at run time, as [place in the package, place under /cesium]. */
const CESIUM_FILES: readonly (readonly [string, string])[] = [
  ["Build/Workers", "Workers"],
  ["Build/ThirdParty", "ThirdParty"],
  ["Source/Assets/approximateTerrainHeights.json", "Assets/approximateTerrainHeights.json"],
  ["Source/Assets/IAU2006_XYS", "Assets/IAU2006_XYS"],
  ["Source/Assets/Textures/NaturalEarthII", "Assets/Textures/NaturalEarthII"],
  ["Source/Assets/Textures/waterNormalsSmall.jpg", "Assets/Textures/waterNormalsSmall.jpg"],
];

const TYPES: Record<string, string> = {
  js: "text/javascript",
  json: "application/json",
  wasm: "application/wasm",
  jpg: "image/jpeg",
  png: "image/png",
  xml: "application/xml",
};

/** Copies the globe's runtime files on build, and serves the same files from the package in development. */
function cesiumFiles(): Plugin {
  return {
    name: "planetwire-cesium-files",
    configureServer(server) {
      server.middlewares.use("/cesium", async (request, response, next) => {
        const path = normalize(decodeURIComponent((request.url ?? "/").split("?")[0] ?? "/")).replace(/^\/+/, "");
        const match = CESIUM_FILES.find(([, to]) => path === to || path.startsWith(`${to}/`));
        if (!match || path.includes("..")) return next();
        try {
          const body = await readFile(join(engine, match[0], path.slice(match[1].length)));
          response.setHeader("Content-Type", TYPES[path.split(".").pop() ?? ""] ?? "application/octet-stream");
          response.end(body);
        } catch {
          next();
        }
      });
    },
    async writeBundle() {
      for (const [from, to] of CESIUM_FILES) {
        const target = join(outDir, "cesium", to);
        await mkdir(dirname(target), { recursive: true });
        await cp(join(engine, from), target, { recursive: true });
      }
    },
  };
}

export default defineConfig({
  base: "/",
  plugins: [react(), cesiumFiles()],
  define: { CESIUM_BASE_URL: JSON.stringify("/cesium/") },
  worker: { format: "es" },
  build: {
    outDir,
    emptyOutDir: true,
    target: "es2022",
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
