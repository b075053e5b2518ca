// The search field. Words search rows (name, thread id, host); `state:` and comparisons are expressions that the server
// applies to states.
import type { RowTest } from './tree';

export interface Search {
  text: string;
  /** Null: rows are not filtered. */
  rows: RowTest | null;
  /** Rows are asked for by thread id or name: says nothing about CPUs and disks. */
  ofThreads: boolean;
  /** Filter expressions of the protocol, or [] for none. */
  states: string[];
}

function words(text: string): string[] { return text.match(/(?:[^\s"]|"[^"]*")+/g) ?? []; }
const bare = (s: string): string => s.replace(/"/g, '');

export function parseSearch(text: string): Search {
  const tests: RowTest[] = [], states: string[] = [];
  let ofThreads = false;
  const trimmed = text.trim();
  if (/&&|\|\|/.test(trimmed))
    return { text, rows: null, ofThreads: false, states: [trimmed.replace(/\bstate:/g, '')] };
  for (const word of words(trimmed)) {
    const prefix = /^(host|thread|tid|pid|state|row):(.*)$/i.exec(word);
    const kind = prefix?.[1].toLowerCase(), value = bare(prefix ? prefix[2] : word).toLowerCase();
    if (prefix && !value) continue;
    if (kind === 'tid' || kind === 'pid' || kind === 'thread') ofThreads = true;
    if (kind === 'state') states.push(bare(prefix![2]));
    else if (!prefix && /[<>=~!]/.test(word)) states.push(bare(word));
    else if (kind === 'host') tests.push((e, path) => (e.hostId ?? path).toLowerCase().includes(value));
    else if (kind === 'tid' || kind === 'pid') {
      const key = kind.toUpperCase();
      tests.push(e => String(e.metadata[key]?.[0] ?? e.labels[1] ?? '') === value);
    } else if (kind === 'thread' || kind === 'row') tests.push(e => (e.labels[0] ?? '').toLowerCase().includes(value));
    else tests.push((_e, path) => path.toLowerCase().includes(value));
  }
  return { text, rows: tests.length ? (e, path) => tests.every(t => t(e, path)) : null, ofThreads, states: states.length
    ? [states.join(' && ')] : [] };
}

/** filter_query_parameters of a search, or null. Key "1" dims what does not match, "4" leaves it out. */
export function filterParameters(search: Search, exclude: boolean): object | null {
  if (!search.states.length) return null;
  return { strategy: 'DEEP', filter_expressions_map: { [exclude ? '4' : '1']: search.states } };
}
