// SPDX-License-Identifier: MIT
// The protocol's own TypeScript client against a running server: opens traces, makes an experiment of several, fetches
// everything that every output offers.
// Usage: node client.js http://HOST:PORT/tsp/api TRACE TRACE…     Exit status 0: all as the client wants it.
'use strict';

const assert = require('node:assert');
const { HttpTspClient } = require('tsp-typescript-client/lib/protocol/http-tsp-client');
const { Query } = require('tsp-typescript-client/lib/models/query/query');
const { QueryHelper } = require('tsp-typescript-client/lib/models/query/query-helper');

const [url, ...paths] = process.argv.slice(2);
const client = new HttpTspClient(url);
const figures = { outputs: 0, entries: 0, states: 0, arrows: 0, tooltips: 0, series: 0, points: 0, lines: 0,
  annotations: 0, styles: 0 };

// The client logs what it cannot read and goes on with nothing; here that is a failure.
console.log = (...words) => { throw new Error(words.join(' ')); };

function model(answer, what) {
    assert.ok(answer.isOk(), `${what}: ${answer.getStatusCode()} ${answer.getText()}`);
    const got = answer.getModel();
    assert.notStrictEqual(got, undefined, `${what}: no model`);
    return got;
}

async function completed(ask, what) {
    for (let i = 0; i < 100; i++) {
        const got = model(await ask(), what);
        if (got.status !== 'RUNNING') {
            assert.strictEqual(got.status, 'COMPLETED', `${what}: ${got.statusMessage}`);
            return got.model;
        }
        await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error(`${what}: runs for ever`);
}

async function openExperiment() {
    const traces = [];
    for (const path of paths)
        traces.push(model(await client.openTrace(new Query({ uri: path,
          name: `${path.split('/').slice(-2).join('-')}` })), path));
    const made = model(await client.createExperiment(new Query({ name: 'conformance',
      traces: traces.map((t) => t.UUID) })), 'experiment');
    for (let x = made; ; x = model(await client.fetchExperiment(made.UUID), 'experiment'))
        if (x.indexingStatus !== 'RUNNING')
            return x;
}

async function timeGraph(x, o, tree, range) {
    const ids = tree.entries.map((e) => e.id);
    for (const e of tree.entries)
        assert.ok(typeof e.start === 'bigint' && typeof e.end === 'bigint', `${o.id}: times of entries`);
    if (ids.length)
        assert.strictEqual(tree.entries[0].start, x.start, `${o.id}: the first entry starts with the experiment`);
    const states = await completed(() => client.fetchTimeGraphStates(x.UUID, o.id,
      QueryHelper.selectionTimeRangeQuery(x.start, x.end, 500, ids)), `${o.id} states`);
    let shown;
    const styles = await completed(() => client.fetchStyles(x.UUID, o.id, QueryHelper.query()), `${o.id} styles`);
    for (const row of states.rows)
        for (const s of row.states) {
            figures.states++;
            assert.ok(s.start < s.end && typeof s.start === 'bigint');
            if (s.style)
                for (const key of s.style.parentKey.split(','))
                    assert.ok(styles.styles[key], `${o.id}: style ${key} is not in the map`);
            shown = shown || (s.label && { row, s });
        }
    const arrows = await completed(() => client.fetchTimeGraphArrows(x.UUID, o.id,
      QueryHelper.timeRangeQuery(x.start, x.end, 500)), `${o.id} arrows`).catch((e) => {
        if (!/405/.test(e.message))
            throw e;
        return [];
    });
    for (const a of arrows || []) {
        figures.arrows++;
        assert.ok(ids.includes(a.sourceId) && ids.includes(a.targetId), `${o.id}: arrows join entries`);
    }
    if (shown) {
        const element = { elementType: 'state', time: shown.s.start, duration: shown.s.end - shown.s.start,
          entryId: shown.row.entryId };
        const tip = await completed(() => client.fetchTimeGraphTooltip(x.UUID, o.id,
            QueryHelper.selectionTimeQuery([shown.s.start], [shown.row.entryId],
              { [QueryHelper.REQUESTED_ELEMENT_KEY]: element })), `${o.id} tooltip`).catch((e) => {
            if (!/405/.test(e.message))
                throw e;
            return {};
        });
        figures.tooltips += Object.keys(tip || {}).length;
    }
}

async function xy(x, o, tree, generic) {
    const ids = tree.entries.map((e) => e.id);
    const query = generic ? QueryHelper.selectionTimeRangeQuery(x.start, x.end, 200, ids, undefined, true)
      : QueryHelper.selectionTimeRangeQuery(x.start, x.end, 200, ids);
    const got = await completed(() => (generic ? client.fetchGenericXY(x.UUID, o.id, query)
      : client.fetchXY(x.UUID, o.id, query)), `${o.id} xy`);
    for (const s of got.series) {
        figures.series++;
        figures.points += s.yValues.length;
        const along = s.xValues || s.xCategories || s.xRanges;
        assert.strictEqual(along.length, s.yValues.length, `${o.id}: as many x as y`);
        assert.ok(s.yValues.every((y) => typeof y === 'number'), `${o.id}: y are numbers`);
        assert.ok(s.style.values['series-type'], `${o.id}: series-type`);
    }
}

async function table(x, o) {
    const columns = await completed(() => client.fetchTableColumns(x.UUID, o.id,
      QueryHelper.query()), `${o.id} columns`);
    const ids = columns.map((c) => c.id);
    assert.ok(ids.every((i) => typeof i === 'number'));
    for (const index of [0, 7]) {
        const got = await completed(() => client.fetchTableLines(x.UUID, o.id,
          QueryHelper.tableQuery(ids, index, 50)), `${o.id} lines`);
        assert.deepStrictEqual(got.columnIds, ids);
        for (const line of got.lines)
            assert.strictEqual(line.cells.length, ids.length);
        figures.lines += got.lines.length;
    }
}

async function output(x, o) {
    const range = QueryHelper.timeRangeQuery(x.start, x.end, 2);
    figures.outputs++;
    if (o.type === 'TABLE')
        return table(x, o);
    const ask = { TIME_GRAPH: 'fetchTimeGraphTree', TREE_TIME_XY: 'fetchXYTree', TREE_GENERIC_XY: 'fetchGenericXYTree',
      DATA_TREE: 'fetchDataTree' }[o.type];
    if (!ask)
        return undefined;
    const tree = await completed(() => client[ask](x.UUID, o.id, range), `${o.id} tree`);
    if (!tree)
        return assert.ok(o.capabilities && o.capabilities.canCreate, `${o.id}: no tree`);
    figures.entries += tree.entries.length;
    for (const e of tree.entries)
        assert.ok(tree.headers.length === 0 || e.labels.length <= tree.headers.length
          || e.parentId === -1, `${o.id}: as many labels as headers`);
    figures.styles += Object.keys((await completed(() => client.fetchStyles(x.UUID, o.id,
      QueryHelper.query()), `${o.id} styles`)).styles).length;
    await completed(() => client.fetchAnnotationsCategories(x.UUID, o.id), `${o.id} annotation categories`);
    const drawn = await completed(() => client.fetchAnnotations(x.UUID, o.id,
      QueryHelper.selectionTimeRangeQuery(x.start, x.end, 500, tree.entries.map((e) => e.id))), `${o.id} annotations`);
    for (const list of Object.values(drawn.annotations))
        figures.annotations += list.length;
    if (o.type === 'TIME_GRAPH')
        return timeGraph(x, o, tree, range);
    return o.type === 'DATA_TREE' ? undefined : xy(x, o, tree, o.type === 'TREE_GENERIC_XY');
}

async function configurations() {
    const [type] = model(await client.fetchConfigurationSourceTypes(), 'configuration types');
    model(await client.fetchConfigurationSourceType(type.id), 'configuration type');
    const made = model(await client.createConfiguration(type.id,
      QueryHelper.configurationQuery('marks', 'd', { markers: [{ time: 5n, duration: 1n }] })), 'configuration');
    assert.strictEqual(made.sourceTypeId, type.id);
    assert.ok(model(await client.fetchConfigurations(type.id), 'configurations').some((c) => c.id === made.id));
    model(await client.updateConfiguration(type.id, made.id,
      QueryHelper.configurationQuery('more', '', { markers: [] })), 'changed configuration');
    assert.strictEqual(model(await client.fetchConfiguration(type.id, made.id), 'configuration').name, 'more');
    model(await client.deleteConfiguration(type.id, made.id), 'deleted configuration');
}

// A critical path: a derived output of the provider that makes some, for a thread of the experiment.
async function derived(x, outputs) {
    const creator = outputs.find((o) => o.capabilities && o.capabilities.canCreate);
    const threads = outputs.find((o) => o.id.endsWith('ThreadStatusDataProvider'));
    if (!creator || !threads)
        return;
    const [type] = model(await client.fetchOutputConfigurationTypes(x.UUID, creator.id), 'derivation types');
    model(await client.fetchOutputConfigurationType(x.UUID, creator.id, type.id), 'derivation type');
    const tree = await completed(() => client.fetchTimeGraphTree(x.UUID, threads.id, QueryHelper.query()), 'threads');
    const entry = tree.entries.find((e) => e.hasData && e.metadata && e.metadata.TID && Number(e.metadata.TID[0]) > 1);
    const made = model(await client.createDerivedOutput(x.UUID, creator.id,
        QueryHelper.outputConfigurationQuery('path', 'd', type.id,
          { thread: `${entry.metadata.hostId[0]}:${entry.metadata.TID[0]}` })), 'derived output');
    assert.strictEqual(made.parentId, creator.id);
    await output(x, made);
    model(await client.deleteDerivedOutput(x.UUID, creator.id, made.id), 'deleted output');
}

// An analysis of one's own, with what a Trace Compass server has as its default: the views that the derived output
// brings.
async function pairs(x, outputs) {
    const creator = outputs.find((o) => o.id.endsWith('.inAndOutdataProviderFactory'));
    const [type] = model(await client.fetchOutputConfigurationTypes(x.UUID, creator.id), 'derivation types');
    const made = model(await client.createDerivedOutput(x.UUID, creator.id,
      QueryHelper.outputConfigurationQuery('pairs', 'd', type.id,
        { specifiers: [{ label: 'latency', inRegex: '(\\S*)_entry', outRegex: '(\\S*)_exit',
          contextInRegex: '(\\S*)_entry', contextOutRegex: '(\\S*)_exit', classifier: 'CPU' }] })), 'derived output');
    assert.strictEqual(made.parentId, creator.id);
    const views = model(await client.experimentOutputs(x.UUID), 'outputs').filter((o) => o.parentId === made.id);
    assert.deepStrictEqual(views.map((o) => o.type).sort(), ['DATA_TREE', 'TABLE', 'TIME_GRAPH', 'TREE_GENERIC_XY',
      'TREE_TIME_XY']);
    for (const o of views)
        await output(x, o);
    model(await client.deleteDerivedOutput(x.UUID, creator.id, made.id), 'deleted output');
}

async function main() {
    assert.strictEqual(model(await client.checkHealth(), 'health').status, 'UP');
    assert.ok(model(await client.fetchIdentifier(), 'identity').tspVersion);
    const x = await openExperiment();
    assert.strictEqual(x.indexingStatus, 'COMPLETED');
    assert.strictEqual(x.traces.length, paths.length);
    assert.ok(typeof x.start === 'bigint' && x.end > x.start
      && x.nbEvents === x.traces.reduce((n, t) => n + t.nbEvents, 0));
    assert.ok(model(await client.fetchTraces(), 'traces').length >= paths.length);
    assert.ok(model(await client.fetchExperiments(), 'experiments').some((e) => e.UUID === x.UUID));
    await completed(() => client.fetchMarkerSets(x.UUID), 'marker sets');
    const outputs = model(await client.experimentOutputs(x.UUID), 'outputs');
    for (const o of outputs)
        await output(x, o);
    await derived(x, outputs);
    await pairs(x, outputs);
    await configurations();
    const refused = await client.fetchTimeGraphStates(x.UUID, 'no.such.provider', QueryHelper.query());
    assert.deepStrictEqual([refused.getStatusCode(), refused.getErrorResponse().title], [405, 'Analysis cannot run']);
    const used = await client.deleteTrace(x.traces[0].UUID);
    assert.strictEqual(used.getStatusCode(), 409);
    model(await client.deleteExperiment(x.UUID), 'deleted experiment');
    for (const t of x.traces)
        model(await client.deleteTrace(t.UUID), 'deleted trace');
    process.stdout.write(`${JSON.stringify(figures)}\n`);
}

main().catch((e) => {
    process.stderr.write(`${e.stack || e}\n`);
    process.exit(1);
});
