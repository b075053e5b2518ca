// SPDX-License-Identifier: MIT
// Entries of a view as a tree: which rows are seen after folding, sorting and filtering. No DOM here.
import { Emitter } from './emitter';
import { keyOf, type Entry, type Header, type Tree } from './tsp';

export interface Node { entry: Entry; depth: number; children: Node[]; parent: Node | null; match: boolean;
  hidden: boolean;
  /** Stands on top of the others, too: this is that one. */
  pinned?: boolean }

export type RowTest = (entry: Entry, path: string) => boolean;
/** Which rows are wanted. `ofThreads`: the test asks for thread ids, and says nothing about a tree without them;
 * `always` is about every tree. */
export interface Wish { test: RowTest | null; ofThreads: boolean; always?: RowTest | null }

export class TreeModel {
  headers: Header[] = [{ name: 'Name' }];
  nodes = new Map<number, Node>();
  roots: Node[] = [];
  /** Rows in the order seen: first those that stay on top, so many. */
  rows: Node[] = [];
  pins = 0;
  /** Entries that are wanted there. */
  pinned: ReadonlySet<number> = new Set();
  rowOf = new Map<number, number>();
  sortBy = -1;
  descending = false;
  /** Rows that the filter found (without their ancestors). */
  found = 0;
  readonly changed = new Emitter();
  private folded = new Set<string>();
  /** No tree was complete so far. */
  private fresh = true;
  private test: RowTest | null = null;
  /** The nodes carry what a test said. */
  private tested = false;

  /** `partial`: the first entries of a tree of which more will come. */
  set(tree: Tree, partial = false): void {
    this.headers = tree.headers.length ? tree.headers : [{ name: 'Name' }];
    const nodes = new Map<number, Node>();
    for (const entry of tree.entries)
      nodes.set(entry.id, { entry, depth: 0, children: [], parent: null, match: true, hidden: false });
    this.roots = [];
    for (const node of nodes.values()) {
      const parent = node.entry.parentId >= 0 ? nodes.get(node.entry.parentId) : undefined;
      if (parent && parent !== node && !this.above(node, parent)) {
        node.parent = parent;
        parent.children.push(node);
      } else this.roots.push(node);
    }
    this.nodes = nodes;
    if (this.fresh && tree.autoExpandLevel >= 0)
      for (const n of nodes.values())
        if (n.children.length && depthOf(n) >= tree.autoExpandLevel) this.folded.add(this.key(n));
    this.fresh = partial;
    this.update();
  }
  /** `node` is an ancestor of `of`: a wrong tree must not become a ring. */
  private above(node: Node, of: Node): boolean {
    for (let n: Node | null = of; n; n = n.parent) if (n === node) return true;
    return false;
  }
  /** Ids may change when the server restarts; labels along the way do not. */
  key(node: Node): string {
    const parts: string[] = [];
    for (let n: Node | null = node; n; n = n.parent) parts.push(n.entry.labels[0] ?? '');
    return parts.reverse().join('\u0001');
  }
  isFolded(node: Node): boolean { return this.folded.has(this.key(node)); }
  fold(node: Node, folded: boolean, deep = false): void {
    if (node.children.length) { if (folded) this.folded.add(this.key(node)); else this.folded.delete(this.key(node)); }
    if (deep) for (const c of node.children) this.foldQuiet(c, folded);
    this.update();
  }
  private foldQuiet(node: Node, folded: boolean): void {
    if (node.children.length) { if (folded) this.folded.add(this.key(node)); else this.folded.delete(this.key(node)); }
    for (const c of node.children) this.foldQuiet(c, folded);
  }
  foldAll(folded: boolean): void {
    for (const r of this.roots) for (const n of folded ? r.children : [r]) this.foldQuiet(n, folded);
    this.update();
  }

  filter({ test, ofThreads, always = null }: Wish): void {
    const says = !ofThreads || this.headers.some(x => keyOf(x) === 'tid')
      || [...this.nodes.values()].some(n => n.entry.metadata.TID), asked = says ? test : null;
    this.test = asked && always ? (e, path) => asked(e, path) && always(e, path) : asked ?? always;
    this.update();
  }
  sort(column: number): void {
    if (this.sortBy !== column) {
      this.sortBy = column;
      this.descending = false;
    } else if (!this.descending) this.descending = true; else this.sortBy = -1;
    this.update();
  }

  /** Tests the node and all below it. `path`: labels above it, each after a blank. */
  private mark(node: Node, path: string, test: RowTest): boolean {
    const here = path + ' ' + node.entry.labels.join(' ');
    node.match = test(node.entry, here);
    if (node.match) this.found++;
    let any = node.match;
    for (const c of node.children) any = this.mark(c, here, test) || any;
    node.hidden = !any;
    return any;
  }

  update(): void {
    const { test } = this;
    this.found = 0;
    if (test) for (const r of this.roots) this.mark(r, '', test);
    else if (this.tested) for (const n of this.nodes.values()) { n.match = true; n.hidden = false; }
    this.tested = test !== null;
    this.rows = this.onTop();
    this.pins = this.rows.length;
    const walk = (list: Node[], depth: number): void => {
      for (const n of this.sortBy < 0 ? list : this.sorted(list)) {
        if (n.hidden) continue;
        n.depth = depth;
        this.rows.push(n);
        if (n.children.length && !(this.folded.size && this.isFolded(n)) ) walk(n.children, depth + 1);
      }
    };
    walk(this.roots, 0);
    this.rowOf.clear();
    for (let i = this.rows.length; i-- > 0;) this.rowOf.set(this.rows[i].entry.id, i);
    this.changed.emit();
  }
  private onTop(): Node[] {
    const rows: Node[] = [];
    for (const id of this.pinned) {
      const n = this.nodes.get(id);
      if (n) rows.push({ ...n, depth: 0, hidden: false, pinned: true });
    }
    return rows;
  }

  // Where rows of `rh` px are below the head, when those that can be scrolled are `top` px up.
  yOf(row: number, top: number, rh: number): number { return row * rh - (row < this.pins ? 0 : top); }
  rowAt(y: number, top: number, rh: number): number { return Math.floor((y < this.pins * rh ? y : y + top) / rh); }
  /** px of a row that are covered by those on top. */
  covered(row: number, top: number, rh: number): number {
    return row < this.pins ? 0 : Math.max(0, Math.min(rh, this.pins * rh - this.yOf(row, top, rh)));
  }
  /** [first, last) of those that can be scrolled, within `height` px. */
  within(top: number, height: number, rh: number): [number, number] {
    const last = Math.min(this.rows.length, Math.ceil((top + height) / rh));
    return [Math.min(last, this.pins + Math.max(0, Math.floor(top / rh))), last];
  }
  /** All rows that are seen. */
  seen(top: number, height: number, rh: number): number[] {
    const [first, last] = this.within(top, height, rh), rows: number[] = [];
    for (let i = 0; i < this.pins; i++) rows.push(i);
    for (let i = first; i < last; i++) rows.push(i);
    return rows;
  }
  /** `top` from which on the row, and `below` more, are seen. */
  scrolledTo(row: number, top: number, height: number, rh: number, below = 0): number {
    if (row < this.pins) return top;
    if (this.yOf(row, top, rh) < this.pins * rh) return (row - this.pins) * rh;
    return Math.max(top, (row + 1 + below) * rh - height);
  }
  private sorted(list: Node[]): Node[] {
    const sign = this.descending ? -1 : 1;
    return list.map(node => ({ node, key: sortKey(node.entry.labels[this.sortBy] ?? '') }))
      .sort((a, b) => sign * compareKeys(a.key, b.key)).map(x => x.node);
  }
  /** Row of the entry, or of the folded ancestor that stands for it; -1 when the filter hides it. */
  seenRow(id: number): number {
    for (let n = this.nodes.get(id) ?? null; n && !n.hidden; n = n.parent) {
      const r = this.rowOf.get(n.entry.id);
      if (r !== undefined) return r;
    }
    return -1;
  }
  /** Unfolds whatever hides the entry. */
  unfoldTo(id: number): void {
    let any = false;
    for (let n = this.nodes.get(id)?.parent ?? null; n; n = n.parent) if (this.folded.delete(this.key(n))) any = true;
    if (any) this.update();
  }
}

function depthOf(node: Node): number { let d = 0; for (let n = node.parent; n; n = n.parent) d++; return d; }

const PREFIX: Record<string, number> = { n: 1e-9, 'µ': 1e-6, u: 1e-6, m: 1e-3, k: 1e3, K: 1e3, Ki: 1024, M: 1e6,
  Mi: 1048576, G: 1e9, Gi: 1073741824 };
/** Leading number with its unit's prefix ("12.5 ms" is 0.0125), or NaN. */
export function labelNumber(label: string): number {
  const m = /^\s*([±+\-−]?)\s*(\d[\d\u2009 ]*(?:[.,]\d+)?(?:e[+-]?\d+)?)\s*([nµumkKMG]i?(?=s\b|B))?/i.exec(label);
  if (!m) return NaN;
  const v = Number(m[2].replace(/[\u2009 ]/g, '').replace(',', '.')) * (m[3] ? PREFIX[m[3]] ?? 1 : 1);
  return m[1] === '-' || m[1] === '−' ? -v : v;
}
interface SortKey { label: string; number: number }
const words = new Intl.Collator(undefined, { numeric: true });
const sortKey = (label: string): SortKey => ({ label, number: labelNumber(label) });
function compareKeys(a: SortKey, b: SortKey): number {
  if (!Number.isNaN(a.number) && !Number.isNaN(b.number) && a.number !== b.number) return a.number - b.number;
  return words.compare(a.label, b.label);
}
export const compareLabels = (a: string, b: string): number => compareKeys(sortKey(a), sortKey(b));
