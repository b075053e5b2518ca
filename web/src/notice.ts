// SPDX-License-Identifier: MIT
// The bar below the top one: what went wrong, what has changed, with something to do about it; until it is dismissed.
import { button, h } from './dom';
import { icon } from './icons';

export class Notice {
  readonly root = h('div', { class: 'notice', role: 'alert', hidden: true });
  private lack = '';

  say(text: string, action?: HTMLElement): void {
    this.root.replaceChildren(h('span', {}, text), action ?? '',
      button(icon('close'), 'Dismiss', () => this.hush(), { class: 'plain' }));
    this.root.classList.remove('told');
    this.root.hidden = false;
  }
  /** Nothing is wrong: what is awaited, or no more. */
  tell(text: string): void {
    if (text) this.say(text); else this.hush();
    this.root.classList.add('told');
  }
  hush(): void { this.root.hidden = true; }

  /** Said large, once: whoever sums up some machines must know that it is not all. `notes`: the way to all of it. */
  lacks(words: string, notes?: HTMLElement): void {
    if (!words || words === this.lack) return;
    this.lack = words;
    const said = this.root.hidden ? '' : `${this.root.firstElementChild?.textContent} `;
    this.say(`${said}Not everything could be read: ${words}`, notes);
  }
  /** Of another experiment everything is new. */
  clear(): void {
    this.hush();
    this.lack = '';
  }
}
