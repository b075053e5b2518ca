// SPDX-License-Identifier: MIT
// Comparison of two requests of the example, in the page against `weft critpath --compare`.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browse, open, settled } from '../browser.mjs';
import { directory, example, request, serve, weft } from './weft.mjs';

let traces, store, server, world;
before(async () => {
  traces = example();
  store = directory();
  server = await serve(['--store', store, traces]);
  world = { url: server.url, browser: await browse() };
});
after(async () => { await world?.browser.close(); await server?.stop(); });

test('the sentence, each part and both waterfalls are those of weft critpath --compare', async () => {
  const { page, trouble } = await open(world, { width: 1280, height: 720 }), a = request(traces, store, 9),
    b = request(traces, store, 10);
  const told = weft('critpath', '--store', store, '--thread', 'client:204', '--begin', String(a[0]), '--end',
    String(a[1]), '--compare', `client:204,${b[0]},${b[1]}`, traces);
  const select = range => page.evaluate(([x, y]) => weft.session.axis.select(BigInt(x), BigInt(y)), range.map(String));
  await select(a);
  await page.evaluate(([x, y]) => weft.session.pathWanted.emit({ thread: { host: 'client', tid: 204, name: 'tier' },
    begin: BigInt(x), end: BigInt(y) }), a.map(String));
  await page.waitForFunction(() => weft.path?.pane.done);
  await settled(page);
  await select(b);
  await page.getByRole('button', { name: 'Compare with another path ( c )' }).click();
  await page.getByRole('menuitem', { name: /^tier 204: selection/ }).click();
  await page.waitForFunction(() => weft.comparer.now?.done);
  await settled(page);

  assert.equal(await page.locator('.comparison .sentence p').innerText(), told.sentence);
  const parts = await page.evaluate(() => weft.comparer.now.parts.map(p =>
    ({ host: p.host, name: p.name, state: p.state, a: p.a, b: p.b })));
  assert.deepEqual(parts, told.parts.map(p => ({ host: p.host, name: p.comm ?? '', state: p.state, a: Number(p.a),
    b: Number(p.b) })));
  assert.equal(await page.locator('.compared tbody tr').count(), told.parts.length);

  // Sides both begin at 0, with every segment where the verb has it.
  const drawn = await page.evaluate(() => weft.comparer.now.sides.map(w => w.segments.map(s =>
    [s.begin, s.end, s.host, s.tid ?? -1, s.kind.replace(/ /g, '-')])));
  [told.a, told.b].forEach(({ query, segments }, i) => assert.deepEqual(drawn[i], segments.map(s =>
    [Number(BigInt(s.begin) - BigInt(query.begin)), Number(BigInt(s.end) - BigInt(query.begin)), s.host, s.tid,
      s.state])));
  const said = await page.locator('.panel.side .panel-bar .sentence p').allInnerTexts();
  assert.deepEqual(said, [told.a.sentence, told.b.sentence]);

  // Strip: its sum is the whole difference.
  const differs = told.parts.reduce((sum, p) => sum + Math.abs(Number(p.b) - Number(p.a)), 0);
  assert.equal(await page.locator('.difference').getAttribute('data-ns'), String(differs));
  assert.deepEqual(trouble, []);
  await page.close();
});
