# SPDX-License-Identifier: MIT
"""Trace and store files cut off while the program has them open: the server continues, nothing computed from missing
data is shown as good, and cut stores are rebuilt. Verbs end with one line that names the file."""
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time

import long_trace
from tsp_server import EVENTS, THREAD_STATUS, Server, ServerCase
from weft_e2e import BIN, SLOWDOWN, Case, main, new_dice, scenario, scratch, weft

KINDS = {"TIME_GRAPH": "timeGraph", "TREE_TIME_XY": "XY", "TREE_GENERIC_XY": "genericXY", "DATA_TREE": "data"}
ASKERS = 4
DICE = new_dice(None)
SHORTER = "became shorter while it was read"


def copy_of(source):
    target = os.path.join(scratch(), "trace")
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for d, _, _ in os.walk(target):
        os.chmod(d, 0o755)
    return target


def largest(directory, name):
    """The largest file of that name below the directory."""
    return max((os.path.join(d, name) for d, _, names in os.walk(directory) if name in names), key=os.path.getsize)


class Asker(threading.Thread):
    """Sends the queries in random order until stopped, and keeps every valid answer."""

    def __init__(self, server, questions, seed):
        super().__init__()
        self.server, self.questions, self.random = server, questions, random.Random(seed)
        self.answers, self.refused, self.absent, self.wrong, self.ended = set(), [], set(), [], threading.Event()

    def run(self):
        while not self.ended.is_set():
            path, parameters = self.random.choice(self.questions)
            try:
                answer = self.server.post(path, parameters)
                content = answer.json
            except Exception as e:  # pylint: disable=broad-except
                self.wrong.append(f"{path}: {e!r}")
                return
            if answer.status == 500:
                self.refused.append(content)
            elif answer.status == 405:
                self.absent.add(path)
            elif answer.status != 200 or content["status"] == "CANCELLED":
                self.wrong.append(f"{path}: {answer}")
            elif content["status"] == "COMPLETED":
                self.answers.add((path, json.dumps(parameters), json.dumps(content["model"], sort_keys=True)))
            elif content["status"] == "FAILED" and SHORTER not in content["statusMessage"]:
                self.wrong.append(f"{path}: {answer}")


class ServerGoesOn(ServerCase):
    def setUp(self):
        self.trace, self.store = copy_of(scenario("three-tier")), scratch()
        self.server = Server(self.trace, store=self.store)
        self.addCleanup(self.server.stop)

    def questions(self):
        x = self.server.first()
        base = f"/experiments/{x['UUID']}/outputs"
        span = {"start": x["start"], "end": x["end"], "nbTimes": 300, "nbSamples": 300}
        outputs, rows = self.server.get(base).json, self.server.rows(x["UUID"], 1000)
        list_ = [(f"{base}/{KINDS[o['type']]}/{o['id']}/tree", {"requested_timerange": span}) for o in outputs
                 if o["type"] in KINDS]
        list_ += [(f"{base}/timeGraph/{THREAD_STATUS}/states",
                   {"requested_timerange": span, "requested_items": rows[k:k + 200]})
                  for k in range(0, len(rows), 200)]
        list_ += [(f"{base}/timeGraph/{THREAD_STATUS}/arrows", {"requested_timerange": span})]
        list_ += [(f"{base}/table/{EVENTS}/lines",
                   {"requested_table_index": k, "requested_table_count": 200, "requested_table_column_ids": []})
                  for k in range(0, 40000, 4000)]
        return list_

    def is_offered(self, path):
        """Returns whether the queried output has data: the rest of a trace may have none."""
        return path.split("/")[5] in {o["id"] for o in self.server.get(path.split("/outputs/")[0] + "/outputs").json}

    def answers(self, questions):
        """Returns the answers to all queries, once no trace is being opened."""
        found = set()
        for path, parameters in questions:
            end = time.monotonic() + 60 * SLOWDOWN
            while time.monotonic() < end:
                answer = self.server.post(path, parameters)
                if answer.status == 405 and not self.is_offered(path):
                    break
                if answer.status == 200 and answer.json["status"] == "COMPLETED":
                    found.add((path, json.dumps(parameters), json.dumps(answer.json["model"], sort_keys=True)))
                    break
                time.sleep(0.05)
            else:
                self.fail(f"{path}: {answer}")
        return found

    def cut(self, file, share, questions):
        """Cuts the file during all queries; returns the answers, and fails if a client was not informed."""
        askers = [Asker(self.server, questions, i) for i in range(ASKERS)]
        for a in askers:
            a.start()
        time.sleep(0.3)
        os.truncate(file, int(os.path.getsize(file) * share))
        end = time.monotonic() + 20 * SLOWDOWN
        while not any(a.refused for a in askers) and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(min(0.5 * SLOWDOWN, 2))  # pause until the others know, too
        for a in askers:
            a.ended.set()
        for a in askers:
            a.join()
            self.assertEqual(a.wrong, [])
            self.assertFalse(any(map(self.is_offered, a.absent)), str(a.absent))
            for r in a.refused:
                self.assertIn("cut off", r["title"])
                self.assertIn(f"{file}: {SHORTER}", r["detail"])
        self.assertTrue(any(a.refused for a in askers), f"nobody was told that {file} was cut")
        self.assertIsNone(self.server.process.poll(), self.server.errors())
        return set().union(*(a.answers for a in askers))

    def test_stores(self):
        """Cut stores: no client gets another answer than before, and the store is whole again."""
        questions = self.questions()
        good = self.answers(questions)
        for share in (0, 0.2, 0.4, 0.6, 0.8):
            file = largest(self.store, "chunk.1")
            size = os.path.getsize(file)
            given = self.cut(file, share, questions)
            self.assertEqual(given - good, set(), f"cut at {share}")
            self.assertEqual(self.answers(questions), good)
            self.assertEqual(os.path.getsize(file), size)
        self.assertEqual(self.server.stop(), 0, self.server.errors())

    def test_streams(self):
        """A stream: answers are those of the whole trace, or those of what is left of it."""
        questions = self.questions()
        whole = self.answers(questions)
        for share in (0.7, 0.3):
            given = self.cut(os.path.join(self.trace, "web", "kernel", "ch_0"), share, questions)
            left = self.answers(questions)
            self.assertNotEqual(left, whole)
            self.assertEqual(given - whole - left, set(), f"cut at {share}")
            whole = left
        with Server(self.trace) as fresh:
            x = fresh.first()
            self.assertEqual(x["nbEvents"], self.server.first()["nbEvents"])
        self.assertEqual(self.server.stop(), 0, self.server.errors())

    def who(self):
        """Returns the owner of each id in all outputs' trees: {output: {id: host and thread, or the labels down to
        it}}."""
        x = self.server.first()
        found = {}
        for o in self.server.get(f"/experiments/{x['UUID']}/outputs").json:
            if o["type"] in KINDS:
                model = self.server.model(f"/experiments/{x['UUID']}/outputs/{KINDS[o['type']]}/{o['id']}/tree",
                                          {"requested_timerange": {"start": x["start"], "end": x["end"]}})
                whose = found[o["id"]] = {-1: ()}
                for e in (model or {"entries": []})["entries"]:
                    tid = e.get("metadata", {}).get("TID")
                    name = e["labels"][0]
                    if o["id"] == "weft.requests.groups":  # numbered by size in the first column
                        name = (e["labels"][1], e["labels"][7])
                    whose[e["id"]] = whose[e["parentId"]] + (tid[0] if tid else name,)
        return found

    def reopen(self, file, share):
        """Cuts the file and queries until the server has noticed and the experiment is open again."""
        before = self.server.first()
        os.truncate(file, int(os.path.getsize(file) * share))
        path = f"/experiments/{before['UUID']}/outputs/timeGraph/{THREAD_STATUS}/states"
        asked = {"requested_timerange": {"start": before["start"], "end": before["end"], "nbTimes": 10},
                 "requested_items": [1]}
        end = time.monotonic() + 20 * SLOWDOWN
        while self.server.post(path, asked).status != 500:
            self.assertLess(time.monotonic(), end, "nobody was told")
        while (answer := self.server.post(path, asked)).status != 200 or answer.json["status"] != "COMPLETED":
            self.assertLess(time.monotonic(), end, str(answer))

    def test_ids_of_before(self):
        """Ids from before: those of a trace's rows are not used for others when less is left of it, and are the same
        when only a store was built again."""
        old = self.who()
        self.reopen(largest(self.store, "chunk.1"), 0.5)
        self.assertEqual(self.who(), old)
        said = {}
        for share in (0.6, 0.6):
            self.reopen(os.path.join(self.trace, "web", "kernel", "ch_0"), share)
            new = self.who()
            self.assertLessEqual(set(new), set(old))  # missing entries: the rest may have no data for some
            for output, whose in new.items():
                both = set(whose) & set(old[output])
                self.assertGreater(len(both), 0.3 * len(whose), output)
                if output == THREAD_STATUS:  # output whose parents are not all known any more
                    self.assertEqual({i: whose[i][-1:] for i in both}, {i: old[output][i][-1:] for i in both})
                else:
                    self.assertEqual({i: whose[i] for i in both}, {i: old[output][i] for i in both}, output)
                for i in whose:
                    self.assertEqual(said.setdefault((output, i), whose[i][-1:]), whose[i][-1:], output)

    def test_one_of_two(self):
        """Experiment of other traces: not affected."""
        other = copy_of(scenario("three-tier"))
        self.server.stop()
        with Server("--trace-root", os.path.dirname(other), self.trace, store=self.store) as self.server:
            uuid = self.server.post("/traces", {"uri": other, "name": "other"}).json["UUID"]
            other_x = self.server.opened(self.server.post("/experiments",
                                                          {"name": "other", "traces": [uuid]}).json["UUID"])
            questions = self.questions()
            asked = [(p.replace(p.split("/")[2], other_x["UUID"]), q) for p, q in questions]
            before = self.answers(asked)
            bystander = Asker(self.server, asked, 99)
            bystander.start()
            self.cut(os.path.join(self.trace, "db", "kernel", "ch_0"), 0, questions)
            bystander.ended.set()
            bystander.join()
            self.assertEqual((bystander.wrong, bystander.refused), ([], []))
            self.assertEqual(bystander.answers - before, set())


class Verbs(Case):
    PACKETS = 100

    def setUp(self):
        self.trace, self.store = os.path.join(scratch(), "long"), scratch()
        long_trace.write(self.trace, self.PACKETS)
        self.file = os.path.join(self.trace, "ch_0")

    def start(self, *args):
        return subprocess.Popen([BIN, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def cut_during(self, seconds, *args):
        """Stops the verb somewhere in the `seconds` that it takes, cuts the file, and lets it go on: exit status,
        output and stderr."""
        size = os.path.getsize(self.file)
        process = self.start(*args)
        time.sleep(DICE.uniform(0.05, 0.95) * seconds)
        process.send_signal(signal.SIGSTOP)
        if process.poll() is None:
            os.truncate(self.file, size // 3)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=60 * SLOWDOWN)
        return process.returncode, out.decode(), err.decode()

    def said_in_one_line(self, code, err):
        lines = [line for line in err.splitlines() if not line.startswith("weft: note: ")]
        self.assertEqual((code, len(lines)), (1, 1), err)
        self.assertRegex(lines[0], f"^weft: .*{SHORTER}: [0-9]+ of [0-9]+ bytes are left")
        self.assertIn(self.file, lines[0])

    def test_events(self):
        """Printed events are the beginning of those of the whole trace; then one line reports the cut."""
        whole = weft("events", self.trace, "--limit", "1500000").out
        process = self.start("events", self.trace)
        head = process.stdout.read(1 << 20)
        os.truncate(self.file, os.path.getsize(self.file) // 5 + 11)
        printed, err = head + process.stdout.read(), process.stderr.read().decode()
        self.said_in_one_line(process.wait(), err)
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(printed, whole[:len(printed)])
        self.assertTrue(printed.endswith(b"\n"))

    def told(self, *args):
        """Repeats until one of the cuts falls into the work; earlier ones hit the opening, later ones come too late."""
        for _ in range(60):
            begin = time.monotonic() # measured each time: the machine's speed changes
            self.ok(*args)
            seconds = time.monotonic() - begin
            shutil.rmtree(self.store, ignore_errors=True)
            code, out, err = self.cut_during(seconds, *args)
            if code == 1 and SHORTER in err:
                self.said_in_one_line(code, err)
                self.assertEqual(out, "")
                return
            self.assertIn(code, (0, 1, 3), err)  # 3: it was cut before it was opened
            long_trace.write(self.trace, self.PACKETS)
            shutil.rmtree(self.store, ignore_errors=True)
        self.fail(f"no cut fell into the work: {code} {err}")

    def test_index(self):
        self.told("index", self.trace, "--store", self.store)
        again = self.partly("index", self.trace, "--store", self.store)
        self.assertIn("cut off by the end of the file", again.message)
        self.assertRegex(again.text, r"\bbuilt\b")

    def test_info(self):
        self.told("info", self.trace)

    def test_threads(self):
        self.told("threads", self.trace, "--store", self.store)

    def test_critpath(self):
        self.told("critpath", self.trace, "--store", self.store, "--thread", "10", "--format", "json")


if __name__ == "__main__":
    main()
