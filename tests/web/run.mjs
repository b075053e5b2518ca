// Tests of the viewer: `run.mjs` (types, committed bundle, units, the page on a mock server), `run.mjs server` (the page on `weft serve`, the program that WEFT_BIN names).
// What they need is fetched into web/node_modules once; exit status 77 (skipped) without a way to get it, or without Chromium.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url)), web = join(here, '../../web'), chromium = process.env.CHROMIUM ?? '/usr/bin/chromium';
function skip(why) { console.log(`skipped: ${why}`); process.exit(77); }

if (!existsSync(chromium)) skip(`no browser at ${chromium} (the Debian package chromium; CHROMIUM names another)`);
if (!['playwright-core', 'esbuild', 'typescript', 'uplot'].every(m => existsSync(join(web, 'node_modules', m)))) {
  const done = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--fetch-retries=1', '--fetch-timeout=60000'], { cwd: web, encoding: 'utf8' });
  if (done.error) skip('npm is not installed');
  if (done.status !== 0) skip(`npm cannot fetch what web/package-lock.json names: ${done.stderr.trim().split('\n').slice(-4).join(' ')}`);
}
const server = process.argv[2] === 'server', tests = server ? join(here, 'server') : here;
if (!server) for (const args of [['node_modules/typescript/bin/tsc', '--noEmit'], ['build.mjs', '--check']]) {
  const done = spawnSync(process.execPath, args, { cwd: web, stdio: 'inherit' });
  if (done.status !== 0) process.exit(1);
}
const files = readdirSync(tests).filter(f => f.endsWith('.test.mjs')).map(f => join(tests, f));
process.exit(spawnSync(process.execPath, ['--test', '--test-concurrency=1', '--test-timeout=600000', ...files], { stdio: 'inherit' }).status ?? 1);
