// Tables as text.
import type { TreeModel } from './tree';

export const cell = (s: string): string => /[",\n]/.test(s) ? `"${s.replace(/"/g, '""')}"` : s;

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
