// SPDX-License-Identifier: MIT
// Reads the answer to a request for a tree while it arrives: the entries that came first can be shown while thousands
// still come.
import { parseJson } from './json';

const QUOTE = 34, BACKSLASH = 92, COMMA = 44, COLON = 58, OPEN = 123, CLOSE = 125, OPEN_LIST = 91, CLOSE_LIST = 93;
const ENVELOPE = 1, MODEL = 2, ENTRIES = 3; // depth within the answer, the model, its list of entries

/** Cuts {"model": {…, "entries": [{…}, …], …}, …} into entries and the rest. Bytes, because braces and quotes are the
 * same in UTF-8, whatever stands between them. */
export class EntryReader {
  /** All that came so far. Their integers are numbers, which is exact below 2^53. */
  readonly entries: unknown[] = [];
  private data: Uint8Array = new Uint8Array(0);
  /** Bytes before `at` are looked at; bytes before `kept` are parsed, or in `outside`. */
  private at = 0;
  private kept = 0;
  private done = 0;         // end of the last whole entry
  private depth = 0;
  private quoted = false;
  private began = 0;        // of the last string outside of entries
  private last = '';        // that string, when its quote has come
  private readonly keys = ['', '', ''];
  private inside = false;
  private outside = '';
  private readonly text = new TextDecoder();

  push(chunk: Uint8Array): void {
    const rest = this.data.length - this.kept, data = rest ? new Uint8Array(rest + chunk.length) : chunk;
    if (rest) { data.set(this.data.subarray(this.kept)); data.set(chunk, rest); }
    this.at -= this.kept;
    this.done -= this.kept;
    this.began -= this.kept;
    this.kept = 0;
    this.data = data;
    this.scan();
    if (this.inside) this.take();
  }

  private scan(): void {
    const { data } = this, n = data.length;
    let { at, depth, quoted } = this;
    for (; at < n; at++) {
      const c = data[at];
      if (quoted) {
        if (c === BACKSLASH) at++; // what it escapes; may be the next chunk's first byte
        else if (c === QUOTE) {
          quoted = false;
          if (!this.inside && depth <= MODEL) this.last = this.slice(this.began, at);
        }
      } else if (c === QUOTE) { quoted = true; this.began = at + 1; }
      else if (c === OPEN || c === OPEN_LIST) {
        depth++;
        if (depth === ENTRIES && c === OPEN_LIST && this.keys[ENVELOPE] === 'model' && this.keys[MODEL] === 'entries')
          this.enter(at + 1);
      } else if (c === CLOSE || c === CLOSE_LIST) {
        depth--;
        if (this.inside && depth === ENTRIES) this.done = at + 1;
        else if (this.inside && depth < ENTRIES) { this.take(); this.inside = false; this.kept = at; }
      } else if (c === COLON && !this.inside && depth <= MODEL) this.keys[depth] = this.last;
    }
    this.at = at;
    this.depth = depth;
    this.quoted = quoted;
  }
  private slice(from: number, to: number): string { return this.text.decode(this.data.subarray(from, to)); }
  private enter(at: number): void {
    this.outside += this.slice(this.kept, at);
    this.inside = true;
    this.kept = this.done = at;
  }
  /** Parses the whole entries that are there. */
  private take(): void {
    let from = this.kept;
    while (from < this.done && this.data[from] !== OPEN) {
      if (this.data[from] === COMMA || this.data[from] <= 32) from++; else break;
    }
    if (from >= this.done) return;
    for (const e of JSON.parse(`[${this.slice(from, this.done)}]`) as unknown[]) this.entries.push(e);
    this.kept = this.done;
  }

  /** The model without entries as far as it came before them, or null. */
  head(): any {
    return this.inside ? (parseJson(`${this.outside}]}}`) as any).model : null;
  }
  /** The whole answer, when all has been pushed; null when that was nothing. Throws SyntaxError as a parser does. */
  end(): any {
    if (this.inside) throw new SyntaxError('JSON: unexpected end');
    const text = this.outside + this.slice(this.kept, this.data.length), answer = text ? parseJson(text) as any : null;
    if (this.entries.length) answer.model.entries = this.entries;
    return answer;
  }
}
