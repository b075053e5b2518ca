// SPDX-License-Identifier: MIT
// What is seen as a picture (SVG, PNG) or as a table (CSV).
import { axisTicks, drawCursors, drawRuler, drawSelection, FONT, SMALL, type Surface } from './canvas';
import { cell } from './csv';
import { DataTreeView } from './dataview';
import { download } from './dom';
import { GraphView } from './graphview';
import { arrowLines } from './graphdraw';
import { firstAfter, placed } from './paint';
import { HEAD, treeWidthNow, type Panel } from './panel';
import type { Session } from './session';
import type { Look } from './style';
import type { Node, TreeModel } from './tree';
import { formatDuration } from './time';
import type { VirtualTable } from './vtable';
import { XyView } from './xyview';

const TITLE = 22;
/** What XML cannot hold is shown as something unknown. */
const escape = (s: string): string => s.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '\ufffd')
  .replace(/[&<>"]/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]!);
const num = (v: number): string => String(Math.round(v * 100) / 100);

function drawn(panels: Panel[]): (GraphView | XyView)[] {
  return panels.filter((p): p is GraphView | XyView => !p.folded && (p instanceof GraphView || p instanceof XyView));
}
function rowsSeen(session: Session, model: TreeModel, scroll: number, height: number): number[] {
  return model.seen(scroll, height - HEAD, session.rowHeight);
}
/** A row's name and number, as the view shows them. */
function rowName(v: GraphView | XyView, node: Node): string {
  return [0, 1].map(c => v.tree.text(node, c)).filter(Boolean).slice(0, v instanceof GraphView && v.path ? 1 : 2)
    .join('  ');
}
/** What its rows or curves' ruler are drawn on. */
const sheetOf = (v: GraphView | XyView): Surface => v instanceof GraphView ? v.surface : v.back;
const scrollOf = (v: GraphView | XyView): number => (v.root.querySelector('.scroller') as HTMLElement).scrollTop;

/** The selected interval, below what is drawn in it. */
function svgSelection(session: Session, height: number): string {
  const { axis, theme } = session, s = axis.selection;
  return s ? `<rect class="selection" x="${num(axis.px(s[0]))}" y="${HEAD}" `
    + `width="${num(axis.px(s[1]) - axis.px(s[0]))}" `
    + `height="${height - HEAD}" fill="${theme.select}" opacity=".15"/>` : '';
}
function svgCursors(session: Session, height: number): string {
  const { axis, theme } = session, { anchor, cursor } = axis, s = axis.selection;
  if (anchor === null || cursor === null) return '';
  const lines = [...new Set([anchor, cursor])].map(t =>
    `<path class="cursor" d="M${num(axis.px(t))} ${HEAD - 6}V${height}" stroke="${theme.select}"/>`).join('');
  return lines + (s ? `<text x="${num((axis.px(s[0]) + axis.px(s[1])) / 2)}" y="${HEAD - 6}" fill="${theme.select}" `
    + `text-anchor="middle">${escape(formatDuration(s[1] - s[0]))}</text>` : '');
}

/** What the colours of the rows that are seen stand for. */
function looksSeen(v: GraphView | XyView, rows: number[]): Pick<Look, 'name' | 'css' | 'pattern'>[] {
  if (v instanceof XyView) return v.curves.map(c => ({ name: v.nameOf(c), css: c.colour, pattern: '' }));
  const { axis } = v.session, seen = new Map<string, Look>();
  for (const k of rows) {
    const row = v.data.rows.get(v.model.rows[k].entry.id);
    for (let i = row ? firstAfter(row, axis.offset) : 0; row && i < row.n && row.start[i] < axis.rel(axis.end); i++) {
      const look = v.looks.all[row.style[i]];
      if (!look.blank && seen.size < 60) seen.set(look.name + look.css, look);
    }
  }
  return [...seen.values()];
}
function svgLegend(v: GraphView | XyView, rows: number[], y: number, width: number,
  ink: string): { svg: string; height: number } {
  const measure = sheetOf(v).ctx, line = 16, out: string[] = [];
  measure.font = FONT;
  let x = 8, at = y;
  for (const { name, css, pattern } of looksSeen(v, rows)) {
    const w = measure.measureText(name).width + 32;
    if (x > 8 && x + w > width) { x = 8; at += line; }
    const box = `x="${num(x)}" y="${num(at + 2)}" width="14" height="10"`;
    out.push(`<rect ${box} fill="${css}"/>${pattern ? `<rect ${box} fill="url(#${pattern})"/>` : ''}`
      + `<text x="${num(x + 18)}" y="${num(at + 11)}" fill="${ink}">${escape(name)}</text>`);
    x += w;
  }
  return { svg: `<g class="legend">${out.join('')}</g>`, height: out.length ? at + line - y : 0 };
}

export function toSvg(session: Session, panels: Panel[], title: string): string {
  const { theme, axis } = session, views = drawn(panels), left = treeWidthNow() + 6, width = left + axis.width,
    out: string[] = [];
  let y = TITLE;
  const text = (x: number, yy: number, s: string, fill: string, more = ''): void => {
    out.push(`<text x="${num(x)}" y="${num(yy)}" fill="${fill}"${more}>${escape(s)}</text>`);
  };
  views.forEach((v, k) => {
    const own = v.session, { axis } = own; // amounts of time have an axis of their own
    const height = v.inner, rh = session.rowHeight, top = scrollOf(v),
      seen = rowsSeen(session, v.model, top, height), [first, last] = v.model.within(top, height - HEAD, rh);
    text(8, y + 14, v.output.name, theme.text, ' font-weight="600"');
    y += TITLE;
    out.push(`<g transform="translate(0 ${y})"><clipPath id="c${k}"><rect x="0" y="0" width="${axis.width}" `
      + `height="${height}"/></clipPath><clipPath id="n${k}"><rect x="0" y="${HEAD}" width="${left - 8}" `
        + `height="${height - HEAD}"/></clipPath>`);
    out.push(`<g clip-path="url(#n${k})">`);
    for (const i of seen)
      text(8 + v.model.rows[i].depth * 12, HEAD + v.model.yOf(i, top, rh) + 0.7 * rh,
        rowName(v, v.model.rows[i]), theme.text);
    out.push(`</g><g transform="translate(${left} 0)" clip-path="url(#c${k})">`);
    for (const t of axisTicks(own, axis.width)) {
      out.push(`<path d="M${num(t.x)} ${HEAD - 5}V${height}" stroke="${theme.faint}"/>`);
      text(t.x + 4, 13, t.text, theme.dim);
    }
    out.push(svgSelection(own, height));
    if (v instanceof GraphView) {
      v.draw(); // fills the painter
      const labels = v.part.painter.into({
        rect: (x, yy, w, h, look, alpha) => {
          out.push(`<rect x="${num(x)}" y="${num(yy)}" width="${num(w)}" height="${num(h)}" `
            + `fill="${look.css}"${alpha < 1 ? ` opacity="${num(alpha)}"` : ''}/>`);
          if (look.pattern)
            out.push(`<rect x="${num(x)}" y="${num(yy)}" width="${num(w)}" height="${num(h)}" `
              + `fill="url(#${look.pattern})"/>`);
        },
      });
      const measure = sheetOf(v).ctx;
      measure.font = FONT;
      for (const l of labels) {
        const at = placed(l, s => measure.measureText(s).width);
        if (at) text(at.x, l.y + 4, at.text, at.within ? l.ink : theme.text);
      }
      if (v.part.arrows)
        for (const a of arrowLines(own, v.part, axis.width, top, first, last))
          out.push(`<path d="M${num(a.x1)} ${num(a.y1)}L${num(a.x2)} ${num(a.y2)}" stroke="${a.css}" `
            + `stroke-width="1.4" marker-end="url(#head)"/>`);
    } else if (v.plot) {
      const u = v.plot;
      for (const c of v.curves) {
        const ys = v.drawn(c), points = v.x.map((x, i) => ys[i] === null || ys[i] === undefined ? ''
          : `${num((x - axis.offset) / axis.nsPerPx)} ${num(HEAD + u.valToPos(ys[i]!, 'y'))}`).filter(Boolean);
        out.push(c.kind === 'scatter'
          ? points.map(p => `<circle cx="${p.split(' ')[0]}" cy="${p.split(' ')[1]}" r="2" fill="${c.colour}"/>`)
            .join('') : `<polyline points="${points.join(' ')}" fill="none" stroke="${c.colour}"/>`);
      }
    }
    out.push(svgCursors(own, height), '</g></g>');
    y += height + 4;
    const legend = svgLegend(v, seen, y, width, theme.text);
    out.push(legend.svg);
    y += legend.height + 8;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" font-family="system-ui, sans-serif" `
    + `font-size="11"><title>${escape(title)}</title><defs>`
    + '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M-1 7L7 -1" stroke="#fff" '
      + 'opacity=".5"/></pattern><pattern id="dots" width="4" height="4" patternUnits="userSpaceOnUse"><rect x="1" '
        + 'y="1" width="1" height="1" fill="#fff" opacity=".5"/></pattern>'
    + '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path '
      + 'd="M0 0L8 4L0 8Z" fill="context-stroke"/></marker></defs>'
    + `<rect width="100%" height="100%" fill="${theme.back}"/><text x="8" y="15" fill="${theme.text}" `
      + `font-weight="700">${escape(title)}</text>${out.join('')}</svg>`;
}

export function toPng(session: Session, panels: Panel[], title: string): Promise<Blob | null> {
  const { theme, axis } = session, views = drawn(panels), left = treeWidthNow() + 6, scale = devicePixelRatio || 1;
  const canvas = document.createElement('canvas'), height = TITLE
    + views.reduce((sum, v) => sum + v.inner + TITLE + 8, 0);
  canvas.width = (left + axis.width) * scale;
  canvas.height = height * scale;
  const ctx = canvas.getContext('2d')!;
  ctx.scale(scale, scale);
  ctx.fillStyle = theme.back;
  ctx.fillRect(0, 0, left + axis.width, height);
  ctx.fillStyle = theme.text;
  ctx.font = `600 12px system-ui, sans-serif`;
  ctx.fillText(title, 8, 15);
  let y = TITLE;
  for (const v of views) {
    v.draw();
    ctx.fillStyle = theme.text;
    ctx.font = `600 11px system-ui, sans-serif`;
    ctx.fillText(v.output.name, 8, y + 14);
    y += TITLE;
    const h = v.inner, rh = session.rowHeight, top = scrollOf(v);
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, y + HEAD, left - 8, h - HEAD);
    ctx.clip();
    ctx.font = rh > 14 ? FONT : SMALL;
    for (const i of rowsSeen(session, v.model, top, h))
      ctx.fillText(rowName(v, v.model.rows[i]), 8 + v.model.rows[i].depth * 12,
        y + HEAD + v.model.yOf(i, top, rh) + 0.7 * rh);
    ctx.restore();
    ctx.save();
    ctx.translate(left, y);
    drawSelection(ctx, v.session, axis.width, HEAD, h);
    ctx.drawImage(sheetOf(v).canvas, 0, 0, axis.width, h);
    drawRuler(ctx, v.session, axis.width, HEAD, HEAD);
    if (v instanceof XyView && v.plot) ctx.drawImage(v.plot.ctx.canvas, 0, HEAD, axis.width, h - HEAD);
    drawCursors(ctx, v.session, axis.width, HEAD, h, true);
    ctx.restore();
    y += h + 8;
  }
  return new Promise(done => canvas.toBlob(done));
}

export function toCsv(session: Session, panels: Panel[], table: VirtualTable | null): string {
  const out: string[] = [];
  for (const v of drawn(panels)) {
    const { axis } = v.session;
    out.push(cell(`# ${v.output.name}`));
    if (v instanceof GraphView) {
      out.push(['machine', ...v.model.headers.map(x => x.name || 'row'), 'state', 'text', 'begin_ns', 'end_ns',
        'duration_ns'].map(cell).join());
      for (const i of rowsSeen(session, v.model, scrollOf(v), v.inner)) {
        const { entry } = v.model.rows[i], row = v.data.rows.get(entry.id);
        for (let k = row ? firstAfter(row, axis.offset) : 0; row && k < row.n
          && row.start[k] < axis.rel(axis.end); k++) {
          const look = v.looks.all[row.style[k]], a = axis.abs(row.start[k]), b = axis.abs(row.end[k]);
          if (!look.blank)
            out.push([v.hostOf(v.model.rows[i]), ...v.model.headers.map((_, c) => entry.labels[c] ?? ''), look.name,
              row.label[k] ?? '', String(session.shown(a)), String(session.shown(b)), String(b - a)].map(cell).join());
        }
      }
    } else {
      out.push(['time_ns', ...v.curves.map(c => c.name + (c.unit ? ` (${c.unit})` : ''))].map(cell).join());
      v.x.forEach((x, i) => {
        if (x >= axis.offset && x <= axis.rel(axis.end))
          out.push([String(session.shown(axis.abs(x))), ...v.curves.map(c => String(c.y[i] ?? ''))].join());
      });
    }
  }
  for (const v of panels)
    if (v instanceof DataTreeView && !v.folded) out.push(...v.csv());
  if (table) {
    const seen = table.seen();
    out.push(cell(`# ${table.output.name}`), seen.names.map(cell).join(), ...seen.lines.map(l => l.map(cell).join()));
  }
  return out.join('\n') + '\n';
}

export async function save(kind: 'svg' | 'png' | 'csv', session: Session, panels: Panel[],
  table: VirtualTable | null): Promise<void> {
  const name = (session.experiment?.name ?? 'weft').replace(/[^\w.-]+/g, '_'), { axis } = session;
  const title = `${session.experiment?.name ?? ''}  ${session.time(axis.begin, 6)} … ${session.time(axis.end, 6)}  `
    + `(${formatDuration(axis.span)})`;
  if (kind === 'svg') download(`${name}.svg`, toSvg(session, panels, title), 'image/svg+xml');
  else if (kind === 'csv') download(`${name}.csv`, toCsv(session, panels, table), 'text/csv');
  else { const blob = await toPng(session, panels, title); if (blob) download(`${name}.png`, blob); }
}
