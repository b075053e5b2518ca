// SPDX-License-Identifier: MIT
// Times by the clock of another machine than the one the server tells them by: for showing and typing only.
import { ID } from './outputs';
import type { Column, Experiment, Line, Output, Time, TspClient } from './tsp';

const LINES = 1000;

interface Piece { from: Time; until: Time; refFrom: Time; refUntil: Time }

/** t between two instants of one clock, told by another that runs evenly between them. */
function between(t: Time, from: Time, until: Time, toFrom: Time, toUntil: Time): Time {
  const span = until - from, d = (t - from) * (toUntil - toFrom);
  return span <= 0n ? toFrom + t - from : toFrom + (d < 0n ? d - span / 2n : d + span / 2n) / span;
}

/** A machine's clock. Outside its pieces, which are in order of time, the first or last one goes on. */
export class ClockMap {
  constructor(readonly host: string, private readonly pieces: Piece[]) {}
  private at(t: Time, key: 'until' | 'refUntil'): Piece {
    const { pieces } = this;
    let low = 0, high = pieces.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (t <= pieces[middle][key]) high = middle; else low = middle + 1;
    }
    return pieces[low];
  }
  /** What it shows at a time of the experiment. */
  shown(t: Time): Time {
    const p = this.at(t, 'refUntil');
    return between(t, p.refFrom, p.refUntil, p.from, p.until);
  }
  /** The time of the experiment at which it shows t. */
  meant(t: Time): Time {
    const p = this.at(t, 'until');
    return between(t, p.from, p.until, p.refFrom, p.refUntil);
  }
}

/** Keys of the columns of both tables, which only weft has. */
const HOST = '0', OFFSET = '5', PIECE = ['1', '2', '3', '4'];
const cells = (columns: Column[], line: Line, key: string): string =>
  line.cells[columns.findIndex(c => idOf(c) === key)]?.content ?? '';
/** Of versions that state no keys they are the numbers. */
const idOf = (c: Column): string => c.key ?? String(c.id);

/** Machines whose clocks are tied to the experiment's, that one first; none where there is no choice. */
export async function clockHosts(client: TspClient, x: Experiment, outputs: Output[]): Promise<string[]> {
  if (!x.reference || ![ID.clocks, ID.clockMaps].every(id => outputs.some(o => o.id === id))) return [];
  const columns = (await client.columns(x.UUID, ID.clocks)).model ?? [], hosts: string[] = [];
  for (let size = 1; hosts.length < size;) {
    const { model } = await client.lines(x.UUID, ID.clocks, { requested_table_index: hosts.length,
      requested_table_count: LINES });
    if (!model?.lines.length) break;
    size = model.size;
    hosts.push(...model.lines.map(l => cells(columns, l, OFFSET) ? cells(columns, l, HOST) : ''));
  }
  return [x.reference, ...hosts.filter(h => h && h !== x.reference)];
}

/** The clock of that machine; null: it is the experiment's, or nothing is known of it. */
export async function clockMap(client: TspClient, x: Experiment, outputs: Output[], host: string):
Promise<ClockMap | null> {
  if (host === x.reference || !outputs.some(o => o.id === ID.clockMaps)) return null;
  const columns = (await client.columns(x.UUID, ID.clockMaps)).model ?? [], pieces: Piece[] = [],
    id = columns.find(c => idOf(c) === HOST)?.id ?? 0, exactly = `^${host.replace(/[^\w]/g, '\\$&')}$`;
  for (let size = 1; pieces.length < size;) {
    const { model } = await client.lines(x.UUID, ID.clockMaps, { requested_table_index: pieces.length,
      requested_table_count: LINES, table_filter_expressions: { [id]: exactly } });
    if (!model?.lines.length) break;
    size = model.size;
    pieces.push(...model.lines.map(l => {
      const [from, until, refFrom, refUntil] = PIECE.map(key => BigInt(cells(columns, l, key)));
      return { from, until, refFrom, refUntil };
    }));
  }
  return pieces.length ? new ClockMap(host, pieces) : null;
}
