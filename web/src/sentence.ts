// SPDX-License-Identifier: MIT
// The answer in words, above the picture of a path: as the server says it, to be read, selected and copied.
import { announce, button, h, setText } from './dom';

export class Sentence {
  private readonly words = h('p', { role: 'status' });
  private readonly more = h('em');
  readonly root = h('div', { class: 'sentence', hidden: true }, this.words, this.more,
    button('Copy', 'Copy the sentence', () => void this.copy(), { class: 'small' }));

  /** `more`: what is still missing, or empty. True when the place that it takes may be another one now. */
  say(text: string, more: string): boolean {
    const changed = this.words.textContent !== text || this.more.textContent !== more;
    setText(this.words, text);
    setText(this.more, more);
    this.root.hidden = !text;
    return changed;
  }
  private async copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(this.words.textContent ?? '');
      announce('sentence copied');
    } catch { // no clipboard for pages like this one: marked, so that ctrl+C takes it
      getSelection()?.selectAllChildren(this.words);
      announce('sentence selected');
    }
  }
}
