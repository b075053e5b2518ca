# SPDX-License-Identifier: MIT
"""Complete output of the program about traces, to compare two of its stores: by its verbs, and by every output of the
server: trees, states and values at several zooms, arrows, marks, tooltips, lines of tables."""
import re

import test_tsp_ids
import test_tsp_inout
from tsp_server import Server
from weft_e2e import SLOWDOWN, weft

PATH = test_tsp_ids.PATH
KINDS = {**test_tsp_ids.KINDS, "TABLE": "table"}
MOST_ROWS = 30  # asked for at once, where not all are
# What the events table shows of packets is how they were cut.
PACKET = re.compile(rb"timestamp_begin=\d+, timestamp_end=\d+, content_size=\d+, packet_size=\d+"
                    rb"(, packet_seq_num=\d+)?")
PLACE = re.compile(rb'\{"content":"/[^"]+"\}')  # column of the table of notes


class Verb:
    """Output of a verb about the traces below a directory, without its duration."""

    def __init__(self, trace, store):
        self.trace, self.store = trace, store

    def __call__(self, verb, *options):
        run = weft(verb, self.trace, "--store", self.store, *options, "--format", "json")
        return run.code, re.sub(r'"seconds":[^,}]*', "", run.text), run.message.replace(self.trace, "TRACE")


class Talk:
    """Queries to a server on one store, with its answers; another server gets the same queries."""

    def __init__(self, dice):
        self.dice, self.said = dice, []  # (method, path after the output's, body, answer)

    # ---- one server

    @staticmethod
    def opened(trace, store):
        server = Server(trace, "--name", "mine", store=store)
        x = server.first()
        about = {key: x[key] for key in ("start", "end", "nbEvents")}
        return server, f"/experiments/{x['UUID']}/outputs", about

    @staticmethod
    def answer(server, method, path, body):
        for _ in range(600 * SLOWDOWN):
            answer = server.ask(method, path, body)
            if b'"status":"RUNNING"' not in answer.body:
                answer.body = PLACE.sub(b'{"content":"PLACE"}', PACKET.sub(b"PACKET", answer.body))
                return answer
        raise AssertionError(f"{path} does not end")

    @staticmethod
    def end(server):
        assert server.stop() == 0, server.errors()

    # ---- first server

    def ask(self, what, parameters=None, method="POST", **body):
        body = body if method == "GET" or body else {"parameters": parameters or {}}
        answer = self.answer(self.server, method, self.outputs + what, body or None)
        self.said.append((method, what, body or None, answer))
        return answer

    def model(self, kind, output, operation, **parameters):
        answer = self.ask(f"/{kind}/{output}/{operation}", parameters)
        return answer.json.get("model") if answer.status == 200 else None

    def span(self):
        begin, end = sorted(self.dice.randint(self.about["start"], self.about["end"]) for _ in range(2))
        return {"start": begin, "end": end}

    def start(self, trace, store, threads):
        """Sends all kinds of queries. threads: of critical paths that are derived, "host:tid"."""
        self.server, self.outputs, self.about = self.opened(trace, store)
        for thread in threads:
            self.ask("/" + PATH, name=thread, sourceTypeId="weft.critical-path", parameters={"thread": thread})
        self.ask("/" + test_tsp_inout.TEMPLATE, name="mine", sourceTypeId=test_tsp_inout.KIND,
                 parameters={"specifiers": [test_tsp_inout.SYSCALLS]})
        for output in self.ask("", method="GET").json:
            kind = KINDS.get(output["type"])
            if kind == "table":
                self.lines(output["id"])
            elif kind and output["id"] != PATH:
                self.rows(kind, output["id"])
        self.end(self.server)

    def rows(self, kind, output):
        all_ = {"start": self.about["start"], "end": self.about["end"]}
        self.model(kind, output, "tree", requested_timerange=self.span(), isFiltered=True)
        tree = self.model(kind, output, "tree", requested_timerange=all_) or {"entries": []}
        ids = sorted(e["id"] for e in tree["entries"])
        if not ids or kind == "data":
            return
        some = sorted(self.dice.sample(ids, min(len(ids), MOST_ROWS)))
        for span, items in ((all_, ids), (self.span(), some), (self.span(), some)):
            n = self.dice.randint(2, 100)
            asked = {"requested_timerange": {**span, "nbTimes": n, "nbSamples": n}, "requested_items": items}
            for operation in ("states", "arrows") if kind == "timeGraph" else ("xy",):
                self.model(kind, output, operation, **asked)
            self.ask(f"/{output}/annotations", asked)
        for entry in some[:3] if kind == "timeGraph" else ():
            self.model(kind, output, "tooltip", requested_times=[self.span()["start"]], requested_items=[entry],
                       requested_element={"elementType": "state", "entryId": entry})

    def lines(self, output):
        self.model("table", output, "columns")
        first = self.model("table", output, "lines", requested_table_index=0, requested_table_count=20)
        for _ in range(2 if first and first["size"] else 0):
            self.model("table", output, "lines", requested_table_index=self.dice.randrange(first["size"]),
                       requested_table_count=20)

    # ---- further servers

    def differences(self, trace, store):
        """Returns the answers in which another store's server differs: (query, its answer and the first one's, from
        where they differ)."""
        server, outputs, about = self.opened(trace, store)
        found = [] if about == self.about else [("the experiment", about, self.about)]
        for method, what, body, said in self.said:
            answer = self.answer(server, method, outputs + what, body)
            if (answer.status, answer.body) != (said.status, said.body):
                at = next((i for i, (a, b) in enumerate(zip(answer.body, said.body)) if a != b), 0)
                found.append(((method, what, body), *(b[max(0, at - 300):at + 300] for b in (answer.body, said.body))))
        self.end(server)
        return found
