import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import * as zlib from "node:zlib";
import type { Plugin } from "vite";

/** Packed by their own format: a second coat makes none of them smaller. */
const PACKED = /\.(png|jpe?g|webp|avif|gif|woff2?|ktx2|basis|mp4|webm|zip|gz|br|zst)$/;

/** A form that saves less than a tenth is not worth its place. */
const WORTH = 0.9;

type Pack = (body: Buffer) => Promise<Buffer>;

const brotli: Pack = (body) =>
  promisify(zlib.brotliCompress)(body, {
    params: {
      [zlib.constants.BROTLI_PARAM_QUALITY]: zlib.constants.BROTLI_MAX_QUALITY,
      [zlib.constants.BROTLI_PARAM_SIZE_HINT]: body.length,
    },
  });
const gzip: Pack = (body) => promisify(zlib.gzip)(body, { level: zlib.constants.Z_BEST_COMPRESSION });

/** Node has zstd since 22.15; what it can do is asked, not its version. Level 19 keeps the window at 8 MiB, which every
 * reader grants. */
function zstd(): Pack | undefined {
  const packs = zlib as unknown as { zstdCompress?: (...given: unknown[]) => void };
  const constants = zlib.constants as unknown as Record<string, number>;
  if (packs.zstdCompress === undefined) return undefined;
  const pack = promisify(packs.zstdCompress) as unknown as (body: Buffer, options: object) => Promise<Buffer>;
  return (body) => pack(body, { params: { [constants.ZSTD_c_compressionLevel as number]: 19 } });
}

/** Each file of the build once more in each coding, beside it: `x.js.br`, `x.js.gz`, and `x.js.zst` where Node can. */
export function precompress(outDir: string): Plugin {
  const kinds: [string, Pack | undefined][] = [
    [".br", brotli],
    [".gz", gzip],
    [".zst", zstd()],
  ];
  const one = async (path: string): Promise<void> => {
    const body = await readFile(path);
    for (const [suffix, pack] of kinds) {
      const packed = await pack?.(body);
      if (packed !== undefined && packed.length <= body.length * WORTH) await writeFile(path + suffix, packed);
    }
  };
  return {
    name: "planetwire-precompress",
    apply: "build",
    async closeBundle() {
      const entries = await readdir(outDir, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile() && !PACKED.test(entry.name));
      await Promise.all(files.map((entry) => one(join(entry.parentPath, entry.name))));
    },
  };
}
