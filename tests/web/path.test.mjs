// A critical path as an answer: the sentence above it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { LOCAL_SENTENCE, SENTENCE } from './mock/world.mjs';
import { open, settled, start } from './browser.mjs';

let world;
before(async () => { world = await start({ threads: 600, pathPolls: 8 }); });
after(() => world.stop());

const THREADS = '.panel[data-output$="ThreadStatusDataProvider"]', PATH = '.panel[data-output*="CriticalPath"]';

/** A page with the path of the mock's request asked for. */
async function ask(options = {}) {
  const { page, trouble } = await open(world, options);
  await page.evaluate(() => { const a = weft.session.axis; a.select(a.min + 2000000000n, a.min + 2088494000n); });
  await page.locator(`${THREADS} .tree-row`).filter({ hasText: 'tier' }).first().click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Critical path: selection' }).click();
  return { page, trouble };
}
const complete = page => page.waitForFunction(() => weft.path?.pane.done).then(() => settled(page));
const box = (page, what) => page.locator(`${PATH} ${what}`).boundingBox();

test('the sentence: above the picture, what is known so far, then all of it; selected, copied, there when the picture '
  + 'is folded', async () => {
  const { page, trouble } = await ask(), sentence = page.locator(`${PATH} .sentence`), words = sentence.locator('p');
  await words.filter({ hasText: LOCAL_SENTENCE }).waitFor();
  assert.equal(await sentence.locator('em').innerText(), 'so far');
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
  assert.ok(await words.isVisible() && await page.locator(`${PATH} .panel-main`).isHidden());
  assert.deepEqual(trouble, []);
  await page.close();
});
