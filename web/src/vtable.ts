// SPDX-License-Identifier: MIT
// A table of any length: only the lines on screen exist, and only they are asked for. Follows the time cursor and moves
// it.
import { announce, button, drag, h, setText, toggle } from './dom';
import { perFrame, settle } from './emitter';
import { menuBelow } from './menu';
import { failureWords } from './panel';
import type { Session } from './session';
import { formatCount, formatDuration, parseTime } from './time';
import { labelNumber } from './tree';
import { isAbort, TspError, type Answer, type Column, type Line, type Lines, type Output, type Time } from './tsp';

const CHUNK = 100;
const TALLEST = 6_000_000; // px that browsers scroll without trouble; longer tables are scrolled by shares
const HIGHLIGHT = 8;
/** Titles of servers that state no keys: what is known of Trace Compass's columns. */
const LONG = /^contents?$/i, EXACT = /^timestamp ns$/i, TIME = /^(timestamp|time|begin|start( time)?)$/i,
  ASIDE = /^(packet header|packet context|stream context|event context|callsite|channel|prio)$/i;
/** Types of columns whose cells stand at the right. */
const NUMBERS = /^(NUMBER|BINARY_NUMBER|DURATION)$/;

export class VirtualTable {
  readonly root: HTMLElement;
  columns: Column[] = [];
  size = 0;
  private readonly chunks = new Map<number, Line[]>();
  private readonly asked = new Map<number, AbortController>();
  private readonly head = h('div', { class: 'vt-head', role: 'row' });
  private readonly filters = h('div', { class: 'vt-filters', role: 'row' });
  private readonly body = h('div', { class: 'vt-body', role: 'rowgroup' });
  private readonly tall: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly words = h('p', { class: 'vt-words', role: 'status' });
  /** How many lines, and whether only those that match: stands in the bar of whoever holds the table. */
  readonly bar = h('span', { class: 'vt-bar' });
  private readonly count = h('span', { class: 'vt-count', role: 'status' });
  private readonly lacking = h('span', { class: 'vt-lack', role: 'status' });
  private readonly onlyButton = button('only matches', 'Only lines in which all expressions are found',
    () => this.setOnly(!this.only), { class: 'plain', 'aria-pressed': 'false', hidden: true });
  /** An expression over events; what does not fit is left out. */
  private readonly where = h('input', { type: 'search', class: 'vt-where', hidden: true, placeholder: 'events where …',
    spellcheck: false, 'aria-label': 'Only events for which this holds',
    title: 'Only events for which this holds, as weft events --where: name == "sched_switch" && next_tid == 204, host '
      + '== "web" && cpu == 1' });
  private only = false;
  private all = 0;            // lines without a filter, for the count
  private missed = '';        // what the last search did not find stands there until the next
  private pool: HTMLElement[] = [];
  private widths: number[] = [];
  private hidden = new Set<number>();
  private top = 0;            // first line, with fraction
  picked = -1;
  private moving = false;     // the cursor is ours: do not follow it
  private expressions = new Map<number, string>();
  private searchStop: AbortController | null = null;
  private undo: (() => void)[] = [];
  private readonly redraw = perFrame(() => this.draw());
  private readonly ask = settle(() => this.fetch(), 40, 120);
  private readonly follow = settle(() => void this.toCursor(), 120, 400);
  private known = false;
  private timeColumn = -1;
  private exactColumn = -1;

  constructor(private readonly session: Session, readonly output: Output, private readonly follows: boolean) {
    this.tall = h('div', { class: 'vt-tall' }, this.body);
    this.scroller = h('div', { class: 'vt-scroll', tabIndex: 0, role: 'table', 'aria-label': output.name },
      h('div', { class: 'vt-sticky' }, this.head, this.filters), this.tall);
    this.root = h('div', { class: 'vt' }, this.scroller, this.words);
    this.bar.append(this.where, this.onlyButton, this.lacking, this.count);
    this.where.addEventListener('input', this.retyped);
    this.where.addEventListener('keydown', e => {
      e.stopPropagation();
      if (e.key === 'Enter') this.retype();
      if (e.key === 'Escape') { this.where.value = ''; this.retype(); this.scroller.focus(); }
    });
    this.scroller.addEventListener('scroll', () => this.scrolled(), { passive: true });
    this.scroller.addEventListener('wheel', e => {
      if (!this.scaled || e.ctrlKey || e.deltaX) return;
      e.preventDefault();
      this.moveTo(this.top + e.deltaY * (e.deltaMode === 1 ? 20 : 1) / this.rowHeight);
    }, { passive: false });
    this.scroller.addEventListener('keydown', e => this.key(e));
    this.undo.push(session.timeModeChanged.on(this.redraw), session.relayout.on(() => this.layout()));
    if (follows) this.undo.push(session.axis.selected.on(() => { if (!this.moving) this.follow(); }));
    new ResizeObserver(() => { this.redraw(); this.ask(); }).observe(this.root);
    void this.load();
  }
  dispose(): void {
    for (const f of this.undo) f();
    for (const a of this.asked.values()) a.abort();
    this.searchStop?.abort();
    this.root.remove();
    this.bar.remove();
  }
  private get rowHeight(): number { return 18; }
  private get scaled(): boolean { return this.size * this.rowHeight > TALLEST; }
  private get page(): number {
    return Math.max(1, Math.floor((this.scroller.clientHeight - this.headHeight) / this.rowHeight));
  }
  private get headHeight(): number { return this.head.offsetHeight + this.filters.offsetHeight; }

  async load(): Promise<void> {
    const { client, uuid } = this.session;
    setText(this.words, 'Loading…');
    this.words.hidden = false;
    try {
      const a = await client.columns(uuid, this.output.id);
      this.columns = a.model ?? [];
      this.findColumns();
      const first = await client.lines(uuid, this.output.id,
        { requested_table_index: 0, requested_table_count: CHUNK });
      this.fit(first.model?.lines ?? []);
      this.drawHead();
      this.take(first, 0);
      if (this.follows && this.session.axis.cursor !== null) this.follow();
    } catch (e) { this.trouble(e); }
  }
  /** Which columns are times, and which are not seen at first. */
  private findColumns(): void {
    const { columns } = this, stated = columns.some(c => c.key !== undefined),
      text = columns.findIndex(c => c.key === 'timestamp');
    if (stated) {
      // Beside texts of times, the column of numbers that lines are in the order of.
      this.exactColumn = text < 0 ? -1 : columns.findIndex(c => c.type === 'TIMESTAMP' && c.order === 'ASCENDING');
      this.timeColumn = text >= 0 ? text : columns.findIndex(c => c.type === 'TIMESTAMP');
    } else {
      this.exactColumn = columns.findIndex(c => EXACT.test(c.name));
      this.timeColumn = columns.findIndex(c => TIME.test(c.name) || (c.type === 'TIMESTAMP' && !/ns$/i.test(c.name)));
    }
    if (this.exactColumn >= 0 && columns.length > 1) this.hidden.add(this.exactColumn);
    columns.forEach((c, i) => { if (stated ? c.display === 'ASIDE' : ASIDE.test(c.name)) this.hidden.add(i); });
  }
  private isLong(c: Column): boolean { return c.key === undefined ? LONG.test(c.name) : c.display === 'WIDE'; }
  /** Columns as wide as the first lines' texts, between bounds; the contents take what the others leave. */
  private fit(lines: Line[]): void {
    const wanted = this.columns.map((c, i) => this.isTime(i, lines[0]) ? 150
      : Math.max(52, Math.max(c.name.length, ...lines.map(l => this.cellText(l, i).length)) * 7 + 16));
    const wide = this.columns.findIndex(c => this.isLong(c)), shown = this.shown();
    this.widths = wanted.map((w, i) => i === wide ? Math.max(300, Math.min(600, w)) : Math.min(260, w));
    // What is left goes to those that were bounded, then to the contents.
    let room = this.root.clientWidth - 20 - shown.reduce((sum, i) => sum + this.widths[i], 0);
    for (const i of [...shown.filter(i => i !== wide), wide]) {
      if (i < 0 || room <= 0) continue;
      const more = i === wide ? room : Math.min(room, wanted[i] - this.widths[i]);
      this.widths[i] += more;
      room -= more;
    }
  }
  private isTime(column: number, line: Line | undefined): boolean {
    return column === this.timeColumn || (this.columns[column].type === 'TIMESTAMP' && column !== this.exactColumn
      && /^\d{16,}$/.test(line?.cells[column]?.content ?? '0000000000000000'));
  }
  /** A cell as people read it: times in the page's format, durations with units. */
  private cellText(line: Line, column: number): string {
    const text = line.cells[column]?.content ?? '', { type } = this.columns[column];
    if (column === this.timeColumn) { const t = this.timeOf(line); if (t !== null) return this.session.time(t); }
    if (type === 'TIMESTAMP' && column !== this.exactColumn && /^\d{16,}$/.test(text))
      return this.session.time(BigInt(text));
    if (type === 'DURATION' && /^-?\d+$/.test(text)) return formatDuration(BigInt(text));
    if (column === this.exactColumn && /^\d+$/.test(text)) return String(this.session.shown(BigInt(text)));
    return type === 'NUMBER' ? formatCount(text, this.columns[column].name) : text;
  }
  private trouble(e: unknown): void {
    if (isAbort(e)) return;
    // What cannot be understood is said where the lines would be.
    if (e instanceof TspError && e.status >= 400 && e.status < 500 && (this.expressions.size || this.where.value)) {
      this.size = 0;
      this.known = false;
      this.redraw();
      this.words.hidden = false;
      setText(this.words, e.detail || e.title);
      setText(this.count, 'not understood');
      this.count.classList.add('bad');
      return;
    }
    if (this.size) {
      setText(this.count, e instanceof TspError && e.status ? e.title : 'the server does not answer');
      return;
    }
    this.words.hidden = false;
    this.words.replaceChildren(failureWords(e), ' ', button('Try again', 'Ask the server again',
      () => void this.load()));
  }
  /** There may be more lines, and more columns. */
  async reload(): Promise<void> {
    const { client, uuid } = this.session;
    try {
      const names = (await client.columns(uuid, this.output.id)).model ?? [];
      if (JSON.stringify(names) !== JSON.stringify(this.columns)) { await this.load(); return; }
    } catch (e) { this.trouble(e); return; }
    for (const a of this.asked.values()) a.abort();
    this.asked.clear();
    for (const k of this.chunks.keys()) this.stale.add(k);
    this.known = false;
    this.ask();
  }
  retry(): void { if (!this.columns.length) void this.load(); else this.ask(); }

  private take(a: Answer<Lines>, chunk: number): void {
    if (!a.model) { if (!this.known) setText(this.words, a.statusMessage || 'This table is empty.'); return; }
    const first = !this.known;
    // somebody else's request may have found it out
    if (!first && !this.filtering && a.model.size !== this.size && a.status === 'COMPLETED')
      this.session.client.onDoubt();
    if (a.model.size !== this.size || first) { this.size = a.model.size; this.known = true; this.layout(); }
    this.running = a.status === 'RUNNING';
    this.lack = a.note;
    if (!this.filtering) this.all = this.size;
    this.words.hidden = this.size > 0;
    if (!this.size)
      setText(this.words, !this.filtering ? `${this.output.name} has no lines in this trace.` : this.running
        ? 'Looking for lines that match…' : 'No line matches.');
    this.counted();
    this.chunks.delete(chunk);
    this.chunks.set(chunk, a.model.lines);
    for (const k of this.chunks.keys()) { if (this.chunks.size <= 80) break; this.chunks.delete(k); }
    this.redraw();
    if (this.awaited >= 0 && this.line(this.awaited)) this.pick(this.awaited);
    if (first && this.filtering && this.follows) this.follow();
    if (this.running) {
      clearTimeout(this.again);
      this.again = window.setTimeout(() => { this.stale.add(chunk); this.ask(); }, 400);
    }
  }

  private counted(): void {
    this.count.classList.remove('bad');
    setText(this.count, this.missed || this.counts());
    setText(this.lacking, this.lack);
    this.lacking.title = this.lack;
    this.onlyButton.hidden = !this.columns.length;
    this.where.hidden = !this.follows;
  }
  private counts(): string {
    const spaced = (n: number): string => n.toLocaleString('en').replace(/,/g, '\u2009'),
      number = (n: number, what: string): string => `${spaced(n)} ${what}${n === 1 ? '' : 's'}`;
    // The table of events also has a line for each place where some were lost.
    const { size, all } = this, events = this.follows ? this.session.experiment?.nbEvents ?? 0 : 0, losses = events
      ? Math.max(0, all - events) : 0, what = this.follows && !losses ? 'event' : 'line';
    if (this.filtering)
      return `${spaced(size)}${all ? ` of ${spaced(all)}` : ''} ${what}s${this.running ? ' so far…' : ''}`;
    return losses ? `${number(events, 'event')}, lost ones in ${number(losses, 'place')}` : size ? number(size, what)
      : '';
  }
  private running = false;
  private lack = '';          // what the server says is missing
  private again = 0;
  private readonly stale = new Set<number>(); // chunks that may have grown
  private get filtering(): boolean { return (this.only && this.expressions.size > 0) || !!this.filter; }
  private filter = '';
  setOnly(on: boolean): void {
    this.only = on;
    this.onlyButton.setAttribute('aria-pressed', String(on));
    if (this.expressions.size) this.afresh();
  }
  /** Other lines than before: nothing of what is there counts. */
  private afresh(): void {
    for (const a of this.asked.values()) a.abort();
    this.asked.clear();
    this.chunks.clear();
    this.stale.clear();
    this.missed = '';
    clearTimeout(this.again);
    this.running = false;
    this.awaited = -1;
    const filter = this.where.value.trim(), other = this.only || filter !== this.filter;
    this.filter = filter;
    if (other) { this.known = false; this.picked = -1; this.moveTo(0); }
    this.ask();
  }
  /** What was typed counts, once. */
  private retype(): void {
    const typed = JSON.stringify([...this.expressions, this.where.value.trim()]);
    if (typed === this.typed) return;
    this.typed = typed;
    this.afresh();
  }
  private typed = JSON.stringify(['']);
  private readonly retyped = settle(() => this.retype(), 250, 1500);

  private fetch(): void {
    if (!this.columns.length || !this.root.offsetHeight) return;
    const first = Math.floor(this.top / CHUNK), last = Math.floor((this.top + this.page + 2) / CHUNK);
    for (const [k, stop] of this.asked) if (k < first - 1 || k > last + 1) { stop.abort(); this.asked.delete(k); }
    for (let k = first; k <= last; k++) {
      if (k < 0 || k * CHUNK >= Math.max(1, this.size) || (this.chunks.has(k) && !this.stale.has(k))
        || this.asked.has(k))
        continue;
      this.stale.delete(k);
      const stop = new AbortController();
      this.asked.set(k, stop);
      this.session.client.lines(this.session.uuid, this.output.id,
        { requested_table_index: k * CHUNK, requested_table_count: CHUNK, ...this.searching() }, stop.signal)
        .then(a => this.take(a, k), e => this.trouble(e)).finally(() => {
          if (this.asked.get(k) === stop) this.asked.delete(k);
        });
    }
  }
  private searching(): object {
    const where = this.filter ? { filter_query_parameters: { strategy: 'SAMPLED',
      filter_expressions_map: { 4: [this.filter] } } } : {};
    if (!this.expressions.size) return where;
    const expressions = Object.fromEntries(this.expressions);
    return { ...where, [this.only ? 'table_filter_expressions' : 'table_search_expressions']: expressions };
  }

  // ---- scrolling ----------------------------------------------------------------------------------------------------
  private layout(): void {
    this.tall.style.height = `${Math.min(TALLEST, this.size * this.rowHeight) + 6}px`;
    this.redraw();
    this.ask();
  }
  private ignore = 0;
  private scrolled(): void {
    if (this.ignore) { this.ignore--; return; }
    const room = this.tall.offsetHeight - (this.scroller.clientHeight - this.headHeight);
    this.top = this.scaled ? this.scroller.scrollTop / Math.max(1, room) * Math.max(0, this.size - this.page)
      : this.scroller.scrollTop / this.rowHeight;
    this.redraw();
    this.ask();
  }
  private moveTo(line: number): void {
    this.top = Math.max(0, Math.min(line, this.size - this.page));
    const room = this.tall.offsetHeight - (this.scroller.clientHeight - this.headHeight);
    const to = Math.round(this.scaled ? this.top / Math.max(1, this.size - this.page) * room
      : this.top * this.rowHeight);
    if (Math.abs(to - this.scroller.scrollTop) >= 1) {
      const before = this.scroller.scrollTop;
      this.scroller.scrollTop = to;
      if (this.scroller.scrollTop !== before) this.ignore++;
    }
    this.redraw();
    this.ask();
  }
  private show(line: number): void {
    if (line < this.top || line >= this.top + this.page - 1) this.moveTo(line - Math.floor(this.page / 3));
    else this.redraw();
  }

  // ---- drawing ------------------------------------------------------------------------------------------------------
  /** Columns that are seen, the one with the long texts last. */
  private shown(): number[] {
    const seen = this.columns.map((_, i) => i).filter(i => !this.hidden.has(i)),
      long = seen.filter(i => this.isLong(this.columns[i]));
    return [...seen.filter(i => !long.includes(i)), ...long];
  }
  private drawHead(): void {
    const shown = this.shown();
    this.head.replaceChildren(...shown.map(i => {
      const grip = h('span', { class: 'grip-x right' });
      grip.addEventListener('pointerdown', e => {
        e.preventDefault();
        const before = this.widths[i];
        drag(e, dx => { this.widths[i] = Math.max(30, before + dx); this.drawHead(); this.redraw(); });
      });
      // Durations carry their units.
      const { name, type, description } = this.columns[i], words = type === 'DURATION' ? name.replace(/ \(ns\)$/, '')
        : name;
      const cell = h('div', { class: `vt-cell${NUMBERS.test(type) ? ' number' : ''}`, role: 'columnheader',
        title: description || name }, words, grip);
      cell.style.width = `${this.widths[i]}px`;
      return cell;
    }));
    this.filters.replaceChildren(...shown.map(i => {
      const input = h('input', { type: 'search', class: 'vt-filter', placeholder: this.widths[i] < 60 ? '.*' : 'regex',
        title: `Regular expression on ${this.columns[i].name}; Enter: next line, shift+Enter: the one before`,
        'aria-label': `Search in ${this.columns[i].name}`, value: this.expressions.get(this.columns[i].id) ?? '',
        spellcheck: false });
      input.style.width = `${this.widths[i] - 6}px`;
      input.addEventListener('keydown', e => {
        e.stopPropagation();
        if (e.key === 'Enter') { this.retype(); void this.find(e.shiftKey ? -1 : 1); }
        if (e.key === 'Escape') {
          input.value = '';
          this.expressions.delete(this.columns[i].id);
          this.retype();
          this.scroller.focus();
        }
      });
      input.addEventListener('input', () => {
        if (input.value) this.expressions.set(this.columns[i].id, input.value);
        else this.expressions.delete(this.columns[i].id);
        this.retyped();
      });
      return h('div', { role: 'cell' }, input);
    }));
    this.head.oncontextmenu = e => { e.preventDefault(); this.chooseColumns(this.head); };
  }
  chooseColumns(anchor: Element): void {
    menuBelow(anchor, [{ label: 'Columns', heading: true }, ...this.columns.map((c, i) => ({
      label: c.name, checked: !this.hidden.has(i), run: () => {
        if (!this.hidden.delete(i)) this.hidden.add(i);
        this.drawHead();
        for (const r of this.pool) r.replaceChildren();
        this.redraw();
      },
    }))]);
  }
  line(i: number): Line | undefined { return this.chunks.get(Math.floor(i / CHUNK))?.[i % CHUNK]; }
  private timeOf(line: Line): Time | null {
    const exact = this.exactColumn >= 0 ? line.cells[this.exactColumn]?.content : undefined;
    if (exact && /^-?\d+$/.test(exact)) return BigInt(exact);
    const text = this.timeColumn >= 0 ? line.cells[this.timeColumn]?.content : undefined;
    if (text && /^\d{16,}$/.test(text)) return BigInt(text);
    return text ? parseTime(text, 'utc', this.session.axis.min) : null;
  }
  draw(): void {
    const { pool } = this, shown = this.shown(), first = Math.floor(this.top),
      n = Math.min(this.page + 2, Math.max(0, this.size - first));
    this.scroller.setAttribute('aria-rowcount', String(this.size));
    while (pool.length < n) {
      const row = h('div', { class: 'vt-row', role: 'row' });
      row.addEventListener('click', () => this.pick(Number(row.dataset.line)));
      row.addEventListener('dblclick', () => {
        const l = this.line(Number(row.dataset.line)), t = l && this.timeOf(l);
        if (t) this.session.axis.reveal(t);
      });
      pool.push(row);
      this.body.append(row);
    }
    const base = this.scroller.scrollTop;
    pool.forEach((row, k) => {
      row.hidden = k >= n;
      if (k >= n) return;
      const i = first + k, line = this.line(i);
      row.dataset.line = String(i);
      row.setAttribute('aria-rowindex', String(i + 1));
      toggle(row, 'picked', i === this.picked);
      toggle(row, 'found', !!line && !!this.expressions.size && ((line.tags ?? 0) & HIGHLIGHT) !== 0);
      toggle(row, 'waiting', !line);
      row.style.transform = `translateY(${base + (i - this.top) * this.rowHeight}px)`;
      while (row.childElementCount > shown.length) row.lastElementChild!.remove();
      shown.forEach((c, j) => {
        const cell = (row.children[j] as HTMLElement | undefined)
          ?? row.appendChild(h('div', { class: 'vt-cell', role: 'cell' }));
        const text = line ? this.cellText(line, c) : j === 0 ? '…' : '';
        setText(cell, text);
        cell.title = text.length > 20 ? text : '';
        cell.style.width = `${this.widths[c]}px`;
        toggle(cell, 'number', NUMBERS.test(this.columns[c].type) && !Number.isNaN(labelNumber(text)));
      });
    });
  }

  // ---- picking, following, searching --------------------------------------------------------------------------------
  private awaited = -1;       // picked before it was there
  pick(i: number): void {
    if (i < 0 || i >= this.size) return;
    this.picked = i;
    this.show(i);
    const line = this.line(i);
    this.awaited = line ? -1 : i;
    if (!line) return;
    const t = this.timeOf(line);
    if (t !== null) {
      this.moving = true;
      this.session.axis.select(t);
      this.session.axis.reveal(t);
      this.moving = false;
    }
    this.session.detail.emit({ title: `${this.output.name}, line ${i + 1}`, begin: t ?? undefined,
      lines: this.columns.map((c, k): [string, string] => [c.name, line.cells[k]?.content ?? '']).filter(l => l[1]) });
    announce(line.cells.map(c => c.content).join(', ').slice(0, 200));
  }
  private async toCursor(): Promise<void> {
    const { cursor } = this.session.axis;
    if (cursor === null || !this.known || !this.root.offsetHeight) return;
    try {
      const a = await this.session.client.lines(this.session.uuid, this.output.id,
        { requested_times: [cursor], requested_table_count: 1, ...(this.filtering ? this.searching() : {}) });
      if (!a.model || this.session.axis.cursor !== cursor || (this.filtering && !a.model.lines.length)) return;
      this.picked = a.model.lowIndex;
      this.awaited = -1;
      this.moveTo(a.model.lowIndex - Math.floor(this.page / 3));
    } catch (e) { this.trouble(e); }
  }
  async find(direction: 1 | -1): Promise<boolean> {
    if (!this.expressions.size) return false;
    this.missed = '';
    if (this.only) { this.pick(this.picked < 0 ? 0 : this.picked + direction); return true; }
    this.searchStop?.abort();
    const stop = this.searchStop = new AbortController();
    setText(this.count, 'searching…');
    try {
      const from = this.picked < 0 ? 0 : this.picked + direction;
      const a = await this.session.client.lines(this.session.uuid, this.output.id, {
        requested_table_index: Math.max(0, Math.min(this.size - 1, from)), requested_table_count: 1,
        ...this.searching(), table_search_direction: direction > 0 ? 'NEXT' : 'PREVIOUS',
      }, stop.signal);
      const found = a.model?.lines[0];
      if (!found)
        this.missed = `no match ${this.picked < 0 ? 'in the table' : direction > 0 ? 'further down' : 'further up'}`;
      this.counted();
      if (!found) { announce(this.missed); return false; }
      const i = found.index ?? a.model!.lowIndex;
      this.picked = i;
      this.show(i);
      if (!this.line(i)) {
        const t = this.timeOf(found);
        if (t !== null) {
          this.moving = true;
          this.session.axis.select(t);
          this.session.axis.reveal(t);
          this.moving = false;
        }
      } else this.pick(i);
      return true;
    } catch (e) { this.trouble(e); return false; }
  }
  /** What is seen, for a CSV file. */
  seen(): { names: string[]; lines: string[][] } {
    const shown = this.shown(), lines: string[][] = [];
    for (let i = Math.floor(this.top); i < Math.min(this.size, this.top + this.page + 1); i++) {
      const l = this.line(i);
      if (l) lines.push(shown.map(c => l.cells[c]?.content ?? ''));
    }
    return { names: shown.map(c => this.columns[c].name), lines };
  }
  private key(e: KeyboardEvent): void {
    if (e.target !== this.scroller || e.ctrlKey || e.metaKey || e.altKey) return;
    const at = this.picked < 0 ? Math.floor(this.top) : this.picked;
    const to = ({ ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + this.page, PageUp: at - this.page, Home: 0,
      End: this.size - 1 } as Record<string, number>)[e.key];
    if (to !== undefined) {
      e.preventDefault();
      e.stopPropagation();
      this.pick(Math.max(0, Math.min(this.size - 1, to)));
      return;
    }
    if ((e.key === 'n' || e.key === 'p') && this.expressions.size) {
      e.preventDefault();
      e.stopPropagation();
      void this.find(e.key === 'n' ? 1 : -1);
    }
  }
}
