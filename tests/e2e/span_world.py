# SPDX-License-Identifier: MIT
"""Made-up spans with their expected results, computed here alone: nothing is shared with the program."""
import json
import math

S = 10**9
EPOCH = 1_800_000_000 * S


def attribute(key, value):
    if isinstance(value, bool):
        return {"key": key, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    return {"key": key, "value": {"stringValue": value}}


class World:
    """Spans in order of arrival, each a dict: trace, id, parent, name, begin, end, service, attributes, resource,
    error."""

    def __init__(self, dice):
        self.dice, self.spans, self.used = dice, [], set()

    def new_id(self, digits):
        while True:
            text = "".join(self.dice.choice("0123456789abcdef") for _ in range(digits))
            if int(text, 16) and text not in self.used:
                self.used.add(text)
                return text

    def add(self, trace, name, begin, end, parent=None, service="pilot", error=False, resource=None, **attributes):
        span = {"trace": trace, "id": self.new_id(16), "parent": parent, "name": name, "begin": begin, "end": end,
                "service": service, "error": error, "resource": resource or {}, "attributes": attributes}
        self.spans.append(span)
        return span

    def jobs(self, n, stages, every=60 * S, spread=0.1, tell=lambda i: {}, change=lambda i, name, ns: ns, begin=EPOCH):
        """Adds jobs one after the other, each a root span with stages in it: {name: median ns}, spread log-normally.
        change(i, name, ns) plants the change to be found."""
        roots = []
        for i in range(n):
            trace, at = self.new_id(32), begin + i * every
            lengths = {name: max(1, round(change(i, name, ns * math.exp(self.dice.gauss(0, spread)))))
                       for name, ns in stages.items()}
            root = self.add(trace, "job", at, at + sum(lengths.values()), **tell(i))
            roots.append(root)
            for name, ns in lengths.items():
                self.add(trace, name, at, at + ns, root["id"])
                at += ns
        return roots

    def line(self, span):
        out = {"traceId": span["trace"], "spanId": span["id"], "name": span["name"], "kind": 1,
               "startTimeUnixNano": str(span["begin"]), "endTimeUnixNano": str(span["end"]),
               "attributes": [attribute(k, v) for k, v in span["attributes"].items()]}
        if span["parent"]:
            out["parentSpanId"] = span["parent"]
        if span["error"]:
            out["status"] = {"code": 2}
        resource = [attribute("service.name", span["service"])]
        resource += [attribute(k, v) for k, v in span["resource"].items()]
        return json.dumps({"resourceSpans": [{"resource": {"attributes": resource},
                                              "scopeSpans": [{"spans": [out]}]}]})

    def write(self, path, shuffled=True):
        """Writes a spool: a line per span; in any order if `shuffled`, because networks reorder spans."""
        spans = list(self.spans)
        if shuffled:
            self.dice.shuffle(spans)
        with open(path, "w", encoding="utf-8") as f:
            for span in spans:
                f.write(self.line(span) + "\n")
        return path


def tree(world, depth=4, parts=4, length=1000 * S):
    """Adds one trace of a random tree: children overlap, exceed the ends of their parents, or take no time."""
    dice, trace = world.dice, world.new_id(32)

    def grow(parent, begin, end, level):
        for _ in range(dice.randrange(parts + 1)):
            a = dice.randrange(begin - (end - begin) // 10, end) if dice.random() < 0.9 else begin
            b = dice.randrange(a, end + (end - begin) // 10 + 1) if dice.random() < 0.95 else a
            part = world.add(trace, dice.choice("abcdefgh"), a, b, parent["id"])
            if level < depth and b - a > 10:
                grow(part, a, b, level + 1)

    root = world.add(trace, "root", EPOCH, EPOCH + length)
    grow(root, EPOCH, EPOCH + length, 1)
    return trace


def critical_path(spans, tolerance=100):
    """Returns the path of a tree, as [(begin, end, span id)]: from the end backwards into the child that ended last.
    Children that overlap by at most 1 % of the parent count as successive. A child that begins at the end of its
    parent or later is not part of it."""
    by_id = {s["id"]: s for s in spans}
    root = next(s for s in spans if s["parent"] not in by_id)
    out = []

    def order(part):
        return -part[0], part[1], part[2]["end"], part[2]["begin"], part[2]["id"]

    def walk(span, begin, end):
        cursor = end
        parts = [(min(p["end"], end), max(p["begin"], begin), p) for p in spans if p["parent"] == span["id"] and
                 (p["begin"] < span["end"] or p["end"] == span["end"])]
        parts = [p for p in parts if p[1] < p[0]]
        for part_end, part_begin, part in sorted(parts, key=order):
            if part_end > cursor and (part_end - cursor > (end - begin) // tolerance or part_begin >= cursor):
                continue
            part_end = min(part_end, cursor)
            out.append((part_end, cursor, span["id"]))
            walk(part, part_begin, part_end)
            cursor = part_begin
        out.append((begin, cursor, span["id"]))

    walk(root, root["begin"], root["end"])
    return sorted(s for s in out if s[0] < s[1])
