// SPDX-License-Identifier: MIT
// Program under test: the bundled example, `weft serve` on it, and the other verbs' output, which the page must show.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const BIN = process.env.WEFT_BIN ?? join(root, 'build/weft');
const program = readFileSync(BIN);
/** Factor of time with sanitizers. */
export const SLOWER = program.includes('__asan_init') ? 5 : program.includes('__tsan_init') ? 15 : 1;

// Processes to stop: those left by a failed test would keep its process alive.
const running = new Set();
after(async () => {
  for (const p of running) p.kill('SIGTERM');
  for (let i = 0; i < 100 && running.size; i++) await new Promise(done => { setTimeout(done, 100); });
  for (const p of running) p.kill('SIGKILL');
});

const scratch = [];
process.on('exit', () => { for (const d of scratch) rmSync(d, { recursive: true, force: true }); });
export function directory() {
  const d = mkdtempSync(join(tmpdir(), 'weft-web-'));
  scratch.push(d);
  return d;
}
/** Unpacks a bundled example: three-tier has the directories client, web, db and the truth about them. */
export function example(name = 'three-tier') {
  const d = directory();
  execFileSync('tar', ['-xJf', join(root, `examples/${name}.tar.xz`), '-C', d]);
  return join(d, name);
}
/** Makes the trace of a program of user space (tests/stack/ust_world.c). */
export function userSpace() {
  const d = join(directory(), 'program');
  execFileSync(process.env.UST_WRITE ?? join(root, 'build/tests/stack/ust_write'), ['sample', d, 'small']);
  return d;
}
export const truth = (traces, name) => JSON.parse(readFileSync(join(traces, name), 'utf8'));

/** Parser for times beyond 2^53: integers of that size become bigint. */
const exact = text => JSON.parse(text.replace(/([:[,]\s*)(-?\d{16,})(?=\s*[,\]}])/g, '$1"$2n"'),
  (_, v) => {
    if (typeof v !== 'string' || !/^-?\d{16,}n$/.test(v)) return v;
    const n = v.slice(0, -1);
    return Number.isSafeInteger(Number(n)) ? Number(n) : BigInt(n); // ids are numbers
  });
/** Exit status 3: answered from the readable part of damaged traces. */
const run = args => {
  const done = spawnSync(BIN, args, { encoding: 'utf8', maxBuffer: 1 << 28, env: { ...process.env, NO_COLOR: '1' } });
  if (done.status !== 0 && done.status !== 3) throw new Error(`weft ${args.join(' ')}: ${done.status}: ${done.stderr}`);
  return done.stdout;
};
/** Returns the answer of a verb that prints one object. */
export const weft = (...args) => exact(run([...args, '--format', 'json']));
/** Returns when request `id` of the example left and was answered, by the clock of the page: the recorded times, the
 * client's metadata, then the clock map. */
export function request(traces, store, id) {
  const { log } = truth(traces, 'ground-truth.json'), r = log.client.find(x => x.id === id),
    offset = BigInt(truth(traces, 'true-sync.json').to_host_tsc_ns.client.metadata_clock_offset_ns);
  const { pieces } = weft('sync', '--store', store, traces).hosts.find(h => h.host === 'client');
  return [r.t_send, r.t_recv].map(t => {
    const at = BigInt(t) + offset, p = pieces.find(x => at >= BigInt(x.begin) && at <= BigInt(x.end));
    // drift · t + offset, in units of 1e-24 ns.
    const [w, f] = p.drift.split('.'), drift = BigInt(w + f.padEnd(24, '0')), [ow, of = ''] = p.offset_ns.split('.'),
      sign = ow.startsWith('-') ? -1n : 1n;
    return (drift * at + sign * BigInt(ow.replace('-', '') + of.padEnd(24, '0'))) / 10n ** 24n;
  });
}
/** Returns the lines of `weft events`; `events`: by the reference host's clock. */
export const lines = (traces, ...args) => run(['events', '--format', 'json', ...args, traces]).trim().split('\n')
  .filter(Boolean).map(exact);
export const events = (traces, ...args) => lines(traces, '--sync', ...args);

/** Returns the notes of a verb about its traces. */
export const notes = (...args) => spawnSync(BIN, args, { encoding: 'utf8' }).stderr.split('\n')
  .filter(l => /^weft: note: /.test(l) && !/events indexed/.test(l)).map(l => l.replace('weft: note: ', ''));

/** Starts a server on a free port, or on `port` again. */
export const serve = (args, port = 0) => start('serve', args, port);
export const coordinate = args => start('coordinate', args);
async function start(verb, args, port = 0) {
  const process_ = spawn(BIN, [verb, '--listen', `127.0.0.1:${port}`, ...args],
    { stdio: ['ignore', 'pipe', 'pipe'] });
  let errors = '';
  running.add(process_);
  process_.stderr.on('data', d => { errors += d; });
  const url = await new Promise((done, failed) => {
    let out = '';
    process_.stdout.on('data', d => { out += d; const m = /listening on (\S+)/.exec(out); if (m) done(m[1]); });
    process_.on('exit', code => failed(new Error(`weft ${verb} ended (${code}): ${errors}`)));
  });
  const ended = new Promise(done => process_.on('exit', (code, signal) => {
    running.delete(process_);
    done(signal ?? code);
  }));
  const end = async signal => { process_.kill(signal); return ended; };
  return {
    url, errors: () => errors,
    ask: async (path, body) => exact(await (await fetch(`${url}/tsp/api${path}`, body
      ? { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } } : {})).text()),
    kill: () => end('SIGKILL'),
    stop: async () => {
      const status = await end('SIGTERM');
      if (status !== 0 || /Sanitizer|runtime error/.test(errors))
        throw new Error(`weft ${verb} ended (${status}): ${errors}`);
    },
  };
}
