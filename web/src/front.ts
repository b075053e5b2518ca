// SPDX-License-Identifier: MIT
// The way in: Start instead of the views, and from a line of it to what it stands for.
import { failureWords, PATIENCE } from './panel';
import type { PathSpec } from './pathpane';
import { pathOfRequest, requestBar, type RequestList, type ServedRequest } from './requests';
import type { Session } from './session';
import { Start } from './start';
import { isAbort, sleep, type Output } from './tsp';

/** The page, as far as Start takes the place of its views. */
export interface Floor {
  /** Has the class `starting` while Start is shown. */
  readonly frame: HTMLElement;
  readonly stack: HTMLElement;
  /** The first picture is there: what waits for that begins. */
  front: Promise<void>;
  relink(): void;
  say(words: string): void;
  reveal(output: Output): void;
  /** Sees to it that there are views: those of before, else the usual ones. */
  furnish(): void;
  openPath(spec: PathSpec, placed: boolean, head: HTMLElement): Promise<void>;
  /** Ends when another experiment is opened. */
  readonly signal: AbortSignal;
}

export class Front {
  home: Start | null = null;
  private turn = 0;
  constructor(private readonly session: Session, private readonly floor: Floor) {}

  /** Of the experiment that was opened, if its server has what Start shows. */
  opened(): void {
    const { session, floor } = this;
    if (!Start.isOffered(session.outputs)) return;
    this.home = new Start(session, {
      request: (list, r) => void this.openRequest(list, r), machine: host => this.leave(`host:${host}`),
      thread: t => { this.leave(''); session.pick(t); },
      view: o => { this.leave(); floor.reveal(o); }, say: words => floor.say(words) });
    floor.stack.after(this.home.root);
  }
  closed(): void {
    this.hide();
    this.home?.dispose();
    this.home = null;
  }
  get isShown(): boolean { return !!this.home?.isShown; }
  show(): void {
    const { home, floor } = this;
    if (!home) return;
    floor.frame.classList.add('starting');
    home.show();
    floor.front = Promise.race([home.filled, sleep(PATIENCE)]).then(() => { /* whatever came of it */ });
    floor.relink();
  }
  private hide(): void {
    this.floor.frame.classList.remove('starting');
    this.home?.hide();
    this.floor.relink();
  }
  /** To the views: those that were open, else the usual ones. `search`: of what they show from now on. */
  leave(search?: string): void {
    const { session, floor } = this;
    if (!this.isShown) return;
    this.hide();
    if (search !== undefined && search !== session.search.text) session.setSearch(search);
    floor.furnish();
    floor.stack.focus({ preventScroll: true });
  }
  /** Its critical path, selected and fitted, with the way to the other requests above it. */
  private async openRequest(list: RequestList, r: ServedRequest): Promise<void> {
    const { session, floor } = this, { axis } = session, spec = pathOfRequest(r);
    if (!spec) { floor.say('No thread of this request is known, so nothing tells where its time went.'); return; }
    const { begin, end } = spec as { begin: bigint; end: bigint }, pad = (end - begin) / 25n;
    this.hide();
    if (session.search.text) session.setSearch('');
    axis.select(begin, end);
    axis.show(begin - pad, end + pad);
    const turn = ++this.turn, go = async (index: number): Promise<void> => {
      try {
        const next = await list.get(index, floor.signal);
        if (next && turn === this.turn) await this.openRequest(list, next);
      } catch (e) { if (!isAbort(e)) floor.say(failureWords(e)); }
    };
    await floor.openPath(spec, false, requestBar(list, r, i => void go(i)));
    floor.furnish();
  }
}
