// SPDX-License-Identifier: MIT
// The bar at the top: experiment, span, search, time format, clock badge, views, export, theme, help.
import { clockHosts } from './clock';
import { announce, button, h, setText, toggle } from './dom';
import { icon, withIcon } from './icons';
import { MachineSign } from './machines';
import { menuBelow, type MenuItem } from './menu';
import { ID, outputOf } from './outputs';
import { keep } from './remember';
import type { Session } from './session';
import { absTime, formatCount, formatDate, formatDuration, formatSpan, parseRange, parseTime,
  type TimeMode } from './time';
import { Start } from './start';
import { hideTip, showTip } from './tip';
import { isAbort, type Column, type Line, type Output } from './tsp';

export interface TopActions {
  openPicker(): void; start(): void; viewsMenu(): MenuItem[]; reveal(output: Output): void;
  save(kind: 'svg' | 'png' | 'csv'): void;
  help(): void; copyLink(): void; timesOf(host: string): void; searchStep(direction: 1 | -1): void;
  /** The focus goes to what was searched. */
  leaveSearch(): void;
  /** Stands beside the other signs. */
  following: HTMLElement;
  /** And what chooses rows, beside the views. */
  rows: HTMLElement;
}

const MODES: [TimeMode, string][] = [['local', 'Local time'], ['utc', 'UTC'], ['relative', 'Since the start']];

export class TopBar {
  readonly root: HTMLElement;
  readonly search = h('input', { type: 'search', id: 'search', placeholder: 'Search rows and states  ( / )',
    title: 'name · tid:204 · host:web · state:openat · duration>10ms', 'aria-label': 'Search rows and states',
    spellcheck: false });
  readonly goto = h('input', { type: 'text', class: 'span-input', placeholder: 'Go to a time  ( g )',
    'aria-label': 'Go to time', title: 'Time of the cursor. Type a time (12:31:17.519, +1.5s), or a range to zoom to '
      + '(T1..T2, T +50ms), and Enter. Key: g',
    spellcheck: false });
  private readonly span = h('span', { class: 'span', title: 'What is in view' });
  private readonly date = h('span', { class: 'dim date' });
  readonly name: HTMLButtonElement;
  private readonly start: HTMLButtonElement;
  private readonly mode: HTMLButtonElement;
  private readonly clockChoice: HTMLButtonElement;
  /** Machines whose clocks times can be shown by. */
  private clockNames: string[] = [];
  private readonly clock = h('button', { type: 'button', class: 'badge', hidden: true });
  private readonly notes = h('button', { type: 'button', class: 'badge middling notes', hidden: true });
  private notesOutput: Output | null = null;
  readonly machines = new MachineSign(() => {
    const o = this.notesOutput;
    return o && (() => this.actions.reveal(o));
  });
  private readonly lost = h('span', { class: 'badge bad', hidden: true, role: 'status',
    title: 'So many events the tracer had no room for: red in the strip, rows have a red ground where it was. What is '
      + 'shown there may lack causes.' });
  private readonly busy = h('span', { class: 'busy', 'aria-hidden': true });
  private readonly exclude: HTMLButtonElement;
  private clockLines: string[] = [];

  constructor(private readonly session: Session, private readonly actions: TopActions) {
    const { axis } = session;
    this.name = button('weft', 'Open another experiment', () => actions.openPicker(), { class: 'experiment' });
    this.start = button('Start', 'Requests, machines and threads (h)', () => actions.start(), { hidden: true });
    this.mode = button('', 'How times are written', () => menuBelow(this.mode,
      MODES.map(([m, label]) => ({ label, checked: session.timeMode === m, run: () => session.setTimeMode(m) }))));
    this.clockChoice = button('', 'By the clock of which machine times are shown and typed',
      () => menuBelow(this.clockChoice, this.clockNames.map((name, i) => ({ label: name,
        hint: i ? '' : 'as the server tells them',
        checked: name === (session.clock?.host ?? session.experiment?.reference),
        run: () => actions.timesOf(name) }))), { hidden: true, class: 'clock-choice' });
    this.exclude = button('dim', 'What the search does with states that do not match: dim or hide',
      () => session.setSearch(this.search.value, !session.exclude), { class: 'small', 'aria-pressed': 'false' });
    const views = button(withIcon('Views', 'open'), 'Open and close views',
      () => menuBelow(views, actions.viewsMenu(), 'Find a view'));
    const more = button(icon('more'), 'More', () => menuBelow(more, [
      { label: 'Save what is seen', heading: true }, { label: 'Picture, SVG', run: () => actions.save('svg') },
      { label: 'Picture, PNG', run: () => actions.save('png') },
      { label: 'Table, CSV', run: () => actions.save('csv') },
      { label: 'Look', heading: true },
      { label: 'Dark theme', checked: session.theme.dark, run: () => {
        session.setTheme(!session.theme.dark);
        keep('theme', session.theme.dark ? 'dark' : 'light');
      } },
      { label: 'Compact rows', checked: session.compact, run: () => {
        session.compact = !session.compact;
        keep('compact', session.compact ? '1' : '');
        session.relayout.emit();
      } },
      { label: 'Page', heading: true },
      { label: 'Copy a link to this view', run: () => actions.copyLink() },
      { label: 'Keys and mouse', hint: '?', run: () => actions.help() },
    ]));
    this.root = h('header', { class: 'top' }, h('h1', {}, this.name), this.start, this.busy,
    h('span', { class: 'zoom' },
      button(icon('out'), 'Zoom out (s)', () => axis.zoom(1.6, axis.width / 2, true)),
      button(icon('in'), 'Zoom in (w)', () => axis.zoom(1 / 1.6, axis.width / 2, true)),
      button(icon('whole'), 'Whole trace (Home)', () => axis.whole())),
    this.goto, this.span, this.date, h('span', { class: 'search' }, this.search, this.exclude), this.clock, this.notes,
    this.lost, this.machines.root, actions.following, this.mode, this.clockChoice, actions.rows, views, more);
    let wait = 0;
    this.search.addEventListener('input', () => {
      clearTimeout(wait);
      wait = window.setTimeout(() => session.setSearch(this.search.value), 180);
    });
    this.search.addEventListener('keydown', e => {
      if (e.key === 'Enter') {
        e.preventDefault();
        clearTimeout(wait);
        if (session.search.text !== this.search.value) session.setSearch(this.search.value);
        actions.searchStep(e.shiftKey ? -1 : 1);
      }
      if (e.key === 'Escape') { this.search.value = ''; session.setSearch(''); actions.leaveSearch(); }
      if (e.key === 'ArrowDown') { e.preventDefault(); actions.leaveSearch(); }
      e.stopPropagation();
    });
    this.goto.addEventListener('keydown', e => {
      e.stopPropagation();
      if (e.key === 'Escape') { this.goto.blur(); this.times(); }
      if (e.key !== 'Enter') return;
      this.go();
    });
    this.goto.addEventListener('focus', () => this.goto.select());
    this.goto.addEventListener('input', () => this.mistaken(false));
    this.goto.addEventListener('blur', () => { this.mistaken(false); this.times(); });
    this.clock.addEventListener('click', () => menuBelow(this.clock,
      this.clockLines.map(label => ({ label, heading: true }))));
    axis.moved.on(() => this.times());
    axis.selected.on(() => this.times());
    session.timeModeChanged.on(() => this.times());
    session.searchChanged.on(() => {
      if (document.activeElement !== this.search) this.search.value = session.search.text;
      setText(this.exclude, session.exclude ? 'hide' : 'dim');
      this.exclude.setAttribute('aria-pressed', String(session.exclude));
    });
    session.client.onActivity = () => toggle(this.busy, 'on', session.client.pending > 0);
    this.times();
  }
  /** To the time that was typed, or to the whole of a range. */
  private go(): void {
    const { session } = this, { axis } = session, text = this.goto.value,
      t = parseTime(text, session.timeMode, session.origin),
      range = t === null ? parseRange(text, session.timeMode, session.origin) : [t, t];
    const [from, until] = range?.map(x => session.meant(x)) ?? [1n, 0n];
    if (!range) {
      this.refuse('Not a time', [['12:31:17.519107', 'that day'], ['2026-11-21 12:31', 'another day'],
        ['+1.5s', 'since the begin'], ['1795225077700165960', 'ns since 1970'],
        ['1795225077.700165960', 'seconds since 1970'], ['12:31:17.519 .. 12:31:17.6', 'a range: zoom there'],
        ['12:31:17.519 +50ms', 'that and what follows']]);
      return;
    }
    if (until < axis.min || from > axis.max) {
      this.refuse('Nothing was recorded then', [['begin', session.time(axis.min)], ['end', session.time(axis.max)]]);
      return;
    }
    axis.select(from, until);
    if (until > from) axis.show(from, until); else axis.reveal(from);
    this.goto.blur();
  }
  private refuse(why: string, lines: [string, string][]): void {
    const box = this.goto.getBoundingClientRect();
    this.mistaken(true);
    showTip(why, lines, '', box.left, box.bottom);
    announce(why.toLowerCase());
  }
  /** What was typed is no time that there is. */
  private mistaken(is: boolean): void {
    toggle(this.goto, 'bad', is);
    this.goto.setAttribute('aria-invalid', String(is));
    if (!is) hideTip();
  }
  private times(): void {
    const { session } = this, { axis } = session, digits = axis.nsPerPx > 1e6 ? 3 : axis.nsPerPx > 1e3 ? 6 : 9;
    label(this.mode, { local: 'Local', utc: 'UTC', relative: 'Relative' }[session.timeMode]);
    if (!session.experiment) { setText(this.span, ''); setText(this.date, ''); return; }
    if (document.activeElement !== this.goto) this.goto.value = axis.cursor === null ? '' : session.time(axis.cursor);
    setText(this.span, `${formatSpan(session.shown(axis.begin), session.shown(axis.end), session.timeMode,
      session.origin, digits)}  ·  `
      + `${formatDuration(axis.span)}`);
    this.span.title = `In view: ${this.span.textContent}`;
    setText(this.date, formatDate(session.shown(axis.begin), session.timeMode));
    this.clockChoice.hidden = this.clockNames.length < 2;
    label(this.clockChoice, `times: ${session.clock?.host ?? session.experiment.reference ?? ''}`);
  }
  opened(): void {
    const x = this.session.experiment;
    label(this.name, x ? x.name : 'weft');
    document.title = x ? `${x.name} – weft` : 'weft';
    this.notes.hidden = this.clock.hidden = true;
    this.notesOutput = null;
    this.machines.clear();
    this.clockNames = [];
    this.times();
    this.start.hidden = !Start.isOffered(this.session.outputs);
    if (x) this.grown();
  }
  /** What is told of the experiment may be different now. */
  grown(): void {
    this.machines.clear();
    this.times();
    void this.health();
    void this.tellNotes();
    void this.findClocks();
  }

  showLost(events: number): void {
    this.lost.hidden = !events;
    setText(this.lost, `${formatCount(String(events), '')} events lost`);
  }
  private async findClocks(): Promise<void> {
    const { client, outputs, experiment, uuid } = this.session;
    try {
      const names = experiment ? await clockHosts(client, experiment, outputs) : [];
      if (this.session.uuid !== uuid) return;
      this.clockNames = names;
      this.times();
    } catch { /* times are by the server's choice then */ }
  }
  /** Clock error and machines that are away, from the outputs that tell them. */
  private async health(): Promise<void> {
    const { session } = this, { outputs, client, uuid } = session;
    try {
      const clocks = outputOf(outputs, ID.clocks);
      if (clocks) {
        const [columns, lines] = await Promise.all([client.columns(uuid, clocks.id),
          client.lines(uuid, clocks.id, { requested_table_index: 0, requested_table_count: 200 })]);
        const names = columns.model ?? [], rows = lines.model?.lines ?? [],
          error = names.flatMap((c, i) => isClockError(c) ? [i] : []);
        this.clockLines = rows.map(r => clockLine(names, r));
        // Nothing ties such a machine to another one.
        let worst = 0, unknown = rows.some(r => r.cells.some(c => c.content === 'absent'));
        for (const r of rows) for (const i of error) {
          const ns = errorNs(r.cells[i]?.content ?? '', names[i].name);
          if (ns === null) {
            if (!/★|reference|–|-|^$/.test(r.cells[i]?.content ?? '')) unknown = true;
          } else worst = Math.max(worst, ns);
        }
        this.badge(rows.length < 2 ? null : unknown || !error.length ? 'clock unknown'
          : `clock ±${formatDuration(worst)}`, unknown ? Infinity : worst);
      } else if ((session.experiment?.traces.length ?? 1) > 1) {
        this.clockLines = ['This server does not tell how far the machines’ clocks are apart.'];
        this.badge('clock unknown', Infinity);
      }
      const machines = outputOf(outputs, ID.machines);
      if (machines) {
        const tree = await client.tree(uuid, 'timeGraph', machines.id, null);
        const gone = (tree.model?.entries ?? []).filter(e =>
          e.labels.slice(1).some(l => /^(away|offline|down|missing)/i.test(l))).map(e => e.labels[0]);
        this.machines.tellAway(gone);
      }
    } catch (e) {
      if (!isAbort(e)) {
        this.clockLines = ['The clock report did not arrive.'];
        this.badge('clock unknown', Infinity);
      }
    }
  }
  /** What was found wrong with the traces: how much, and the way to the table that tells. */
  private async tellNotes(): Promise<void> {
    const { outputs, client, uuid } = this.session, output = outputOf(outputs, ID.notes);
    if (!output) return;
    let n = 0;
    try {
      n = (await client.lines(uuid, output.id, { requested_table_index: 0, requested_table_count: 1 })).model?.size
        ?? 0;
    } catch (e) { if (isAbort(e)) return; }
    if (this.session.uuid !== uuid) return;
    this.notesOutput = output;
    setText(this.notes, n === 1 ? '1 note' : n ? `${n} notes` : 'notes');
    this.notes.title = 'Something is wrong with these traces: what, and what to do about it';
    this.notes.onclick = () => this.actions.reveal(output);
    this.notes.hidden = false;
  }
  private badge(text: string | null, ns: number): void {
    this.clock.hidden = text === null;
    this.clock.className = `badge ${ns < 1e5 ? 'good' : ns < 1e6 ? 'middling' : 'bad'}`;
    setText(this.clock, text ?? '');
    this.clock.title =
      'Largest error of the clocks against one another: green below 0.1 ms, amber below 1 ms, red beyond or unknown. '
        + 'Click for the machines.';
  }
}

/** A button's text, which its name begins with. */
function label(b: HTMLButtonElement, text: string): void {
  if (b.textContent !== text) b.replaceChildren(withIcon(text, 'open'));
  b.setAttribute('aria-label', `${text}: ${b.title}`);
}

/** Columns 6 to 8 of weft's report; of a server that states no keys, those that are called so. */
function isClockError(c: Column): boolean {
  return c.key === undefined ? /error|±|uncertain/i.test(c.name) : ['6', '7', '8'].includes(c.key);
}

/** A machine of the clock report, its figures as people read them. */
function clockLine(columns: Column[], line: Line): string {
  const told = columns.map((c, i) => [c.name, line.cells[i]?.content ?? ''] as const).filter(([, text]) => text);
  return told.map(([name, text], i) => {
    const ns = /^-?\d+$/.test(text) && / \(ns\)$/.test(name), value = ns
      ? `${text.startsWith('-') ? '−' : ''}${formatDuration(absTime(BigInt(text)))}` : text;
    return i ? `${name.replace(/ \([^)]*\)$/, '').toLowerCase()} ${value}${/\(ppm\)$/.test(name) ? ' ppm' : ''}`
      : value;
  }).join('  ·  ');
}

/** "±0.21 ms", "0.19 … 0.21 ms", or a bare number with the unit in the column's name, as ns. */
function errorNs(text: string, column: string): number | null {
  const unit = /\b(ns|µs|us|ms|s)\b/.exec(text)?.[1] ?? /\b(ns|µs|us|ms|s)\b/.exec(column)?.[1] ?? 'ns';
  const numbers = text.match(/\d+(?:\.\d+)?/g)?.map(Number);
  return numbers?.length ? Math.max(...numbers) * ({ ns: 1, us: 1e3, 'µs': 1e3, ms: 1e6, s: 1e9 } as Record<string,
    number>)[unit] : null;
}
