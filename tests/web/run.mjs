// SPDX-License-Identifier: MIT
// Tests of the viewer: `run.mjs` (types, committed bundle, units, the page on a mock server), `run.mjs server` (the
// page on `weft serve`, the program that WEFT_BIN names). Dependencies are fetched into web/node_modules once; exit
// status 77 (skipped) if they cannot be fetched, or without Chromium.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url)), web = join(here, '../../web'),
  chromium = process.env.CHROMIUM ?? '/usr/bin/chromium';

// Ends the test because something is absent: skipped, or failed if everything must be present (.ci/run).
function absent(why) {
  const required = Boolean(process.env.WEFT_REQUIRE_DATA);
  console.log(required ? `${why}, and WEFT_REQUIRE_DATA is set` : `skipped: ${why}`);
  process.exit(required ? 1 : 77);
}

function install(directory, lockFile) {
  const done = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--fetch-retries=1', '--fetch-timeout=60000'],
    { cwd: directory, encoding: 'utf8' });
  if (done.error) absent('npm is not installed');
  if (done.status !== 0)
    absent(`npm cannot fetch what ${lockFile} names: ${done.stderr.trim().split('\n').slice(-4).join(' ')}`);
}

// Installs the protocol's own client, while the tests of the protocol may install it at the same time.
function client() {
  const tsp = join(here, '../tsp'), is = d => existsSync(join(d, 'node_modules/tsp-typescript-client')),
    d = join(process.env.WEFT_NODE ?? join(tmpdir(), `weft-node-${userInfo().uid}`), 'page');
  if (is(tsp) || is(d)) return is(tsp) ? tsp : d;
  mkdirSync(d, { recursive: true });
  for (const name of ['package.json', 'package-lock.json', '.npmrc', 'json-bigint'])
    cpSync(join(tsp, name), join(d, name), { recursive: true });
  install(d, 'tests/tsp/package-lock.json');
  return d;
}

if (!existsSync(chromium)) absent(`no browser at ${chromium} (the Debian package chromium; CHROMIUM names another)`);
if (!['axe-core', 'esbuild', 'playwright-core', 'typescript', 'uplot'].every(m =>
  existsSync(join(web, 'node_modules', m)))) install(web, 'web/package-lock.json');
const server = process.argv[2] === 'server', tests = server ? join(here, 'server') : here;
if (!server) for (const args of [['node_modules/typescript/bin/tsc', '--noEmit'], ['build.mjs', '--check']]) {
  const done = spawnSync(process.execPath, args, { cwd: web, stdio: 'inherit' });
  if (done.status !== 0) process.exit(1);
}
if (server) process.env.WEFT_TSP_CLIENT = client();
const files = readdirSync(tests).filter(f => f.endsWith('.test.mjs')).map(f => join(tests, f));
// Failures are listed at the end by the reporter: of a long log only that part is kept.
process.exit(spawnSync(process.execPath,
  ['--test', '--test-reporter=spec', '--test-concurrency=1', '--test-timeout=600000', ...files],
  { stdio: 'inherit' }).status ?? 1);
