// SPDX-License-Identifier: MIT
// Builds dist/ from src/ and index.html. `--check` builds to memory and compares: the committed bundle is that of these
// sources.
import { build } from 'esbuild';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));
const limit = 150_000;

// The bundle holds uPlot; its licence asks for the notice.
const notice = `/*! uPlot\n${readFileSync(join(here, 'node_modules/uplot/LICENSE'), 'utf8').trim()}\n*/`;
const result = await build({
  absWorkingDir: here,
  entryPoints: { app: 'src/main.ts' },
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['chrome110', 'firefox110', 'safari16'],
  charset: 'utf8',
  legalComments: 'eof',
  footer: { js: notice, css: '/*! contains styles of uPlot, MIT licence: see app.js */' },
  outdir: 'dist',
  write: false,
});
const files = new Map([['index.html', readFileSync(join(here, 'index.html'))]]);
for (const f of result.outputFiles) files.set(f.path.split('/').pop(), Buffer.from(f.contents));

const packed = [...files.values()].reduce((sum, data) => sum + gzipSync(data, { level: 9 }).length, 0);
if (packed > limit) {
  console.error(`the bundle takes ${packed} bytes after gzip; the limit is ${limit}`);
  process.exit(1);
}
if (process.argv.includes('--check')) {
  for (const [name, data] of files) {
    let old;
    try { old = readFileSync(join(here, 'dist', name)); } catch { old = Buffer.alloc(0); }
    if (!old.equals(data)) {
      console.error(`dist/${name} is not what the sources give: run npm run build`);
      process.exit(1);
    }
  }
  console.log(`dist/ is up to date, ${packed} bytes after gzip`);
} else {
  mkdirSync(join(here, 'dist'), { recursive: true });
  for (const [name, data] of files) writeFileSync(join(here, 'dist', name), data);
  console.log(`dist/ written, ${packed} bytes after gzip`);
}
