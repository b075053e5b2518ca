// SPDX-License-Identifier: MIT
// Growing traces: new data are announced and shown on request, or followed, and nothing else of the page changes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMock } from './mock/server.mjs';
import { open, settled, start, view } from './browser.mjs';

const FOLLOW = '.follow', FRESH = '.fresh', STATE = '.badge.state';
const rows = page => page.evaluate(() => weft.panels[0].model.nodes.size);
const end = page => page.evaluate(() => String(weft.session.axis.max));
const shows = (page, mock) => page.waitForFunction(([max]) => String(weft.session.axis.max) === max
  && weft.session.client.pending === 0, [String(mock.world.end)]);
/** Watches each frame from now on; its result is in how many frames the first view was without its states, and how many
 * there were. */
const watchFrames = async page => {
  await page.evaluate(() => {
    const seen = window.seenFrames = { all: 0, blank: 0, words: 0 }, canvas =
      document.querySelector('.panel .area canvas:nth-child(2)');
    const look = () => {
      if (window.seenFrames !== seen) return;
      const { data } = canvas.getContext('2d').getImageData(0, 30, canvas.width, 60);
      let ink = 0;
      for (let i = 3; i < data.length; i += 4) if (data[i] > 200) ink++;
      seen.all++;
      if (ink < 200) seen.blank++;
      if (document.querySelector('.panel-overlay:not([hidden])')) seen.words++;
      requestAnimationFrame(look);
    };
    look();
  });
  return () => page.evaluate(() => { const seen = window.seenFrames; window.seenFrames = null; return seen; });
};
/** Selects a part of the time, an interval and a row. */
const lookAt = async (page, from, to) => {
  await page.evaluate(([a, b]) => {
    const { axis } = weft.session, at = s => axis.min + BigInt(s * 1e9);
    axis.show(at(a), at(b));
    axis.select(at(a + 0.1), at(a + 0.3));
    weft.panels[0].tree.pick(2);
  }, [from, to]);
  await settled(page);
};
const picked = page => page.evaluate(() => weft.panels[0].tree.picked);

test('not followed: a sign says that there is more, and a click shows it where one is', async () => {
  const world = await start({ threads: 60, grows: true }), { page, trouble } = await open(world);
  await lookAt(page, 2, 4);
  const before = [await view(page), await picked(page), await rows(page), await end(page)];
  assert.equal(await page.locator(FOLLOW).getAttribute('aria-pressed'), 'false');
  assert.ok(!await page.locator(FRESH).isVisible());
  const log = world.mock.log.length;
  world.mock.grow();
  await page.locator(FRESH).waitFor();
  assert.deepEqual([await view(page), await picked(page), await rows(page), await end(page)], before);
  assert.deepEqual(world.mock.log.slice(log).map(l => l.path.split('/').length), world.mock.log.slice(log).map(() => 5),
    'nothing is asked but the experiment');
  const frames = await watchFrames(page);
  await page.locator(FRESH).click();
  await shows(page, world.mock);
  await page.waitForFunction(n => weft.panels[0].model.nodes.size === n, before[2] + 1);
  await page.locator(FRESH).waitFor({ state: 'hidden' });
  await settled(page);
  const { all, blank, words } = await frames();
  assert.ok(all > 3);
  assert.deepEqual([blank, words], [0, 0], `of ${all} frames`);
  assert.deepEqual([await view(page), await picked(page)], before.slice(0, 2));
  const count = Math.round(2_000_000 * 4 / 5);
  await page.waitForFunction(n => document.querySelector('.vt-count').textContent.replace(/\D/g, '') === n,
    String(count));
  assert.deepEqual(trouble, []);
  await page.close();
  await world.stop();
});

test('followed: the end stays in view, until one looks elsewhere; the link says so', async () => {
  const world = await start({ threads: 60, grows: true }), { page, trouble } = await open(world);
  await page.locator(FOLLOW).click();
  assert.equal(await page.locator(FOLLOW).getAttribute('aria-pressed'), 'true');
  await page.evaluate(() => { const { axis } = weft.session; axis.show(axis.max - 2_000_000_000n, axis.max); });
  await page.evaluate(() => { const { axis } = weft.session; axis.select(axis.min + 1_000_000_000n); });
  const before = await view(page);
  const frames = await watchFrames(page);
  world.mock.grow();
  await shows(page, world.mock);
  await page.waitForFunction(() => {
    const { axis } = weft.session, shown = [...weft.panels[0].data.rows.values()];
    return shown.some(r => r.to >= axis.rel(axis.end) - 1);
  });
  const after = await view(page), { all, words } = await frames();
  assert.ok(all > 3);
  assert.equal(words, 0);
  assert.equal(after.end, String(world.mock.world.end));
  assert.deepEqual([after.span, after.anchor, after.cursor], [before.span, before.anchor, before.cursor]);
  assert.ok(!await page.locator(FRESH).isVisible());

  await page.evaluate(() => { const { axis } = weft.session; axis.show(axis.min, axis.min + 1_000_000_000n); });
  world.mock.grow();
  await shows(page, world.mock);
  assert.equal((await view(page)).begin, String(await page.evaluate(() => weft.session.axis.min)),
    'one looks elsewhere');
  await page.waitForFunction(() => /[#&]f=1/.test(location.hash));
  const hash = await page.evaluate(() => location.hash);
  await page.close();

  const again = await open({ ...world }, { hash, settles: false });
  assert.equal(await again.page.locator(FOLLOW).getAttribute('aria-pressed'), 'true');
  await again.page.locator(FOLLOW).focus();
  await again.page.keyboard.press('Enter');
  assert.equal(await again.page.locator(FOLLOW).getAttribute('aria-pressed'), 'false');
  await again.page.waitForFunction(() => !/[#&]f=1/.test(location.hash));
  assert.deepEqual([...trouble, ...again.trouble], []);
  await world.stop();
});

test('what is being read, and what cannot be, is said', async () => {
  const world = await start({ threads: 60, grows: true }), { page, trouble } = await open(world);
  world.mock.now.indexingStatus = 'RUNNING';
  await page.locator(STATE).filter({ hasText: 'reading more' }).waitFor();
  Object.assign(world.mock.now, { indexingStatus: 'COMPLETED', problem: 'archive-7/metadata: line 3' });
  await page.locator(STATE).filter({ hasText: 'cannot read what is new' }).waitFor();
  assert.equal(await page.locator(STATE).getAttribute('title'), 'archive-7/metadata: line 3');
  world.mock.now.problem = undefined;
  await page.locator(STATE).waitFor({ state: 'hidden' });
  assert.deepEqual(trouble, []);
  await world.stop();
});

test('an experiment that is read for the first time can be looked at as soon as there is a version', async () => {
  const world = await start({ threads: 60, grows: true });
  world.mock.now.indexingStatus = 'RUNNING';
  const { page, trouble } = await open(world);
  assert.ok(await rows(page) > 20);
  assert.deepEqual(trouble, []);
  await world.stop();
});

test('a server without versions is not asked again and again', async () => {
  const world = await start({ threads: 60 }), { page } = await open(world);
  assert.ok(!await page.locator(FOLLOW).isVisible());
  assert.equal(await page.evaluate(() => weft.follower.timer), 0);
  await world.stop();
});

test('a server that goes away and comes back with more', async () => {
  const world = await start({ threads: 60, grows: true }), { page } = await open(world);
  await page.locator(FOLLOW).click();
  const port = Number(new URL(world.url).port);
  await world.mock.close();
  await page.locator('.notice').filter({ hasText: 'does not answer' }).waitFor();
  const next = createMock({ threads: 60, grows: true });
  next.grow();
  await next.listen(port);
  await page.locator('.notice').waitFor({ state: 'hidden' });
  await shows(page, next);
  assert.equal(await page.locator(FOLLOW).getAttribute('aria-pressed'), 'true');
  await world.browser.close();
  await next.close();
});
