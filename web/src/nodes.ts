// SPDX-License-Identifier: MIT
// The nodes of a cluster, on the page of a coordinator: what each of them is doing, and what answers lack.
import { h } from './dom';
import { formatDuration, formatValue } from './time';
import { failureWords } from './panel';
import type { ClusterNode, TspClient } from './tsp';

const EVERY_MS = 10_000;

function words(n: ClusterNode): string {
  const clocks = n.unrelated ? `, ${n.unrelated} on ${n.unrelated === 1 ? 'its own clock' : 'their own clocks'}` : '';
  return [n.release && `weft ${n.release}`, `${n.hosts} machine${n.hosts === 1 ? '' : 's'}${clocks}`, n.text,
    n.fetches ? 'fetches a trace' : '', n.keeper ? 'keeps the clocks' : '',
    n.disk?.path
      ? `${formatValue(Number(n.disk.free_bytes), 'B')} free of ${formatValue(Number(n.disk.bytes), 'B')}` : '',
    n.clock_error_ns === undefined ? '' : `clock ${formatDuration(Number(n.clock_ahead_ns ?? 0))} ± ${
      formatDuration(Number(n.clock_error_ns))}`].filter(Boolean).join(' · ');
}

function line(n: ClusterNode): HTMLElement {
  const title = words(n);
  return h('li', {}, n.node, h('span', { class: 'dim', title }, title),
    h('span', { class: n.state === 'open' ? 'badge' : 'badge bad' }, n.state));
}

/** A section that asks again as long as it is shown. */
export function nodesSection(client: TspClient): HTMLElement {
  const root = h('section', { class: 'picker-nodes' });
  const ask = async (): Promise<void> => {
    try {
      const found = await client.cluster();
      root.replaceChildren(h('h2', {}, 'Nodes of the cluster'), h('ul', {}, ...found.nodes.map(line)),
        ...found.missing.map(m => h('p', { class: 'bad' }, `Missing in answers: ${m.text}`)));
    } catch (e) {
      root.replaceChildren(h('h2', {}, 'Nodes of the cluster'), h('p', { class: 'bad' }, failureWords(e)));
    }
    setTimeout(() => { if (root.isConnected) void ask(); }, EVERY_MS);
  };
  void ask();
  return root;
}
