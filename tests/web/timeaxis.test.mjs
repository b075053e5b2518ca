// SPDX-License-Identifier: MIT
// Time axis common to all views: its times are written once, at a fixed place; each view has one line over its rows.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { drawn, open, settled, start, view } from './browser.mjs';

let world;
before(async () => { world = await start({ threads: 60 }); });
after(() => world.stop());

/** Returns the times written while everything is redrawn: [text, x], by canvas. */
const written = page => page.evaluate(async () => {
  const { fillText } = CanvasRenderingContext2D.prototype, seen = new Map();
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    if (/\d:\d\d/.test(text)) {
      const where = this.canvas.closest('.time-axis, .panel, .overview')?.className ?? '?';
      seen.set(where, [...seen.get(where) ?? [], [text, x]]);
    }
    fillText.call(this, text, x, y);
  };
  weft.session.axis.moved.emit();
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  CanvasRenderingContext2D.prototype.fillText = fillText;
  return Object.fromEntries(seen);
});

test('times are written once, over all views, at the places that they have in each', async () => {
  const { page, trouble } = await open(world), { overview, ...others } = await written(page);
  assert.ok(overview.length > 1, 'the strip is of the whole trace');
  assert.deepEqual(Object.keys(others), ['time-axis']);
  assert.ok(others['time-axis'].length > 1);
  const lines = await page.evaluate(() => {
    const [a, ...areas] = [document.querySelector('.time-axis canvas'), ...document.querySelectorAll('.panel .area')]
      .map(e => e.getBoundingClientRect());
    return areas.map(b => [b.left - a.left, b.width - a.width, b.top >= a.bottom]);
  });
  assert.equal(lines.length, 3);
  for (const l of lines) assert.deepEqual(l, [0, 0, true]);
  // Words stand beside their ticks.
  for (const [text, x] of others['time-axis']) {
    const at = await page.evaluate(([t, px]) => {
      const { axis } = weft.session, ns = axis.abs(axis.offset + px * axis.nsPerPx);
      return weft.session.time(ns, 9).slice(0, t.length);
    }, [text, x - 4 + 0.5]);
    assert.ok([at, text].every(t => /^\d\d:\d\d:\d\d/.test(t)) && Math.abs(Date.parse(`2020-01-01T${at}Z`)
      - Date.parse(`2020-01-01T${text}Z`)) < 1000, `${text} stands at ${at}`);
  }
  // Axis fixed while the views scroll; for the mouse it acts like the views.
  const box = await page.locator('.time-axis').boundingBox();
  await page.evaluate(() => {
    for (const o of weft.session.outputs.filter(x => x.type === 'TREE_TIME_XY')) weft.add(o, 200);
    document.querySelector('.stack').scrollTop = 1000;
  });
  await settled(page);
  assert.deepEqual(await page.locator('.time-axis').boundingBox(), box);
  const area = await page.locator('.time-area').boundingBox(), [from, to] = await page.evaluate(() =>
    [200, 400].map(x => String(weft.session.axis.timeAt(x))));
  await page.mouse.move(area.x + 200, area.y + 10);
  await page.mouse.down();
  await page.mouse.move(area.x + 400, area.y + 10, { steps: 3 });
  await page.mouse.up();
  const now = await view(page);
  assert.deepEqual([now.anchor, now.cursor], [from, to]);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('each view has one line: title, columns, state and tools; it is what stays of a folded one', async () => {
  const { page } = await open(world), panel = page.locator('.panel[data-output$="ThreadStatusDataProvider"]'),
    of = s => panel.locator(s).first().boundingBox(), top = (await panel.boundingBox()).y;
  assert.equal((await of('.tree-body')).y - top, 20);
  for (const s of ['.tree-name button', '.panel-status', '.panel-tools', '[title="Close Thread Status"]']) {
    const b = await of(s);
    assert.ok(b.y >= top && b.y + b.height <= top + 20.5 && b.width > 10, `${s}: ${JSON.stringify(b)}`);
  }
  assert.match(await panel.locator('.tree-name button').first().innerText(), /^Thread Status/);
  assert.equal(await page.getByRole('heading', { name: 'Thread Status' }).count(), 1);
  await panel.getByRole('button', { name: 'Fold this view' }).click();
  await drawn(page);
  const folded = await panel.boundingBox();
  assert.ok(folded.height >= 20 && folded.height <= 22, `${folded.height}`);
  assert.ok(await panel.locator('.tree-name button').first().isVisible());
  assert.ok(!await panel.locator('.tree-row').first().isVisible());
  await panel.getByRole('button', { name: 'Fold this view' }).click();
  await drawn(page);
  assert.ok((await panel.boundingBox()).height > 60);
  // Pages without a view over time have no time axis.
  await page.evaluate(() => { for (const p of [...weft.panels]) p.close(); });
  await drawn(page);
  assert.ok(!await page.locator('.time-axis').isVisible());
  await page.close();
});
