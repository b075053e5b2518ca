// SPDX-License-Identifier: MIT
// What the views of one page share: the opened experiment, the axis, the theme, time format, the search, the picked
// thread.
import { Axis } from './axis';
import type { ClockMap } from './clock';
import { Emitter } from './emitter';
import { readTheme, type Theme } from './style';
import { formatTime, type TimeMode } from './time';
import { keyOf, type Entry, type Experiment, type Output, type Time, type TspClient } from './tsp';
import { ofMachines, parseSearch, type Search } from './query';
import type { RowTest, Wish } from './tree';

/** A thread as views know it. id: of its entry, the same in all views that have one for each thread, and for ever;
 *  numbers are used again. */
export interface Picked { host: string; tid: number; name: string; id?: number }
/** A state or arrow whose details are wanted. */
export interface Detail { title: string; lines: [string, string][]; begin?: Time; end?: Time;
  /** What the texts of some lines lead to. */
  go?: Record<string, () => void> }
/** What n and p step through; answers whether there was one. */
export interface Stepper { label: string; step(direction: 1 | -1): Promise<boolean> }
export interface Interval { begin: number; end: number }

export class Session {
  experiment: Experiment | null = null;
  outputs: Output[] = [];
  readonly axis = new Axis();
  /** It goes along an axis of its own, not the page's. */
  readonly isApart: boolean = false;
  theme: Theme = readTheme();
  timeMode: TimeMode = 'local';
  /** Whose clock times are shown and typed by; null: that of the experiment, which all else is by. */
  clock: ClockMap | null = null;
  compact = false;
  search: Search = parseSearch('');
  /** Non-matching states: dimmed or left out. */
  exclude = false;
  picked: Picked | null = null;
  stepper: Stepper | null = null;
  /** Markers that somebody defined on the server, or null. */
  markerSet: string | null = null;
  readonly markersChanged = new Emitter();
  /** Intervals of the critical path by "host\u0001tid". */
  glow = new Map<string, Interval[]>();
  /** Of threads, views show those of the path alone. */
  onlyPath = false;
  /** Machines whose rows views show; null: all. */
  machines: ReadonlySet<string> | null = null;
  /** Those that views told of. */
  readonly hosts = new Set<string>();
  /** Views of states show only rows that have something in view. */
  busyOnly = false;
  /** Threads stand below their containers (pods). */
  byPod = false;
  /** Whether views told of containers. */
  hasPods = false;
  readonly groupingChanged = new Emitter();
  /** Entries whose rows stay on top of their views, in this order. */
  pinned: ReadonlySet<number> = new Set();
  readonly themeChanged = new Emitter();
  /** How times are written, or by whose clock. */
  readonly timeModeChanged = new Emitter();
  readonly searchChanged = new Emitter();
  /** Which rows are wanted, or which of their states: by a search or by the path. */
  readonly rowsChanged = new Emitter();
  readonly pickedChanged = new Emitter();
  readonly glowChanged = new Emitter();
  readonly detail = new Emitter<Detail | null>();
  /** Draw again, nothing else changed (row heights). */
  readonly relayout = new Emitter();
  readonly pathWanted = new Emitter<{ thread: Picked; begin?: Time; end?: Time }>();

  constructor(readonly client: TspClient) {}

  get uuid(): string { return this.experiment?.UUID ?? ''; }
  get rowHeight(): number { return this.compact ? 12 : 18; }
  time(t: Time, digits = 9): string { return formatTime(this.shown(t), this.timeMode, this.origin, digits); }
  /** A time of the experiment by the clock that is shown, and back. */
  shown(t: Time): Time { return this.clock ? this.clock.shown(t) : t; }
  meant(t: Time): Time { return this.clock ? this.clock.meant(t) : t; }
  /** The begin of the experiment, by the clock that is shown. */
  get origin(): Time { return this.shown(this.axis.min); }

  setTheme(dark: boolean): void {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    this.theme = readTheme();
    this.themeChanged.emit();
  }
  setTimeMode(mode: TimeMode): void { this.timeMode = mode; this.timeModeChanged.emit(); }
  setClock(clock: ClockMap | null): void { this.clock = clock; this.timeModeChanged.emit(); }
  setSearch(text: string, exclude = this.exclude): void {
    this.search = parseSearch(text);
    this.exclude = exclude;
    this.searchChanged.emit();
    this.rowsChanged.emit();
  }
  setOnlyPath(on: boolean): void {
    this.onlyPath = on;
    this.rowsChanged.emit();
  }
  setMachines(machines: ReadonlySet<string> | null): void {
    this.machines = machines;
    this.rowsChanged.emit();
  }
  setBusyOnly(on: boolean): void {
    this.busyOnly = on;
    this.rowsChanged.emit();
  }
  setByPod(on: boolean): void {
    this.byPod = on;
    this.groupingChanged.emit();
  }
  setPinned(ids: Iterable<number>): void {
    this.pinned = new Set(ids);
    this.rowsChanged.emit();
  }
  /** On top, or no longer. */
  pin(id: number): void {
    const ids = new Set(this.pinned);
    if (!ids.delete(id)) ids.add(id);
    this.setPinned(ids);
  }
  /** Which rows views show: those that are searched, and of the path where that is wanted. Null: all. */
  get rows(): Wish {
    const { rows, ofThreads } = this.search, always = ofMachines(this.machines, this.hosts);
    if (!this.onlyPath || !this.glow.size) return { test: rows, ofThreads, always };
    const hosts = new Map<string, string[]>(); // by thread number
    for (const key of this.glow.keys()) {
      const [host, tid] = key.split('\u0001');
      hosts.set(tid, [...hosts.get(tid) ?? [], host]);
    }
    const isOnPath: RowTest = (e, path) => !!hosts.get(String(e.metadata.TID?.[0] ?? e.labels[1] ?? ''))
      ?.some(host => !host || (e.hostId ? e.hostId === host : path.split(' ').includes(host)));
    return { ofThreads: true, always, test: (e, path) => isOnPath(e, path) && (!rows || rows(e, path)) };
  }
  pick(p: Picked | null): void {
    if (p?.host === this.picked?.host && p?.tid === this.picked?.tid
      && (p?.id === undefined || p.id === this.picked?.id)) return;
    this.picked = p;
    this.pickedChanged.emit();
  }
}

/** The same page, seen along another axis whose times count from its begin. What is chosen in it is chosen for all. */
export function sessionAlong(session: Session, axis: Axis): Session {
  const along = Object.create(session) as Session, fix = (key: keyof Session, value: unknown): void => {
    Object.defineProperty(along, key, { value });
  };
  fix('axis', axis);
  fix('isApart', true);
  fix('timeMode', 'relative');
  for (const key of ['pick', 'setSearch', 'setOnlyPath', 'setPinned'] as const) fix(key, session[key].bind(session));
  return along;
}

export const glowKey = (host: string, tid: number): string => `${host}\u0001${tid}`;

/** Thread id of an entry, or null: metadata first, then the column that says TID. */
export function tidOf(entry: Entry, headers: { name: string; key?: string }[]): number | null {
  const meta = entry.metadata.TID ?? entry.metadata.tid;
  const value = meta?.[0] ?? entry.labels[headers.findIndex(x => keyOf(x) === 'tid')];
  const tid = Number(value);
  return value === undefined || value === '' || !Number.isInteger(tid) ? null : tid;
}
