// SPDX-License-Identifier: MIT
// Requests of servers, as the outputs weft.requests… tell them; and the bar above the path of one, which leads to the
// others.
import { button, h } from './dom';
import type { PathSpec } from './pathpane';
import type { Session } from './session';
import { formatCount, formatDuration } from './time';
import { poll, type Answer, type Line, type Lines, type Output, type Time } from './tsp';

/** Ids of the columns. */
const enum Column { DURATION, BEGIN, SERVER, TID, THREAD, CLIENT, CLIENT_TID, CLIENT_THREAD, CLIENT_BEGIN, CLIENT_END,
  BYTES_IN, BYTES_OUT, GROUP, MACHINES }

/** tid null: no thread is known. */
export interface Party { host: string; tid: number | null; name: string }
export interface ServedRequest {
  /** The slowest is 0. */
  index: number;
  begin: Time; end: Time; server: Party; client: Party;
  /** As the client saw it, where that was recorded; whether the client's path goes on to the server. */
  seen: [Time, Time] | null; leads: boolean;
  group: string; machines: string;
}

export function partyText(p: Party): string { return p.tid === null ? p.host : `${p.host}:${p.tid} ${p.name}`; }

/** apart: paths do not go from one machine to another. */
function requestOf(line: Line, columns: number[], apart: boolean): ServedRequest {
  const cell = (c: Column): string => line.cells[columns.indexOf(c)]?.content ?? '', tid = (c: Column): number | null =>
    cell(c) === '' ? null : Number(cell(c)), begin = BigInt(cell(Column.BEGIN) || 0),
    seen = cell(Column.CLIENT_BEGIN) && cell(Column.CLIENT_END);
  return { index: line.index, begin, end: begin + BigInt(cell(Column.DURATION) || 0),
    server: { host: cell(Column.SERVER), tid: tid(Column.TID), name: cell(Column.THREAD) },
    client: { host: cell(Column.CLIENT), tid: tid(Column.CLIENT_TID), name: cell(Column.CLIENT_THREAD) },
    seen: seen ? [BigInt(cell(Column.CLIENT_BEGIN)), BigInt(seen)] : null, group: cell(Column.GROUP),
    leads: !apart || cell(Column.CLIENT) === cell(Column.SERVER), machines: cell(Column.MACHINES) };
}

/** Whose path tells where the request's time went: of who asked for all of it, where that leads on; else of who served
 * it. */
export function pathOfRequest(r: ServedRequest): PathSpec | null {
  const { client, server } = r, of = (p: Party, begin: Time, end: Time): PathSpec | null => p.tid === null ? null
    : { thread: { host: p.host, tid: p.tid, name: p.name }, begin, end, request: true };
  return (r.seen && r.leads && of(client, ...r.seen)) || of(server, r.begin, r.end);
}

export class RequestList {
  /** So many there are; known once some were asked for. */
  size = 0;
  /** What is not told of them, or empty. */
  notes = '';
  /** Of the server's durations. */
  median: Time | null = null;
  /** Servers of a coordinator that are in no cluster tell paths that end at their machines. */
  private apart: Promise<boolean> | null = null;
  constructor(private readonly session: Session, readonly output: Output) {}

  private async ask(parameters: object, signal: AbortSignal): Promise<ServedRequest[]> {
    const { client, uuid } = this.session, a: Answer<Lines> = await poll(() => client.lines(uuid, this.output.id,
      parameters, signal), () => { /* the last one counts */ }, signal);
    if (a.status === 'FAILED' || !a.model) throw new Error(a.statusMessage || 'The server tells no requests.');
    const { lines, columnIds, size } = a.model;
    this.size = size;
    this.notes = a.note;
    const apart = await (this.apart ??= client.servers().then(all => all.some(s => !s.cluster), () => false));
    return lines.map(l => requestOf(l, columnIds, apart));
  }
  /** The slowest ones, and what is told of all. */
  async first(count: number, signal: AbortSignal): Promise<ServedRequest[]> {
    const found = await this.ask({ requested_table_index: 0, requested_table_count: count }, signal);
    this.median = null;
    if (this.size) {
      const r = await this.get(this.size >> 1, signal);
      if (r) this.median = r.end - r.begin;
    }
    return found;
  }
  async get(index: number, signal: AbortSignal): Promise<ServedRequest | null> {
    return (await this.ask({ requested_table_index: index, requested_table_count: 1 }, signal))[0] ?? null;
  }
  async slowestOf(group: string, signal: AbortSignal): Promise<ServedRequest | null> {
    return (await this.ask({ requested_table_index: 0, requested_table_count: 1, table_search_direction: 'NEXT',
      table_search_expressions: { [Column.GROUP]: `^${group}$` } }, signal))[0] ?? null;
  }
}

/** "Request 1 of 10  client:204 tier → web:196 tier  84.96 ms, …  ‹ previous  next ›" */
export function requestBar(list: RequestList, r: ServedRequest, go: (index: number) => void): HTMLElement {
  const took = r.end - r.begin, seen = r.seen ? r.seen[1] - r.seen[0] : null,
    slower = Math.floor((list.size - 1 - r.index) / Math.max(1, list.size) * 100);
  const words = [seen === null ? formatDuration(took)
    : `${formatDuration(seen)}, of it ${formatDuration(took)} in ${r.server.host}`,
  [list.median === null ? '' : `median ${formatDuration(list.median)}`,
    list.size > 1 ? `slower than ${slower} %` : ''].filter(Boolean).join(', ')];
  const step = (label: string, title: string, to: number): HTMLButtonElement =>
    button(label, title, () => go(to), { disabled: to < 0 || to >= list.size });
  return h('div', { class: 'request-bar' },
    h('p', {}, h('strong', {}, `Request ${formatCount(String(r.index + 1), '')} of `
      + formatCount(String(list.size), '')), h('span', {}, `${partyText(r.client)} → ${partyText(r.server)}`),
    h('strong', {}, words[0]), words[1] && h('span', { class: 'dim' }, `(${words[1]})`)),
    step('‹ previous', 'The next slower request', r.index - 1), step('next ›', 'The next faster request', r.index + 1));
}
