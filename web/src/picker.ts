// SPDX-License-Identifier: MIT
// The page without an experiment, and the sheet to open one: experiments and traces known, paths, uploads.
import { button, h } from './dom';
import { icon } from './icons';
import { nodesSection } from './nodes';
import { failureWords } from './panel';
import type { Session } from './session';
import { formatDuration } from './time';
import { keepToken } from './token';
import { TspError, type Experiment, type Trace } from './tsp';

export class Picker {
  readonly root = h('main', { class: 'picker', 'aria-label': 'Open an experiment', tabIndex: -1 });
  private readonly list = h('div', { class: 'picker-list' });
  private readonly message = h('p', { class: 'picker-message', role: 'status' });
  private away = new Set<string>();
  private readonly chosen = new Set<string>();
  private back: HTMLElement | null = null;
  /** What the server may allow: shown once it is known that it does. */
  private readonly byPath = h('section', { hidden: true });
  private readonly below = h('div', { class: 'picker-below' });
  private readonly drop: HTMLElement;

  constructor(private readonly session: Session, private readonly open: (x: Experiment) => void,
    leave: (() => void) | null) {
    const path = h('input', { type: 'text', placeholder: '/path/of/a/trace/on/the/server',
      'aria-label': 'Path of a trace on the server', spellcheck: false, name: 'path' });
    const name = h('input', { type: 'text', placeholder: 'name (optional)', 'aria-label': 'Name of the experiment',
      spellcheck: false, name: 'name' });
    const file = h('input', { type: 'file', accept: '.tar,.tgz,.gz,.zip,.xz,.txz,.zst,.bz2',
      'aria-label': 'Trace to upload: tar or zip', multiple: true });
    const form = h('form', { onsubmit: (e: Event) => {
      e.preventDefault();
      void this.openPaths(path.value, name.value);
    } }, path, name, h('button', { type: 'submit', class: 'main' }, 'Open'));
    const drop = this.drop = h('label', { class: 'drop', hidden: true },
      'Upload a trace: drop a tar or zip here, or choose ', file);
    file.addEventListener('change', () => void this.upload([...file.files ?? []]));
    drop.addEventListener('dragover', e => { e.preventDefault(); drop.classList.add('over'); });
    drop.addEventListener('dragleave', () => drop.classList.remove('over'));
    drop.addEventListener('drop', e => {
      e.preventDefault();
      drop.classList.remove('over');
      void this.upload([...e.dataTransfer?.files ?? []]);
    });
    this.root.append(h('div', { class: 'picker-box' }, h('h1', {}, 'weft'),
      h('p', { class: 'dim' }, 'Where did the time go, and on which machine?'), this.message, this.list,
      this.byPath, drop,
      leave ? this.back = button('Back', 'Back to the experiment', leave) : ''));
    this.byPath.append(this.below, h('h2', {}, 'Open traces by their path'), form, h('p', { class: 'dim small' },
      'Several paths, separated by spaces, become one experiment on one clock.'));
    void this.offer();
    if (leave) this.root.addEventListener('keydown', e => {
      if (e.key === 'Escape' && this.back?.isConnected) leave();
    });
    void this.refresh();
  }
  private say(text: string, bad = false): void {
    this.message.textContent = text;
    this.message.classList.toggle('bad', bad);
  }

  /** Offers what the server allows; of one that does not tell, everything. */
  private async offer(): Promise<void> {
    const { client } = this.session;
    try {
      const { opens, cluster } = await client.identifier();
      if (cluster) this.list.after(nodesSection(client));
      this.byPath.hidden = opens?.paths === false;
      this.drop.hidden = opens?.uploads === false;
      if (opens?.paths) await this.browse('');
    } catch { /* what is asked for besides says so */ }
  }
  /** What lies in a directory below the trace root, to be opened by a click. */
  private async browse(path: string): Promise<void> {
    try {
      const { client } = this.session, at = await client.below(path),
        held = this.below.contains(document.activeElement),
        where = at.path ? `${at.root}/${at.path}` : at.root,
        up = at.path.includes('/') ? at.path.slice(0, at.path.lastIndexOf('/')) : '';
      this.below.replaceChildren(h('h2', {}, `Traces below ${where}`),
        at.path ? button('Up', 'The directory above', () => void this.browse(up)) : '',
        at.traces.length ? h('ul', {}, ...at.traces.map(t => h('li', {},
          button(t.name, `Open ${t.path}`, () => void this.openAll([t.path], t.name), { class: 'link' }),
          h('span', { class: 'dim' }, t.directory ? 'a directory of traces' : 'a trace'),
          t.directory ? button('Look inside', `What lies in ${t.name}`,
            () => void this.browse(at.path ? `${at.path}/${t.name}` : t.name)) : '')))
          : h('p', { class: 'dim' }, 'There are none.'),
        at.more ? h('p', { class: 'dim' }, 'There are more: open them by their path.') : '');
      if (held) (this.below.querySelector('button') ?? this.root).focus();
    } catch (e) { this.below.replaceChildren(h('p', { class: 'bad' }, failureWords(e))); }
  }

  async refresh(): Promise<void> {
    try {
      const { client } = this.session, [experiments, traces] = await Promise.all([client.experiments(),
        client.traces()]);
      // Of a coordinator: where each trace lies, and who does not answer.
      this.away = new Set(traces.some(t => t.properties.server) ? (await client.servers())
        .filter(s => s.status === 'AWAY').map(s => s.name) : []);
      if (!experiments.some(x => x.UUID === this.session.uuid)) this.back?.remove(); // what it leads to is gone
      const held = this.list.contains(document.activeElement);
      this.list.replaceChildren(h('h2', {}, 'Experiments'), experiments.length
        ? h('ul', {}, ...experiments.map(x => this.line(x)))
        : h('p', { class: 'dim' },
          'None yet. Open one of the traces below, or start the server with traces: weft serve TRACE…'));
      if (traces.length > 0) this.list.append(h('h2', {}, 'Traces'), h('ul', {}, ...traces.map(t => this.traceLine(t))),
        button('Open the chosen ones together', 'One experiment of the traces that are ticked',
          () => void this.together(traces)));
      if (held) this.root.focus(); // keys are heard there
    } catch (e) {
      if (e instanceof TspError && e.status === 401) { this.askToken(); return; }
      this.say(failureWords(e), true);
      this.list.replaceChildren(button('Try again', 'Ask the server again', () => void this.refresh()));
    }
  }
  private askToken(): void {
    const { token } = this.session.client, input = h('input',
      { type: 'password', 'aria-label': 'Token', autocomplete: 'off', placeholder: 'token' });
    this.say(token === null
      ? 'This server wants a token: what stands in the file that it was started with (--token-file).'
      : 'That is not the token of this server.', true);
    this.list.replaceChildren(h('form', { class: 'token', onsubmit: (e: Event) => {
      e.preventDefault();
      if (input.value) { keepToken(input.value.trim()); location.reload(); }
    } },
      input, h('button', { type: 'submit', class: 'main' }, 'Go on')));
    input.focus();
  }
  private line(x: Experiment): HTMLElement {
    const span = x.end > x.start ? formatDuration(x.end - x.start) : '', events = x.nbEvents
      ? `${x.nbEvents.toLocaleString('en').replace(/,/g, '\u2009')} events` : '';
    return h('li', {}, button(x.name, `Open ${x.name}`, () => this.open(x), { class: 'link' }),
      h('span', { class: 'dim' }, [`${x.traces.length} trace${x.traces.length === 1 ? '' : 's'}`, events,
        span].filter(Boolean).join(' · ')),
      button(icon('close'), `Forget ${x.name} (the trace files stay)`,
        () => void this.act(() => this.session.client.deleteExperiment(x.UUID)), { class: 'plain' }));
  }
  private traceLine(t: Trace): HTMLElement {
    const box = h('input', { type: 'checkbox', checked: this.chosen.has(t.UUID), onchange: () => {
      if (!this.chosen.delete(t.UUID)) this.chosen.add(t.UUID);
    } });
    const { server } = t.properties, away = server && this.away.has(server.split('/')[0]);
    return h('li', {}, h('label', {}, box, ' ', t.name),
      h('span', { class: 'dim path' }, server ? `${server}: ${t.path}` : t.path),
      away ? h('span', { class: 'badge bad' }, 'away') : '',
      button(icon('close'), `Close ${t.name} (its files stay)`, () => void this.act(() =>
        this.session.client.deleteTrace(t.UUID)), { class: 'plain' }));
  }
  private async act(f: () => Promise<unknown>): Promise<void> {
    try { await f(); this.say(''); } catch (e) { this.say(failureWords(e), true); }
    await this.refresh();
  }
  private async together(traces: Trace[]): Promise<void> {
    const list = traces.filter(t => this.chosen.has(t.UUID));
    if (!list.length) { this.say('Tick the traces first.', true); return; }
    await this.make(list, list.map(t => t.name).join('+'));
  }
  private async openPaths(text: string, name: string): Promise<void> {
    const paths = text.match(/(?:\\ |[^\s])+/g)?.map(p => p.replace(/\\ /g, ' ')) ?? [];
    if (!paths.length) { this.say('Which path? It is one on the server’s machine.', true); return; }
    await this.openAll(paths, name.trim());
  }
  private async openAll(paths: string[], name: string): Promise<void> {
    try {
      const traces: Trace[] = [];
      for (const p of paths) { this.say(`Opening ${p}…`); traces.push(await this.openOne(p)); }
      await this.make(traces, name || traces.map(t => t.name).join('+'));
    } catch (e) { this.say(failureWords(e), true); }
  }
  /** A name that another trace of the folder has: the next free one, a few times. */
  private async openOne(path: string): Promise<Trace> {
    const base = path.replace(/\/+$/, '').split('/').pop() || path;
    for (let i = 0; ; i++) {
      try {
        return await this.session.client.openTrace(path, i ? `${base}(${i})` : base);
      } catch (e) { if (!(e instanceof TspError) || e.status !== 409 || i >= 9) throw e; }
    }
  }
  private async make(traces: Trace[], name: string): Promise<void> {
    this.say(`Making the experiment ${name}…`);
    for (let i = 0; ; i++) {
      try {
        this.open(await this.session.client.createExperiment(i ? `${name}(${i})` : name, traces.map(t => t.UUID)));
        return;
      } catch (e) {
        if (!(e instanceof TspError) || e.status !== 409 || i >= 9) { this.say(failureWords(e), true); return; }
      }
    }
  }
  private async upload(files: File[]): Promise<void> {
    try {
      const traces: Trace[] = [];
      for (const f of files) {
        this.say(`Uploading ${f.name}, ${(f.size / 1e6).toFixed(1)} MB…`);
        traces.push(...await this.session.client.upload(f.name.replace(/\.(tar|tgz|txz|zip|gz|xz|zst|bz2)$/i, '')
          .replace(/\.tar$/i, ''), f));
      }
      if (traces.length) await this.make(traces, traces.map(t => t.name).join('+'));
    } catch (e) {
      this.say(e instanceof TspError && e.status === 404 ? 'This server takes no uploads.' : failureWords(e), true);
    }
  }
}
