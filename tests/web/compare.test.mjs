// SPDX-License-Identifier: MIT
// Comparison of two critical paths, on the mock server: choice of the second one, one scale, words and bars.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BEGIN, changes, SLOW } from './mock/world.mjs';
import { drawn, open, settled, start, view } from './browser.mjs';

let world;
before(async () => { world = await start({ threads: 60 }); });
after(() => world.stop());

const USUAL = 2e9, MS = 1e6, sides = page => page.locator('.panel.side');
/** Requests the path of `client` that begins then. */
const ask = (page, begin) => page.evaluate(([t, u]) => weft.session.pathWanted.emit({
  thread: { host: 'client', tid: 204, name: 'tier' }, begin: BigInt(t), end: BigInt(u) }),
  [String(BEGIN + BigInt(begin)), String(BEGIN + BigInt(begin) + 120_000_000n)]);
const complete = page => page.waitForFunction(() => weft.path?.pane.done).then(() => settled(page));
const compared = page => page.waitForFunction(() => weft.comparer.now?.done).then(() => settled(page));

/** Opens the usual path; both paths are on the server. */
async function both(options = {}) {
  const { page, trouble } = await open(world, { width: 1280, height: 720, ...options });
  await ask(page, SLOW);
  await complete(page);
  await ask(page, USUAL);
  await complete(page);
  return { page, trouble };
}
const menu = async (page, label) => {
  await page.getByRole('button', { name: 'Compare with another path ( c )' }).press('Enter');
  await page.getByRole('menuitem', { name: label }).first().press('Enter');
};
/** Returns the two axes: begin, range, px of a ms. */
const axes = page => page.evaluate(() => weft.comparer.now.views.map(v => ({ min: String(v.axis.min),
  begin: Number(v.axis.begin - v.axis.min), ms: 1e6 / v.axis.nsPerPx, width: v.axis.width })));

test('a path that is there opens beside the first: both start at 0 on one scale, zoomed and moved together; the '
  + 'server\'s sentence; closed by c', async () => {
  const { page, trouble } = await both();
  await page.keyboard.press('c');
  await page.getByRole('menuitem', { name: /^tier 204 on client 00:|^tier 204 on client/ }).first().press('Enter');
  await compared(page);
  assert.deepEqual(await sides(page).locator('h2').allInnerTexts(), ['a · tier 204 on client',
    'b · tier 204 on client']);
  assert.ok(await page.locator('.panel[data-output*="CriticalPath"]').first().isHidden(), 'it is one of the two now');
  const [a, b] = await axes(page);
  assert.deepEqual([a.min, b.min], [BEGIN + BigInt(USUAL), BEGIN + BigInt(SLOW)].map(String));
  assert.deepEqual([a.begin, a.ms, a.width], [b.begin, b.ms, b.width]);
  assert.ok(a.begin === 0 && a.ms * 110.494 > a.width * 0.9 && a.ms * 110.494 < a.width, 'the longer one fills it');
  const boxes = await sides(page).locator('.area').evaluateAll(all => all.map(e => e.getBoundingClientRect().x));
  assert.equal(boxes[0], boxes[1]);

  const sentence = page.locator('.comparison .sentence p');
  assert.equal(await sentence.innerText(), 'made up: db BLOCK_DEVICE 24 ms');
  assert.equal(await page.locator('.comparison .sentence em').innerText(), '');
  await sides(page).nth(1).locator('.tree').focus();
  await page.keyboard.press('w');
  await page.keyboard.press('d');
  await settled(page);
  const [c, d] = await axes(page);
  assert.ok(c.ms > a.ms * 1.4 && c.begin > 0);
  assert.deepEqual([c.begin, c.ms], [d.begin, d.ms]);

  await page.keyboard.press('c');
  await settled(page);
  assert.equal(await sides(page).count(), 0);
  assert.ok(await page.locator('.panel[data-output*="CriticalPath"]').isVisible());
  assert.match(await page.locator('.path-title').innerText(), /^client:204/);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('part by part: times of both and what is longer in aligned bars; on the scale of the two a strip, red where it is '
  + 'longer, green with a pattern where it is shorter', async () => {
  const { page, trouble } = await both();
  await menu(page, /^tier 204 on client/);
  await compared(page);
  const told = changes(USUAL, SLOW), text = ms => ms ? `${ms.toFixed(ms >= 10 ? 2 : 3)} ms` : '–';
  const rows = await page.locator('.compared tbody tr').evaluateAll(all => all.map(r => ({
    cells: [...r.cells].map(c => c.innerText.trim()), class: r.querySelector('.aligned span:last-child').className,
    width: [...r.querySelectorAll('.aligned span')].map(s => s.getBoundingClientRect().width) })));
  assert.equal(rows.length, told.length);
  const longest = Math.max(...told.flatMap(p => [p[5], p[6]]));
  told.forEach(([host, tid, name, key, , a, b], i) => {
    const { cells, width } = rows[i], d = b - a;
    assert.deepEqual([cells[0], cells[1], cells[4], cells[5], cells[6]], [text(a), text(b), host, `${name} ${tid}`,
      key.toLowerCase().replace('_', ' ')]);
    assert.equal(cells[2], d ? `${d > 0 ? '+' : '−'}${text(Math.abs(d))}` : '0');
    assert.ok(Math.abs(width[0] - 160 * Math.min(a, b) / longest) < 1, `${host} ${key}: ${width}`);
    assert.ok(Math.abs(width[1] - 160 * Math.abs(d) / longest) < 1, `${host} ${key}: ${width}`);
    if (d) assert.equal(rows[i].class, d > 0 ? 'longer' : 'shorter');
  });

  // Order of the strip: web is preempted before db waits for the disk.
  const ink = await page.locator('.difference canvas').evaluate(c => {
    const ctx = c.getContext('2d'), { data } = ctx.getImageData(0, 6, c.width, 1), runs = [];
    for (let x = 0; x < c.width; x++) {
      const [r, g, , alpha] = data.slice(x * 4), kind = alpha < 200 ? '' : r > g + 60 ? 'red' : 'green';
      if (kind && runs.at(-1)?.kind === kind) runs.at(-1).to = x;
      else if (kind) runs.push({ kind, from: x, to: x });
    }
    const shades = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && data[i] <= data[i + 1] + 60)
      shades.add(data[i + 1]);
    return { runs, shades: shades.size };
  });
  const [{ ms }] = await axes(page);
  assert.deepEqual(ink.runs.map(r => r.kind), ['green', 'red']);
  assert.ok(ink.runs.every((r, i) => Math.abs(r.to - r.from - ms * [2, 24][i]) < 3), JSON.stringify([ink.runs, ms]));
  assert.ok(ink.shades > 2, 'a pattern');
  assert.deepEqual(trouble, []);
  await page.close();
});

test('along one and the other by [ and ]: the other views follow; a part leads to its longest piece in both',
  async () => {
  const { page, trouble } = await both();
  await menu(page, /^tier 204 on client/);
  await compared(page);
  const line = page.locator('.walk p:visible'), frames = () => page.evaluate(() => weft.comparer.now.views.map(v =>
    v.part.frame && [v.part.frame.begin / 1e6, v.part.frame.end / 1e6]));
  await page.evaluate(() => { for (const v of weft.comparer.now.views) v.axis.cursor = null; });
  await page.keyboard.press(']');
  await page.keyboard.press(']');
  await page.keyboard.press(']');
  await line.filter({ hasText: /^3\/15 {2}web 1001 nginx running 7\.500 ms/ }).waitFor();
  assert.deepEqual(await frames(), [[1.5, 9], null]);
  const there = await view(page);
  assert.ok(BigInt(there.begin) <= BEGIN + 2001500000n && BigInt(there.end) >= BEGIN + 2009000000n);

  // Side b is under the mouse; from now on [ and ] go along b.
  const row = await sides(page).nth(1).locator('.tree-row:not([hidden])').filter({ hasText: 'postgres' }).boundingBox(),
    at = await page.evaluate(() => {
      const { axis } = weft.comparer.now.views[1];
      return axis.px(axis.min + 80000000n);
    }),
    area = await sides(page).nth(1).locator('.area').boundingBox();
  await page.mouse.click(area.x + at, row.y + row.height / 2);
  await line.filter({ hasText: /^8\/14 {2}db 1002 postgres block device 34\.00 ms/ }).waitFor();
  assert.deepEqual((await frames())[1], [58, 92]);
  const then = await view(page);
  assert.ok(BigInt(then.begin) <= BEGIN + 3058000000n && BigInt(then.end) >= BEGIN + 3092000000n, 'the others, too');
  await page.keyboard.press('[');
  await line.filter({ hasText: /^7\/14 / }).waitFor();

  await page.locator('.compared tbody tr').first().press('Enter');
  assert.deepEqual(await frames(), [[60, 70], [58, 92]]);
  assert.equal(await page.locator('.compared tr.picked').count(), 1);
  await drawn(page);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('the next path that is asked for opens beside the first; swapped; the link brings both back', async () => {
  const { page, trouble } = await open(world, { width: 1280, height: 720 });
  await ask(page, USUAL);
  await complete(page);
  await page.getByRole('button', { name: 'Compare with another path ( c )' }).click();
  await page.getByRole('menuitemcheckbox', { name: 'the next path that is asked for' }).click();
  await page.locator('.notice').filter({ hasText: 'opens beside this one' }).waitFor();
  await page.evaluate(t => weft.session.axis.select(BigInt(t), BigInt(t) + 120000000n), String(BEGIN + BigInt(SLOW)));
  await page.locator('.panel[data-output$="ThreadStatusDataProvider"] .tree-row').filter({ hasText: 'tier' }).first()
    .click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Critical path: selection' }).click();
  await compared(page);
  assert.ok(await page.locator('.notice').isHidden());
  assert.deepEqual((await axes(page)).map(x => BigInt(x.min) - BEGIN), [BigInt(USUAL), BigInt(SLOW)]);

  await page.getByRole('button', { name: /^Swap the two paths/ }).press('Enter');
  await compared(page);
  assert.deepEqual((await axes(page)).map(x => BigInt(x.min) - BEGIN), [BigInt(SLOW), BigInt(USUAL)]);
  assert.equal(await page.locator('.comparison .sentence p').innerText(), 'made up: db BLOCK_DEVICE -24 ms');
  await page.waitForFunction(() => /[#&]cmp=/.test(location.hash));
  const hash = new URL(page.url()).hash;
  assert.deepEqual(trouble, []);
  await page.close();
  const again = await open(world, { hash, width: 1280, height: 720 });
  await compared(again.page);
  assert.deepEqual((await axes(again.page)).map(x => BigInt(x.min) - BEGIN), [BigInt(SLOW), BigInt(USUAL)]);
  await again.page.getByRole('button', { name: 'Close the comparison ( c )' }).press('Enter');
  await again.page.waitForFunction(() => !/[#&]cmp=/.test(location.hash));
  assert.equal(await sides(again.page).count(), 0);
  assert.deepEqual(again.trouble, []);
  await again.page.close();
});
