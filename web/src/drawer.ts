// SPDX-License-Identifier: MIT
// The bottom drawer: events, path summary, details, bookmarks, legend.
import { button, drag, h, setText } from './dom';
import { failureWords, stands } from './panel';
import type { GraphView } from './graphview';
import { icon } from './icons';
import type { Session } from './session';
import { absTime, formatDuration, formatExact } from './time';
import { table } from './tip';
import type { Bookmark } from './tsp';

const TABS = { events: 'Events', path: 'Path', selection: 'Selection', details: 'Details', bookmarks: 'Bookmarks',
  legend: 'Legend' };
export type TabName = keyof typeof TABS;
export const isTab = (name: string | undefined): name is TabName => !!name && Object.hasOwn(TABS, name);

export class Drawer {
  readonly root: HTMLElement;
  private readonly tabs = new Map<TabName, { tab: HTMLButtonElement; page: HTMLElement }>();
  private readonly list = h('div', { class: 'tab-list', role: 'tablist', 'aria-label': 'Drawer' });
  private readonly bar = h('div', { class: 'tabs' }, this.list);
  private readonly grip: HTMLElement;
  private readonly tools = h('span', { class: 'tab-tools' });
  readonly delta = h('span', { class: 'delta', role: 'status' });
  height = 240;
  open = true;
  now: TabName = 'events';

  constructor(private readonly resized: () => void) {
    const grip = this.grip = h('div', { class: 'grip-y top', role: 'separator', 'aria-orientation': 'horizontal',
      'aria-label': 'Height of the drawer', tabIndex: 0 });
    grip.addEventListener('pointerdown', e => {
      e.preventDefault();
      const before = this.height;
      drag(e, (_, dy) => this.setHeight(before - dy));
    });
    grip.addEventListener('keydown', e => {
      if (e.key === 'ArrowUp' || e.key === 'ArrowDown') {
        e.preventDefault();
        e.stopPropagation();
        this.setHeight(this.height + (e.key === 'ArrowUp' ? 20 : -20));
      }
    });
    this.root = h('section', { class: 'drawer', 'aria-label': 'Details' }, grip, this.bar);
    for (const [name, label] of Object.entries(TABS) as [TabName, string][]) {
      const page = h('div', { class: 'tab-page', role: 'tabpanel', id: `page-${name}`, 'aria-label': label });
      const tab = button(label, label, () => {
        if (this.now === name) this.toggle(!this.open); else this.select(name);
      }, { role: 'tab', 'aria-controls': page.id, id: `tab-${name}` });
      this.tabs.set(name, { tab, page });
      this.list.append(tab);
      this.root.append(page);
    }
    this.bar.append(this.delta, this.tools);
    this.list.addEventListener('keydown', e => {
      if (e.key !== 'ArrowRight' && e.key !== 'ArrowLeft') return;
      e.preventDefault(); e.stopPropagation();
      const all = [...this.tabs.keys()], i = all.indexOf(this.now),
        next = all[(i + (e.key === 'ArrowRight' ? 1 : -1) + all.length) % all.length];
      this.select(next);
      this.tabs.get(next)!.tab.focus();
    });
    this.select('events');
    this.setHeight(this.height);
  }
  /** Stands at the right of the bar while its page is open. */
  tool(name: TabName, element: HTMLElement): void {
    element.dataset.of = name;
    this.tools.append(element);
    this.show();
  }
  page(name: TabName): HTMLElement { return this.tabs.get(name)!.page; }
  select(name: TabName): void {
    this.now = name;
    this.open = true;
    this.show();
  }
  toggle(open: boolean): void { this.open = open; this.show(); }
  private show(): void {
    for (const [name, { tab, page }] of this.tabs) {
      const on = name === this.now && this.open;
      tab.setAttribute('aria-selected', String(name === this.now));
      tab.tabIndex = name === this.now ? 0 : -1;
      page.hidden = !on;
    }
    for (const t of this.tools.children)
      (t as HTMLElement).hidden = (t as HTMLElement).dataset.of !== this.now || !this.open;
    this.root.classList.toggle('shut', !this.open);
    this.resized();
  }
  setHeight(px: number): void {
    this.height = Math.round(Math.max(80, Math.min(px, innerHeight * 0.7)));
    document.documentElement.style.setProperty('--drawer', `${this.height}px`);
    stands(this.grip, this.height);
    this.resized();
  }
  /** Both cursors and what lies between them. */
  showDelta(session: Session): void {
    const { anchor, cursor } = session.axis;
    if (anchor === null || cursor === null) { setText(this.delta, ''); return; }
    const d = cursor - anchor;
    setText(this.delta, d === 0n ? `T ${session.time(cursor)}`
      : `T1 ${session.time(anchor)}   T2 ${session.time(cursor)}   Δ `
        + `${d < 0n ? '−' : ''}${formatDuration(absTime(d))} (${formatExact(d)})`);
  }
}

export function detailPane(session: Session, page: HTMLElement): void {
  const words = (): void => page.replaceChildren(h('p', { class: 'words' },
    'Click a state or an event: what is known about it stands here.'));
  words();
  session.detail.on(d => {
    if (!d) { words(); return; }
    page.replaceChildren(h('div', { class: 'details' }, h('h3', {}, d.title), table(d.lines, d.go),
      d.begin !== undefined && d.end !== undefined ? button('Select', 'Select this interval', () => {
        session.axis.select(d.begin!, d.end!);
        session.axis.reveal(d.begin!, d.end!);
      }) : ''));
  });
}

export class Bookmarks {
  list: Bookmark[] = [];
  constructor(private readonly session: Session, private readonly page: HTMLElement,
    private readonly changed: () => void) { this.render(''); }
  async load(): Promise<void> {
    try {
      this.list = await this.session.client.bookmarks(this.session.uuid);
      this.render('');
    } catch (e) { this.render(failureWords(e)); }
    this.changed();
  }
  /** Of the selection, the cursor, or what is in view. */
  async add(): Promise<void> {
    const { axis } = this.session, [start, end] = axis.selection
      ?? (axis.cursor !== null ? [axis.cursor, axis.cursor] : [axis.begin, axis.end]);
    const who = this.session.picked ? `${this.session.picked.name} ${this.session.picked.tid}` : 'Bookmark';
    try {
      await this.session.client.addBookmark(this.session.uuid, `${who} ${this.list.length + 1}`, start, end);
      await this.load();
    } catch (e) { this.render(failureWords(e)); }
  }
  private async act(f: () => Promise<unknown>): Promise<void> {
    try { await f(); await this.load(); } catch (e) { this.render(failureWords(e)); }
  }
  go(b: Bookmark): void { this.session.axis.select(b.start, b.end); this.session.axis.reveal(b.start, b.end); }
  render(error: string): void {
    const { session } = this, { client, uuid } = session;
    this.page.replaceChildren(h('div', { class: 'bookmarks' },
      button('+ Bookmark', 'Bookmark the selection or the cursor (b)', () => void this.add()), error
        ? h('span', { class: 'bad', role: 'alert' }, ` ${error}`) : '',
      this.list.length ? h('table', { class: 'grid' }, h('thead', {},
        h('tr', {}, ...['Name', 'Time', 'Duration', ''].map(x => h('th', { scope: 'col' }, x)))),
        h('tbody', {}, ...this.list.map(b => {
          const name = h('input', { type: 'text', value: b.name, 'aria-label': 'Name of the bookmark',
            onkeydown: (e: KeyboardEvent) => {
            e.stopPropagation();
            if (e.key === 'Enter') (e.target as HTMLElement).blur();
          } });
          name.addEventListener('change', () => void this.act(() =>
            client.renameBookmark(uuid, { ...b, name: name.value || b.name })));
          return h('tr', {}, h('td', {}, name), h('td', {}, button(session.time(b.start), 'Go there', () => this.go(b),
            { class: 'link' })),
            h('td', { class: 'number' }, b.end > b.start ? formatDuration(b.end - b.start) : ''),
            h('td', {}, button(icon('close'), `Remove ${b.name}`,
              () => void this.act(() => client.deleteBookmark(uuid, b.uuid)),
              { class: 'plain' })));
        }))) : h('p', { class: 'words' },
        'No bookmarks yet. Press b to keep the selection or the cursor; the server keeps them for everybody.')));
  }
}

export function legend(page: HTMLElement, views: GraphView[]): void {
  page.replaceChildren(h('div', { class: 'legend' }, ...views.map(v => {
    const seen = new Set<string>();
    // "Thread 1", "Thread 2", …: colours that only tell apart.
    const numbered = (name: string): string => /^(.*\D) ?\d+$/.exec(name)?.[1].trim() ?? '';
    const all = [...v.looks.keys.map(k => v.looks.ofKey(k)),
      ...v.looks.all.slice(1)].filter(l => l.key && !seen.has(l.name) && seen.add(l.name));
    const families = new Map<string, number>();
    for (const l of all) families.set(numbered(l.name), (families.get(numbered(l.name)) ?? 0) + 1);
    const looks = all.filter(l => !numbered(l.name) || families.get(numbered(l.name))! < 4);
    return h('section', {}, h('h3', {}, v.output.name), looks.length ? h('ul', {}, ...looks.map(l => {
      const swatch = h('span', { class: `swatch big ${l.pattern} ${l.blank ? 'blank' : ''}` });
      swatch.style.backgroundColor = l.css;
      if (!l.blank) swatch.style.opacity = String(Math.max(0.12, l.opacity));
      return h('li', {}, swatch, l.name);
    })) : h('p', { class: 'dim' }, 'no states yet'));
  })));
  if (!views.length)
    page.replaceChildren(h('p', { class: 'words' }, 'Open a view of states; its colours are explained here.'));
}
