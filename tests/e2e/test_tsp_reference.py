# SPDX-License-Identifier: MIT
"""Reference clock of a server's times: --reference, as in the other verbs, which are the reference here."""
import json
import os
import shutil
from decimal import Decimal

from tsp_server import EVENTS, Server, ServerCase
from weft_e2e import main, scenario, scratch, weft

MAPS, NOTES = "weft.clocks.maps", "weft.notes"


class Reference(ServerCase):
    def sync(self, *args):
        return json.loads(weft("sync", "--store", self.store, "--format", "json", *args).text)

    def setUp(self):
        self.trace, self.store = scenario("three-tier"), scratch()

    def table(self, server, x, output, count=20000):
        """Lines as dictionaries by column."""
        base = f"/experiments/{x['UUID']}/outputs/table/{output}"
        names = {c["id"]: c["name"] for c in server.model(f"{base}/columns")}
        model = server.model(f"{base}/lines", {"requested_table_index": 0, "requested_table_count": count})
        return [{names[i]: c["content"] for i, c in zip(model["columnIds"], line["cells"])} for line in model["lines"]]

    def test_times_are_those_of_the_verbs(self):
        for host in ("client", "db", None):
            named = ["--reference", host] if host else []
            told = self.sync(*named, self.trace)
            with Server(*named, self.trace, store=self.store) as server:
                x = server.first()
                self.assertEqual(x["reference"], told["reference"])
                self.assertEqual(x["traces"][0]["properties"]["reference clock"], told["reference"])
                lines = self.table(server, x, EVENTS, 5000)
                text = weft("events", "--store", self.store, "--sync", *named, "--format", "json", self.trace).text
                events = [json.loads(line) for line in text.splitlines()[:5000]]
                self.assertEqual([(int(l["Timestamp ns"]), l["Trace"], l["Event type"]) for l in lines],
                                 [(e["ts"], e["host"], e["name"]) for e in events])
                self.maps(self.table(server, x, MAPS), told)
                self.assertNotIn(NOTES, [o["id"] for o in server.get(f"/experiments/{x['UUID']}/outputs").json])

    def maps(self, lines, told):
        """Checks that each piece begins and ends as in `weft sync`, to the ns."""
        pieces = [(h["host"], p) for h in told["hosts"] for p in h["pieces"]]
        self.assertEqual(len(lines), len(pieces))
        self.assertGreater(len(pieces), 5)
        for line, (host, p) in zip(lines, pieces):
            self.assertEqual((line["Host"], int(line["From (ns)"]), int(line["Until (ns)"])),
                             (host, p["begin"], p["end"]))
            for t, by in ((p["begin"], "Reference from (ns)"), (p["end"], "Reference until (ns)")):
                exact = Decimal(p["drift"]) * t + Decimal(p["offset_ns"])
                self.assertLessEqual(abs(exact - int(line[by])), 2, line)

    def test_a_name_that_no_host_has(self):
        args = ["serve", "--listen", "127.0.0.1:0", "--store", self.store]
        done = weft(*args, "--reference", "dp", self.trace)
        self.assertEqual(done.code, 2)
        self.assertIn("--reference dp: no such host; there are client, db, web", done.message)
        with Server(self.trace, store=self.store, WEFT_REFERENCE="dp") as server:  # a setting is for all that is served
            self.assertEqual(server.first()["reference"], self.sync(self.trace)["reference"])

    def test_experiments_without_that_host(self):
        """A client's experiment has what it has: the clock known best, and a note."""
        root = os.path.join(scratch(), "root")
        shutil.copytree(self.trace, os.path.join(root, "two"), ignore=shutil.ignore_patterns(".weft", "db"))
        shutil.copytree(os.path.join(self.trace, "web"), os.path.join(root, "one"))
        with Server("--reference", "db", "--trace-root", root, self.trace, store=self.store) as server:
            self.assertEqual(server.first()["reference"], "db")
            for name, best in (("two", self.sync(os.path.join(root, "two"))["reference"]), ("one", "web")):
                trace = self.good(server.post("/traces", {"uri": os.path.join(root, name), "name": name}))
                x = self.good(server.post("/experiments", {"name": name, "traces": [trace["UUID"]]}))
                x = server.opened(x["UUID"])
                self.assertEqual(x["reference"], best)
                notes = self.table(server, x, NOTES)
                self.assertEqual([n["Host"] for n in notes], ["db"])
                self.assertIn(f"by the clock of {best}", notes[0]["Note"])

    def test_a_host_that_nothing_relates_to_the_others(self):
        root = os.path.join(scratch(), "root")
        shutil.copytree(self.trace, root, ignore=shutil.ignore_patterns(".weft"))
        lonely = os.path.join(scenario("lost-events"))
        args = [f"lonely={lonely}", root]
        done = weft("sync", "--store", self.store, "--reference", "lonely", *args)
        self.assertEqual(done.code, 2)  # a server has others
        with Server("--reference", "lonely", *args, store=self.store) as server:
            x = server.first()
            self.assertEqual(x["reference"], self.sync(root)["reference"])
            self.assertIn("no message relates", "".join(n["Note"] for n in self.table(server, x, NOTES)
                                                         if n["Host"] == "lonely" and "by the clock" in n["Note"]))

    def test_what_is_kept_means_the_same_instants(self):
        """Bookmarks and critical paths, over a restart with another reference and back."""
        state, truth = scratch(), self.sync("--reference", "db", self.trace)
        template = "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider"
        shift = next(h for h in truth["hosts"] if h["host"] == "web")["pieces"]

        def of_db(t):
            """A time of web's clock by db's."""
            p = next((p for p in shift if t <= p["end"]), shift[-1])
            return Decimal(p["drift"]) * t + Decimal(p["offset_ns"])
        with Server("--state", state, "--reference", "web", self.trace, store=self.store) as server:
            x = server.first()
            base = f"/experiments/{x['UUID']}"
            begin, end = x["start"] + 2 * 10 ** 9, x["start"] + 3 * 10 ** 9
            self.good(server.post(base + "/bookmarks", {"name": "here", "start": begin, "end": end}))
            body = {"name": "p", "sourceTypeId": "weft.critical-path",
                    "parameters": {"thread": "web:186", "begin": begin, "end": end}}
            path = self.good(server.ask("POST", f"{base}/outputs/{template}", body))
        for reference in ("db", "web"):
            with Server("--state", state, "--reference", reference, self.trace, store=self.store) as server:
                self.assertEqual(server.first()["UUID"], x["UUID"])
                (kept,) = server.get(base + "/bookmarks").json
                listed = next(o for o in server.get(base + "/outputs").json if o["id"] == path["id"])
                asked = listed["configuration"]["parameters"]
                for wanted, times in ((begin, (kept["start"], asked["begin"])), (end, (kept["end"], asked["end"]))):
                    for t in times:
                        self.assertLessEqual(abs(t - (of_db(wanted) if reference == "db" else wanted)), 3)
                tree = server.model(f"{base}/outputs/timeGraph/{path['id']}/tree")
                self.assertTrue(tree["entries"])
        self.assertGreater(abs(of_db(begin) - begin), 10 ** 6)


if __name__ == "__main__":
    main()
