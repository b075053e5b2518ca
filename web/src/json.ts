// SPDX-License-Identifier: MIT
// JSON with exact integers. Numbers that a double holds exactly are numbers; integers beyond 2^53 become bigint, where
// JSON.parse would round.

const QUOTE = 34, BACKSLASH = 92, MINUS = 45, ZERO = 48, NINE = 57, DOT = 46, COMMA = 44, COLON = 58;
const OPEN = 123, CLOSE = 125, OPEN_LIST = 91, CLOSE_LIST = 93;

export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };

/** Throws SyntaxError, as JSON.parse does. */
export function parseJson(text: string): Json {
  // Nothing in it can be beyond 2^53, as ids of 16 digits are not: the engine's parser is faster.
  if (!/\d{17}|9\d{15}/.test(text)) return JSON.parse(text) as Json;
  return new Parser(text).document();
}

class Parser {
  private at = 0;
  constructor(private readonly text: string) {}

  document(): Json {
    const value = this.value();
    this.space();
    if (this.at < this.text.length) this.fail();
    return value;
  }

  private fail(): never {
    throw new SyntaxError(`JSON: unexpected ${this.at < this.text.length ? `character at ${this.at}` : 'end'}`);
  }

  private space(): number {
    const { text } = this;
    let c = text.charCodeAt(this.at);
    while (c === 32 || c === 10 || c === 13 || c === 9) c = text.charCodeAt(++this.at);
    return c;
  }

  private value(): Json {
    const c = this.space();
    if (c === QUOTE) return this.string();
    if (c === OPEN) return this.object();
    if (c === OPEN_LIST) return this.list();
    if (c === MINUS || (c >= ZERO && c <= NINE)) return this.number();
    return this.word('true', true) ?? this.word('false', false) ?? this.nothing();
  }

  private word<T>(word: string, value: T): T | undefined {
    if (!this.text.startsWith(word, this.at)) return undefined;
    this.at += word.length;
    return value;
  }

  private nothing(): null {
    if (!this.text.startsWith('null', this.at)) this.fail();
    this.at += 4;
    return null;
  }

  private object(): Json {
    const result: { [key: string]: Json } = {};
    this.at++;
    if (this.space() === CLOSE) { this.at++; return result; }
    for (;;) {
      if (this.space() !== QUOTE) this.fail();
      const key = this.string();
      if (this.space() !== COLON) this.fail();
      this.at++;
      const value = this.value();
      if (key === '__proto__')
        Object.defineProperty(result, key, { value, enumerable: true, configurable: true, writable: true });
      else result[key] = value;
      const c = this.space();
      this.at++;
      if (c === CLOSE) return result;
      if (c !== COMMA) { this.at--; this.fail(); }
    }
  }

  private list(): Json {
    const result: Json[] = [];
    this.at++;
    if (this.space() === CLOSE_LIST) { this.at++; return result; }
    for (;;) {
      result.push(this.value());
      const c = this.space();
      this.at++;
      if (c === CLOSE_LIST) return result;
      if (c !== COMMA) { this.at--; this.fail(); }
    }
  }

  private string(): string {
    const { text } = this;
    const begin = this.at;
    let end = begin;
    for (;;) {
      end = text.indexOf('"', end + 1);
      if (end < 0) { this.at = text.length; this.fail(); }
      let back = end - 1;
      while (text.charCodeAt(back) === BACKSLASH) back--;
      if ((end - back) % 2 === 1) break; // an even number of backslashes: the quote is not escaped
    }
    this.at = end + 1;
    const raw = text.slice(begin + 1, end);
    // Escapes and forbidden control characters are rare: the engine judges them.
    return /[\\\u0000-\u001f]/.test(raw) ? JSON.parse(text.slice(begin, end + 1)) as string : raw;
  }

  private number(): number | bigint {
    const { text } = this;
    const begin = this.at;
    let at = begin, c = text.charCodeAt(at), whole = true;
    if (c === MINUS) c = text.charCodeAt(++at);
    const digits = at;
    let small = 0;
    while (c >= ZERO && c <= NINE) { small = small * 10 + (c - ZERO); c = text.charCodeAt(++at); }
    if (at === digits || (text.charCodeAt(digits) === ZERO && at - digits > 1)) { this.at = at; this.fail(); }
    if (c === DOT || c === 101 || c === 69) {
      whole = false;
      while ((c >= ZERO && c <= NINE) || c === DOT || c === 101 || c === 69 || c === MINUS || c === 43)
        c = text.charCodeAt(++at);
    }
    this.at = at;
    if (!whole) return JSON.parse(text.slice(begin, at)) as number;
    if (at - digits <= 15) return digits > begin ? -small : small;
    const exact = BigInt(text.slice(begin, at));
    const near = Number(exact);
    return Number.isSafeInteger(near) ? near : exact;
  }
}

/** As JSON.stringify, with bigint as bare integers. */
export function writeJson(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map(v => writeJson(v)).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const parts: string[] = [];
    for (const [k, v] of Object.entries(value)) if (v !== undefined) parts.push(`${JSON.stringify(k)}:${writeJson(v)}`);
    return `{${parts.join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}
