// SPDX-License-Identifier: MIT
// Times (bigint ns since 1970) and durations as text, and back.
import type { Time } from './tsp';

export type TimeMode = 'local' | 'utc' | 'relative';
export const SECOND = 1_000_000_000n;
const THIN = '\u2009';

export const minTime = (a: Time, b: Time): Time => a < b ? a : b;
export const maxTime = (a: Time, b: Time): Time => a > b ? a : b;
export const absTime = (a: Time): Time => a < 0n ? -a : a;
export function clampTime(t: Time, low: Time, high: Time): Time { return t < low ? low : t > high ? high : t; }

function floorDiv(a: bigint, b: bigint): bigint { const q = a / b; return a % b < 0n ? q - 1n : q; }
const two = (n: number): string => String(n).padStart(2, '0');

/** Digits in groups of three from the left: "519107" is "519 107". */
function fraction(ns: bigint, digits: number): string {
  if (digits <= 0) return '';
  const text = ns.toString().padStart(9, '0').slice(0, digits);
  return '.' + (text.match(/.{1,3}/g) ?? []).join(THIN);
}

/** `digits` after the point (0 … 9). */
export function formatTime(t: Time, mode: TimeMode, origin: Time, digits = 9): string {
  if (mode === 'relative') {
    const d = t - origin, a = absTime(d), seconds = a / SECOND;
    const h = seconds / 3600n, m = (seconds / 60n) % 60n, s = seconds % 60n;
    const head = h > 0n ? `${h}:${two(Number(m))}:${two(Number(s))}` : m > 0n ? `${m}:${two(Number(s))}` : String(s);
    return `${d < 0n ? '−' : '+'}${head}${fraction(a % SECOND, digits)}${m > 0n || h > 0n ? '' : `${THIN}s`}`;
  }
  const seconds = floorDiv(t, SECOND), date = new Date(Number(seconds) * 1000);
  const hms = mode === 'utc'
    ? `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`
    : `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return hms + fraction(t - seconds * SECOND, digits);
}

export function formatDate(t: Time, mode: TimeMode): string {
  if (mode === 'relative') return 'from the start';
  const d = new Date(Number(floorDiv(t, SECOND)) * 1000);
  return mode === 'utc'
    ? `${d.getUTCFullYear()}-${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())} UTC`
    : `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} local`;
}

const UNITS: [number, string][] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
/** Three to four digits with a unit: "88.49 ms". */
export function formatDuration(ns: Time | number): string {
  const v = Number(ns), a = Math.abs(v);
  if (a === 0) return '0';
  const sign = v < 0 ? '−' : '';
  if (a >= 48 * 3600e9) {
    const hours = Math.round(a / 3600e9);
    return `${sign}${String(Math.floor(hours / 24)).replace(/\B(?=(\d{3})+$)/g, THIN)} d ${hours % 24} h`;
  }
  if (a >= 60e9) {
    const s = Math.round(a / 1e9), h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
    return sign + (h ? `${h} h ${two(m)} min` : `${m} min ${two(s % 60)} s`);
  }
  const [unit, name] = UNITS.find(u => a >= u[0]) ?? [1, 'ns'];
  const x = a / unit, digits = unit === 1 ? 0 : x >= 100 ? 1 : x >= 10 ? 2 : 3;
  return `${sign}${x.toFixed(digits)} ${name}`;
}

/** Every digit: "88 494 107 ns". For details and tooltips. */
export function formatExact(ns: Time): string {
  return `${absTime(ns).toString().replace(/\B(?=(\d{3})+$)/g, THIN)} ns`.replace(/^/, ns < 0n ? '−' : '');
}

/** A count with many digits as people read it; numbers that only name something (ids, ports) stay as they are. */
export function formatCount(text: string, column: string): string {
  return /^-?\d{5,}$/.test(text) && !/id$|port|address/i.test(column)
    ? text.replace(/\B(?=(\d{3})+$)/g, THIN).replace('-', '−') : text;
}

/** A number with a unit of the protocol ("B/s", "%", "ns"), shortened. */
export function formatValue(v: number, unit = '', type = ''): string {
  if (!Number.isFinite(v)) return '–';
  if (unit === 'ns' || type === 'DURATION') return formatDuration(v);
  const a = Math.abs(v), binary = type === 'BINARY_NUMBER' || /^B(\/s)?$|bytes/i.test(unit);
  const step = binary ? 1024 : 1000, prefix = binary ? ['', 'Ki', 'Mi', 'Gi', 'Ti'] : ['', 'k', 'M', 'G', 'T'];
  let i = 0, x = a;
  if (unit !== '%') while (x >= step && i < 4) { x /= step; i++; }
  const digits = Number.isInteger(x) ? 0 : x >= 100 ? 0 : x >= 10 ? 1 : 2;
  // "1.2 MB/s", but "1.2 k exits/s".
  return (`${v < 0 ? '−' : ''}${x.toFixed(digits)}${unit || prefix[i] ? ' ' : ''}${prefix[i]}`
    + `${prefix[i] && /^[a-z]{3}/.test(unit) ? ' ' : ''}${unit}`).trim();
}

/** Round numbers as axes have them: "1.000 ms" is "1 ms". */
export function formatTick(v: number, unit = '', type = ''): string {
  return formatValue(v, unit, type).replace(/(\.\d*?)0+(?= |$)/, '$1').replace(/\.(?= |$)/, '');
}

const DURATIONS: Record<string, number> = { ns: 1, us: 1e3, 'µs': 1e3, ms: 1e6, s: 1e9, min: 60e9, m: 60e9, h: 3600e9 };
/** "1.5 ms" as ns, or null. */
export function parseDuration(text: string): bigint | null {
  const m = /^\s*([+\-−]?)\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|m|h)\s*$/.exec(text);
  if (!m) return null;
  const [whole, part = ''] = m[2].split('.');
  const scale = BigInt(DURATIONS[m[3]]);
  const ns = BigInt(whole) * scale + (part ? BigInt(part) * scale / 10n ** BigInt(part.length) : 0n);
  return m[1] && m[1] !== '+' ? -ns : ns;
}

/** What people type or paste: "12:31:17.519107", with or without a date before it, "+1.5 s" (from the trace's start),
 * ns since 1970, or seconds with a fraction, as the program prints them. Null when it is none. */
export function parseTime(text: string, mode: TimeMode, origin: Time): Time | null {
  const t = text.trim().replace(/^\[(.*)\]$/, '$1').replace(/[\u2009 _](?=\d)/g, m => m === ' ' ? ' ' : '');
  if (/^\d{13,}$/.test(t)) return BigInt(t);
  const epoch = /^(\d{9,})\.(\d{1,9})$/.exec(t);
  if (epoch) return BigInt(epoch[1]) * SECOND + BigInt(epoch[2].padEnd(9, '0'));
  const duration = parseDuration(t);
  if (duration !== null) return origin + duration;
  if (/^[+]?\d+(\.\d+)?$/.test(t)) { const s = parseDuration(`${t}s`); return s === null ? null : origin + s; }
  const m = /^(?:(\d{4})-(\d\d)-(\d\d)[T ]+)?(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d[\d ]*))?)?(Z)?$/.exec(t);
  if (!m) return null;
  const nano = BigInt((m[7] ?? '').replace(/ /g, '').padEnd(9, '0').slice(0, 9));
  if (mode === 'relative' && !m[1] && !m[8])
    return origin + BigInt(Number(m[4]) * 3600 + Number(m[5]) * 60 + Number(m[6] ?? 0)) * SECOND + nano;
  const day = new Date(Number(origin / 1_000_000n));
  const utc = mode === 'utc' || !!m[8];
  const y = m[1] ? Number(m[1]) : utc ? day.getUTCFullYear() : day.getFullYear();
  const mo = m[2] ? Number(m[2]) - 1 : utc ? day.getUTCMonth() : day.getMonth();
  const d = m[3] ? Number(m[3]) : utc ? day.getUTCDate() : day.getDate();
  const hms: [number, number, number] = [Number(m[4]), Number(m[5]), Number(m[6] ?? 0)];
  const ms = utc ? Date.UTC(y, mo, d, ...hms) : new Date(y, mo, d, ...hms).getTime();
  return BigInt(ms) * 1_000_000n + nano;
}

/** Two times ("T1..T2", "T1 – T2"), or one with what lies behind, before or around it ("T +50ms", "T -50ms",
 * "T ±50ms"). Null when it is none. */
export function parseRange(text: string, mode: TimeMode, origin: Time): [Time, Time] | null {
  const ends = text.split(/\s*(?:\.\.+|…|–|—|→)\s*|\s+(?:-|to)\s+/);
  if (ends.length === 2) {
    const [a, b] = ends.map(end => parseTime(end, mode, origin));
    return a === null || b === null ? null : a < b ? [a, b] : [b, a];
  }
  const m = /^(.*\S)\s*([+\-−±])\s*([\d.]+\s*[a-zµ]+)\s*$/.exec(text), t = m ? parseTime(m[1], mode, origin) : null,
    d = m ? parseDuration(m[3]) : null;
  return t === null || d === null ? null : [m![2] === '+' ? t : t - d, /[+±]/.test(m![2]) ? t + d : t];
}

const CALENDAR = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
  86400].map(s => BigInt(s) * SECOND);
/** A time that is a tick: the day where days pass from one to the next. */
export function formatTickTime(t: Time, mode: TimeMode, origin: Time, ticks: Ticks): string {
  if (ticks.step < 86400n * SECOND) return formatTime(t, mode, origin, ticks.digits);
  return mode === 'relative' ? `+${(t - origin) / (86400n * SECOND)} d` : formatDate(t, mode).split(' ')[0];
}
/** Both ends of an interval, with their days where these differ. */
export function formatSpan(begin: Time, end: Time, mode: TimeMode, origin: Time, digits: number): string {
  const days = [begin, end].map(t => mode === 'relative' ? '' : formatDate(t, mode).split(' ')[0]);
  if (days[0] === days[1])
    return `${formatTime(begin, mode, origin, digits)} – ${formatTime(end, mode, origin, digits)}`;
  return `${days[0]} ${formatTime(begin, mode, origin, 0)} – ${days[1]} ${formatTime(end, mode, origin, 0)}`;
}

export interface Ticks { step: Time; digits: number; times: Time[] }
/** Round times in [begin, end], at least `apart` of the range from one another (a fraction). */
export function ticks(begin: Time, end: Time, apart: number, mode: TimeMode, origin: Time): Ticks {
  const want = Math.max(1, Number(end - begin) * apart);
  let step = CALENDAR.find(c => Number(c) >= want) ?? 0n;
  if (want < 1e9) {
    const ten = 10 ** Math.floor(Math.log10(want) + 1e-9), k = want / ten;
    step = BigInt(Math.round(ten * (k <= 1 ? 1 : k <= 2 ? 2 : k <= 5 ? 5 : 10)));
  } else if (!step) step = BigInt(Math.ceil(want / 86400e9)) * 86400n * SECOND;
  let digits = 0;
  for (let unit = SECOND; digits < 9 && step % unit !== 0n; unit /= 10n) digits++;
  // Local days do not begin at multiples of a day since 1970.
  const base = mode === 'relative' ? origin : mode === 'local' && step > SECOND
    ? BigInt(new Date(Number(begin / 1_000_000n)).getTimezoneOffset()) * 60n * SECOND : 0n;
  const times: Time[] = [];
  for (let t = base + (floorDiv(begin - base, step) + 1n) * step; t <= end; t += step) times.push(t);
  return { step, digits, times };
}
