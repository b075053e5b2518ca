// SPDX-License-Identifier: MIT
// Tables as text.
import type { TreeModel } from './tree';

/** A cell of a table. Programs take what begins like one for a formula, also where a trace or a name says it: a quote
 * before it keeps it a text. Numbers stay numbers. */
export function cell(s: string): string {
  const begins = /^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(s), isNumber = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(s),
    text = begins && !isNumber ? `'${s}` : s;
  return /[",\r\n\t]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

/** The rows of a tree of figures that are seen, as lines: machine, the columns that name the row, and its numbers as
 * the server tells them (times in ns). Without such numbers: the columns' texts. */
export function figureLines(model: TreeModel): string[] {
  const keys = new Set<string>();
  for (const { entry } of model.nodes.values())
    for (const [key, values] of Object.entries(entry.metadata))
      if (key !== 'TID' && values.length === 1 && /^(number|bigint)$/.test(typeof values[0])) keys.add(key);
  const columns = model.headers.map((_, i) => i).filter(i => !keys.size
    || !/NUMBER|DURATION|TIME_RANGE/.test(model.headers[i].dataType ?? ''));
  const lines = [['machine', ...columns.map(i => model.headers[i].name), ...keys]];
  for (const { entry } of model.rows)
    lines.push([entry.hostId ?? '', ...columns.map(i => entry.labels[i] ?? ''),
      ...[...keys].map(key => String(entry.metadata[key]?.[0] ?? ''))]);
  return lines.map(l => l.map(cell).join());
}
