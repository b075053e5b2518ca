// SPDX-License-Identifier: MIT
// In-and-out analyses: the form that makes one of a user's expressions, and which view belongs to which.
import { h } from './dom';
import { closePopup, openPopup } from './menu';
import { ID, outputOf } from './outputs';
import { failureWords } from './panel';
import type { Session } from './session';
import { isAbort, type Output } from './tsp';

/** The server's way to make them, or null. */
export function pairsOutput(outputs: Output[]): Output | null {
  const o = outputOf(outputs, ID.inAndOut);
  return o?.capabilities?.canCreate ? o : null;
}
/** The derived output that a view shows, if it can be removed. */
export function ownerOf(outputs: Output[], view: Output): Output | null {
  return outputs.find(o => o.id === view.parentId && o.capabilities?.canDelete) ?? null;
}

const FIELDS: [key: string, label: string, value: string, hint: string][] = [
  ['name', 'Name', '', 'what its views are called'],
  ['inRegex', 'Opens', '', 'whole event name: syscall_entry_(.*)'],
  ['outRegex', 'Closes', '', 'whole event name: syscall_exit_.*'],
  ['label', 'Label', '{0}', 'a text, or {0}: what “Opens” captures'],
  ['contextInRegex', 'Context, opening', '', 'in the fields: fd=(\\d+)'],
  ['contextOutRegex', 'Context, closing', '', 'must capture the same'],
];

/** `made` is called with the new output; what the server does not take is said in the form. */
export function openPairsForm(session: Session, template: Output, events: Output | null,
  made: (derived: Output) => Promise<void>): void {
  const { client, uuid } = session, inputs = new Map<string, HTMLInputElement | HTMLSelectElement>();
  const message = h('p', { class: 'bad', role: 'alert', hidden: true }),
    go = h('button', { type: 'submit', class: 'main' }, 'Find pairs');
  const classifier = h('select',
    { name: 'classifier', title: 'What both events must have in common, a column of the events' },
    ...['', 'CPU'].map(option));
  const lines = FIELDS.map(([key, label, value, hint]) => {
    const input = h('input', { type: 'text', name: key, value, placeholder: hint, title: hint, spellcheck: false,
      autocomplete: 'off', required: /^(in|out)Regex$|label/.test(key) });
    inputs.set(key, input);
    return h('label', {}, label, input);
  });
  inputs.set('classifier', classifier);
  const say = (words: string): void => {
    message.textContent = words;
    message.hidden = !words;
    const wrong = /specifiers\[\d+\]\.(\w+)/.exec(words)?.[1] ?? '';
    for (const [key, input] of inputs) input.setAttribute('aria-invalid', String(key === wrong));
    inputs.get(wrong)?.focus();
  };
  const submit = async (): Promise<void> => {
    const { name, ...specifier } = Object.fromEntries([...inputs].map(([key, input]) => [key, input.value]));
    go.disabled = true;
    say('');
    try {
      const [type] = await client.configTypes(uuid, template.id);
      await made(await client.derive(uuid, template.id, { name: name.trim() || specifier.inRegex,
        sourceTypeId: type?.id ?? '', parameters: { specifiers: [specifier] } }));
      closePopup();
    } catch (e) { if (!isAbort(e)) say(failureWords(e)); }
    go.disabled = false;
  };
  const form = h('form', { class: 'pairs-form', role: 'dialog', 'aria-label': 'New in-and-out analysis',
    onsubmit: (e: Event) => {
    e.preventDefault();
    void submit();
  } },
    h('h3', {}, 'Time between events that open and events that close'), ...lines,
    h('label', {}, 'Same in both', classifier), message,
    h('div', { class: 'pairs-end' }, h('button', { type: 'button', onclick: closePopup }, 'Cancel'), go));
  openPopup(form, innerWidth / 2 - 230, 60);
  inputs.get('name')!.focus();
  if (events) void client.columns(uuid, events.id).then(({ model }) => {
    const names = (model ?? []).map(c => c.name).filter(n => !/time|contents|context/i.test(n));
    classifier.replaceChildren(...['', ...names].map(option));
    classifier.value = names.find(n => n === 'TID') ?? names.find(n => n === 'CPU') ?? '';
  }, () => { /* the two that every trace has */ });
}

function option(name: string): HTMLOptionElement { return h('option', { value: name }, name || 'nothing'); }
