// A tree of spans by the OpenTelemetry SDK, sent by one of its exporters: sdk.mjs EXPORTER URL none|gzip [SPANS].
// On stdout: the spans as the SDK has them, which is what must be answered.
import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor }
  from '@opentelemetry/sdk-trace-node';

const [exporterName, url, compression, spans = '0'] = process.argv.slice(2);
const { OTLPTraceExporter } = await import(`@opentelemetry/exporter-trace-otlp-${exporterName}`);
const kept = new InMemorySpanExporter();
const exporter = new OTLPTraceExporter({ url, compression, timeoutMillis: 60000 });
const failures = [];
const told = { export: (list, done) => exporter.export(list, result => { if (result.code) failures.push(String(result.error)); done(result); }),
  shutdown: () => exporter.shutdown(), forceFlush: () => exporter.forceFlush?.() };
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ 'service.name': `sdk-${exporterName}-${compression}`, 'service.version': '1.2',
    'host.name': 'knoten-ü', numbers: [1, 2, 3] }),
  spanProcessors: [new SimpleSpanProcessor(kept), new BatchSpanProcessor(told, { maxQueueSize: 200000, maxExportBatchSize: 512 })],
});
const tracer = provider.getTracer('tree', '0.1.2', { schemaUrl: 'https://example.org/schema' });

function inside(span, run) { context.with(trace.setSpan(ROOT_CONTEXT, span), run); }

const other = tracer.startSpan('linked', { root: true });
other.end();
const root = tracer.startSpan('GET /päth ✓', { root: true, kind: SpanKind.SERVER, attributes: {
  text: 'naïve ☃ \u{1f600} "q" \\ \n', empty: '', yes: true, no: false, small: -1, beyond: 2 ** 53 + 2, real: 0.1,
  tiny: 5e-324, strings: ['a', '', 'ü'], ints: [1, 2 ** 40], reals: [0.5, 1.25], truths: [true, false],
  bytes: new Uint8Array([0, 1, 254, 255]), map: { inner: 'x', list: [1, 'two'] } },
  links: [{ context: other.spanContext(), attributes: { why: 'batch' } }] });
inside(root, () => {
  for (let i = 0; i < 3; i++) {
    const child = tracer.startSpan(`child ${i}`, { kind: [SpanKind.CLIENT, SpanKind.PRODUCER, SpanKind.CONSUMER][i] },
      context.active());
    child.addEvent('step', { n: i, at: 'µs' });
    if (i === 1) { child.recordException(new TypeError('kaputt: ☠')); child.setStatus({ code: SpanStatusCode.ERROR, message: 'kaputt' }); }
    if (i === 2) child.setStatus({ code: SpanStatusCode.OK });
    inside(child, () => tracer.startSpan('grandchild', {}, context.active()).end());
    child.end();
  }
  for (let i = 0; i < Number(spans); i++) tracer.startSpan(`many ${i % 10}`, { attributes: { i } }, context.active()).end();
});
root.end();
await provider.forceFlush();

const ns = ([s, n]) => String(BigInt(s) * 1000000000n + BigInt(n));
const plain = a => JSON.parse(JSON.stringify(a, (k, v) => v instanceof Uint8Array ? { bytes: Buffer.from(v).toString('base64') } : v));
console.log(JSON.stringify({ failures, resource: plain(provider._resource?.attributes ?? kept.getFinishedSpans()[0].resource.attributes),
  spans: kept.getFinishedSpans().map(s => ({ trace: s.spanContext().traceId, id: s.spanContext().spanId,
    parent: s.parentSpanContext?.spanId ?? null, name: s.name, kind: s.kind + 1, begin: ns(s.startTime), end: ns(s.endTime),
    status: s.status, attributes: plain(s.attributes), scope: s.instrumentationScope,
    events: s.events.map(e => ({ name: e.name, time: ns(e.time), attributes: plain(e.attributes ?? {}) })),
    links: s.links.map(l => ({ trace: l.context.traceId, id: l.context.spanId, attributes: plain(l.attributes ?? {}) })) })) }));
await provider.shutdown();
