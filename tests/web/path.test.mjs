// SPDX-License-Identifier: MIT
// Critical path as an answer: the sentence above it, its picture with words, the way along it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BEGIN, LOCAL_SENTENCE, path as pathOf, SENTENCE } from './mock/world.mjs';
import { drawn, open, settled, start, view } from './browser.mjs';

let world;
before(async () => { world = await start({ threads: 600 }); });
after(() => world.stop());

const THREADS = '.panel[data-output$="ThreadStatusDataProvider"]', PATH = '.panel[data-output*="CriticalPath"]';

/** Opens a page with the path of the mock's request. */
async function ask(options = {}, where = world) {
  const { page, trouble } = await open(where, options);
  await page.evaluate(() => { const a = weft.session.axis; a.select(a.min + 2000000000n, a.min + 2088494000n); });
  await page.locator(`${THREADS} .tree-row`).filter({ hasText: 'tier' }).first().click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Critical path: selection' }).click();
  return { page, trouble };
}
const complete = page => page.waitForFunction(() => weft.path?.pane.done).then(() => settled(page));
const box = (page, what) => page.locator(`${PATH} ${what}`).boundingBox();

test('the sentence: above the picture, what is known so far, then all of it; selected, copied, there when the picture '
  + 'is folded', async () => {
  world.mock.paths.pending = true;
  const { page, trouble } = await ask(), sentence = page.locator(`${PATH} .sentence`), words = sentence.locator('p');
  await words.filter({ hasText: LOCAL_SENTENCE }).waitFor();
  assert.equal(await sentence.locator('em').innerText(), 'so far');
  world.mock.paths.pending = false;
  await complete(page);
  assert.equal(await words.innerText(), SENTENCE);
  assert.equal(await sentence.locator('em').innerText(), '');
  const [a, b] = [await box(page, '.sentence'), await box(page, '.panel-main')];
  assert.ok(a.y + a.height <= b.y + 0.5 && a.height < 30, 'one line, above the graph');

  await words.click({ clickCount: 3 });
  assert.equal(await page.evaluate(() => getSelection().toString().trim()), SENTENCE);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await sentence.getByRole('button', { name: 'Copy the sentence' }).press('Enter');
  await page.locator('.unseen').filter({ hasText: 'sentence copied' }).waitFor({ state: 'attached' });
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), SENTENCE);

  await page.locator(`${PATH} .panel-bar button`).first().click();
  assert.ok(await words.isVisible() && await page.locator(`${PATH} .tree-row`).first().isHidden());
  assert.deepEqual(trouble, []);
  await page.close();
});

/** Returns the words written in the rows of the path: text, row, and their extent in px. */
const written = page => page.evaluate(() => {
  const { view: v } = weft.path, { ctx } = v.surface, out = [], { fillText } = ctx;
  ctx.fillText = (text, x, y) => {
    if (y > 20) out.push({ text, row: Math.floor((y - 20) / 18), x, to: x + ctx.measureText(text).width });
    fillText.call(ctx, text, x, y);
  };
  v.draw();
  delete ctx.fillText;
  return out;
});
const { states, arrows } = pathOf(2e9);

test('the picture: state, cause and duration in each segment with room for them, whole or not at all; no row without '
  + 'time; the same number of segments everywhere', async () => {
  const { page, trouble } = await ask({ width: 1440, height: 900 });
  await complete(page);
  await page.mouse.move(2, 2);
  const cause = s => `${s.key.toLowerCase().replace('_', ' ')} ${s.label}`.trim(), time = s =>
    `${((s.end - s.begin) / 1e6).toFixed(s.end - s.begin >= 1e7 ? 2 : 3)} ms`;
  for (const span of [93e6, 30e6, 400e6]) {
    await page.evaluate(ns => {
      const a = weft.session.axis;
      a.show(a.min + 1999000000n, a.min + 1999000000n + BigInt(ns));
    }, span);
    await settled(page);
    const words = await written(page), width = await page.evaluate(() => weft.session.axis.width);
    const px = t => (t - 1.999e9) / span * width, had = [];
    for (const s of states.filter(x => x.key !== 'UNTRACED_PEER')) {
      const a = px(s.begin), b = Math.min(width, px(s.end)),
        row = ['client', 'web', 'db'].indexOf(s.host) * 2 + 1,
        within = words.filter(w => w.row === row && w.x >= a && w.x < b);
      assert.ok(within.length <= 1 && within.every(w => w.to <= b), `words within ${cause(s)}`);
      assert.ok(!within.length || b - a >= 44, `${cause(s)} has ${b - a} px`);
      assert.ok(within.every(w => [`${cause(s)} ${time(s)}`, `${s.label} ${time(s)}`.trim(),
        `${s.key.toLowerCase().replace('_', ' ')} ${time(s)}`, time(s)].includes(w.text)), `${within[0]?.text}`);
      if (b - a > 260) assert.equal(within[0]?.text, `${cause(s)} ${time(s)}`);
      had.push(...within);
    }
    assert.ok(span > 90e6 || had.length >= 2);
    assert.equal(words.filter(w => / [mµn]?s$/.test(w.text)).length, had.length, 'no time beside its segment');
  }
  const names = await page.locator(`${PATH} .tree-row:not([hidden])`).allInnerTexts();
  assert.deepEqual(names.map(n => n.replace(/\s+/g, ' ').trim()), ['client', 'tier 204', 'web', 'nginx 1001', 'db',
    'postgres 1002']);
  const n = states.length + arrows.length;
  assert.match(await page.locator('.path-title').innerText(), new RegExp(`, ${n} segments`));
  assert.match(await page.locator('.walk p').innerText(), new RegExp(`^${n} segments`));
  assert.deepEqual(trouble, []);
  await page.close();
});

test('along the path: [ and ] and buttons from machine to machine; the view follows only where it must, the selection '
  + 'stays; Details lead to what was before and comes after', async () => {
  const { page, trouble } = await ask();
  await complete(page);
  const line = page.locator('.walk p'), before = await view(page), picture = async () => {
    const { begin, end } = await view(page);
    return [begin, end];
  };
  assert.deepEqual([before.anchor, before.cursor], [BEGIN + 2000000000n, BEGIN + 2088494000n].map(String));
  assert.ok(BigInt(before.begin) < BEGIN + 2000000000n && before.span < 110e6, 'the path is zoomed to');
  await page.evaluate(() => weft.session.axis.cursor = null);
  await page.keyboard.press(']');
  await line.filter({ hasText: /^1\/15 {2}client 204 tier running 900\.0 µs — \+0 ms, made up$/ }).waitFor();
  assert.ok(await page.getByRole('button', { name: 'Previous segment of the path ( [ )' }).isDisabled());
  await page.evaluate(t => { weft.session.axis.cursor = BigInt(t); }, before.cursor);
  await page.keyboard.press(']');
  await page.keyboard.press(']');
  await line.filter({ hasText: /^3\/15 {2}web 1001 nginx running 7\.500 ms — \+1\.5 ms, made up$/ }).waitFor();
  assert.deepEqual([before.begin, before.end], await picture(), 'all is in view: nothing moves');
  await page.getByRole('button', { name: 'Next segment of the path ( ] )' }).click();
  await line.filter({ hasText: /^4\/15 {2}web 1001 nginx timer 10\.00 ms/ }).waitFor();

  await page.getByRole('tab', { name: 'Details' }).click();
  const details = page.locator('.details');
  await details.getByRole('button', { name: 'Before: what was before' }).press('Enter');
  await line.filter({ hasText: /^3\/15 / }).waitFor();
  await details.getByRole('button', { name: 'After: what comes after' }).click();
  await line.filter({ hasText: /^4\/15 / }).waitFor();
  // Reason, once the server has answered.
  await page.waitForFunction(() => /State timer.*What nanosleep.*Began \+9 ms, made up/
    .test(document.querySelector('.details').innerText.replace(/\s+/g, ' ')));

  // Segments outside the view, and too short for it.
  await page.evaluate(() => { const a = weft.session.axis; a.show(a.min + 2000000000n, a.min + 2025000000n); });
  for (const key of [']', ']', ']', ']']) await page.keyboard.press(key);
  await line.filter({ hasText: /^8\/15 {2}db 1002 postgres running 35\.00 ms/ }).waitFor();
  const wide = await view(page);
  assert.ok(BigInt(wide.begin) <= BEGIN + 2025000000n && BigInt(wide.end) >= BEGIN + 2060000000n, 'it is in view');
  await page.keyboard.press('Home');
  const whole = await picture();
  await page.keyboard.press('[');
  await line.filter({ hasText: /^7\/15 / }).waitFor();
  const near = await view(page);
  assert.ok(near.span <= 11e6 && BigInt(near.begin) <= BEGIN + 2024000000n && BigInt(near.end) >= BEGIN + 2025000000n);
  await page.keyboard.press(']');
  await line.filter({ hasText: /^8\/15 / }).waitFor();
  assert.deepEqual(await picture(), whole, 'and back where it can be seen as it was');

  // Clicks on a segment go there as well; so do steps through those of a sum.
  await page.evaluate(([a, b]) => weft.session.axis.show(BigInt(a), BigInt(b)), [before.begin, before.end]);
  await settled(page);
  const row = await page.locator(`${PATH} .tree-row:not([hidden])`).filter({ hasText: 'postgres' }).boundingBox(),
    at = await page.evaluate(t => weft.session.axis.px(BigInt(t)), String(BEGIN + 2065000000n)),
    area = await page.locator(`${PATH} .area`).boundingBox();
  await page.mouse.click(area.x + at, row.y + row.height / 2);
  await line.filter({ hasText: /^9\/15 {2}db 1002 postgres block device 10\.00 ms/ }).waitFor();
  await drawn(page);
  const frame = await page.evaluate(() => weft.path.view.part.frame);
  assert.deepEqual([frame.begin, frame.end], [2060e6, 2070e6]);
  for (let i = 0; i < 20; i++) await page.keyboard.press(']');
  await line.filter({ hasText: /^15\/15 {2}client 204 tier running 3\.494 ms/ }).waitFor();
  assert.ok(await page.getByRole('button', { name: 'Next segment of the path ( ] )' }).isDisabled());
  assert.deepEqual(trouble, []);
  await page.close();
});

test('only its threads: the other views show these and what they are below, until the path is closed', async () => {
  const { page, trouble } = await ask();
  await complete(page);
  const matching = () => page.evaluate(() => weft.panels.find(p => p.output.name === 'Thread Status').model.rows
    .filter(n => n.match && n.entry.hasData).map(n => `${n.entry.hostId} ${n.entry.metadata.TID[0]}`).sort());
  const all = await matching(),
    only = page.getByRole('button', { name: 'only its threads' });
  assert.equal(all.length, 600);
  await page.evaluate(() => { // input meanwhile
    const search = document.getElementById('search');
    search.value = 'tid:1';
    search.dispatchEvent(new Event('input'));
  });
  await only.press('Enter');
  await settled(page);
  assert.deepEqual([await page.locator('#search').inputValue(), await matching()], ['tid:1', []]);
  await page.locator('#search').fill('');
  await settled(page);
  assert.deepEqual(await matching(), ['client 204', 'db 1002', 'web 1001']);
  assert.equal(await only.getAttribute('aria-pressed'), 'true');
  assert.match(await page.locator(`${THREADS} .panel-status`).innerText(), /^3 found/);
  assert.equal(await page.locator('.panel[data-output*="ResourcesStatus"] .tree-row:not([hidden])')
    .filter({ hasText: 'CPU' }).count() > 1, true, 'CPUs are no threads');
  await page.getByRole('button', { name: /^Close Critical path/ }).click();
  await settled(page);
  assert.deepEqual(await matching(), all);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('the list beside the sums: every segment in time order; by click, keys, [ and ] one is at the same one everywhere',
  async () => {
  const { page, trouble } = await ask({ width: 1280, height: 720 });
  await complete(page);
  const list = page.getByRole('listbox', { name: 'Segments of the path in time order' }),
    at = () => list.getByRole('option', { selected: true }), line = page.locator('.walk p');
  const n = states.length + arrows.length, text = ns => ns >= 1e7 ? `${(ns / 1e6).toFixed(2)} ms`
    : ns >= 1e6 ? `${(ns / 1e6).toFixed(3)} ms` : `${(ns / 1e3).toFixed(1)} µs`;
  await page.evaluate(() => { weft.drawer.setHeight(420); weft.session.axis.cursor = null; });
  await settled(page);
  const rows = await list.getByRole('option').evaluateAll(all => all.filter(r => !r.hidden)
    .map(r => [...r.children].map(c => c.innerText.trim())));
  assert.deepEqual(rows.map(r => Number(r[0])), Array.from({ length: n }, (_, i) => i + 1));
  const told = [...states.map(s => [s.begin, s.end, s.host, `${s.name} ${s.tid}`]),
    ...arrows.map(a => [a.begin, a.end, '–', null])].sort((p, q) => p[0] - q[0]);
  rows.forEach((r, i) => {
    const [begin, end, host, who] = told[i];
    assert.deepEqual([r[2], r[3]], [text(end - begin), host]);
    if (who) assert.equal(r[4], who);
    if (begin > 2e9) assert.equal(r[1], `+${text(begin - 2e9)}`);
  });

  await list.getByRole('option').nth(2).click();
  await line.filter({ hasText: /^3\/15 / }).waitFor();
  await list.focus();
  await page.keyboard.press('ArrowDown');
  await line.filter({ hasText: /^4\/15 / }).waitFor();
  await page.keyboard.press(']');
  await line.filter({ hasText: /^5\/15 / }).waitFor();
  assert.equal(await at().getAttribute('aria-posinset'), '5');
  await page.evaluate(() => weft.drawer.setHeight(110));
  await page.keyboard.press('End');
  await line.filter({ hasText: /^15\/15 / }).waitFor();
  await drawn(page);
  const [box, row] = [await list.boundingBox(), await at().boundingBox()];
  assert.ok(row.y >= box.y - 1 && row.y + row.height <= box.y + box.height + 1, 'it is in sight');
  assert.equal(await list.getAttribute('aria-activedescendant'), await at().getAttribute('id'));
  assert.equal(await page.evaluate(() => weft.path.view.part.frame.begin), 2085e6);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('while other machines are asked: hatched, with words that say whom, in the picture, the list and on the way; then '
  + 'what they told', async () => {
  const slow = await start({ threads: 60 });
  slow.mock.paths.pending = true;
  try {
    const { page, trouble } = await ask({ width: 1280, height: 720 }, slow);
    await page.waitForFunction(() => weft.path?.pane.segments.length === 3 && weft.path.view.data.rows.size);
    await page.evaluate(() => { // only the path, and the widest place
      const a = weft.session.axis;
      a.select(null);
      a.show(a.min + 1999000000n, a.min + 2093000000n);
    });
    await page.waitForFunction(() => [...weft.path.view.data.rows.values()].some(r => r.label.includes('asking web…')));
    await page.mouse.move(2, 2);
    await drawn(page);
    const words = await written(page), width = await page.evaluate(() => weft.session.axis.width),
      px = t => (t - 1.999e9) / 94e6 * width, said = words.filter(w => w.text.includes('asking web…'));
    assert.equal(said.length, 1);
    assert.ok(said[0].row === 1 && said[0].x >= px(2000.9e6) && said[0].to <= px(2085e6), JSON.stringify(said));
    // Pattern: along the row there is more than one colour, and it repeats.
    const colours = await page.evaluate(([from, to]) => {
      const { canvas, ctx } = weft.path.view.surface, y = 20 + 18 + 4, shades = new Map(),
        { data } = ctx.getImageData(from, y, to - from, 1);
      for (let i = 0; i < data.length; i += 4) {
        const key = data.slice(i, i + 3).join();
        shades.set(key, (shades.get(key) ?? 0) + 1);
      }
      return canvas.width ? [...shades.values()].filter(n => n > (to - from) / 20).length : 0;
    }, [Math.round(px(2050e6)), Math.round(px(2084e6))]);
    assert.ok(colours >= 2, `${colours} colours`);
    assert.equal(await page.locator(`${PATH} .sentence em`).innerText(), 'so far');
    assert.match(await page.locator('.path-title').innerText(), /asking web…$/);
    assert.ok(await page.locator(`${PATH} .panel-progress`).isVisible());
    assert.match((await page.getByRole('listbox').getByRole('option').nth(1).innerText()).replace(/\s+/g, ' '),
      /84\.10 ms client tier 204 pending asking web…/);

    slow.mock.paths.pending = false;
    await complete(page);
    assert.equal((await written(page)).filter(w => /asking/.test(w.text)).length, 0);
    assert.equal(await page.locator(`${PATH} .sentence em`).innerText(), '');
    assert.ok(await page.locator(`${PATH} .panel-progress`).isHidden());
    assert.match(await page.locator('.path-title').innerText(), /, 15 segments$/);
    assert.deepEqual(trouble, []);
    await page.close();
  } finally { await slow.stop(); }
});

test('thousands of segments that are too short for samples of the whole: none is missed', async () => {
  const fine = 4000, made = await start({ threads: 60, fine });
  try {
    const { page, trouble } = await ask({}, made), n = states.length + arrows.length + fine;
    await complete(page);
    const { begin, end, list } = await page.evaluate(() => {
      const { segments: all } = weft.path.pane;
      return { begin: all[0].begin, end: all.at(-1).end, list: all.map((s, i) => i && s.begin - all[i - 1].end) };
    });
    assert.equal(list.length, n);
    assert.ok(list.every(gap => gap === 0), 'without holes');
    assert.deepEqual([begin, end], [2e9, 2088.494e6]);
    await page.getByRole('listbox').press('End');
    await page.locator('.walk p').filter({ hasText: new RegExp(`^${n}/${n} `) }).waitFor();
    const asked = made.mock.log.filter(r => /Path.*\/states$/.test(r.path)).length;
    assert.ok(asked < 60, `${asked} questions`);
    assert.deepEqual(trouble, []);
    await page.close();
  } finally { await made.stop(); }
});
