// SPDX-License-Identifier: MIT
// What lies between the cursors, in figures: the drawer's page, which shows any tree of figures for the selection.
import { DataTreeView } from './dataview';
import { button, download, h, setText } from './dom';
import { keep, kept } from './remember';
import type { PanelHost } from './panel';
import type { Session } from './session';
import type { Output } from './tsp';

/** Shown before all other figures. */
const OWN = /^weft\.selection\./;
const NOWHERE: PanelHost = { front: Promise.resolve(), arranged() {}, closed() {}, resized() {}, columnsMoved() {} };

export class SelectionPane {
  readonly bar: HTMLElement;
  private readonly choice = h('select', { 'aria-label': 'Which figures', title: 'Which figures of the selection' });
  private readonly flame: HTMLButtonElement;
  private readonly of = h('span', { class: 'dim', role: 'status' });
  private view: DataTreeView | null = null;

  /** flame: shows the flame graph of the selection. */
  constructor(private readonly session: Session, private readonly page: HTMLElement, flame: (output: Output) => void) {
    this.flame = button('Flame graph', 'Flame graph of the selection, in a view of its own', () => {
      const output = this.flameOutput();
      if (output) flame(output);
    }, { class: 'small' });
    this.bar = h('span', { class: 'selection-bar' }, this.of, this.choice, this.flame,
      button('CSV', 'Save this table', () => this.save(), { class: 'small' }));
    this.choice.addEventListener('change', () => {
      keep('selection', this.choice.value);
      this.show();
      this.choice.focus();
    });
    session.axis.selected.on(() => this.tell());
    new ResizeObserver(() => this.resize()).observe(page);
  }
  private flameOutput(): Output | undefined { return this.session.outputs.find(o => o.type === 'GANTT_CHART'); }
  private outputs(): Output[] {
    const all = this.session.outputs.filter(o => o.type === 'DATA_TREE' && !o.capabilities?.canCreate);
    return [...all.filter(o => OWN.test(o.id)).reverse(), ...all.filter(o => !OWN.test(o.id))];
  }
  private get seen(): boolean { return !this.page.hidden && this.page.clientHeight > 0; }

  /** Another experiment, or another version of it. */
  opened(): void {
    const list = this.outputs(), had = this.choice.value || kept('selection') || '';
    this.choice.replaceChildren(...list.map(o => h('option', { value: o.id }, o.name)));
    this.choice.value = list.some(o => o.id === had) ? had : list[0]?.id ?? '';
    this.choice.disabled = !list.length;
    this.flame.hidden = !this.flameOutput();
    this.tell();
    if (this.view && list.some(o => o.id === this.view!.output.id)) this.view.reload(); else this.show();
  }
  closed(): void {
    this.view?.dispose();
    this.view = null;
    this.page.replaceChildren();
  }
  private tell(): void {
    setText(this.of, this.session.axis.selection ? '' : 'nothing is selected: whole trace');
  }
  private show(): void {
    const output = this.outputs().find(o => o.id === this.choice.value);
    this.closed();
    if (!this.seen) return; // it is made once somebody looks
    if (!output) {
      this.page.append(h('p', { class: 'words' }, 'This server has no figures of these traces.'));
      return;
    }
    this.view = new DataTreeView(this.session, output, NOWHERE, 60, true);
    this.page.append(this.view.main);
    this.resize();
  }
  private resize(): void {
    if (!this.view && this.seen) { this.show(); if (!this.view) return; }
    this.view?.sleep(!this.seen);
    if (this.seen) this.view?.setHeight(this.page.clientHeight);
  }
  private save(): void {
    const { view, session } = this;
    if (!view) return;
    const name = `${session.experiment?.name ?? 'weft'}-${view.output.name}`.replace(/[^\w.-]+/g, '_');
    download(`${name}.csv`, view.csv().join('\n') + '\n', 'text/csv');
  }
}
