# SPDX-License-Identifier: MIT
"""Trace server: what lasts over a restart, and uploads."""
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
import uuid
import zipfile

from test_tsp import NOWHERE, name_uuid, recorded_times
from tsp_server import EVENTS, THREAD_STATUS, Server, ServerCase
from weft_e2e import SLOWDOWN, load, main, scenario, scratch


class Restart(ServerCase):
    def test_state_survives(self):
        root, state, store = scenario("three-tier"), scratch(), scratch()
        with Server("--state", state, "--trace-root", root, store=store) as s:
            t = self.good(s.post("/traces", {"uri": os.path.join(root, "web"), "name": "kept"}))
            x = self.good(s.post("/experiments", {"name": "kept too", "traces": [t["UUID"]]}))
            b = self.good(s.post(f"/experiments/{x['UUID']}/bookmarks", {"name": "mark", "start": 1, "end": 2}))
            kind = self.good(s.get("/config/types"))[0]["id"]
            c = self.good(s.ask("POST", f"/config/types/{kind}/configs",
                                {"name": "set", "parameters": {"markers": [{"time": 5}]}}))
            opened = s.opened(x["UUID"])
            outputs = self.good(s.get(f"/experiments/{x['UUID']}/outputs"))
            derived = self.derive(s, x["UUID"], outputs)
            self.assertEqual(s.stop(), 0)
        with Server("--state", state, "--trace-root", root, store=store) as s:
            self.assertEqual(self.good(s.get("/traces")), [t])
            listed = self.good(s.get("/experiments"))
            self.assertEqual([(l["UUID"], l["indexingStatus"], l["nbEvents"]) for l in listed],
                             [(x["UUID"], "CLOSED", 0)])
            self.assertEqual(s.opened(x["UUID"]), opened, "asking for it opens it again")
            self.assertEqual(self.good(s.get(f"/experiments/{x['UUID']}/bookmarks")), [b])
            self.assertEqual(self.good(s.get(f"/config/types/{kind}/configs")), [c])
            if derived:
                self.assertIn(derived, self.good(s.get(f"/experiments/{x['UUID']}/outputs")))
            self.good(s.delete("/experiments/" + x["UUID"]))
        with Server("--state", state, "--trace-root", root, store=store) as s:
            self.assertEqual(self.good(s.get("/experiments")), [])
            second = subprocess.run([s.process.args[0], "serve", "--listen", "127.0.0.1:0", "--state", state],
                                    capture_output=True, timeout=30)
            self.assertEqual(second.returncode, 2, "one server per state directory")

    def derive(self, s, uuid, outputs):
        """A derived output of the first provider that makes some from a thread; the rules of its life."""
        creator = next((o for o in outputs if o.get("capabilities", {}).get("canCreate")), None)
        if not creator:
            return None
        base = f"/experiments/{uuid}/outputs/{creator['id']}"
        kind = self.good(s.get(f"{base}/configTypes"))[0]
        self.assertEqual(self.good(s.get(f"{base}/configTypes/{kind['id']}")), kind)
        threads = [e for e in s.model(f"/experiments/{uuid}/outputs/timeGraph/{THREAD_STATUS}/tree")["entries"]
                   if e.get("metadata", {}).get("TID")]
        thread = next(e for e in threads if e["hasData"] and e["metadata"]["TID"] != [0])
        body = {"name": "mine", "description": "d", "sourceTypeId": kind["id"],
                "parameters": {"thread": f"web:{thread['metadata']['TID'][0]}"}}
        self.refused(s.ask("POST", base, dict(body, sourceTypeId="x")), 400)
        self.refused(s.ask("POST", base, {"sourceTypeId": kind["id"], "parameters": body["parameters"]}), 400, "name")
        self.refused(s.ask("POST", base, dict(body, parameters={})), 400)
        derived = self.good(s.ask("POST", base, body))
        self.assertEqual((derived["parentId"], derived["name"], derived["capabilities"]),
                         (creator["id"], "mine", {"canDelete": True}))
        self.assertEqual(derived["configuration"]["parameters"], body["parameters"])
        spare = self.good(s.ask("POST", base, dict(body, name="spare", typeId=kind["id"])))
        self.assertEqual(self.good(s.delete(f"{base}/{spare['id']}")), spare)
        self.refused(s.delete(f"{base}/{spare['id']}"), 404)
        self.refused(s.ask("POST", f"/experiments/{uuid}/outputs/x", body), 404)
        return derived

    def test_damaged_state_is_told(self):
        for name in ("state.json", f"experiments/{NOWHERE}.json"):
            state = scratch()
            os.makedirs(os.path.join(state, "experiments"))
            with open(os.path.join(state, name), "w", encoding="ascii") as f:
                f.write('{"traces": [')
            with self.assertRaisesRegex(RuntimeError, name):
                Server("--state", state)

    def kept(self, state, kind):
        directory = os.path.join(state, kind)
        return {n: load(directory, n) for n in os.listdir(directory)}

    def test_a_change_writes_what_changed(self):
        state = scratch()
        with Server("--state", state, scenario("three-tier")) as s:
            x = s.first()["UUID"]
            configs = [self.good(s.ask("POST", "/config/types/weft.markers/configs",
                                       {"name": f"set {k}", "parameters": {"markers": [{"time": k}] * 100}}))
                       for k in range(4)]
            files = {os.path.join(d, n): os.stat(os.path.join(d, n)).st_ino
                     for d, _, names in os.walk(state) for n in names if n.endswith(".json")}
            self.assertEqual(len(files), 6)  # a trace, an experiment, four sets
            self.good(s.post(f"/experiments/{x}/bookmarks", {"name": "mark", "start": 1, "end": 2}))
            self.good(s.delete(f"/config/types/weft.markers/configs/{configs[1]['id']}"))
            after = {os.path.join(d, n): os.stat(os.path.join(d, n)).st_ino
                     for d, _, names in os.walk(state) for n in names if n.endswith(".json")}
            self.assertEqual({p for p in files if after.get(p) != files[p]},
                             {os.path.join(state, "experiments", f"{x}.json"),
                              os.path.join(state, "configurations", f"{configs[1]['id']}.json")})
        with Server("--state", state, scenario("three-tier")) as s:
            del configs[1]
            self.assertEqual(self.good(s.get("/config/types/weft.markers/configs")), configs, "in the same order")

    def test_what_is_not_known_survives(self):
        """Unknown contents survive: another server's provider, and another type of configuration: changes around them
        leave them alone."""
        state = scratch()
        with Server("--state", state, scenario("three-tier")) as s:
            x = s.first()["UUID"]
        path = os.path.join(state, "experiments", f"{x}.json")
        ours = load(path)
        other = {"id": "some.provider:x", "provider": "some.provider", "configuration": {"any": [1, "thing"]}}
        ours["derived"].append(other)
        strange = {"number": 7, "configuration": {"id": NOWHERE, "sourceTypeId": "some.type", "name": "n",
                                                  "parameters": {}}}
        for where, what in ((path, ours), (os.path.join(state, "configurations", f"{NOWHERE}.json"), strange)):
            with open(where, "w", encoding="ascii") as f:
                json.dump(what, f)
        with Server("--state", state, scenario("three-tier")) as s:
            self.good(s.post(f"/experiments/{x}/bookmarks", {"name": "mark", "start": 1, "end": 2}))
            self.assertEqual(self.good(s.get("/config/types/weft.markers/configs")), [])
        self.assertEqual(load(path)["derived"], [other])
        self.assertEqual(self.kept(state, "configurations"), {f"{NOWHERE}.json": strange})

    def test_state_of_an_older_server(self):
        """State of an older server: one file with everything becomes a file for each thing."""
        state, path = scratch(), os.path.realpath(scenario("three-tier"))
        trace = name_uuid(path + "/old")
        mark = {"id": NOWHERE, "sourceTypeId": "weft.markers", "name": "set", "description": "",
                "parameters": {"markers": []}}
        with open(os.path.join(state, "state.json"), "w", encoding="ascii") as f:
            json.dump({"version": 1, "traces": [{"name": "old", "path": path, "type": ""}],
                       "experiments": [{"name": "older", "traces": [trace], "derived": [],
                                        "bookmarks": [{"uuid": NOWHERE, "name": "b", "start": 1, "end": 2}]}],
                       "configurations": [mark]}, f)
        for _ in range(2):
            with Server("--state", state, "--trace-root", path) as s:
                self.assertEqual([t["UUID"] for t in s.get("/traces").json], [trace])
                self.assertEqual([x["name"] for x in s.get("/experiments").json], ["older"])
                self.assertEqual(s.get(f"/experiments/{name_uuid('older')}/bookmarks").json[0]["name"], "b")
                self.assertEqual(s.get("/config/types/weft.markers/configs").json, [mark])
            self.assertFalse(os.path.exists(os.path.join(state, "state.json")))

    def test_trace_root_holds_for_what_is_remembered(self):
        """A trace that another root allowed is as absent as any other, until that root is back."""
        root, state, source = scratch(), scratch(), scenario("three-tier")
        for name in ("in", "out"):
            os.makedirs(os.path.join(root, name))
            shutil.copytree(os.path.join(source, "web"), os.path.join(root, name, "web"))
        with Server("--state", state, "--trace-root", root) as s:
            x = {}
            for name in ("in", "out"):
                trace = self.good(s.post("/traces", {"uri": f"{name}/web", "name": name}))["UUID"]
                x[name] = self.good(s.post("/experiments", {"name": name, "traces": [trace]}))["UUID"]
        with Server("--state", state, "--trace-root", os.path.join(root, "in")) as s:
            self.assertEqual([t["name"] for t in s.get("/traces").json], ["in"])
            self.assertEqual([t["name"] for t in s.get("/experiments").json], ["in"])
            self.refused(s.get(f"/experiments/{x['out']}"), 404)
            # A link in the place of a trace leads nowhere.
            shutil.rmtree(os.path.join(root, "in", "web"))
            os.symlink(os.path.join(root, "out", "web"), os.path.join(root, "in", "web"))
            self.assertEqual(s.opened(x["in"])["indexingStatus"], "CLOSED")
            answer = s.post(f"/experiments/{x['in']}/outputs/timeGraph/{THREAD_STATUS}/tree").json
            self.assertEqual(answer["status"], "FAILED")
            self.assertIn("--trace-root", answer["statusMessage"])
        with Server("--state", state, "--trace-root", root) as s:
            self.assertEqual([t["name"] for t in s.get("/experiments").json], ["in", "out"])
            self.assertEqual(s.opened(x["out"])["indexingStatus"], "COMPLETED")

    def test_traces_that_went_away(self):
        root, state = scratch(), scratch()
        shutil.copytree(os.path.join(scenario("three-tier"), "web"), os.path.join(root, "web"))
        with Server("--state", state, "--trace-root", root) as s:
            t = self.good(s.post("/traces", {"uri": os.path.join(root, "web")}))
            x = self.good(s.post("/experiments", {"name": "x", "traces": [t["UUID"]]}))
            s.opened(x["UUID"])
        shutil.rmtree(os.path.join(root, "web"))
        with Server("--state", state, "--trace-root", root) as s:
            self.assertEqual(s.opened(x["UUID"])["indexingStatus"], "CLOSED")
            answer = self.good(s.post(f"/experiments/{x['UUID']}/outputs/timeGraph/{THREAD_STATUS}/tree"))
            self.assertEqual((answer["status"], answer["model"]), ("FAILED", None))
            self.refused(s.get(f"/experiments/{x['UUID']}/outputs"), 500)
            self.refused(s.post(f"/experiments/{x['UUID']}/outputs/table/{EVENTS}/columns"), 400)


class Uploads(ServerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(scenario("three-tier"), "web", "kernel")
        cls.state = scratch()
        cls.server = Server("--state", cls.state, "--max-upload", "20M")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def upload(self, data, name="mine"):
        return self.server.ask("POST", f"/upload?name={name}", data, raw=True,
                               headers={"Content-Type": "application/octet-stream"})

    def test_deleted(self):
        """Deletion of a trace deletes its files; those of others stay, and an experiment keeps its own."""
        places = [os.path.join(self.state, "uploads", name) for name in ("goes", "stays")]
        traces = [self.good(self.upload(self.tar(self.trace), os.path.basename(p))) for p in places]
        x = self.good(self.server.post("/experiments", {"name": "of it", "traces": [traces[0]["UUID"]]}))["UUID"]
        self.server.opened(x)
        self.refused(self.server.delete(f"/traces/{traces[0]['UUID']}"), 409)
        self.assertTrue(os.path.isdir(places[0]))
        self.good(self.server.delete(f"/experiments/{x}"))
        self.good(self.server.delete(f"/traces/{traces[0]['UUID']}"))
        self.assertEqual([os.path.isdir(p) for p in places], [False, True])
        self.good(self.server.delete(f"/traces/{traces[1]['UUID']}"))
        self.await_removed()

    def await_removed(self, *kept):
        """Files are removed in the background."""
        until = time.monotonic() + 60 * SLOWDOWN
        left = [""]
        while left and time.monotonic() < until:
            left = [n for n in os.listdir(os.path.join(self.state, "uploads")) if not n.startswith(kept or ("/",))]
            time.sleep(0.05)
        self.assertEqual(left, [], "nothing of what was refused is kept")

    def tar(self, *members, mode="w:gz"):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode=mode) as t:
            for m in members:
                if isinstance(m, str):
                    t.add(m, arcname="kernel")
                else:
                    t.addfile(m, io.BytesIO(b"x" * m.size))
        return out.getvalue()

    def test_tar_and_zip(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as z:
            for directory, _, names in os.walk(self.trace):
                for n in names:
                    path = os.path.join(directory, n)
                    z.write(path, os.path.join("deep", "er", os.path.relpath(path, self.trace)))
        expected = len(recorded_times(self.trace))
        for i, data in enumerate((self.tar(self.trace), self.tar(self.trace, mode="w:xz"),
                                  self.tar(self.trace, mode="w"), packed.getvalue())):
            t = self.good(self.upload(data))
            self.assertEqual(t["name"], "mine" if not i else f"mine-{i}")
            x = self.good(self.server.post("/experiments", {"name": f"upload {i}", "traces": [t["UUID"]]}))
            self.assertEqual(self.server.opened(x["UUID"])["nbEvents"], expected)

    def test_refused(self):
        def member(name, size=1, kind=tarfile.REGTYPE, target=""):
            m = tarfile.TarInfo(name)
            m.size, m.type, m.linkname = size, kind, target
            return m
        outside = os.path.join(self.state, "escaped")
        for members in ([member("../escaped")], [member("a/../../escaped")], [member(outside)],
                        [member("l", 0, tarfile.SYMTYPE, "/etc")],
                        [member("a"), member("h", 0, tarfile.LNKTYPE, "a")], [member("f", 0, tarfile.FIFOTYPE)],
                        [member("l", 0, tarfile.SYMTYPE, ".."), member("l/escaped")], [member("a"), member("a")],
                        [member("a"), member("a/b")]):
            self.refused(self.upload(self.tar(*members)), 400)
        self.refused(self.upload(self.tar(member("no-trace", 10))), 501)
        self.refused(self.upload(b"nonsense" * 1000), 400)
        self.refused(self.upload(b""), 400)
        self.refused(self.upload(self.tar(self.trace)[:100000]), 400)
        self.refused(self.upload(self.tar(member("bomb", 700 << 20))), 413)
        self.refused(self.upload(b"x" * (21 << 20)), 413)
        self.assertFalse(os.path.exists(outside))
        self.await_removed("mine")

    def test_not_offered_without_state(self):
        with Server() as s:
            self.refused(s.ask("POST", "/upload?name=x", b"x", raw=True), 501)


if __name__ == "__main__":
    main()
