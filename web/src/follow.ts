// SPDX-License-Identifier: MIT
// Traces that go on while they are looked at: asks whether the server has a newer version, and takes it, or says so.
import { announce, button, h, setText, toggle } from './dom';
import { withIcon } from './icons';
import type { Session } from './session';
import type { Experiment } from './tsp';

const NEAR = 1000;   // ms between two questions while the end is followed
const FAR = 5000;    // and else

export interface FollowActions {
  /** The page shows that version from now on. */
  take(now: Experiment): Promise<void>;
  /** There is less than was shown: everything is asked for anew. */
  reopen(now: Experiment): Promise<void>;
  /** Whether the end is followed has changed. */
  chosen(): void;
}

export class Follower {
  on = false;
  /** A version that is not shown yet. */
  offered: Experiment | null = null;
  private readonly toggle = button(withIcon('follow', 'follow'), 'Follow the end', () => this.set(!this.on),
    { class: 'small follow', 'aria-pressed': 'false', hidden: true });
  private readonly fresh = button('new data', 'More was recorded since this was opened. Click to see it',
    () => void this.accept(), { class: 'badge good fresh', hidden: true });
  private readonly state = h('span', { class: 'badge state', hidden: true, role: 'status' });
  readonly root = h('span', { class: 'following' }, this.toggle, this.fresh, this.state);
  private timer = 0;
  private asking = false;
  private taking = false;

  constructor(private readonly session: Session, private readonly actions: FollowActions) {
    document.addEventListener('visibilitychange', () => { if (!document.hidden) this.soon(0); });
  }

  /** An experiment was opened. Servers without versions do not change what they have opened. */
  opened(): void {
    this.offered = null;
    this.show();
    this.soon();
  }
  closed(): void {
    clearTimeout(this.timer);
    this.offered = null;
    this.on = false;
  }
  private get possible(): boolean { return this.session.experiment?.version !== undefined; }

  set(on: boolean): void {
    if (on === this.on || (on && !this.possible)) return;
    this.on = on;
    this.show();
    announce(on ? 'the end is followed' : 'the end is not followed');
    if (on) {
      const { axis } = this.session;
      axis.toEnd();
      void this.accept();
    }
    this.soon(on ? 0 : FAR);
    this.actions.chosen();
  }

  private soon(ms = this.on ? NEAR : FAR): void {
    clearTimeout(this.timer);
    if (this.possible) this.timer = window.setTimeout(() => void this.look(), ms);
  }
  private async look(): Promise<void> {
    const had = this.session.experiment;
    if (!had || this.asking) return;
    if (document.hidden) return; // asks when it is seen again
    this.asking = true;
    try {
      const now = await this.session.client.experiment(had.UUID, undefined, true);
      if (this.session.experiment?.UUID === had.UUID) await this.found(now);
    } catch { /* the page says that the server is away */ } finally { this.asking = false; }
    this.soon();
  }

  /** What the server has of the experiment that is open. */
  async found(now: Experiment): Promise<void> {
    const had = this.session.experiment!;
    had.indexingStatus = now.indexingStatus;
    had.problem = now.problem;
    if (now.version && now.version !== had.version && now.nbEvents < had.nbEvents && now.end <= had.end) {
      await this.actions.reopen(now);
      return;
    }
    if (now.version) {
      if (now.version !== had.version && !this.offered && !this.on) announce('there are new data');
      this.offered = now.version === had.version ? null : now;
    }
    this.show();
    if (this.on) await this.accept();
  }
  private async accept(): Promise<void> {
    if (this.taking) return;
    this.taking = true;
    try {
      for (let now = this.offered; now; now = this.on ? this.offered : null) {
        await this.actions.take(now);
        if (this.offered === now) this.offered = null;
      }
    } catch { /* it is offered still */ } finally { this.taking = false; }
    this.show();
  }

  private show(): void {
    const x = this.session.experiment, running = x?.indexingStatus === 'RUNNING';
    this.toggle.hidden = !this.possible;
    this.toggle.setAttribute('aria-pressed', String(this.on));
    this.toggle.title = this.on ? 'New data are shown as they come. Click to stop'
      : 'Show new data as they come, and stay at the end';
    this.fresh.hidden = !this.offered || this.on;
    this.state.hidden = !running && !x?.problem;
    toggle(this.state, 'bad', !running && !!x?.problem);
    setText(this.state, running ? 'reading more…' : x?.problem ? 'cannot read what is new' : '');
    this.state.title = running ? 'The traces have changed: the server reads what is new' : x?.problem ?? '';
  }
}
