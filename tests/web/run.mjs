// All tests of the viewer; 77 (skipped) when what they need is not installed: npm ci in web/, and Chromium.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url)), web = join(here, '../../web');
for (const [what, how] of [[join(web, 'node_modules/playwright-core'), 'npm ci in web/'], [join(web, 'node_modules/esbuild'), 'npm ci in web/'], [process.env.CHROMIUM ?? '/usr/bin/chromium', 'the package chromium']])
  if (!existsSync(what)) { console.log(`skipped: ${what} is not there (${how})`); process.exit(77); }
for (const [command, args] of [['node', ['node_modules/typescript/bin/tsc', '--noEmit']], ['node', ['build.mjs', '--check']]]) {
  const done = spawnSync(command, args, { cwd: web, stdio: 'inherit' });
  if (done.status !== 0) process.exit(1);
}
const files = readdirSync(here).filter(f => f.endsWith('.test.mjs')).map(f => join(here, f));
process.exit(spawnSync('node', ['--test', '--test-concurrency=1', ...files], { stdio: 'inherit' }).status ?? 1);
