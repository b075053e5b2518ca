# SPDX-License-Identifier: MIT
"""OTLP made by tests: spans as plain dictionaries of OTLP JSON, and the same as protobuf, by the published field
numbers alone."""
import base64
import struct


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n) if n else b""


def fixed(field, n):
    return varint(field << 3 | 1) + struct.pack("<Q", n)


def blob(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def some(field, data):
    return blob(field, data) if data else b""


def value(v):
    (kind, x), = v.items()
    if kind == "stringValue":
        return blob(1, x)
    if kind == "boolValue":
        return varint(2 << 3) + varint(int(x))
    if kind == "intValue":
        return varint(3 << 3) + varint(int(x))
    if kind == "doubleValue":
        return varint(4 << 3 | 1) + struct.pack("<d", x)
    if kind == "arrayValue":
        return blob(5, b"".join(blob(1, value(i)) for i in x["values"]))
    if kind == "kvlistValue":
        return blob(6, pairs(1, x["values"]))
    return blob(7, base64.b64decode(x))


def pairs(field, attributes):
    return b"".join(blob(field, blob(1, a["key"]) + blob(2, value(a["value"]))) for a in attributes)


def event(e):
    return (fixed(1, int(e["timeUnixNano"])) + some(2, e["name"]) + pairs(3, e.get("attributes", [])) +
            number(4, e.get("droppedAttributesCount", 0)))


def link(li):
    return (blob(1, bytes.fromhex(li["traceId"])) + blob(2, bytes.fromhex(li["spanId"])) +
            some(3, li.get("traceState")) + pairs(4, li.get("attributes", [])) +
            number(5, li.get("droppedAttributesCount", 0)) +
            (varint(6 << 3 | 5) + struct.pack("<I", li["flags"]) if li.get("flags") else b""))


def span(s):
    status = s.get("status", {})
    return b"".join([
        blob(1, bytes.fromhex(s["traceId"])), blob(2, bytes.fromhex(s["spanId"])), some(3, s.get("traceState")),
        some(4, bytes.fromhex(s.get("parentSpanId", ""))), some(5, s["name"]), number(6, s.get("kind", 0)),
        fixed(7, int(s["startTimeUnixNano"])), fixed(8, int(s["endTimeUnixNano"])), pairs(9, s.get("attributes", [])),
        number(10, s.get("droppedAttributesCount", 0)), *(blob(11, event(e)) for e in s.get("events", [])),
        number(12, s.get("droppedEventsCount", 0)), *(blob(13, link(li)) for li in s.get("links", [])),
        number(14, s.get("droppedLinksCount", 0)),
        blob(15, some(2, status.get("message")) + number(3, status.get("code", 0))) if status else b"",
        varint(16 << 3 | 5) + struct.pack("<I", s["flags"]) if s.get("flags") else b""])


def request(r):
    return b"".join(
        blob(1, blob(1, pairs(1, rs["resource"].get("attributes", []))) + b"".join(
            blob(2, blob(1, some(1, ss["scope"].get("name")) + some(2, ss["scope"].get("version")) +
                         pairs(3, ss["scope"].get("attributes", []))) +
                 b"".join(blob(2, span(s)) for s in ss["spans"]) + some(3, ss.get("schemaUrl")))
            for ss in rs["scopeSpans"]) + some(3, rs.get("schemaUrl")))
        for rs in r["resourceSpans"])


def text(key, v):
    return {"key": key, "value": {"stringValue": v}}


def of(spans, service="shop", **resource):
    """Returns a request of one resource."""
    attributes = [text("service.name", service)] if service else []
    return {"resourceSpans": [{"resource": {"attributes": attributes + [text(k, v) for k, v in resource.items()]},
                               "scopeSpans": [{"scope": {"name": "made"}, "spans": spans}]}]}


def made(trace, number_of, name="work", begin=1_700_000_000_000_000_000, lasted=1_000_000, parent=None, **more):
    s = {"traceId": trace, "spanId": f"{number_of:016x}", "name": name, "kind": 1,
         "startTimeUnixNano": str(begin), "endTimeUnixNano": str(begin + lasted), **more}
    if parent:
        s["parentSpanId"] = f"{parent:016x}"
    return s
