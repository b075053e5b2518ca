// SPDX-License-Identifier: MIT
// Pages of other origins, like the views in Theia and VS Code: the protocol's own client, bundled into a page at
// Theia's origin, queries the server from a browser that enforces the server's rules.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { browse } from '../browser.mjs';
import { directory, example, serve } from './weft.mjs';

const THEIA = 'http://localhost:3000', STRANGER = 'http://other.example',
  // Folder of the client: given by run.mjs.
  CLIENT = process.env.WEFT_TSP_CLIENT ?? fileURLToPath(new URL('../../tsp/', import.meta.url)),
  THREADS = 'org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ThreadStatusDataProvider';
const PAGE = `
import { HttpTspClient } from 'tsp-typescript-client/lib/protocol/http-tsp-client';
import { Query } from 'tsp-typescript-client/lib/models/query/query';
import { QueryHelper } from 'tsp-typescript-client/lib/models/query/query-helper';
Object.assign(window, { HttpTspClient, Query, QueryHelper });`;

/* Page on this machine, which browsers allow to talk to servers on it, under any name. */
const pages = createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end('<!doctype html>'));
let browser, bundle, traces;
before(async () => {
  const { build } = createRequire(new URL('../../../web/package.json', import.meta.url))('esbuild'),
    out = directory();
  await build({ stdin: { contents: PAGE, resolveDir: CLIENT }, bundle: true, outfile: join(out, 'page.js'),
    platform: 'browser', logLevel: 'silent' });
  bundle = join(out, 'page.js');
  traces = example();
  await new Promise(done => { pages.listen(0, '127.0.0.1', done); });
  const at = `127.0.0.1:${pages.address().port}`;
  browser = await browse(`--host-resolver-rules=MAP localhost:3000 ${at}, MAP other.example:80 ${at}`);
});
after(async () => {
  await browser?.close();
  pages.closeAllConnections();
  pages.close();
});

/** Returns the results of a page at `origin`: for the queries of the views, and for opening an experiment. */
async function visit(server, origin) {
  const context = await browser.newContext(), page = await context.newPage();
  await page.goto(`${origin}/`);
  await page.addScriptTag({ path: bundle });
  const got = await page.evaluate(async ([url, threads]) => {
    const client = new HttpTspClient(`${url}/tsp/api`), told = {},
      ask = async (name, f) => { try { told[name] = await f(); } catch (e) { told[name] = String(e); } },
      model = answer => answer.isOk() ? answer.getModel() : answer.getStatusCode();
    let x;
    await ask('experiments', async () => {
      x = model(await client.fetchExperiments())[0];
      return x.name;
    });
    await ask('rows', async () => {
      for (let i = 0; ; i++) {
        const { status, model: tree } = model(await client.fetchTimeGraphTree(x.UUID, threads,
          QueryHelper.timeRangeQuery(x.start, x.end)));
        if (status === 'RUNNING' && i < 600) { await new Promise(done => { setTimeout(done, 100); }); continue; }
        const states = model(await client.fetchTimeGraphStates(x.UUID, threads, QueryHelper.selectionTimeRangeQuery(
          x.start, x.end, 100, tree.entries.map(e => e.id)))).model;
        return [tree.entries.length, states.rows.reduce((n, r) => n + r.states.length, 0)];
      }
    });
    await ask('made', async () => model(await client.createExperiment(new Query({ name: 'mine',
      traces: x.traces.map(t => t.UUID) }))).name ?? 'refused');
    return told;
  }, [server.url, THREADS]);
  await context.close();
  return got;
}

async function withServer(options, origins) {
  const server = await serve([...options, '--store', directory(), '--state', directory(), traces]), got = [];
  try {
    for (const origin of origins) got.push(await visit(server, origin));
  } finally {
    await server.stop();
  }
  return got;
}

test('--cors editors: the views of Theia ask and make; a page that was not named gets nothing', async () => {
  const [theia, stranger] = await withServer(['--cors', 'editors'], [THEIA, STRANGER]);
  assert.equal(theia.experiments, 'three-tier');
  assert.ok(theia.rows[0] > 100 && theia.rows[1] > 1000, JSON.stringify(theia));
  assert.equal(theia.made, 'mine');
  assert.match(stranger.experiments, /TypeError|undefined/);
  assert.notEqual(stranger.made, 'mine');
});

test('--cors *: any page may ask, none may make; without the option none may ask', async () => {
  const [anybody] = await withServer(['--cors', '*'], [STRANGER]);
  assert.ok(anybody.rows[0] > 100 && anybody.rows[1] > 1000, JSON.stringify(anybody));
  assert.equal(anybody.made, 'refused');
  const [nobody] = await withServer([], [THEIA]);
  assert.match(nobody.experiments, /TypeError|undefined/);
});
