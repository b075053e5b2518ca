// SPDX-License-Identifier: MIT
// The search field. Words search rows (name, thread id, host, pod); `state:` and comparisons are expressions that the
// server applies to states.
import type { RowTest } from './tree';

export interface Search {
  text: string;
  /** Null: rows are not filtered. */
  rows: RowTest | null;
  /** Rows are asked for by thread id, name or container: says nothing about CPUs and disks. */
  ofThreads: boolean;
  /** Filter expressions of the protocol, or [] for none. */
  states: string[];
}

/** Comparisons are one word however they are spaced; what stands in quotes stays as it is. */
function words(text: string): string[] {
  const operators = /&&|\|\|/.test(text) ? /(\|\||&&|[()])/g : /(?!)/g, parts = text.split(/("[^"]*"?)/),
    joined = parts.map((p, i) => i % 2 ? p : p.replace(/\s*(==|!=|<=|>=|[<>=])\s*/g, '$1')
      .replace(/([<>=][\d.]+)\s+(ns|us|µs|ms|s)\b/g, '$1$2').replace(operators, ' $1 ')).join('');
  return joined.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? [];
}
const bare = (s: string): string => s.replace(/"/g, '');
/** A label of several words stands in quotes among others. */
const stated = (s: string): string => /\s/.test(bare(s)) ? `"${bare(s)}"` : bare(s);
const ROWS = /^(host|pod|container|thread|tid|pid|row):(.*)$/i;

const isDigit = (c: string | undefined): boolean => c !== undefined && /^\d$/.test(c);
/** Does the name hold the text, with its numbers whole? `node-1` is none of `node-10`. */
function holds(name: string, text: string): boolean {
  for (let at = name.indexOf(text); at >= 0; at = name.indexOf(text, at + 1)) {
    const end = at + text.length;
    if (!(isDigit(name[at]) && isDigit(name[at - 1])) && !(isDigit(name[end - 1]) && isDigit(name[end]))) return true;
  }
  return false;
}

/** The test of a word that is about rows, or null: it names nothing. */
function rowTest(word: string): RowTest | null {
  const prefix = ROWS.exec(word), kind = prefix?.[1].toLowerCase(),
    value = bare(prefix ? prefix[2] : word).toLowerCase();
  if (!value) return null;
  if (kind === 'host') return (e, path) => holds((e.hostId ?? path).toLowerCase(), value);
  if (kind === 'pod' || kind === 'container')
    return e => holds(String(e.metadata.Container?.[0] ?? '').toLowerCase(), value);
  if (kind === 'tid' || kind === 'pid') {
    const key = kind.toUpperCase();
    return e => String(e.metadata[key]?.[0] ?? e.labels[1] ?? '') === value;
  }
  if (kind === 'thread' || kind === 'row') return e => (e.labels[0] ?? '').toLowerCase().includes(value);
  return (_e, path) => path.toLowerCase().includes(value);
}
const isState = (word: string): boolean => /^state:/i.test(word) || (!ROWS.test(word) && /[<>=~!]/.test(word));

/** Words are about rows, with `state:` or a comparison about states; both hold together. Where states are joined by ||
 * or parentheses, all words are about states but those that say which rows. */
export function parseSearch(text: string): Search {
  const all = words(text.trim()), joined = /\|\||&&.*[()]|[()].*&&/.test(text),
    ofRows = (w: string): boolean => joined ? ROWS.test(w) : w !== '&&' && !isState(w),
    tests = all.filter(ofRows).map(rowTest).filter(t => t !== null),
    ofThreads = all.some(w => /^(tid|pid|thread|pod|container):./i.test(w)),
    said = all.filter(w => !ofRows(w)).map(w => /^(\|\||&&|[()])$/.test(w) ? w : stated(w.replace(/^state:/i, '')))
      .filter(Boolean);
  return { text, rows: tests.length ? (e, path) => tests.every(t => t(e, path)) : null, ofThreads,
    states: joined ? whole(said) : said.some(w => w !== '&&') ? [said.filter(w => w !== '&&').join(' && ')] : [] };
}
/** Operators that have nothing at one side, since a row stood there, go. */
function whole(said: string[]): string[] {
  const text = said.join(' ').replace(/(^|\( )((&&|\|\|) )+/g, '$1').replace(/( (&&|\|\|))+( \)|$)/g, '$3')
    .replace(/(&&|\|\|)( (&&|\|\|))+/g, '$1').replace(/\( /g, '(').replace(/ \)/g, ')').replace(/\(\)/g, '').trim();
  return /[^\s&|()]/.test(text) ? [text] : [];
}

/** Rows of the chosen machines; null: of all. What is of no machine stays. */
export function ofMachines(machines: ReadonlySet<string> | null, known: ReadonlySet<string>): RowTest | null {
  if (!machines) return null;
  return (e, path) => {
    if (e.hostId) return machines.has(e.hostId);
    const named = path.split(' ').filter(x => known.has(x));
    return !named.length || named.some(x => machines.has(x));
  };
}

/** filter_query_parameters of a search, or null. Key "1" dims what does not match, "4" leaves it out. */
export function filterParameters(search: Search, exclude: boolean): object | null {
  if (!search.states.length) return null;
  return { strategy: 'DEEP', filter_expressions_map: { [exclude ? '4' : '1']: search.states } };
}
