// SPDX-License-Identifier: MIT
// What stands where views will be while an experiment is read: how far that is, and how long it will take; or why it
// cannot be.
import { button, h, setText } from './dom';
import { formatCount, formatDuration } from './time';
import type { Experiment } from './tsp';

const SURE = 1500;    // ms after which the time left is told: earlier it is a guess

export class Opening {
  private readonly words = h('p', { role: 'status' });
  private readonly rest = h('p', { class: 'dim' });
  private readonly bar = h('div', { class: 'opening-bar', role: 'progressbar',
    'aria-label': 'Read so far', hidden: true, 'aria-valuemin': '0', 'aria-valuemax': '100' }, h('div'));
  readonly root = h('div', { class: 'opening' }, this.words, this.bar, this.rest);
  private first: { at: number; bytes: number } | null = null;

  constructor(name: string) { setText(this.words, `Opening ${name}…`); }

  show(x: Experiment, now = performance.now()): void {
    const { indexed } = x;
    setText(this.words, `Reading ${x.name}: ${formatCount(String(x.nbEvents), '')} events so far`);
    this.bar.hidden = !indexed;
    if (!indexed) return;
    const share = Math.floor(indexed.bytes / indexed.of * 100);
    this.bar.setAttribute('aria-valuenow', String(share));
    (this.bar.firstElementChild as HTMLElement).style.width = `${share}%`;
    this.first ??= { at: now, bytes: indexed.bytes };
    const ms = now - this.first.at, rate = (indexed.bytes - this.first.bytes) / ms,
      left = ms >= SURE && rate > 0 ? (indexed.of - indexed.bytes) / rate : NaN;
    setText(this.rest, `${share} % of ${(indexed.of / 1e6).toFixed(1)} MB`
      + (left >= 1000 ? ` · about ${formatDuration(Math.round(left / 1000) * 1e9).replace(/\.0+(?= )/, '')} left` : '')
      + ' · other experiments can be opened meanwhile');
  }
}

/** Nothing of the experiment can be shown: why, and what to do. */
export function brokenSheet(name: string, why: string, again: () => void, other: () => void): HTMLElement {
  return h('div', { class: 'opening broken', role: 'alert' }, h('h2', {}, `${name} cannot be read`), h('p', {}, why),
    h('p', {}, button('Try again', 'Ask the server again', again, { class: 'main' }), ' ',
      button('Open another', 'Open another experiment', other)));
}
