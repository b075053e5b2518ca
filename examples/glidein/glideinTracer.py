# SPDX-License-Identifier: MIT
"""A drop-in for GlideinWMS' lib/glideinTracer.py: the same classes and methods, by calls of weft-span.

What is better: the parent span is sent before initial_trace returns, so a process that ends at once (os._exit after a
fork) does not lose it, and nobody sleeps for it; nothing is installed per batch, so nothing is sent twice; a collector
that is away costs two seconds once, and the span waits on disk (`weft-span flush` sends it). Without weft-span, or
where it does not trace, GLIDEIN_TRACE_ID is None: do not pass it on then.

WEFT_SPAN names the program (default: weft-span in the PATH).
"""
import os
import subprocess

jaeger_service = "glidein"
jaeger_collector_endpoint = os.environ.get("JAEGER_ENDPOINT", "http://127.0.0.1:14268/api/traces")


def _weft_span(*arguments, env=None):
    """What it prints, or None. It never says more than a note on stderr when it cannot send."""
    try:
        done = subprocess.run([os.environ.get("WEFT_SPAN", "weft-span"), *arguments], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, env=env, check=False, timeout=30, text=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _environment(endpoint, service):
    """Jaeger's own endpoint gets Thrift, any other OTLP; where it is to be sent is this call's, not the process'. What
    happened to be the context of this process is not the parent of a batch."""
    env = {k: v for k, v in os.environ.items()
           if k not in ("TRACEPARENT", "TRACESTATE", "UBER_TRACE_ID", "TRACE_ID", "B3")}
    env["OTEL_SERVICE_NAME"] = service
    if not endpoint or "OTEL_EXPORTER_OTLP_ENDPOINT" in env or "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" in env:
        return env
    if "/api/traces" in endpoint:
        env["JAEGER_ENDPOINT"] = endpoint
    else:
        env["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
    return env


class Tracer:
    """The parent of what glideins send: one for each batch that is submitted."""

    def __init__(self, collector_endpoint=jaeger_collector_endpoint, service_name=jaeger_service):
        self.collector_endpoint = collector_endpoint
        self.jaeger_service_name = service_name
        self.GLIDEIN_TRACE_ID = None
        self.tracer = None
        self.carrier = None

    def initial_trace(self, tags=None):
        """Sends the span `parent` with these tags, and sets GLIDEIN_TRACE_ID to its uber-trace-id."""
        self.tracer = _environment(self.collector_endpoint, self.jaeger_service_name)
        attributes = [word for key, value in (tags or {}).items() for word in ("--attribute", f"{key}={value}")]
        span = _weft_span("start", "--name", "parent", "--kind", "producer", *attributes, env=self.tracer)
        if not span:
            return
        _weft_span("end", span, env=self.tracer)
        self.carrier = {"traceparent": span}
        self.GLIDEIN_TRACE_ID = _weft_span("context", span, "--format", "uber", env=self.tracer)


class Trace:
    """Children of such a parent."""

    def __init__(self, tracer, carrier):
        self.tracer = tracer
        self.carrier = carrier or {}
        self.GLIDEIN_SPAN_ID = None
        self.SpanContext = None
        self.ctx = None

    def send_span(self, name="child"):
        self.ctx = {**(self.tracer or {}), **{"TRACEPARENT": v for k, v in self.carrier.items() if k == "traceparent"}}
        span = _weft_span("start", "--name", name, env=self.ctx)
        if span:
            _weft_span("end", span, env=self.ctx)
            self.GLIDEIN_SPAN_ID = _weft_span("context", span, "--format", "uber", env=self.ctx)

    def get_span_ID(self):
        print(self.GLIDEIN_SPAN_ID)


def main():
    tracer = Tracer()
    tracer.initial_trace()
    print(tracer.GLIDEIN_TRACE_ID)


if __name__ == "__main__":
    main()
