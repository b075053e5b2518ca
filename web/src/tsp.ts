// SPDX-License-Identifier: MIT
// Client of the Trace Server Protocol. One method per operation; times are bigint ns, everything else number and
// string.
import { parseJson, writeJson } from './json';
import { EntryReader } from './treestream';

export type Time = bigint;
export interface Trace { name: string; path: string; UUID: string; nbEvents: number; start: Time; end: Time;
  indexingStatus: string; properties: Record<string, string> }
export interface Below { root: string; path: string; more: boolean;
  traces: { name: string; path: string; directory: boolean }[] }
export interface Experiment { name: string; UUID: string; nbEvents: number; start: Time; end: Time;
  indexingStatus: string; traces: Trace[];
  /** Counts what the server has opened; 0: nothing yet. Only of servers whose traces may grow. */
  version?: number;
  /** Why what is newer cannot be opened. */
  problem?: string;
  /** The machine whose clock times are by. */
  reference?: string;
  /** Bytes of the traces that were read, of all, while they are. */
  indexed?: { bytes: number; of: number } }
export interface Output {
  id: string; name: string; description: string; type: string; parentId?: string;
  capabilities?: { canCreate?: boolean; canDelete?: boolean };
  configuration?: { id: string; name: string; description?: string; sourceTypeId: string; parameters?: Record<string,
    unknown> };
}
export interface Style { parentKey?: string; values?: Record<string, string | number> }
export interface Header { name: string; tooltip?: string; dataType?: string; key?: string }
/** What a column is, for programs; of servers that state no keys, its title. */
export const keyOf = (c: { name: string; key?: string }): string => c.key ?? c.name.toLowerCase();
export interface Entry {
  id: number; parentId: number; labels: string[]; hasData: boolean; isDefault: boolean; style?: Style;
  /** ns; exact below 2^53. */
  end?: number; metadata: Record<string, (string | number)[]>; hostId?: string;
  /** The row is the same on all servers; how it is merged. Of servers that state it. */
  key?: string; merge?: string;
}
export interface Tree { headers: Header[]; entries: Entry[]; autoExpandLevel: number }
export interface State { start: Time; end: Time; label?: string; style?: Style; tags?: number }
export interface Row { entryId: number; states: State[] }
export interface Arrow { start: Time; end: Time; sourceId: number; targetId: number; style?: Style }
export interface Series {
  seriesId: number; seriesName: string; style?: Style; xValues?: Time[]; xCategories?: string[];
  xRanges?: { start: Time; end: Time }[]; yValues: number[];
  yValuesDescription?: { label?: string; unit?: string; dataType?: string };
  xValuesDescription?: { label?: string; unit?: string; dataType?: string };
}
/** key: the name for programs; order: that of the lines, by this column; display: ASIDE, WIDE. Of servers that state
 * them. */
export interface Column { id: number; name: string; description: string; type: string; key?: string; order?: string;
  display?: string }
export interface Line { index: number; cells: { content: string; tags?: number }[]; tags?: number }
export interface Lines { lowIndex: number; size: number; columnIds: number[]; lines: Line[] }
export interface Bookmark { uuid: string; name: string; start: Time; end: Time }
export interface Annotation { time: Time; duration: Time; entryId: number; label?: string; style?: Style;
  type?: string }
export interface ConfigType { id: string; name: string; description?: string; schema?: Record<string, unknown>;
  parameterDescriptors?: unknown[] }
/** note: what the message of an answer that is there tells besides its status, and what lacks in it; or empty.
 * progress: 0 … 1, of servers that tell it. */
export interface Answer<T> { model: T | null; status: string; statusMessage: string; note: string;
  progress: number | null; lacks: Lack[] }
/** Of a coordinator. status: UP, AWAY, UNKNOWN. */
/** cluster: its critical paths go on to the other servers. */
export interface Backend { name: string; status: string; statusMessage?: string; cluster: boolean }
/** A node of a cluster, as it says itself; what an older or absent one does not say is missing. */
export interface ClusterNode { node: string; state: string; text: string; keeper: boolean; hosts: number;
  unrelated: number; release?: string; fetches?: boolean; clock_ahead_ns?: number; clock_error_ns?: number;
  disk?: { path: string; free_bytes: number; bytes: number } }
export interface Cluster { nodes: ClusterNode[]; missing: { node: string; kind: string; text: string }[] }
/** status: PARTIAL, or FAILED: nothing of it is there. */
export interface Lack { host: string; status: string; why: string }
export interface Range { start: Time; end: Time; nbTimes?: number }

/** What a request came to: `status` 0 means that no answer arrived. */
export class TspError extends Error {
  constructor(readonly status: number, readonly title: string, readonly detail = '', readonly body: unknown = null) {
    super(detail ? `${title}: ${detail}` : title);
  }
}

export const isAbort = (e: unknown): boolean => e instanceof DOMException && e.name === 'AbortError';

const time = (v: unknown): Time => typeof v === 'bigint' ? v : BigInt(Math.trunc(Number(v ?? 0)));
const list = (v: unknown): any[] => Array.isArray(v) ? v : [];

function traceOf(t: any): Trace {
  return { ...t, nbEvents: Number(t.nbEvents ?? 0), start: time(t.start), end: time(t.end),
    properties: t.properties ?? {} };
}
function experimentOf(x: any): Experiment {
  return { ...x, nbEvents: Number(x.nbEvents ?? 0), start: time(x.start), end: time(x.end),
    traces: list(x.traces).map(traceOf), indexed: Number(x.indexed?.of) > 0
      ? { bytes: Number(x.indexed.bytes), of: Number(x.indexed.of) } : undefined };
}
/** Becomes what it is asked to be: there may be many, and most are right as they are. */
function entryOf(e: any): Entry {
  const metadata = e.metadata ??= {}, labels = e.labels = list(e.labels);
  for (let i = 0; i < labels.length; i++) if (typeof labels[i] !== 'string') labels[i] = String(labels[i]);
  e.id = Number(e.id);
  e.parentId = Number(e.parentId ?? -1);
  e.hasData = e.hasData !== false;
  e.isDefault = e.isDefault === true;
  e.hostId ??= metadata.hostId ? String(metadata.hostId[0]) : undefined;
  return e as Entry;
}
function treeOf(m: any): Tree {
  return { headers: list(m?.headers), entries: list(m?.entries).map(entryOf),
    autoExpandLevel: m?.autoExpandLevel ?? -1 };
}
function bookmarkOf(b: any): Bookmark {
  return { uuid: b.uuid ?? b.UUID, name: b.name, start: time(b.start), end: time(b.end) };
}

/** What servers that write no codes say of an answer that is whole. */
const USUAL = /^(completed|analysis completed|done|ok)?[.\s]*$/i;
function progressOf(p: any): number | null {
  const done = Number(p?.done), of = Number(p?.of);
  return done >= 0 && of > 0 ? Math.min(1, done / of) : null;
}
/** Whose part of an answer is not whole, in words. */
function lackWords(all: Lack[]): string {
  const told = all.slice(0, 3).map(x => `${x.host} ${x.status === 'FAILED' ? 'is missing' : 'is not whole'}`
    + (x.why ? `: ${x.why}` : ''));
  return [...told, ...(all.length > 3 ? [`and ${all.length - 3} more machines`] : [])].join('; ');
}
async function readJson(response: Response): Promise<unknown> {
  const text = await response.text();
  return text ? parseJson(text) : null;
}
async function refusal(response: Response): Promise<TspError> {
  let value: any = null;
  try { value = await readJson(response); } catch (e) { if (!(e instanceof SyntaxError)) throw e; }
  return new TspError(response.status, String(value?.title ?? response.statusText ?? 'refused')
    || `Status ${response.status}`, String(value?.detail ?? ''), value);
}
/** What is done with the first entries of a tree of many; the others are read when it is through. */
export type Early = (first: Tree) => Promise<void> | void;
const SEEN_FIRST = 150;      // entries that are worth being shown alone
const STEP = 64 * 1024;      // bytes after which they may be there
const BREATH = 24;           // ms of reading after which the page may draw and answer
async function readTree(response: Response, early: Early): Promise<unknown> {
  const reader = new EntryReader(), body = response.body!.getReader();
  for (let told = false, began = performance.now(); ;) {
    const { done, value } = await body.read();
    if (done) return reader.end();
    for (let at = 0; at < value.length; at += STEP) {
      if (performance.now() - began > BREATH) {
        await new Promise(next => setTimeout(next));
        began = performance.now();
      }
      reader.push(value.subarray(at, at + STEP));
      const head = !told && reader.entries.length >= SEEN_FIRST ? reader.head() : null;
      if (!head) continue;
      told = true;
      if (list(head.headers).length) await early(treeOf({ ...head, entries: reader.entries.slice() }));
    }
  }
}

export type TreeKind = 'timeGraph' | 'XY' | 'genericXY' | 'data';

export class TspClient {
  /** Requests under way, for the busy mark; the listener is told of every change. */
  pending = 0;
  onActivity: () => void = () => {};
  /** The server stopped answering (false), or answers again (true). */
  onReachable: (up: boolean, why: string) => void = () => {};
  /** An answer from `path` says of which machines something is missing in it, or that nothing is; in words, too. */
  onLacks: (path: string, lacks: Lack[], words: string) => void = () => {};
  /** An answer says that a trace may have changed under the server. */
  onDoubt: () => void = () => {};
  private up = true;

  constructor(readonly base: string, readonly token: string | null = null) {}

  /** `read`: what makes the answer's value of its body, when the server accepted the request. */
  async request<T = any>(method: string, path: string, body?: unknown, signal?: AbortSignal,
    read: (r: Response) => Promise<unknown> = readJson, quietly = false): Promise<T> {
    const count = (by: number): void => {
      if (quietly) return;
      this.pending += by;
      this.onActivity();
    };
    count(1);
    try {
      const headers: Record<string, string> = { Accept: 'application/json' };
      if (this.token) headers.Authorization = `Bearer ${this.token}`;
      const raw = body instanceof Blob;
      if (body !== undefined) headers['Content-Type'] = raw ? 'application/octet-stream' : 'application/json';
      let response: Response;
      const away = (e: unknown): Error => {
        if (isAbort(e) || signal?.aborted) return new DOMException('left behind', 'AbortError');
        this.reach(false, 'no answer');
        return new TspError(0, 'The server does not answer');
      };
      try {
        response = await fetch(this.base + path, { method, headers, signal, body: body === undefined ? undefined : raw
          ? body as Blob : writeJson(body), cache: 'no-store' });
      } catch (e) { throw away(e); }
      if (response.status >= 502) this.reach(false, `status ${response.status}`); else this.reach(true, '');
      try {
        if (response.status === 500) this.onDoubt();
        if (!response.ok) throw await refusal(response);
        return await read(response) as T;
      } catch (e) {
        if (e instanceof TspError) throw e;
        if (e instanceof SyntaxError) throw new TspError(response.status, 'The answer is not JSON', e.message);
        throw away(e);
      }
    } finally { count(-1); }
  }

  private reach(up: boolean, why: string): void {
    if (up === this.up) return;
    this.up = up;
    this.onReachable(up, why);
  }

  health(): Promise<{ status: string }> { return this.request('GET', '/health'); }
  /** `opens`: what may be opened beside what is there; of servers that tell. cluster: its servers are nodes. */
  identifier(quietly = false): Promise<{ codes?: boolean; cluster?: boolean;
    opens?: { paths?: boolean; uploads?: boolean } }> {
    return this.request('GET', '/identifier', undefined, undefined, readJson, quietly);
  }
  /** What can be chosen in a directory below the server's trace root. */
  async below(path: string): Promise<Below> {
    const a = await this.request('GET', `/traces/below?path=${encodeURIComponent(path)}`);
    return { root: String(a.root), path: String(a.path), traces: list(a.traces), more: a.more === true };
  }
  /** The servers of a coordinator; of others: none. */
  async servers(): Promise<Backend[]> {
    try { return list(await this.request('GET', '/servers')); } catch (e) {
      if (e instanceof TspError && e.status === 404) return [];
      throw e;
    }
  }
  /** What the nodes behind a coordinator say of themselves. */
  async cluster(): Promise<Cluster> {
    const a = await this.request('GET', '/cluster');
    return { nodes: list(a.nodes), missing: list(a.missing) };
  }
  async traces(): Promise<Trace[]> { return list(await this.request('GET', '/traces')).map(traceOf); }
  async openTrace(uri: string, name?: string): Promise<Trace> {
    return traceOf(await this.request('POST', '/traces', { parameters: { uri, name } }));
  }
  async deleteTrace(uuid: string): Promise<void> { await this.request('DELETE', `/traces/${uuid}`); }
  async upload(name: string, file: Blob): Promise<Trace[]> {
    const answer = await this.request('POST', `/upload?name=${encodeURIComponent(name)}`, file);
    return (Array.isArray(answer) ? answer : [answer]).map(traceOf);
  }
  async experiments(): Promise<Experiment[]> {
    return list(await this.request('GET', '/experiments')).map(experimentOf);
  }
  /** `quietly`: nothing shows that it is asked. */
  async experiment(uuid: string, signal?: AbortSignal, quietly = false): Promise<Experiment> {
    return experimentOf(await this.request('GET', `/experiments/${uuid}`, undefined, signal, readJson, quietly));
  }
  async createExperiment(name: string, traces: string[]): Promise<Experiment> {
    return experimentOf(await this.request('POST', '/experiments', { parameters: { name, traces } }));
  }
  async deleteExperiment(uuid: string): Promise<void> { await this.request('DELETE', `/experiments/${uuid}`); }

  async outputs(x: string, signal?: AbortSignal): Promise<Output[]> {
    return list(await this.request('GET', `/experiments/${x}/outputs`, undefined, signal));
  }
  async configTypes(x: string, output: string): Promise<ConfigType[]> {
    return list(await this.request('GET', this.output(x, output) + '/configTypes'));
  }
  derive(x: string, output: string, body: { name: string; description?: string; sourceTypeId: string;
    parameters: Record<string, unknown> }): Promise<Output> {
    return this.request('POST', this.output(x, output), body);
  }
  async removeDerived(x: string, output: string, derived: string): Promise<void> {
    await this.request('DELETE', `${this.output(x, output)}/${encode(derived)}`);
  }

  private output(x: string, id: string): string { return `/experiments/${x}/outputs/${encode(id)}`; }

  private async ask<T>(path: string, parameters: unknown, convert: (m: any) => T, signal?: AbortSignal,
    read?: (r: Response) => Promise<unknown>): Promise<Answer<T>> {
    const a = await this.request('POST', path, { parameters }, signal, read),
      lacks: Lack[] = list(a?.hosts?.lacking).map(l => ({ host: String(l.host), status: String(l.status),
        why: String(l.statusMessage ?? '') })), lack = lackWords(lacks);
    this.onLacks(path, lacks, lack);
    return { model: a?.model === null || a?.model === undefined ? null : convert(a.model),
      status: a?.status ?? 'COMPLETED', statusMessage: (a?.status === 'RUNNING' ? '' : lack)
        || (a?.statusMessage ?? ''), note: /^(RUNNING|FAILED)$/.test(a?.status) ? '' : lack || await this.noteOf(a),
      progress: progressOf(a?.progress), lacks };
  }
  private codes: Promise<boolean> | null = null;
  /** The message, where it says more than the status: a code says so. Servers that write codes mean nothing by a
   * message without one; of others all but the usual words is shown. */
  private async noteOf(a: any): Promise<string> {
    const message = String(a?.statusMessage ?? '').trim();
    if (a?.code) return message;
    if (USUAL.test(message)) return '';
    this.codes ??= this.identifier(true).then(i => i.codes === true, () => { this.codes = null; return false; });
    return await this.codes ? '' : message;
  }

  private at(x: string, kind: string, id: string, what: string): string {
    return `/experiments/${x}/outputs/${kind}/${encode(id)}/${what}`;
  }

  tree(x: string, kind: TreeKind, id: string, range: Range | null, signal?: AbortSignal, extra: object = {},
    early: Early = () => {}): Promise<Answer<Tree>> {
    return this.ask(this.at(x, kind, id, 'tree'), { ...(range ? { requested_timerange: range } : {}), ...extra },
      treeOf, signal, r => readTree(r, early));
  }
  /** Of a range, or those that are there at the times, which ascend. */
  states(x: string, id: string, when: Range | Time[], items: number[], filters: object | null, signal?: AbortSignal,
    extra: object = {}): Promise<Answer<Row[]>> {
    return this.ask(this.at(x, 'timeGraph', id, 'states'),
      { ...(Array.isArray(when) ? { requested_times: when } : { requested_timerange: when }), requested_items: items,
        ...(filters ? { filter_query_parameters: filters } : {}), ...extra },
      m => list(m.rows).map((r: any): Row => ({ entryId: Number(r.entryId), states: list(r.states) })), signal);
  }
  arrows(x: string, id: string, range: Range, signal?: AbortSignal): Promise<Answer<Arrow[]>> {
    return this.ask(this.at(x, 'timeGraph', id, 'arrows'), { requested_timerange: range },
      m => list(m).map((a: any): Arrow => ({ start: time(a.start), end: time(a.end), sourceId: Number(a.sourceId),
        targetId: Number(a.targetId), style: a.style })), signal);
  }
  tooltip(x: string, id: string, at: Time, item: number, element: object, signal?: AbortSignal,
    extra: object = {}): Promise<Answer<Record<string, string>>> {
    return this.ask(this.at(x, 'timeGraph', id, 'tooltip'), { requested_times: [at], requested_items: [item],
      requested_element: element, ...extra }, m => m, signal);
  }
  xy(x: string, kind: 'XY' | 'genericXY', id: string, range: Range, items: number[],
    signal?: AbortSignal, extra: object = {}): Promise<Answer<{ title: string; series: Series[] }>> {
    const { start, end, nbTimes } = range;
    const requested = kind === 'XY' ? range : { start, end, nbSamples: nbTimes };
    return this.ask(this.at(x, kind, id, 'xy'), { requested_timerange: requested, requested_items: items, ...extra },
      m => ({ title: m.title ?? '', series: list(m.series) }), signal);
  }
  columns(x: string, id: string, signal?: AbortSignal): Promise<Answer<Column[]>> {
    return this.ask(this.at(x, 'table', id, 'columns'), {}, list, signal);
  }
  lines(x: string, id: string, parameters: object, signal?: AbortSignal): Promise<Answer<Lines>> {
    return this.ask(this.at(x, 'table', id, 'lines'), parameters,
      m => ({ lowIndex: Number(m.lowIndex ?? 0), size: Number(m.size ?? 0), columnIds: list(m.columnIds),
        lines: list(m.lines) }), signal);
  }
  styles(x: string, id: string, signal?: AbortSignal): Promise<Answer<Record<string, Style>>> {
    return this.ask(`${this.output(x, id)}/style`, {}, m => m.styles ?? {}, signal);
  }
  async markerSets(x: string): Promise<{ id: string; name: string }[]> {
    return list((await this.request('GET', `/experiments/${x}/outputs/markerSets`))?.model);
  }
  async annotationCategories(x: string, id: string, markerSet: string | null, signal?: AbortSignal): Promise<string[]> {
    const a = await this.request('GET', `${this.output(x, id)}`
      + `/annotations${markerSet ? `?markerSetId=${encodeURIComponent(markerSet)}` : ''}`, undefined, signal);
    return list(a?.model?.annotationCategories);
  }
  annotations(x: string, id: string, range: Range, items: number[], categories: string[], markerSet: string | null,
    signal?: AbortSignal): Promise<Answer<Annotation[]>> {
    return this.ask(`${this.output(x, id)}/annotations`, { requested_timerange: range, requested_items: items,
      requested_marker_categories: categories, ...(markerSet ? { requested_marker_set: markerSet } : {}) },
      m => Object.values(m.annotations ?? {}).flatMap(list).map((a: any) =>
        ({ ...a, time: time(a.time), duration: time(a.duration), entryId: Number(a.entryId ?? -1) })), signal);
  }
  async bookmarks(x: string): Promise<Bookmark[]> {
    return list(await this.request('GET', `/experiments/${x}/bookmarks`)).map(bookmarkOf);
  }
  async addBookmark(x: string, name: string, start: Time, end: Time): Promise<Bookmark> {
    return bookmarkOf(await this.request('POST', `/experiments/${x}/bookmarks`, { parameters: { name, start, end } }));
  }
  async renameBookmark(x: string, b: Bookmark): Promise<Bookmark> {
    return bookmarkOf(await this.request('PUT', `/experiments/${x}/bookmarks/${b.uuid}`,
      { parameters: { name: b.name, start: b.start, end: b.end } }));
  }
  async deleteBookmark(x: string, uuid: string): Promise<void> {
    await this.request('DELETE', `/experiments/${x}/bookmarks/${uuid}`);
  }
}

/** Output ids hold ':' that servers expect as it is; anything else that is special in a path is escaped. */
function encode(id: string): string { return encodeURIComponent(id).replace(/%3A/gi, ':'); }

/** Asks again while the answer is RUNNING (after 0.3 s, growing to 3 s); every answer is shown. Ends with the last
 * one. */
export async function poll<T>(ask: () => Promise<Answer<T>>, show: (a: Answer<T>) => void,
  signal: AbortSignal): Promise<Answer<T>> {
  for (let wait = 300; ; wait = Math.min(wait * 1.6, 3000)) {
    const a = await ask();
    if (signal.aborted) throw new DOMException('left behind', 'AbortError');
    show(a);
    if (a.status !== 'RUNNING') return a;
    await sleep(wait, signal);
  }
}

export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => { clearTimeout(timer); reject(new DOMException('left behind', 'AbortError')); };
    const timer = setTimeout(() => { signal?.removeEventListener('abort', stop); resolve(); }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
