// SPDX-License-Identifier: MIT
// A tree of spans by the OpenTelemetry SDK, sent by one of its exporters: sdk.mjs EXPORTER URL none|gzip [SPANS].
// On stdout: the spans as the SDK has them, which is what must be answered.
import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor }
  from '@opentelemetry/sdk-trace-node';

const [name, url, compression, spans = '0'] = process.argv.slice(2);
const makers = {
  http: async () =>
    new (await import('@opentelemetry/exporter-trace-otlp-http')).OTLPTraceExporter({ url, compression }),
  proto: async () =>
    new (await import('@opentelemetry/exporter-trace-otlp-proto')).OTLPTraceExporter({ url, compression }),
  grpc: async () =>
    new (await import('@opentelemetry/exporter-trace-otlp-grpc')).OTLPTraceExporter({ url, compression }),
  jaeger: async () => new (await import('@opentelemetry/exporter-jaeger')).JaegerExporter({ endpoint: url }),
  zipkin: async () => new (await import('@opentelemetry/exporter-zipkin')).ZipkinExporter({ url }),
};
const exporter = await makers[name](), failures = [], kept = new InMemorySpanExporter();
const told = {
  export: (list, done) => exporter.export(list, result => {
    if (result.code) failures.push(String(result.error));
    done(result);
  }),
  shutdown: () => exporter.shutdown(),
};
const resource = resourceFromAttributes({ 'service.name': `sdk-${name}-${compression}`, 'service.version': '1.2',
  'host.name': 'knoten-ü', numbers: [1, 2, 3] });
const provider = new NodeTracerProvider({ resource, spanProcessors: [new SimpleSpanProcessor(kept),
  new BatchSpanProcessor(told, { maxQueueSize: 200000, maxExportBatchSize: 512 })] });
const tracer = provider.getTracer('tree', '0.1.2', { schemaUrl: 'https://example.org/schema' });

const inside = (span, run) => context.with(trace.setSpan(ROOT_CONTEXT, span), run);

const other = tracer.startSpan('linked', { root: true });
other.end();
const root = tracer.startSpan('GET /päth ✓', { root: true, kind: SpanKind.SERVER, attributes: {
  text: 'naïve ☃ \u{1f600} "q" \\ \n', empty: '', yes: true, no: false, small: -1, beyond: 2 ** 53 + 2, real: 0.1,
  tiny: 5e-324, strings: ['a', '', 'ü'], ints: [1, 2 ** 40], reals: [0.5, 1.25], truths: [true, false] },
links: [{ context: other.spanContext(), attributes: { why: 'batch' } }] });
inside(root, () => {
  [SpanKind.CLIENT, SpanKind.PRODUCER, SpanKind.CONSUMER].forEach((kind, i) => {
    const child = tracer.startSpan(`child ${i}`, { kind }, context.active());
    child.addEvent('step', { n: i, at: 'µs' });
    if (i === 1) {
      child.recordException(new TypeError('kaputt: ☠'));
      child.setStatus({ code: SpanStatusCode.ERROR, message: 'kaputt' });
    }
    if (i === 2) child.setStatus({ code: SpanStatusCode.OK });
    inside(child, () => tracer.startSpan('grandchild', {}, context.active()).end());
    child.end();
  });
  for (let i = 0; i < Number(spans); i++)
    tracer.startSpan(`many ${i % 10}`, { attributes: { i } }, context.active()).end();
});
root.end();
await provider.forceFlush();

const ns = ([s, n]) => String(BigInt(s) * 1000000000n + BigInt(n));
console.log(JSON.stringify({ failures, resource: resource.attributes,
  spans: kept.getFinishedSpans().map(s => ({
    trace: s.spanContext().traceId, id: s.spanContext().spanId, parent: s.parentSpanContext?.spanId ?? null,
    name: s.name, kind: s.kind + 1, begin: ns(s.startTime), end: ns(s.endTime), status: s.status,
    attributes: s.attributes, scope: s.instrumentationScope,
    events: s.events.map(e => ({ name: e.name, time: ns(e.time), attributes: e.attributes ?? {} })),
    links: s.links.map(l => ({ trace: l.context.traceId, id: l.context.spanId, attributes: l.attributes ?? {} })),
  })) }));
await provider.shutdown();
