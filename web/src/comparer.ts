// SPDX-License-Identifier: MIT
// Which path is compared with the one that is open: the choice, opening it beside, swapping both, closing.
import { Comparison, comparisonOutput, type Side } from './compare';
import { announce, button } from './dom';
import type { GraphView } from './graphview';
import { menuBelow, type MenuItem } from './menu';
import { failureWords, type Panel, type PanelHost } from './panel';
import { createPath, specOf, type PathSpec } from './pathpane';
import type { Session } from './session';
import { formatDuration } from './time';
import { isAbort, type Output } from './tsp';

/** The page, as far as comparing concerns it. */
export interface Stage extends PanelHost {
  /** The path that is open. */
  readonly path: { spec: PathSpec; view: GraphView } | null;
  /** Puts them below the path that is open. */
  beside(views: GraphView[]): void;
  /** What stands in the drawer's page of paths; null: the open path's own. */
  fill(content: HTMLElement | null): void;
  /** Opens it in place of the one that is open. */
  openSide(side: Side): void;
  relink(): void;
  say(text: string): void;
  /** The same of what is no trouble; '' takes it away. */
  tell(text: string): void;
}

export class Comparer {
  now: Comparison | null = null;
  /** The next path that is asked for opens beside the one that is open. */
  private next = false;
  constructor(private readonly session: Session, private readonly stage: Stage) {}

  /** In the bar of a path. */
  offer(view: GraphView): void {
    if (!comparisonOutput(this.session.outputs)) return;
    const choose = button('compare…', 'Compare with another path ( c )', () => menuBelow(choose, this.items()),
      { class: 'small compare' });
    view.tool(choose);
  }
  /** The menu, or the end of the comparison. */
  toggle(): void {
    if (this.now) { this.close(); return; }
    this.stage.path?.view.root.querySelector<HTMLElement>('button.compare')?.click();
  }
  private items(): MenuItem[] {
    const { session, stage: { path } } = this, { selection } = session.axis, items: MenuItem[] = [];
    if (!path) return items;
    const { thread } = path.spec, others = session.outputs.filter(o => o.id !== path.view.output.id && specOf(o));
    items.push({ label: 'Compare with', heading: true }, ...others.map((o): MenuItem => {
      const spec = specOf(o)!;
      return { label: o.name.replace(/^Critical path of /, ''), hint: this.when(spec),
        run: () => this.open({ output: o, spec }) };
    }), { label: `${thread.name} ${thread.tid}: selection`, hint: selection
      ? this.when({ thread, begin: selection[0], end: selection[1] }) : 'select an interval first',
      disabled: !selection || selection[0] === path.spec.begin && selection[1] === path.spec.end,
      run: () => void this.ask({ thread, begin: selection![0], end: selection![1] }) },
    { label: 'the next path that is asked for', checked: this.next, run: () => {
      this.next = !this.next;
      if (this.next) this.stage.tell('Right click on a thread: the next path that you ask for opens beside this one.');
    } });
    return items;
  }
  private when({ begin, end }: PathSpec): string {
    return begin === undefined || end === undefined ? 'whole life'
      : `${this.session.time(begin, 3)}  ${formatDuration(end - begin)}`;
  }

  /** Somebody asked for a path: it is wanted beside the one that is open. */
  takes(spec: PathSpec): boolean {
    if (!this.next) return false;
    if (!this.stage.path) { this.next = false; return false; }
    void this.ask(spec);
    return true;
  }
  async ask(spec: PathSpec): Promise<void> {
    try {
      const { derived } = await createPath(this.session, spec);
      if (!this.session.outputs.some(o => o.id === derived.id)) this.session.outputs.push(derived);
      this.open({ output: derived, spec });
    } catch (e) { if (!isAbort(e)) this.stage.say(`No comparison: ${failureWords(e)}`); }
  }
  private open(b: Side): void {
    const { session, stage } = this, { path } = stage, output = comparisonOutput(session.outputs);
    if (this.next) stage.tell('');
    this.next = false;
    this.close();
    if (!path || !output) return;
    const a: Side = { output: this.known(path.view.output), spec: path.spec };
    this.now = new Comparison(session, stage, output, a, b, {
      views: views => {
        path.view.fold(true);
        path.view.root.hidden = true;
        stage.beside(views);
      },
      swap: () => {
        this.close();
        stage.openSide(b);
        this.open(a);
      },
      close: () => this.close(),
    });
    stage.fill(this.now.table);
    stage.relink();
  }
  /** With its configuration, which what made it may have left out. */
  private known(output: Output): Output { return this.session.outputs.find(o => o.id === output.id) ?? output; }

  close(): void {
    const { now, stage } = this;
    if (!now) return;
    this.now = null;
    for (const v of now.views) v.close();
    now.dispose();
    if (stage.path) {
      stage.path.view.root.hidden = false;
      stage.path.view.fold(false);
      stage.fill(null);
    }
    stage.relink();
    announce('comparison closed');
  }
  /** One of its views was closed, or the path that it is about. */
  closed(panel: Panel): void { if (this.now?.has(panel) || panel === this.stage.path?.view) this.close(); }
  /** Traces have grown. */
  again(): void { if (this.now) this.open(this.now.b); }
}
