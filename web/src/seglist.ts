// SPDX-License-Identifier: MIT
// All segments of a path in time order, beside its sums: one is chosen, the same that [ and ] have come to.
import { h, setText } from './dom';
import type { Segment } from './pathdata';
import type { PathWalk } from './pathwalk';
import { formatDuration } from './time';

const ROW = 18;         // px
const AHEAD = 4;        // rows that are made beyond what is seen

export class SegmentList {
  private readonly body = h('div', { class: 'segments-body' });
  readonly root = h('div', { class: 'segments', role: 'listbox', tabIndex: 0, hidden: true,
    'aria-label': 'Segments of the path in time order' }, this.body);
  private segments: Segment[] = [];
  private pool: HTMLElement[] = [];

  constructor(private readonly walk: PathWalk) {
    this.root.addEventListener('scroll', () => this.draw(), { passive: true });
    this.root.addEventListener('keydown', e => this.key(e));
    new ResizeObserver(() => this.draw()).observe(this.root);
    walk.moved.on(() => { this.show(); this.draw(); });
  }
  set(segments: Segment[]): void {
    this.segments = segments;
    this.root.hidden = !segments.length;
    this.body.style.height = `${segments.length * ROW}px`;
    this.draw();
  }
  private key(e: KeyboardEvent): void {
    const n = this.segments.length, page = Math.max(1, Math.floor(this.root.clientHeight / ROW) - 1),
      { at } = this.walk;
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0,
      End: n - 1 }[e.key];
    if (to === undefined || !n) return;
    e.preventDefault();
    e.stopPropagation();
    this.walk.go(Math.max(0, Math.min(n - 1, to)));
  }
  /** What one is at comes into sight. */
  private show(): void {
    const { root, walk: { at } } = this, y = at * ROW;
    if (at < 0 || !root.clientHeight) return;
    if (y < root.scrollTop) root.scrollTop = y;
    else if (y + ROW > root.scrollTop + root.clientHeight) root.scrollTop = y + ROW - root.clientHeight;
  }
  private draw(): void {
    const { root, pool, segments, walk } = this, first = Math.max(0, Math.floor(root.scrollTop / ROW) - AHEAD),
      last = Math.min(segments.length, Math.ceil((root.scrollTop + root.clientHeight) / ROW) + AHEAD);
    while (pool.length < last - first) {
      const row = h('div', { class: 'segment', role: 'option',
        onclick: () => this.walk.go(Number(row.dataset.at)) }, ...['number', 'number', 'number', '', '', ''].map(c =>
        h('span', { class: c })));
      pool.push(row);
      this.body.append(row);
    }
    const zero = segments[0]?.begin ?? 0;
    root.removeAttribute('aria-activedescendant');
    pool.forEach((row, k) => {
      const i = first + k, s = segments[i];
      row.hidden = i >= last;
      if (row.hidden) return;
      row.dataset.at = String(i);
      row.id = `segment-${i}`;
      row.style.transform = `translateY(${i * ROW}px)`;
      row.setAttribute('aria-setsize', String(segments.length));
      row.setAttribute('aria-posinset', String(i + 1));
      row.setAttribute('aria-selected', String(i === walk.at));
      if (i === walk.at) root.setAttribute('aria-activedescendant', row.id);
      const texts = [`${i + 1}`, `+${formatDuration(s.begin - zero)}`, formatDuration(s.end - s.begin), s.host,
        [s.name, s.tid].filter(x => x ?? '').join(' '), [s.kind, s.label].filter(Boolean).join(' ')];
      texts.forEach((text, c) => setText(row.children[c], text));
      const state = row.lastElementChild as HTMLElement;
      state.title = texts[5];
      state.style.setProperty('--state', s.colour);
      state.classList.toggle('hatched', s.hatched);
    });
  }
}
