#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Entry ids of the trace server: who has one keeps it over restarts, in copies on other machines, whatever else is
opened beside, in any order, and while a trace grows. What an entry is, its labels and numbers tell."""
import glob
import os
import shutil

import test_tsp_inout as inout
from test_reboot import DAY, write
from test_ust import UST_WRITE, both, sample
from tsp_server import HISTOGRAM, THREAD_STATUS, Server, ServerCase
from weft_e2e import main, need, new_dice, scenario, scratch

KINDS = {"TIME_GRAPH": "timeGraph", "TREE_TIME_XY": "XY", "TREE_GENERIC_XY": "genericXY", "DATA_TREE": "data",
         "GANTT_CHART": "timeGraph"}
RESOURCES = "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ResourcesStatusDataProvider"
CPU = "org.eclipse.tracecompass.analysis.os.linux.core.cpuusage.CpuUsageDataProvider"
IO = "org.eclipse.tracecompass.incubator.kernel.core.io.per.process"
FILES = "org.eclipse.tracecompass.incubator.kernel.core.file.access.dataprovider"
PATH = "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider"
DICE = new_dice(7)


def copy_of(source):
    target = os.path.join(scratch(), os.path.basename(source))
    shutil.copytree(source, target, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns(".weft"))
    return target


class Asked:
    """A server's experiment. thread: of a critical path that is derived, "host:tid"."""

    def __init__(self, server, thread=None):
        self.server, self.x = server, server.first()
        self.outputs = f"/experiments/{self.x['UUID']}/outputs"
        self.span = {"start": self.x["start"], "end": self.x["end"]}
        listed = {o["id"] for o in server.get(self.outputs).json}
        if thread:
            self.derive(PATH, "weft.critical-path", {"thread": thread})
        if inout.TEMPLATE in listed:
            self.derive(inout.TEMPLATE, inout.KIND, {"specifiers": [inout.SYSCALLS]})
        self.listed = {o["id"]: KINDS[o["type"]] for o in server.get(self.outputs).json
                       if o["type"] in KINDS and o["id"] != PATH}

    def derive(self, output, kind, parameters):
        made = self.server.ask("POST", f"{self.outputs}/{output}",
                               {"name": "mine", "sourceTypeId": kind, "parameters": parameters})
        assert made.status == 200, made

    def model(self, output, operation, **parameters):
        return self.server.model(f"{self.outputs}/{self.listed[output]}/{output}/{operation}", parameters)

    def entries(self, output, **more):
        model = self.model(output, "tree", requested_timerange=self.span, **more)
        return (model or {"headers": [], "entries": []})

    def who(self, output):
        """{id: what the entry is and what it lies below}. Threads are told by their number: names change."""
        model = self.entries(output)
        named = [h["name"] for h in model["headers"]]
        by_id = {e["id"]: e for e in model["entries"]}
        assert len(by_id) == len(model["entries"]), output

        def called(e):
            tid = e.get("metadata", {}).get("TID") or (named[1:2] == ["TID"] and e["labels"][1:2] != [""]
                                                       and e["labels"][1:2])
            return str(tid[0]) if tid else e["labels"][0]

        def path(e):
            return (path(by_id[e["parentId"]]) if e["parentId"] != -1 else ()) + (called(e),)
        return {i: path(e) for i, e in by_id.items()}

    def all(self):
        return {o: self.who(o) for o in self.listed}

    def answers(self, ids):
        """Returns the answers about entries, by output: only {output: ids} are queried."""
        range_ = {"requested_timerange": {**self.span, "nbTimes": 40, "nbSamples": 40}}
        found = {}
        for output, some in ids.items():
            asked = {**range_, "requested_items": sorted(some)}
            if self.listed[output] == "timeGraph":
                rows = self.model(output, "states", **asked)["rows"]
                found[output] = {r["entryId"]: r["states"] for r in rows}
                found[output, "arrows"] = sorted((a["start"], a["end"], a["sourceId"], a["targetId"])
                                                 for a in self.model(output, "arrows", **asked) or [])
                entry = min(some)
                found[output, "tip"] = self.model(
                    output, "tooltip", requested_times=[(self.span["start"] + self.span["end"]) // 2],
                    requested_items=[entry], requested_element={"elementType": "state", "entryId": entry})
            elif self.listed[output] != "data":
                found[output] = {s["seriesId"]: s["yValues"] for s in self.model(output, "xy", **asked)["series"]}
            found[output, "marks"] = self.server.model(f"{self.outputs}/{output}/annotations", asked)
        return found


class Ids(ServerCase):
    def asked(self, *args, thread=None, store=None):
        server = Server(*args, "--name", "mine", store=store)
        self.addCleanup(lambda: server.log.closed or (server.stop(), server.log.close()))
        return Asked(server, thread)

    def end(self, asked):
        self.assertEqual(asked.server.stop(), 0, asked.server.errors())

    def all_of(self, *args, **how):
        asked = self.asked(*args, **how)
        found = asked.all()
        self.end(asked)
        return found

    def same(self, old, new):
        self.assertEqual(set(new), set(old))
        for output in old:
            self.assertEqual(new[output], old[output], output)

    def grown(self, old, new, called=lambda who: who):
        """Whoever had an id has it still."""
        for output, ids in old.items():
            self.assertEqual({i: called(new.get(output, {}).get(i, ())) for i in ids},
                             {i: called(w) for i, w in ids.items()}, output)

    def test_restart_copy_order(self):
        trace, store = scenario("three-tier"), scratch()
        hosts = [os.path.join(trace, h) for h in ("client", "web", "db")]
        first = self.asked(*hosts, thread="client:204", store=store)
        old = first.all()
        self.assertGreater(len(old), 25)
        ids = {o: set(who) for o, who in old.items() if who}
        told = first.answers(ids)
        self.end(first)
        copy = copy_of(trace)
        others = [os.path.join(copy, h) for h in ("client", "web", "db")]
        for args, where in ((hosts, store), (others, scratch()), (others[::-1], scratch()), (hosts[::-1], store)):
            # Queries by ids alone, before any tree; then the trees.
            again = self.asked(*args, thread="client:204", store=where)
            now = again.answers(ids)
            self.assertEqual(set(now), set(told))
            for what, answer in told.items():
                if args in (hosts, others):
                    self.assertEqual(now[what], answer, what)
                elif isinstance(what, str):  # values differ, because another clock is the reference
                    self.assertEqual(set(now[what]), set(answer), what)
            self.same(old, again.all())
            self.end(again)

    def test_kept_file(self):
        """The table is beside the stores; damage costs no id."""
        store, trace = scratch(), scenario("scp-net")
        old = self.all_of(trace, store=store)
        kept, = glob.glob(os.path.join(store, "ids-*"))
        size = os.path.getsize(kept)
        self.assertGreater(size, 8 * max(len(who) for who in old.values()))
        self.same(old, self.all_of(trace, store=store))
        self.assertEqual(os.path.getsize(kept), size)
        with open(kept, "r+b") as f:
            f.truncate(size // 2)
        self.same(old, self.all_of(trace, store=store))
        self.assertEqual(os.path.getsize(kept), size)

    def test_further_hosts(self):
        trace = scenario("three-tier")
        hosts = [os.path.join(trace, h) for h in ("client", "web", "db")]

        def called(who):  # statistics of several hosts include the host of a name
            return tuple(part.replace("client/", "") for part in who)
        # Single hosts have no messages, so no clocks, but the events of all are the same.
        old = self.all_of(hosts[0])
        for args in (hosts[:2], hosts[::-1]):
            self.grown(old, self.all_of(*args), called)

    def test_growing_trace(self):
        archives = os.path.join(scenario("rotated"), "solo", "archives")
        trace, store, old = os.path.join(scratch(), "solo"), scratch(), {}
        for name in sorted(os.listdir(archives)):
            shutil.copytree(os.path.join(archives, name), os.path.join(trace, "archives", name),
                            copy_function=shutil.copyfile)
            new = self.all_of(trace, store=store)
            self.grown(old, new)
            old = new
        self.same(old, self.all_of(scenario("rotated")))

    def test_boots(self):
        """A boot's threads stay its own when another boot is found to have been before."""
        top = scratch()
        first, second = (write(os.path.join(top, f"session-{i}", "kernel"), 1 + i, boot, after)
                         for i, (boot, after) in enumerate(((7, 0), (9, DAY))))

        def threads(*args):
            asked = self.asked(*args)
            found = {e["id"]: (e["labels"][1], e["start"] // DAY) for e in asked.entries(THREAD_STATUS)["entries"]
                     if e["parentId"] != -1}
            self.end(asked)
            return found
        late, all_ = threads(second), threads(first, second)
        self.assertEqual({i: all_[i] for i in late}, late)
        self.assertEqual(len(all_), 2 * len(late))
        self.assertEqual(threads(second, first), all_)

    def test_user_space(self):
        if not os.path.exists(UST_WRITE):
            need(UST_WRITE)
        place = both()
        alone, beside = self.all_of(os.path.join(place, "ust")), self.all_of(place)
        for output in set(alone) - {HISTOGRAM}:
            if any("callstack" in part or "ust" in part for part in output.split(".")):
                self.assertEqual(beside[output], alone[output], output)
        self.same(beside, self.all_of(copy_of(place)))
        other = sample(os.path.join(scratch(), "ust"), "other")
        self.assertEqual(set(self.all_of(other)["org.eclipse.tracecompass.analysis.profiling.core.flamegraph:"
                                                "org.eclipse.tracecompass.lttng2.ust.core.analysis.callstack"])
                         & set().union(*alone.values()), set())

    def test_threads_are_the_same_in_all_views(self):
        asked = self.asked(scenario("three-tier"), thread="client:204")
        status = asked.who(THREAD_STATUS)
        path = next(o for o in asked.listed if o.startswith(PATH + ":"))
        for output in (CPU, IO, path):
            shared = {e["id"]: str(e["metadata"]["TID"][0]) for e in asked.entries(output)["entries"]
                      if "TID" in e.get("metadata", {}) and e["labels"][0] not in ("Read", "Write")}
            self.assertTrue(shared, output)
            self.assertEqual(shared, {i: status[i][-1] for i in shared})
        # Whatever else there is has an id of its own.
        seen = {}
        for output, ids in asked.all().items():
            for i in set(ids) - set(status):
                self.assertEqual(seen.setdefault(i, ids[i]), ids[i], output)
        self.end(asked)

    def test_ids_of_nobody(self):
        other, known = self.all_of(scenario("scp-net")), self.all_of(scenario("three-tier"))
        foreign = set().union(*other.values()) - set().union(*known.values())  # "all events" are everywhere
        asked = self.asked(scenario("three-tier"))
        foreign |= {DICE.randrange(1, 2**52) for _ in range(300)} | set(range(200)) | {2**52 - 1}
        for before in (True, False):  # queries before and after trees
            told = asked.answers({o: foreign for o in asked.listed})
            for output, kind in asked.listed.items():
                if kind == "timeGraph":
                    self.assertEqual(told[output], {}, output)
                    self.assertFalse(told[output, "tip"], output)
                elif kind != "data":  # totals come unasked
                    self.assertEqual(set(told[output]) & foreign, set(), output)
            self.assertTrue(not before or asked.all())
        # An element that nobody has is not taken for one of the items.
        known = next(iter(asked.who(THREAD_STATUS)))
        self.assertFalse(asked.model(THREAD_STATUS, "tooltip", requested_times=[asked.span["start"] + 10**9],
                                     requested_items=[known],
                                     requested_element={"elementType": "state", "entryId": 77}))
        self.end(asked)

    def test_trees_of_a_part(self):
        """Trees of a part: entries left out do not affect the ids of the others."""
        trace = scenario("three-tier")
        asked = self.asked(trace)
        middle = (asked.span["start"] + asked.span["end"]) // 2
        part = {"start": middle, "end": middle + 10**8}
        found = {}
        for output in asked.listed:
            model = asked.model(output, "tree", requested_timerange=part, isFiltered=True) or {"entries": []}
            found[output] = {e["id"]: e["labels"][0] for e in model["entries"]}
        self.end(asked)
        whole = self.asked(trace)
        for output, part in found.items():
            of_all = {e["id"]: e["labels"][0] for e in whole.entries(output)["entries"]}
            of_all.update({i: label for i, label in part.items() if label == "Selection"})
            below = {i for i in part if i not in of_all}  # entries of the selection
            self.assertTrue(not below or "Selection" in part.values(), output)
            self.assertEqual({i: of_all[i] for i in part if i not in below},
                             {i: label for i, label in part.items() if i not in below}, output)
        self.end(whole)


if __name__ == "__main__":
    main()
