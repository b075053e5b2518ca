// SPDX-License-Identifier: MIT
// The frame of a view: title bar, fold, close, height, and the words for empty, loading, partial and failed.
import { button, drag, h, setText } from './dom';
import { icon } from './icons';
import type { Want } from './layout';
import type { Session } from './session';
import { TspError, isAbort, type Answer, type Output } from './tsp';

export const HEAD = 20; // px of the ruler and column row
/** ms for which the page lets the first view's rows come before everything else. */
export const PATIENCE = 1500;
let treeWidth = 320;
export const treeWidthNow = (): number => treeWidth;
export function setTreeWidth(w: number): void {
  treeWidth = Math.round(Math.max(140, Math.min(w, innerWidth * 0.6)));
  document.documentElement.style.setProperty('--tree', `${treeWidth}px`);
  for (const s of document.querySelectorAll('.splitter')) stands(s, treeWidth);
}

/** Where an edge that can be moved is, for who does not see it. */
export function stands(separator: Element, px: number): void {
  separator.setAttribute('aria-valuemax', String(Math.max(2000, px)));
  separator.setAttribute('aria-valuenow', String(px));
}

export interface PanelHost {
  /** Until then nothing is asked for that would keep the first view's rows waiting. */
  readonly front: Promise<void>;
  closed(panel: Panel): void;
  resized(): void;
  /** Somebody chose a height, or folded a view. */
  arranged(): void;
  /** A tree's width was dragged. */
  columnsMoved(): void;
}

/** Between names and drawing: all views' names have one width. */
export function treeSplitter(host: PanelHost): HTMLElement {
  const splitter = h('div', { class: 'splitter', role: 'separator', 'aria-orientation': 'vertical',
    'aria-label': 'Width of names', tabIndex: 0 }), move = (width: number): void => {
    setTreeWidth(width);
    host.columnsMoved();
  };
  stands(splitter, treeWidth);
  splitter.addEventListener('pointerdown', e => {
    e.preventDefault();
    const before = treeWidth;
    drag(e, dx => move(before + dx));
  });
  splitter.addEventListener('keydown', e => {
    if (e.key !== 'ArrowLeft' && e.key !== 'ArrowRight') return;
    e.preventDefault(); e.stopPropagation();
    move(treeWidth + (e.key === 'ArrowRight' ? 16 : -16));
  });
  return splitter;
}

export abstract class Panel {
  readonly root: HTMLElement;
  readonly main = h('div', { class: 'panel-main' });
  protected readonly tools = h('span', { class: 'panel-tools' });
  private readonly statusText = h('span', { class: 'panel-status', role: 'status' });
  private readonly overlay = h('div', { class: 'panel-overlay', hidden: true });
  private readonly progress = h('div', { class: 'panel-progress', hidden: true, role: 'progressbar' });
  private readonly twisty: HTMLButtonElement;
  private readonly grip: HTMLElement;
  private stopping = new AbortController();
  protected undo: (() => void)[] = [];
  height = 0;
  /** Somebody chose the height: it is not shared. */
  fixed: boolean;
  folded = false;
  /** On the page's time axis: its title, columns, state and tools are one line. */
  protected readonly oneLine: boolean;

  /** Without a height it gets its part of what is there. */
  constructor(readonly session: Session, readonly output: Output, protected readonly host: PanelHost, height?: number) {
    this.fixed = height !== undefined;
    this.twisty = button(icon('open'), 'Fold this view', () => this.fold(!this.folded),
      { class: 'plain', 'aria-expanded': 'true' });
    const grip = this.grip = h('div', { class: 'grip-y', role: 'separator', 'aria-orientation': 'horizontal',
      'aria-label': `Height of ${output.name}`, tabIndex: 0, title: 'Drag: height · double click: share the height' });
    grip.addEventListener('pointerdown', e => {
      e.preventDefault();
      const before = this.height;
      drag(e, (_, dy) => this.setHeight(before + dy));
    });
    grip.addEventListener('dblclick', () => {
      this.fixed = false;
      this.host.resized();
      this.host.arranged();
    });
    grip.addEventListener('keydown', e => {
      if (e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return;
      e.preventDefault(); e.stopPropagation();
      this.setHeight(this.height + (e.key === 'ArrowDown' ? 20 : -20));
    });
    this.oneLine = !session.isApart && (output.type === 'TIME_GRAPH' || output.type === 'TREE_TIME_XY');
    const bar = h('header', { class: 'panel-bar' }, this.twisty, h('h2', { title: output.description || output.name },
        output.name), this.statusText, this.tools,
        button(icon('close'), `Close ${output.name}`, () => this.close(), { class: 'plain' }));
    this.root = h('section', { class: this.oneLine ? 'panel one-line' : 'panel', 'aria-label': output.name,
      'data-output': output.id }, this.oneLine ? '' : bar, this.main, grip);
    this.main.append(this.overlay, this.progress, this.oneLine ? bar : '');
    this.place(height ?? 160);
  }

  /** Ends when the view is closed. */
  get signal(): AbortSignal { return this.stopping.signal; }

  /** px that its content has: as they were set, because asking the page for them would make it lay everything out. */
  get inner(): number { return this.folded ? 0 : this.height; }
  setHeight(px: number): void {
    this.fixed = true;
    this.place(px);
    this.host.resized();
    this.host.arranged();
  }
  /** As setHeight, but the views go on sharing. */
  place(px: number): void {
    const height = Math.round(Math.max(60, Math.min(px, 2000)));
    if (height === this.height) return;
    this.height = height;
    if (!this.folded) this.main.style.height = `${height}px`;
    stands(this.grip, height);
    this.resize();
  }
  /** What it makes of its part of the height. */
  want(): Want { return { weight: 2, least: 110, most: Infinity }; }
  fold(folded: boolean): void {
    this.folded = folded;
    this.main.hidden = folded && !this.oneLine;
    this.main.style.height = `${folded ? HEAD : this.height}px`;
    this.root.classList.toggle('folded', folded);
    this.twisty.replaceChildren(icon(folded ? 'shut' : 'open'));
    this.twisty.setAttribute('aria-expanded', String(!folded));
    if (!folded) this.resize();
    this.host.resized();
    this.host.arranged();
  }
  /** Words that stay between its bar and its content, also while that is folded. */
  above(words: HTMLElement): void { this.main.before(words); }
  /** Words in its bar, in place of what it says of itself. */
  entitle(words: HTMLElement): void { this.statusText.after(words); this.root.classList.add('entitled'); }
  /** And below its content. */
  below(words: HTMLElement): void { this.main.after(words); }
  /** One more button in its bar. */
  tool(element: HTMLElement): void { this.tools.prepend(element); }
  /** They take more or less place than before. */
  relayout(): void { this.host.resized(); }
  close(): void { this.host.closed(this); this.dispose(); }
  dispose(): void {
    this.stopping.abort();
    for (const f of this.undo) f();
    this.undo = [];
    this.root.remove();
  }

  status(text: string): void { setText(this.statusText, text); this.statusText.title = text; }
  /** Instead of the content: nothing to show (with why), or failed (with what happened and a way on). */
  say(kind: 'empty' | 'loading' | 'failed' | '', words = '', retry?: () => void): void {
    this.overlay.hidden = kind === '';
    this.overlay.className = `panel-overlay ${kind}`;
    this.overlay.replaceChildren();
    if (!kind) return;
    if (kind === 'loading') for (let i = 0; i < 5; i++) this.overlay.append(h('div', { class: `bone bone-${i}` }));
    this.overlay.append(h('p', { role: kind === 'failed' ? 'alert' : 'status' }, words));
    if (retry) this.overlay.append(button('Try again', 'Ask the server again', retry));
  }
  /** Partial: the server still works. share 0 … 1, or null when it does not say. */
  working(on: boolean, words = '', share: number | null = null): void {
    this.progress.hidden = !on;
    this.progress.style.setProperty('--share', share === null ? '30%' : `${Math.round(share * 100)}%`);
    this.progress.classList.toggle('unsure', share === null);
    if (share !== null) this.progress.setAttribute('aria-valuenow', String(Math.round(share * 100)));
    if (on) this.status(words || 'working…');
  }
  /** What an answer says of itself: how far it is, or what is missing in it; nothing: `words`. */
  protected told(a: Answer<unknown>, words = ''): void {
    const running = a.status === 'RUNNING';
    this.working(running, a.statusMessage || 'still computing…', a.progress);
    if (!running) this.status(a.note || words);
    this.root.classList.toggle('partial', !!a.note);
  }
  /** Words for whatever went wrong; requests that were left behind say nothing. */
  failed(e: unknown, retry: () => void): void {
    if (isAbort(e)) return;
    this.working(false);
    this.say('failed', failureWords(e), retry);
  }

  /** The server has other data: they are shown in place of those that are there, which stay until then. */
  abstract reload(): void;
  abstract resize(): void;
  abstract draw(): void;
}

export function failureWords(e: unknown): string {
  if (e instanceof TspError)
    return e.status === 0 ? 'The server does not answer. What was loaded stays.' : `${e.message} (${e.status})`;
  return e instanceof Error ? e.message : String(e);
}
