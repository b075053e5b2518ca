// SPDX-License-Identifier: MIT
// The left side of a view: a tree grid with sticky names whose rows are made only for what is on screen.
import { h, setText, toggle, drag } from './dom';
import { icon } from './icons';
import { menuBelow } from './menu';
import { formatCount, formatValue } from './time';
import { labelNumber, type Node, type TreeModel } from './tree';

export interface TreePaneOptions {
  label: string;
  /** Stands over the names in place of what their column is called. */
  title?: string;
  checkbox?: boolean;
  /** Colour mark before the name. */
  swatch?: (node: Node) => string | null;
  onPick: (node: Node, row: number) => void;
  onOpen?: (node: Node) => void;
  onMenu?: (node: Node, x: number, y: number) => void;
  onCheck?: (node: Node, on: boolean) => void;
  isChecked?: (node: Node) => boolean;
  /** Keys that the pane does not use go to the view. */
  /** What a cell says instead of the entry's label. */
  text?: (node: Node, column: number) => string | undefined;
  nameWidth?: number;
  numbersRight?: boolean;
}

const COLUMN = 54;
const NAME = 104;   // px that names need
const SAMPLE = 400; // entries that decide the width of columns
const LIKE = 8;     // texts of as many letters that are measured

const ruler = document.createElement('canvas').getContext('2d')!;
ruler.font = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const textWidth = (text: string): number => ruler.measureText(text).width;

/** Numbers need the room more than what they are called. */
const headText = (name: string): string => name === 'Percentage' ? '%' : name;

export class TreePane {
  readonly head = h('div', { class: 'tree-head' }); // a row once it has columns
  readonly body = h('div', { class: 'tree-body' });
  readonly root: HTMLElement;
  picked: number | null = null;
  private pool: HTMLElement[] = [];
  private hidden = new Set<number>();
  private widths: number[] = [];
  private headKey = '';
  rowHeight = 18;

  constructor(readonly model: TreeModel, private readonly options: TreePaneOptions) {
    this.root = h('div', { class: 'tree', role: 'treegrid', 'aria-label': options.label, tabIndex: 0 }, this.head,
      this.body);
    if (options.title) this.drawHead(0);
    this.root.addEventListener('keydown', e => this.key(e));
    this.root.addEventListener('scroll', () => { this.root.scrollTop = 0; });
  }

  private columns(): number[] {
    return this.model.headers.map((_, i) => i).filter(i => i === 0 || !this.hidden.has(i));
  }

  /** Width of column i; names take what the others leave. */
  private width(i: number): number { return this.widths[i] ?? COLUMN; }

  /** The machine whose rows are on screen while its own row is not. */
  private hostAbove(first: number): string {
    let n: Node | null = this.model.rows[Math.max(first, this.model.pins)] ?? null;
    if (!n?.parent || this.model.roots.length < 2) return '';
    while (n.parent) n = n.parent;
    return n.entry.labels[0] ?? '';
  }
  private drawHead(first: number): void {
    const { model } = this, above = this.hostAbove(first);
    const key = JSON.stringify([above, model.headers.map(x => x.name), [...this.hidden], this.widths, model.sortBy,
      model.descending]);
    if (key === this.headKey) return;
    this.headKey = key;
    this.head.setAttribute('role', 'row');
    this.head.replaceChildren(...this.columns().map(i => {
      const name = (i === 0 && this.options.title) || headText(model.headers[i].name) || (i === 0 ? 'Name' : '');
      const mark = model.sortBy === i && icon('open');
      if (mark && !model.descending) mark.classList.add('up');
      const cell = h('div', {
        class: i === 0 ? 'tree-name' : 'tree-cell', role: 'columnheader', 'aria-sort': model.sortBy === i
          ? (model.descending ? 'descending' : 'ascending') : 'none',
        title: `${model.headers[i].tooltip || model.headers[i].name || name} – click to sort, right click to choose `
          + `columns`,
      }, h('button', { type: 'button', tabIndex: -1, onclick: () => model.sort(i) }, name, mark,
      i === 0 && above && h('b', {}, ` ${above}`)));
      if (i > 0) {
        cell.style.width = `${this.width(i)}px`;
        const grip = h('span', { class: 'grip-x' });
        grip.addEventListener('pointerdown', e => {
          e.preventDefault(); e.stopPropagation();
          const before = this.width(i);
          drag(e, dx => {
            this.widths[i] = Math.max(24, Math.min(400, before - dx));
            this.headKey = '';
            this.model.changed.emit();
          });
        });
        cell.prepend(grip);
      }
      return cell;
    }));
    this.head.oncontextmenu = e => { e.preventDefault(); this.chooseColumns(); };
  }

  chooseColumns(): void {
    menuBelow(this.head, [
      { label: 'Columns', heading: true },
      ...this.model.headers.slice(1).map((x, k) => ({
        label: x.name || `Column ${k + 2}`, checked: !this.hidden.has(k + 1),
        run: () => {
          if (!this.hidden.delete(k + 1)) this.hidden.add(k + 1);
          this.headKey = '';
          this.model.changed.emit();
        },
      })),
      { label: 'Sort', heading: true },
      ...this.columns().map(i => ({ label: headText(this.model.headers[i].name) || 'Name',
        checked: this.model.sortBy === i,
        hint: this.model.sortBy === i ? (this.model.descending ? 'descending' : 'ascending') : '',
        run: () => this.model.sort(i) })),
      { label: 'Rows', heading: true },
      { label: 'Unfold all', run: () => this.model.foldAll(false) },
      { label: 'Fold all', run: () => this.model.foldAll(true) },
    ]);
  }
  /** A cell as people read it. */
  text(node: Node, column: number): string {
    const given = this.options.text?.(node, column);
    if (given !== undefined) return given;
    if (node.pinned && column === 0 && this.model.roots.length > 1) return pinnedName(node);
    const label = node.entry.labels[column] ?? '', header = this.model.headers[column];
    if (header?.dataType === 'BINARY_NUMBER' && /^\d+$/.test(label))
      return formatValue(Number(label), 'B', header.dataType);
    return header?.dataType === 'NUMBER' ? formatCount(label, header.name) : label;
  }
  hideColumns(columns: number[]): void { this.hidden = new Set(columns); }
  /** Columns as wide as their texts, between bounds. */
  fitColumns(least = 40, most = 190, room = Infinity): void {
    // Of each column the texts with most letters are measured, not all.
    const { model } = this, longest = model.headers.map(() => new Set<string>());
    let seen = 0;
    for (const n of model.nodes.values()) {
      for (let i = 1; i < longest.length && i < n.entry.labels.length; i++) {
        const text = this.text(n, i), [one = ''] = longest[i];
        if (text.length > one.length) longest[i] = new Set([text]);
        else if (text.length === one.length && longest[i].size < LIKE) longest[i].add(text);
      }
      if (++seen >= SAMPLE) break;
    }
    const texts = model.headers.map((x, i) => Math.max(textWidth(headText(x.name)) + 8,
      ...[...longest[i]].map(textWidth)));
    this.widths = texts.map(n => Math.ceil(Math.max(least, Math.min(most, n + 12))));
    // The last ones are left out where names would be cut.
    let used = NAME;
    for (const i of this.columns().slice(1)) { used += this.widths[i]; if (used > room) this.hidden.add(i); }
    this.headKey = '';
  }

  /** Draws the rows from `top` px that fit into `height`. */
  draw(top: number, height: number): void {
    const { model, pool, rowHeight } = this;
    this.drawHead(Math.floor(top / rowHeight + 0.5) + model.pins);
    const seen = model.seen(top, height, rowHeight), columns = this.columns(), count = seen.length;
    this.root.setAttribute('aria-rowcount', String(model.rows.length));
    while (pool.length < count) {
      const row = h('div', { class: 'tree-row', role: 'row' });
      row.addEventListener('click', e => this.click(e, row));
      row.addEventListener('dblclick', () => this.options.onOpen?.(this.nodeOf(row)));
      row.addEventListener('contextmenu', e => {
        if (!this.options.onMenu) return;
        e.preventDefault();
        this.pick(Number(row.dataset.row));
        this.options.onMenu(this.nodeOf(row), e.clientX, e.clientY);
      });
      pool.push(row);
      this.body.append(row);
    }
    // A row keeps its element while it is on screen: scrolling changes few texts.
    const { pins } = model, rest = Math.max(1, pool.length - pins), used = new Set<number>();
    for (const i of seen) {
      const place = i < pins ? i : pins + (i - pins) % rest, row = pool[place];
      used.add(place);
      row.hidden = false;
      this.fill(row, i, columns);
      row.style.transform = `translateY(${model.yOf(i, top, rowHeight)}px)`;
    }
    pool.forEach((row, k) => { if (!used.has(k)) row.hidden = true; });
  }
  private nodeOf(row: HTMLElement): Node { return this.model.rows[Number(row.dataset.row)]; }

  private fill(row: HTMLElement, i: number, columns: number[]): void {
    const node = this.model.rows[i], { entry } = node;
    row.dataset.row = String(i);
    const folds = node.children.length > 0 && !node.pinned, folded = folds && this.model.isFolded(node);
    row.setAttribute('aria-rowindex', String(i + 1));
    row.setAttribute('aria-level', String(node.depth + 1));
    if (folds) row.setAttribute('aria-expanded', String(!folded)); else row.removeAttribute('aria-expanded');
    const picked = this.picked === entry.id;
    row.setAttribute('aria-selected', String(picked));
    toggle(row, 'picked', picked);
    toggle(row, 'pinned', !!node.pinned);
    toggle(row, 'last-pinned', i === this.model.pins - 1);
    toggle(row, 'group', node.depth < 2 && (!entry.hasData || (node.depth === 0 && folds)));
    toggle(row, 'host', node.depth === 0 && folds);
    while (row.childElementCount > columns.length) row.lastElementChild!.remove();
    columns.forEach((c, k) => {
      let cell = row.children[k] as HTMLElement | undefined;
      const text = this.text(node, c);
      if (c === 0) {
        if (!cell || cell.className !== 'tree-name') {
          const fresh = h('div', { class: 'tree-name', role: 'gridcell' },
            h('span', { class: 'twisty', 'aria-hidden': true }),
            this.options.checkbox && h('span', { class: 'check', role: 'checkbox', 'aria-label': 'shown' }),
            this.options.swatch && h('span', { class: 'swatch' }), h('span', { class: 'tree-text' }));
          if (cell) cell.replaceWith(fresh); else row.append(fresh);
          cell = fresh;
        }
        const twisty = cell.firstElementChild as HTMLElement;
        toggle(twisty, 'folds', folds);
        toggle(twisty, 'folded', folded);
        cell.style.paddingLeft = `${4 + node.depth * 12}px`;
        const label = cell.lastElementChild as HTMLElement;
        setName(label, text);
        cell.title = text;
        if (this.options.checkbox) {
          const box = cell.querySelector('.check')!, on = this.options.isChecked?.(node) ?? false;
          toggle(box, 'on', on);
          toggle(box, 'none', !entry.hasData && !folds);
          box.setAttribute('aria-checked', String(on));
        }
        if (this.options.swatch)
          (cell.querySelector('.swatch') as HTMLElement).style.background = this.options.swatch(node) ?? 'transparent';
      } else {
        if (!cell) row.append(cell = h('div', { class: 'tree-cell', role: 'gridcell' }));
        setText(cell, text);
        cell.style.width = `${this.width(c)}px`;
        toggle(cell, 'number', this.options.numbersRight !== false
          && (/^-+$/.test(text) || !Number.isNaN(labelNumber(text))));
      }
    });
  }

  private click(e: MouseEvent, row: HTMLElement): void {
    const i = Number(row.dataset.row), node = this.model.rows[i];
    if (!node) return;
    const target = e.target as HTMLElement;
    if (target.classList.contains('twisty') && node.children.length) {
      this.model.fold(node, !this.model.isFolded(node), e.altKey);
      return;
    }
    if (target.classList.contains('check')) this.options.onCheck?.(node, !(this.options.isChecked?.(node) ?? false));
    this.pick(i);
  }

  pick(row: number): void {
    const node = this.model.rows[Math.max(0, Math.min(row, this.model.rows.length - 1))];
    if (!node) return;
    this.picked = node.entry.id;
    this.options.onPick(node, this.model.rowOf.get(node.entry.id) ?? 0);
  }
  get pickedRow(): number { return this.picked === null ? -1 : this.model.rowOf.get(this.picked) ?? -1; }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey) return;
    const row = this.pickedRow, node = this.model.rows[row];
    const page = Math.max(1, Math.floor(this.body.clientHeight / this.rowHeight) - 1);
    const go = (to: number): void => this.pick(Math.max(0, Math.min(this.model.rows.length - 1, to)));
    switch (e.key) {
      case 'ArrowDown': go(row + 1); break;
      case 'ArrowUp': go(row - 1); break;
      case 'PageDown': go(row + page); break;
      case 'PageUp': go(row - page); break;
      case '+': case '-': if (!node) return; this.model.fold(node, e.key === '-', true); break;
      case ' ':
        if (!node) return;
        if (this.options.checkbox) this.options.onCheck?.(node, !(this.options.isChecked?.(node) ?? false));
        else this.model.fold(node, !this.model.isFolded(node));
        break;
      case 'ContextMenu': {
        const el = this.pool.find(r => !r.hidden && Number(r.dataset.row) === row);
        if (!el || !node || !this.options.onMenu) return;
        const box = el.getBoundingClientRect();
        this.options.onMenu(node, box.left + 40, box.bottom);
        break;
      }
      case 'F10': {
        if (!e.shiftKey) return;
        const el = this.pool.find(r => !r.hidden && Number(r.dataset.row) === row);
        if (!el || !node || !this.options.onMenu) return;
        const box = el.getBoundingClientRect();
        this.options.onMenu(node, box.left + 40, box.bottom);
        break;
      }
      default: return;
    }
    e.preventDefault();
    e.stopPropagation();
  }
}

/** Its machine is not above it. */
function pinnedName(node: Node): string {
  let root: Node = node;
  while (root.parent) root = root.parent;
  const name = node.entry.labels[0] ?? '';
  return root.entry.id === node.entry.id ? name : `${root.entry.labels[0] ?? ''} · ${name}`;
}

/** Files and addresses are told apart by how they end: what has no room is left out before that. */
function setName(e: HTMLElement, text: string): void {
  const end = /^\/./.test(text) ? text.lastIndexOf('/') : /:0x/.test(text) ? text.length - 6 : 0;
  toggle(e, 'ended', end > 0);
  if (end <= 0) { setText(e, text); return; }
  if (e.textContent === text && e.childElementCount === 2) return;
  e.replaceChildren(h('span', {}, text.slice(0, end)), h('span', {}, text.slice(end)));
}
