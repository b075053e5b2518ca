// The frame of a view: title bar, fold, close, height, and the words for empty, loading, partial and failed.
import { button, drag, h, setText } from './dom';
import type { Session } from './session';
import { TspError, isAbort, type Output } from './tsp';

export const HEAD = 20; // px of the ruler and column row
let treeWidth = 320;
export const treeWidthNow = (): number => treeWidth;
export function setTreeWidth(w: number): void {
  treeWidth = Math.round(Math.max(140, Math.min(w, innerWidth * 0.6)));
  document.documentElement.style.setProperty('--tree', `${treeWidth}px`);
}

export interface PanelHost {
  closed(panel: Panel): void;
  resized(): void;
  /** A tree's width was dragged. */
  columnsMoved(): void;
}

export abstract class Panel {
  readonly root: HTMLElement;
  readonly main = h('div', { class: 'panel-main' });
  protected readonly tools = h('span', { class: 'panel-tools' });
  private readonly statusText = h('span', { class: 'panel-status', role: 'status' });
  private readonly overlay = h('div', { class: 'panel-overlay', hidden: true });
  private readonly progress = h('div', { class: 'panel-progress', hidden: true, role: 'progressbar' });
  private readonly twisty: HTMLButtonElement;
  private stopping = new AbortController();
  protected undo: (() => void)[] = [];
  height: number;
  folded = false;

  constructor(protected readonly session: Session, readonly output: Output, protected readonly host: PanelHost, height: number) {
    this.height = height;
    this.twisty = button('▾', 'Fold this view', () => this.fold(!this.folded), { class: 'plain', 'aria-expanded': 'true' });
    const grip = h('div', { class: 'grip-y', role: 'separator', 'aria-orientation': 'horizontal', 'aria-label': `Height of ${output.name}`, tabIndex: 0 });
    grip.addEventListener('pointerdown', e => {
      e.preventDefault();
      const before = this.height;
      drag(e, (_, dy) => this.setHeight(before + dy));
    });
    grip.addEventListener('keydown', e => {
      if (e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return;
      e.preventDefault(); e.stopPropagation();
      this.setHeight(this.height + (e.key === 'ArrowDown' ? 20 : -20));
    });
    this.root = h('section', { class: 'panel', 'aria-label': output.name, 'data-output': output.id },
      h('header', { class: 'panel-bar' }, this.twisty, h('h2', { title: output.description || output.name }, output.name), this.statusText, this.tools,
        button('×', `Close ${output.name}`, () => this.close(), { class: 'plain' })),
      this.main, grip);
    this.main.append(this.overlay, this.progress);
    this.setHeight(height);
  }

  /** Ends when the view is closed. */
  get signal(): AbortSignal { return this.stopping.signal; }

  setHeight(px: number): void {
    this.height = Math.round(Math.max(60, Math.min(px, 2000)));
    this.main.style.height = `${this.height}px`;
    this.resize();
    this.host.resized();
  }
  fold(folded: boolean): void {
    this.folded = folded;
    this.main.hidden = folded;
    this.root.classList.toggle('folded', folded);
    this.twisty.textContent = folded ? '▸' : '▾';
    this.twisty.setAttribute('aria-expanded', String(!folded));
    if (!folded) this.resize();
    this.host.resized();
  }
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
  /** Words for whatever went wrong; requests that were left behind say nothing. */
  failed(e: unknown, retry: () => void): void {
    if (isAbort(e)) return;
    this.working(false);
    this.say('failed', failureWords(e), retry);
  }

  abstract resize(): void;
  abstract draw(): void;
}

export function failureWords(e: unknown): string {
  if (e instanceof TspError) return e.status === 0 ? 'The server does not answer. What was loaded stays.' : `${e.message} (${e.status})`;
  return e instanceof Error ? e.message : String(e);
}

/** "…, 40 %" in a status message. */
export function shareOf(message: string): number | null {
  const m = /(\d+(?:\.\d+)?)\s*%/.exec(message);
  return m ? Math.min(1, Number(m[1]) / 100) : null;
}
