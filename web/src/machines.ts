// SPDX-License-Identifier: MIT
// The sign that machines are away, or that something of them is missing: who, and on a click why.
import { h, setText, toggle } from './dom';
import { menuBelow } from './menu';
import type { Lack } from './tsp';

const NAMED = 2; // so many of a kind stand on the sign

/** What was given, or a machine: the end of a path says which. */
const short = (name: string): string => name.replace(/\/+$/, '').split('/').pop() || name;
function several(what: string, names: string[]): string {
  const more = names.length - NAMED;
  return names.length ? `${what}: ${names.slice(0, NAMED).map(short).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
    : '';
}

export class MachineSign {
  readonly root = h('button', { type: 'button', class: 'badge machines', hidden: true });
  private away: string[] = [];
  /** What the last answer from each place says of all that it was made of. */
  private readonly lacks = new Map<string, Lack[]>();

  /** notes: shows all that was found wrong, if there is such a table. */
  constructor(private readonly notes: () => (() => void) | null) {
    this.root.addEventListener('click', () => this.tell());
  }
  clear(): void {
    this.away = [];
    this.lacks.clear();
    this.show();
  }
  tellAway(names: string[]): void { this.away = names; this.show(); }
  answered(place: string, lacking: Lack[]): void {
    if (!lacking.length && !this.lacks.has(place)) return;
    if (lacking.length) this.lacks.set(place, lacking); else this.lacks.delete(place);
    this.show();
  }
  /** By machine; where answers differ, the worst. */
  private found(): Map<string, Lack> {
    const all = new Map<string, Lack>();
    for (const list of this.lacks.values())
      for (const l of list) if (all.get(l.host)?.status !== 'FAILED') all.set(l.host, l);
    return all;
  }
  private show(): void {
    const all = [...this.found().values()], missing = all.filter(l => l.status === 'FAILED').map(l => l.host),
      partial = all.filter(l => l.status !== 'FAILED').map(l => l.host);
    const parts = [several('away', this.away), several('missing', missing), several('partial', partial)]
      .filter(Boolean);
    const text = parts.join(' · '), bad = this.away.length + missing.length > 0;
    this.root.hidden = !parts.length;
    toggle(this.root, 'bad', bad);
    toggle(this.root, 'middling', !bad);
    setText(this.root, text);
    this.root.title = 'What is shown lacks these machines, or parts of them. Click for the reasons';
    this.root.setAttribute('aria-label', `${text}: ${this.root.title}`);
  }
  private tell(): void {
    const notes = this.notes();
    menuBelow(this.root, [...this.away.map(name => ({ label: `${name}: does not answer`, heading: true })),
      ...[...this.found().values()].map(l => ({ heading: true,
        label: `${l.host}: ${l.status === 'FAILED' ? 'nothing is shown' : 'a part is missing'} – ${l.why}` })),
      ...notes ? [{ label: 'All notes on these traces', run: notes }] : []]);
  }
}
