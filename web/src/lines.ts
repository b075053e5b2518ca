// SPDX-License-Identifier: MIT
// A short list whose lines lead somewhere: by double click, or Enter where the focus is.
import { h } from './dom';
import { withIcon } from './icons';

export interface Cell<T> {
  name: string; title: string; text: (line: T) => string;
  number?: boolean;
  /** Takes what room the others leave. */
  wide?: boolean;
  /** Share of the cell that a bar takes, 0 … 1. */
  bar?: (line: T) => number;
  /** By which lines can be put in order, the largest first; those below 0 are left out then, and a column in which
   *  all are. */
  by?: (line: T) => number;
}

export class LineList<T> {
  readonly root: HTMLElement;
  private readonly head = h('thead');
  private readonly body = h('tbody');
  private shown: T[] = [];
  private all: T[] = [];
  private sorted = -1;
  private columns: Cell<T>[];

  constructor(label: string, private readonly cells: Cell<T>[], private readonly most: number,
    private readonly open: (line: T) => void, sorted = -1,
    /** What is wrong with a line; '': nothing. Such lines come first. */
    private readonly wrong: (line: T) => string = () => '') {
    this.sorted = sorted;
    this.columns = cells;
    this.root = h('div', { class: 'lines' }, h('table', { class: 'grid', 'aria-label': label }, this.head, this.body));
    this.body.addEventListener('keydown', e => this.key(e));
    this.drawHead();
  }
  /** Whether its first line can take the focus. */
  focus(): boolean {
    const row = this.body.querySelector<HTMLElement>('tr[tabindex="0"]');
    row?.focus({ preventScroll: true });
    return !!row;
  }
  set(lines: T[]): void {
    const sorted = this.columns[this.sorted];
    this.all = lines;
    this.columns = this.cells.filter(c => !c.by || !lines.length || lines.some(l => c.by!(l) >= 0));
    this.sorted = this.columns.indexOf(sorted);
    this.drawHead();
    this.draw();
  }
  private sort(column: number): void {
    this.sorted = column;
    this.drawHead();
    this.draw();
    this.head.querySelectorAll('th')[column].querySelector('button')?.focus();
  }
  private drawHead(): void {
    this.head.replaceChildren(h('tr', {}, ...this.columns.map((c, i) => h('th', { scope: 'col',
      class: c.number ? 'number' : '', title: c.title, 'aria-sort': this.sorted === i ? 'descending' : undefined }, c.by
      ? h('button', { type: 'button', class: 'plain', onclick: () => this.sort(i),
        title: `${c.title}: most first` }, this.sorted === i ? withIcon(c.name, 'open') : c.name) : c.name))));
  }
  /** Its texts may be others now. */
  draw(): void {
    const by = this.columns[this.sorted]?.by, first = (l: T): number => this.wrong(l) ? 1 : 0, order = by
      ? this.all.filter(l => by(l) >= 0).sort((a, b) => first(b) - first(a) || by(b) - by(a)) : this.all;
    const held = [...this.body.children].indexOf(document.activeElement!);
    this.shown = order.slice(0, this.most);
    this.body.replaceChildren(...this.shown.map((line, i) => {
      const wrong = this.wrong(line), row = h('tr', { class: wrong ? 'wrong' : undefined, title: wrong || undefined,
        tabIndex: i ? -1 : 0, ondblclick: () => this.open(line), onclick: () => this.to(i) },
        ...this.columns.map(c => this.cell(c, line)));
      return row;
    }));
    if (held >= 0) this.to(held);
  }
  private cell(c: Cell<T>, line: T): HTMLElement {
    const text = c.text(line), kind = c.number ? 'number' : c.wide ? 'wide' : '',
      cell = h('td', { class: kind, title: c.number ? '' : text }, text);
    if (c.bar) {
      const bar = h('span', { class: 'share', 'aria-hidden': 'true' });
      bar.style.width = `${Math.max(0, Math.min(1, c.bar(line))) * 100}%`;
      cell.classList.add('barred');
      cell.prepend(bar);
    }
    return cell;
  }
  private to(i: number): void {
    const rows = this.body.children as HTMLCollectionOf<HTMLElement>,
      row = rows[Math.max(0, Math.min(rows.length - 1, i))];
    if (!row) return;
    for (const r of rows) r.tabIndex = r === row ? 0 : -1;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: 'nearest' });
  }
  private key(e: KeyboardEvent): void {
    const rows = [...this.body.children], i = rows.indexOf(document.activeElement!), page = 10;
    const step: Record<string, number> = { ArrowDown: i + 1, ArrowUp: i - 1, PageDown: i + page, PageUp: i - page,
      Home: 0, End: rows.length - 1 };
    if (i < 0 || e.ctrlKey || e.altKey || e.metaKey || !(e.key === 'Enter' || e.key in step)) return;
    e.preventDefault();
    e.stopPropagation();
    if (e.key === 'Enter') this.open(this.shown[i]); else this.to(step[e.key]);
  }
}
