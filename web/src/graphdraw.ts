// SPDX-License-Identifier: MIT
// Drawing of a time graph's centre: rows of states, arrows, marks, glow. Used by the view and by exported pictures.
import { HEAD } from './panel';
import { FONT, SMALL } from './canvas';
import type { FlatArrow, FlatMark, GraphData } from './graphdata';
import { RowPainter } from './paint';
import { glowKey, tidOf, type Interval, type Session } from './session';
import type { Looks } from './style';
import type { Node, TreeModel } from './tree';

export interface GraphPart { model: TreeModel; data: GraphData; looks: Looks; painter: RowPainter;
  picked: number | null; arrows: boolean; path: boolean;
  /** A state that has a frame around it. */
  frame: Interval & { entry: number } | null }

export const BUSY = 3000; // arrows from which heads and colours are left out

/** The rows that are seen at scroll position `top`, those that stay on top of the others with them. */
export function paintRows(ctx: CanvasRenderingContext2D, session: Session, g: GraphPart, width: number, height: number,
  top: number, scale: number): void {
  const { axis, theme } = session, rh = session.rowHeight, { model } = g;
  const seen = model.seen(top, height - HEAD, rh), [first, last] = model.within(top, height - HEAD, rh);
  const pad = rh >= 16 && !g.path ? 2 : 1, v0 = axis.offset, nsPerPx = axis.nsPerPx;
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, HEAD, width, height - HEAD);
  ctx.clip();
  paintBands(ctx, session, g, width, height, false);
  const picked = g.picked === null ? -1 : g.model.rowOf.get(g.picked) ?? -1;
  for (const i of seen) {
    const cut = model.covered(i, top, rh), y = HEAD + model.yOf(i, top, rh), node = g.model.rows[i];
    if (i === picked) {
      ctx.globalAlpha = 0.12;
      ctx.fillStyle = theme.accent;
      ctx.fillRect(0, y + cut, width, rh - cut);
      ctx.globalAlpha = 1;
    }
    // lets the selection through
    if (g.path ? bandOf(g.model, node) % 2 === 0 : node.depth === 0 && node.children.length) {
      ctx.globalAlpha = 0.045;
      ctx.fillStyle = theme.text;
      ctx.fillRect(0, y + cut, width, rh - cut);
      ctx.globalAlpha = 1;
    }
    if ((!node.entry.hasData && node.depth < 2) || (g.path && node.depth === 0)) {
      ctx.fillStyle = theme.line;
      ctx.fillRect(0, y + (g.path ? 0 : rh - 1), width, 1);
    }
    else { ctx.fillStyle = theme.faint; ctx.fillRect(0, y + rh - 1, width, 1); }
  }
  if (model.pins) { ctx.fillStyle = theme.dim; ctx.fillRect(0, HEAD + model.pins * rh - 1, width, 1); }
  g.painter.begin(width, seen.length, scale, rh >= 16 ? FONT : SMALL);
  for (const i of seen) {
    const states = g.data.rows.get(g.model.rows[i].entry.id), cut = model.covered(i, top, rh),
      h = rh - cut - 2 * pad;
    if (states && states.n && h > 1)
      g.painter.row(states, HEAD + model.yOf(i, top, rh) + cut + pad, h, v0, nsPerPx);
  }
  g.painter.end(ctx);
  if (!g.path && session.glow.size) for (const i of seen) {
    if (model.covered(i, top, rh)) continue;
    const { entry } = g.model.rows[i], tid = tidOf(entry, g.model.headers);
    const list = tid === null ? undefined : session.glow.get(glowKey(entry.hostId ?? '', tid))
      ?? session.glow.get(glowKey('', tid));
    if (list) paintGlow(ctx, session, list, HEAD + model.yOf(i, top, rh), rh, width);
  }
  paintMarks(ctx, session, g, width, height, top, first, last);
  if (g.arrows) paintArrows(ctx, session, g, width, top, first, last);
  paintFrame(ctx, session, g, top);
  ctx.restore();
}

function paintFrame(ctx: CanvasRenderingContext2D, session: Session, g: GraphPart, top: number): void {
  const { axis, theme } = session, rh = session.rowHeight, row = g.frame ? g.model.rowOf.get(g.frame.entry) : undefined;
  if (!g.frame || row === undefined) return;
  const a = (g.frame.begin - axis.offset) / axis.nsPerPx, b = (g.frame.end - axis.offset) / axis.nsPerPx,
    w = Math.max(5, b - a + 2);
  // On any colour: the text's line within the ground's.
  for (const [css, width] of [[theme.back, 4], [theme.text, 2]] as const) {
    ctx.strokeStyle = css;
    ctx.lineWidth = width;
    ctx.strokeRect((a + b - w) / 2, HEAD + g.model.yOf(row, top, rh) + 1, w, rh - 2);
  }
}

/** Which machine of the picture the row belongs to. */
function bandOf(model: TreeModel, node: Node): number {
  let root = node;
  while (root.parent) root = root.parent;
  return model.roots.indexOf(root);
}

function paintGlow(ctx: CanvasRenderingContext2D, session: Session, list: Interval[], y: number, rh: number,
  width: number): void {
  const { axis, theme } = session;
  ctx.save();
  ctx.shadowColor = theme.glow;
  ctx.shadowBlur = 5;
  ctx.fillStyle = theme.glow;
  let shown = -1;
  for (const s of list) {
    const a = Math.max(0, (s.begin - axis.offset) / axis.nsPerPx),
      b = Math.min(width, (s.end - axis.offset) / axis.nsPerPx);
    if (b <= 0 || a >= width || b <= shown) continue;
    const w = Math.max(1.5, b - a);
    ctx.fillRect(a, y, w, 2);
    ctx.fillRect(a, y + rh - 3, w, 2);
    shown = a + w;
  }
  ctx.restore();
}

/** Marks of the whole chart (lost events), one over the other: a breath of red under the rows, and an edge below the
 * ruler. */
function paintBands(ctx: CanvasRenderingContext2D, session: Session, g: GraphPart, width: number, height: number,
  edge: boolean): void {
  const { axis } = session;
  let shown = 0;
  for (const m of [...(g.data.marks as FlatMark[])].sort((a, b) => a.start - b.start)) {
    if (m.entry >= 0 || !m.wide) continue;
    const a = Math.max(shown, (m.start - axis.offset) / axis.nsPerPx),
      b = Math.min(width, Math.max((m.end - axis.offset) / axis.nsPerPx, (m.start - axis.offset) / axis.nsPerPx + 1));
    if (b <= a) continue;
    ctx.fillStyle = g.looks.all[m.style].css;
    ctx.globalAlpha = edge ? 0.9 : 0.09;
    ctx.fillRect(a, HEAD, b - a, edge ? 3 : height - HEAD);
    shown = b;
  }
  ctx.globalAlpha = 1;
}

function paintInstant(ctx: CanvasRenderingContext2D, x: number, y: number, css: string, edge: string): void {
  const r = 4;
  ctx.beginPath();
  ctx.moveTo(x, y - r);
  ctx.lineTo(x + r, y);
  ctx.lineTo(x, y + r);
  ctx.lineTo(x - r, y);
  ctx.closePath();
  ctx.fillStyle = css;
  ctx.fill();
  ctx.strokeStyle = edge;
  ctx.lineWidth = 1;
  ctx.stroke();
}

function paintMarks(ctx: CanvasRenderingContext2D, session: Session, g: GraphPart, width: number, height: number,
  top: number, first: number, last: number): void {
  const { axis } = session, rh = session.rowHeight;
  paintBands(ctx, session, g, width, height, true);
  ctx.font = SMALL;
  let free = -1;
  for (const m of g.data.marks as FlatMark[]) {
    const a = (m.start - axis.offset) / axis.nsPerPx, b = (m.end - axis.offset) / axis.nsPerPx;
    if (b < 0 || a > width) continue;
    let y = HEAD, hh = height - HEAD;
    const band = m.entry < 0 && m.wide;
    if (m.entry >= 0) {
      const r = g.model.rowOf.get(m.entry);
      if (r === undefined || (r >= g.model.pins && (r < first || r >= last)) || g.model.covered(r, top, rh)) continue;
      y = HEAD + g.model.yOf(r, top, rh);
      hh = rh;
    }
    // On a path they are what could not be explained: hatched, with words.
    const unexplained = g.path && m.entry >= 0, given = g.looks.all[m.style], look = unexplained
      ? { ...given, pattern: 'hatch' as const } : given;
    const l = Math.max(0, a), w = Math.max(1, Math.min(width, b) - l);
    ctx.fillStyle = look.css;
    // What happened at an instant is a diamond.
    if (m.entry >= 0 && !m.wide && !g.path) {
      paintInstant(ctx, a, y + hh / 2, look.css, session.theme.back);
      continue;
    }
    // In a row of states they are underlined, so that the colours stay what they are.
    if (m.entry >= 0 && !g.path) { ctx.globalAlpha = 0.9; ctx.fillRect(l, y + hh - 3, w, 2); } else if (!band) {
      ctx.globalAlpha = m.wide ? 0.3 : 0.9;
      ctx.fillRect(l, y, w, hh);
    }
    if (look.pattern && w > 3 && !band && (g.path || m.entry < 0)) {
      ctx.globalAlpha = 0.7;
      ctx.fillStyle = g.painter.pattern(ctx, look);
      ctx.fillRect(l, y, w, hh);
    }
    ctx.globalAlpha = 1;
    if (unexplained && m.label) {
      ctx.fillStyle = session.theme.text;
      ctx.textBaseline = 'middle';
      ctx.fillText(m.label, ctx.measureText(m.label).width + 8 < w ? l + 4 : l + w + 4, y + hh / 2);
    } else if (m.label && m.entry < 0 && l > free) {
      const tw = ctx.measureText(m.label).width;
      if (!m.wide || w > tw + 6) {
        ctx.fillStyle = session.theme.lost;
        ctx.textBaseline = 'alphabetic';
        ctx.fillText(m.label, l + 3, height - 4);
        free = l + tw + 8;
      }
    }
  }
}

export interface ArrowLine { x1: number; y1: number; x2: number; y2: number; css: string; arrow: FlatArrow }
/** px between a point and an arrow. */
export function distance(l: ArrowLine, x: number, y: number): number {
  const dx = l.x2 - l.x1, dy = l.y2 - l.y1, t = Math.max(0, Math.min(1,
    ((x - l.x1) * dx + (y - l.y1) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(l.x1 + t * dx - x, l.y1 + t * dy - y);
}
export function arrowLines(session: Session, g: GraphPart, width: number, top: number, first: number,
  last: number): ArrowLine[] {
  const { axis } = session, rh = session.rowHeight, lines: ArrowLine[] = [];
  for (const a of g.data.arrows as FlatArrow[]) {
    const x1 = (a.start - axis.offset) / axis.nsPerPx, x2 = (a.end - axis.offset) / axis.nsPerPx;
    if (Math.max(x1, x2) < 0 || Math.min(x1, x2) > width) continue;
    const r1 = g.model.seenRow(a.source), r2 = g.model.seenRow(a.target);
    if (r1 < 0 || r2 < 0 || r1 === r2 || Math.min(r1, r2) >= last
      || (Math.max(r1, r2) < first && Math.min(r1, r2) >= g.model.pins)) continue;
    lines.push({ x1, y1: HEAD + g.model.yOf(r1, top, rh) + rh / 2, x2, y2: HEAD + g.model.yOf(r2, top, rh) + rh / 2,
      css: g.looks.all[a.style].blank ? session.theme.dim : g.looks.all[a.style].css, arrow: a });
  }
  return lines;
}

function paintArrows(ctx: CanvasRenderingContext2D, session: Session, g: GraphPart, width: number, top: number,
  first: number, last: number): void {
  const lines = arrowLines(session, g, width, top, first, last), busy = lines.length > BUSY;
  const colours = new Map<string, ArrowLine[]>();
  for (const l of lines) { const list = colours.get(l.css); if (list) list.push(l); else colours.set(l.css, [l]); }
  ctx.lineWidth = g.path ? 1.5 : 1;
  ctx.globalAlpha = g.path ? (busy ? 0.2 : 0.95) : busy ? 0.08 : lines.length > 150 ? 0.22 : 0.45;
  for (const [css, list] of colours) {
    ctx.strokeStyle = ctx.fillStyle = css;
    ctx.beginPath();
    for (const l of list) { ctx.moveTo(l.x1, l.y1); ctx.lineTo(l.x2, l.y2); }
    ctx.stroke();
    if (busy) continue;
    ctx.beginPath();
    for (const l of list) {
      const angle = Math.atan2(l.y2 - l.y1, l.x2 - l.x1), size = g.path ? 7 : 5;
      ctx.moveTo(l.x2, l.y2);
      ctx.lineTo(l.x2 - size * Math.cos(angle - 0.4), l.y2 - size * Math.sin(angle - 0.4));
      ctx.lineTo(l.x2 - size * Math.cos(angle + 0.4), l.y2 - size * Math.sin(angle + 0.4));
    }
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}
