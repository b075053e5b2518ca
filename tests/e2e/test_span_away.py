# SPDX-License-Identifier: MIT
"""weft-span without its collector: spans wait on disk, and are sent by the next calls and by flush. The judge is a
stand-in collector that knows JSON and HTTP from Python alone."""
import glob
import os
import re
import resource
import subprocess
import time

from span_collector import NOBODY, SPAN, Collector, Span, environment, spool_of, spooled
from weft_e2e import SLOWDOWN, main, scratch

MANY = int(os.environ.get("WEFT_SPAN_WRAPPERS", 200))


class Away(Span):
    """Collectors that do not answer, and disks that are full."""

    def growing(self, env):
        """The file that spans are added to."""
        path, = glob.glob(os.path.join(spool_of(env), "spans.*"))
        return path

    def waiting(self, c, n, **more):
        """An environment whose spool has n spans for the collector, in one file; and their ids."""
        env = environment(c.url, OTEL_EXPORTER_OTLP_TIMEOUT="30000", **more)
        answer, c.answer = c.answer, lambda body: (503, {})
        self.run_ok("run", "--name", "waited", "true", env=env)
        c.answer = answer
        with open(self.growing(env), "r+", encoding="utf-8") as f:
            line = f.read()
            first, = re.findall('"spanId":"([0-9a-f]{16})"', line)
            ids = [first] + [f"{i + 1:016x}" for i in range(1, n)]
            f.write("".join(line.replace(first, i) for i in ids[1:]))
        os.unlink(*glob.glob(os.path.join(spool_of(env), "rests-*")))
        return env, ids

    def pauses(self, env):
        return {os.path.basename(p).split("-")[0]
                for p in glob.glob(os.path.join(spool_of(env), "*-*")) if not os.path.getsize(p)}

    def call_until_sent(self, env):
        """Calls until nothing waits. Pauses are ended: on a busy machine a request may take longer than it has. Returns
        the notes."""
        notes, deadline = b"", time.monotonic() + 60 * SLOWDOWN
        while spooled(env):
            self.assertLess(time.monotonic(), deadline, len(spooled(env)))
            notes += self.run_ok("run", "--name", "own", "true", env=env).stderr
            for pause in glob.glob(os.path.join(spool_of(env), "slow-*")):
                os.unlink(pause)
        return notes

    def ids(self, spans, name="waited"):
        return {s["spanId"] for s in spans if s["name"].startswith(name)}

    def test_sent_by_the_next_calls(self):
        """Waiting spans are sent, a few by each call that reaches the collector: none is lost."""
        with Collector() as c:
            env, ids = self.waiting(c, 300)
            for _ in range(3):
                before = len(self.ids(c.spans()))
                self.assertEqual(self.run_ok("run", "true", env=env).stderr, b"")
                self.assertLessEqual(len(self.ids(c.spans())) - before, 64, "a few")
                self.assertLessEqual(set(ids), self.ids(spooled(env)) | self.ids(c.spans()))
            self.run_ok("end", self.run_ok("start", "--name", "x", env=env).stdout.decode().strip(), env=env)
            self.run_ok("emit", "--name", "x", "--start", str(int(time.time())), env=env)
            self.assertEqual(self.call_until_sent(env), b"")
            self.assertEqual(self.ids(c.spans()), set(ids))
            self.assertEqual(glob.glob(os.path.join(spool_of(env), "*.jsonl")), [])

    def test_sent_by_calls_at_the_same_time(self):
        with Collector() as c:
            env, ids = self.waiting(c, 500)
            for _ in range(20):
                calls = [subprocess.Popen([SPAN, "run", "--name", "own", "true"], env=env, stderr=subprocess.PIPE)
                         for _ in range(8)]
                self.assertEqual([(p.communicate(timeout=60 * SLOWDOWN)[1], p.returncode) for p in calls],
                                 [(b"", 0)] * 8)
            self.run_ok("flush", env=env)
            self.assertEqual(spooled(env), [])
            self.assertEqual(len(self.ids(c.spans(), "own")), 160)
            self.assertEqual(self.ids(c.spans()), set(ids))

    def test_few_at_a_time_from_a_collector_that_takes_no_more(self):
        """The collector takes a call's own span, and no more: waiting ones stay, and the call ends before its
        timeout."""
        for answer, pause in (("hang", "slow"), ("close", "rests"), ((503, {}), "rests")):
            with Collector(lambda body, answer=answer: (200, {}) if b'"waited"' not in body else answer) as c:
                env, ids = self.waiting(c, 100)
                deadline = time.monotonic() + 60 * SLOWDOWN
                while pause not in self.pauses(env):  # a call without time for a request sends none
                    begin = time.monotonic()
                    run = self.run_ok("run", "--name", "own", "sh", "-c", "exit 7", env=env, code=7)
                    self.assertLess(time.monotonic() - begin, 25)  # limit below the 30 s of its timeout
                    self.assertEqual(run.stderr, b"")
                    self.assertLess(time.monotonic(), deadline, self.pauses(env))
                self.assertEqual({s["name"] for s in c.spans()}, {"own"})
                self.assertEqual(self.ids(spooled(env)), set(ids))

    def test_slow_collector_is_not_away(self):
        """A slow collector takes longer for the waiting spans than a call may spend: later spans are still sent to it,
        and waiting ones are not sent again and again."""
        asked = []

        def answer(body):
            if b'"waited"' in body:
                asked.append(body)
                return "hang"
            return 200, {}

        with Collector(answer) as c:
            env, ids = self.waiting(c, 10)
            for call in range(1, 6):
                self.assertEqual(self.run_ok("run", "--name", "own", "true", env=env).stderr, b"")
                self.assertEqual(len(self.ids(c.spans(), "own")), call)
            self.assertLessEqual(len(asked), 1)
            self.assertEqual(self.ids(spooled(env)), set(ids))
            c.answer = lambda body: (200, {})
            self.run_ok("flush", env=env)
            self.assertEqual(self.ids(c.spans()), set(ids))

    def test_spans_of_another_endpoint(self):
        """Spans of another endpoint wait in the same spool, until its own calls come, or `flush`, which sends all."""
        with Collector() as one, Collector() as other:
            env, ids = self.waiting(one, 20)
            another = {**env, "OTEL_EXPORTER_OTLP_ENDPOINT": other.url}
            for _ in range(3):
                self.assertEqual(self.run_ok("run", "--name", "own", "true", env=another).stderr, b"")
            self.assertEqual(self.ids(other.spans(), ""), self.ids(other.spans(), "own"))
            self.assertEqual(self.ids(spooled(env)), set(ids))
            self.call_until_sent(env)
            self.assertEqual((self.ids(one.spans()), len(self.ids(other.spans()))), (set(ids), 0))
            env, ids = self.waiting(one, 20)
            self.run_ok("flush", env={**env, "OTEL_EXPORTER_OTLP_ENDPOINT": other.url})
            self.assertEqual((self.ids(other.spans()), spooled(env)), (set(ids), []))

    def test_spool_of_many_endpoints_is_bounded(self):
        env = environment(None, WEFT_SPAN_SPOOL_BYTES="20000", OTEL_TRACES_SAMPLER="always_on")
        for i in range(60):
            self.run_ok("emit", "--name", f"s{i}", "--start", "1",
                        env={**env, "OTEL_EXPORTER_OTLP_ENDPOINT": f"{NOBODY}/{i % 20}"})
            self.assertLessEqual(sum(map(os.path.getsize, glob.glob(spool_of(env) + "/*.jsonl"))), 20000)
        names = {s["name"] for s in spooled(env)}
        self.assertIn("s59", names)
        self.assertGreater(len(names), 15)

    def test_refused_among_those_that_wait(self):
        """A refused span does not block the others; nor does a torn or a long line."""
        with Collector(lambda body: (400 if b'"wrong"' in body else 200, {})) as c:
            env, ids = self.waiting(c, 100)
            with open(self.growing(env), encoding="utf-8") as f:
                lines = f.read().splitlines()
            lines[50] = lines[50].replace('"waited"', '"wrong"')
            lines[70] = lines[70].replace('"waited"', '"waited' + "x" * 200_000 + '"')
            torn = lines[98][:100]
            with open(self.growing(env), "w", encoding="utf-8") as f:
                f.write("\n".join([*lines, torn]))
            notes, deadline = b"", time.monotonic() + 60 * SLOWDOWN
            while glob.glob(os.path.join(spool_of(env), "*.jsonl")):
                self.assertLess(time.monotonic(), deadline)
                notes += self.run_ok("run", "--name", "own", "true", env=env).stderr
                for pause in glob.glob(os.path.join(spool_of(env), "slow-*")):
                    os.unlink(pause)
            self.assertEqual(self.ids(c.spans()), {i for i in ids if i != ids[50]})
            told = re.findall(rb"the collector refuses (\d+), and (\d+) are damaged", notes)
            self.assertEqual([sum(map(int, n)) for n in zip(*told)], [1, 1], notes)

    def test_kept_and_sent_later(self):
        env = environment(NOBODY)
        run = self.run_ok("run", "--name", "kept", "sh", "-c", "exit 5", env=env, code=5)
        self.assertIn(b"weft-span flush", run.stderr)
        kept, = spooled(env)
        self.assertEqual(self.run_ok("flush", env=env, code=1).stdout, b"")
        self.assertEqual(spooled(env), [kept])
        with Collector() as c:
            env["OTEL_EXPORTER_OTLP_ENDPOINT"] = c.url
            self.run_ok("flush", env=env)
            self.assertEqual((c.spans(), spooled(env)), ([kept], []))
            self.run_ok("flush", env=env)
            self.assertEqual(len(c.requests), 1)

    def test_hanging_collector_holds_up_once(self):
        with Collector(lambda body: "hang") as c:
            env = environment(c.url, OTEL_EXPORTER_OTLP_TIMEOUT="300")
            begin = time.monotonic()
            self.run_ok("run", "true", env=env)
            self.assertLess(time.monotonic() - begin, 0.3 + 1.5 * SLOWDOWN)
            c.answer = lambda body: self.fail("asked again")
            self.assertEqual(self.run_ok("run", "true", env=env).stderr, b"")
            self.assertEqual(len(spooled(env)), 2)

    def test_names_that_nobody_answers_for(self):
        env = environment("http://no-such-host.invalid:4318", OTEL_EXPORTER_OTLP_TIMEOUT="500")
        begin = time.monotonic()
        self.run_ok("run", "true", env=env)
        self.assertLess(time.monotonic() - begin, 0.5 + 1.5 * SLOWDOWN)
        self.assertEqual(len(spooled(env)), 1)

    def test_busy_refusing_and_odd_collectors(self):
        cases = [(lambda body: (503, {"Retry-After": "70"}), 70, 1), (lambda body: "close", 30, 1),
                 (lambda body: (429, {"Retry-After": "100000"}), 300, 1), (lambda body: (401, {}), 30, 1),
                 (lambda body: (400, {}), None, 0), (lambda body: (413, {}), None, 0)]
        for answer, rest_s, n in cases:
            with Collector(answer) as c:
                env = environment(c.url, WEFT_SPAN_SPOOL=scratch())
                now = time.time()
                self.assertNotEqual(self.run_ok("run", "true", env=env).stderr, b"")
                self.assertEqual(len(spooled(env)), n)
                rests = glob.glob(os.path.join(spool_of(env), "rests-*"))
                self.assertEqual(len(rests), n)
                if rest_s:
                    self.assertTrue(rest_s <= os.stat(rests[0]).st_mtime - now < rest_s + 10 * SLOWDOWN)

    def test_endpoints_that_cannot_be_used(self):
        for endpoint in ("ftp://x", "http://", "http://[::1", "http://h:99999",
                         "http://u:p@h",
                         "http://a b", "nonsense", "http://" + "h" * 20000):
            env = environment(endpoint)
            run = self.run_ok("run", "sh", "-c", "exit 3", env=env, code=3)
            self.assertIn(b"cannot be sent", run.stderr)
            self.assertNotIn(b"u:p@", run.stderr, "no passwords in logs")
            self.assertEqual(len(spooled(env)), 1, endpoint[:40])

    def test_full_disk(self):
        def full():
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

        env = environment(NOBODY)
        run = self.run_ok("run", "--", "sh", "-c", "echo out; exit 5", env=env, code=5, preexec_fn=full)
        self.assertEqual(run.stdout, b"out\n")
        self.assertIn(b"a span is lost", run.stderr)
        name = self.run_ok("start", "--name", "x", env=env, preexec_fn=full).stdout.decode().strip()
        self.run_ok("event", name, "--name", "e", env=env, preexec_fn=full)
        self.run_ok("end", name, env=env, preexec_fn=full)
        self.assertEqual(spooled(env), [])
        self.run_ok("run", "true", env=env)
        self.assertEqual(len(spooled(env)), 1, "what was cut off harms nothing")

        def nearly():
            most = os.path.getsize(self.growing(env)) + 99
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        self.run_ok("run", "true", env=env, preexec_fn=nearly)
        self.run_ok("run", "true", env=env)
        self.assertEqual(len(spooled(env)), 2, "no half lines")

    def test_places_where_nothing_can_be_kept(self):
        place = scratch()
        with open(os.path.join(place, "file"), "w", encoding="ascii"):
            pass
        for spool in (os.path.join(place, "file"), os.path.join(place, "file", "below"), "/proc/spans", "/dev/null"):
            env = environment(NOBODY, WEFT_SPAN_SPOOL=spool)
            self.run_ok("run", "sh", "-c", "exit 8", env=env, code=8)
            self.assertRegex(self.run_ok("start", "--name", "x", env=env).stdout, b"^00-")

    def test_many_at_once(self):
        """Simultaneous wrappers: every span is kept, and sent once."""
        env = environment(NOBODY)
        running = [subprocess.Popen([SPAN, "run", "-q", "--name", f"s{i}", "--", "sh", "-c", f"exit {i % 7}"], env=env)
                   for i in range(MANY)]
        self.assertEqual([p.wait() for p in running], [i % 7 for i in range(MANY)])
        self.assertEqual(len(spooled(env)), MANY)
        with Collector() as c:
            env["OTEL_EXPORTER_OTLP_ENDPOINT"] = c.url
            flushes = [subprocess.Popen([SPAN, "flush", "-q"], env=env) for _ in range(4)]
            self.assertEqual({p.wait() for p in flushes}, {0})
            self.assertEqual(sorted(s["name"] for s in c.spans()), sorted(f"s{i}" for i in range(MANY)))
            self.assertLessEqual(len(c.requests), 1 + MANY // 512)
        self.assertEqual(spooled(env), [])

    def test_old_leavings_are_removed(self):
        env = environment(WEFT_SPAN_SPOOL=scratch())
        name = self.run_ok("start", "--name", "x", env=env).stdout.decode().strip()
        os.mkdir(os.path.join(spool_of(env), "last"))
        for old in ("spans-1.jsonl.new", "open/x.new", "open/x.lost", "last/x"):
            for age_s, path in ((25 * 3600, old), (3600, old.replace("x", "y").replace("1", "2"))):
                path = os.path.join(spool_of(env), path)
                with open(path, "w", encoding="ascii"):
                    pass
                os.utime(path, (time.time() - age_s,) * 2)
        self.run_ok("flush", env=env)
        left = {os.path.relpath(os.path.join(top, f), spool_of(env)) for top, _, files in os.walk(spool_of(env))
                for f in files}
        self.assertLessEqual({"spans-2.jsonl.new", "open/y.new", "open/y.lost", "last/y",
                              f"open/{name[3:35]}-{name[36:52]}"}, left)
        self.assertEqual(left & {"spans-1.jsonl.new", "open/x.new", "open/x.lost", "last/x"}, set())

    def test_spool_is_bounded(self):
        env = environment(WEFT_SPAN_SPOOL=scratch(), WEFT_SPAN_SPOOL_BYTES="20000")
        notes = b"".join(self.run_ok("emit", "--name", f"s{i}", "--start", "1", env=env).stderr for i in range(60))
        self.assertLessEqual(sum(map(os.path.getsize, glob.glob(spool_of(env) + "/*.jsonl"))), 20000)
        self.assertIn(b"are lost", notes)
        names = [s["name"] for s in spooled(env)]
        self.assertGreater(len(names), 15)
        self.assertEqual(set(names), {f"s{i}" for i in range(60 - len(names), 60)}, "the newest stay")

    def test_damaged_lines_and_refused_spans(self):
        env = environment(WEFT_SPAN_SPOOL=scratch())
        for i in range(5):
            self.run_ok("emit", "--name", f"s{i}", "--start", "1", env=env)
        path = os.path.join(spool_of(env), "spans.jsonl")
        with open(path, "ab") as f:
            f.write(b'{"resourceSpans":[{"half')
        self.run_ok("emit", "--name", "poison", "--start", "1", env=env)
        with Collector(lambda body: (400 if b"poison" in body else 200, {})) as c:
            env["OTEL_EXPORTER_OTLP_ENDPOINT"] = c.url
            self.assertIn(b"1 spans were refused, 1 lines", self.run_ok("flush", env=env, code=3).stderr)
            self.assertEqual([s["name"] for s in c.spans()], [f"s{i}" for i in range(5)])
        self.assertEqual(spooled(env), [])

    def test_flush_that_is_cut_short_goes_on(self):
        """The collector goes away after the first of several requests: what it took is not sent again."""
        env = environment(WEFT_SPAN_SPOOL=scratch())
        self.run_ok("emit", "--name", "x", "--start", "1", env=env)
        path = os.path.join(spool_of(env), "spans.jsonl")
        with open(path, encoding="utf-8") as f:
            line = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(line.replace('"name":"x"', f'"name":"x{i}"') for i in range(700))
        with Collector() as c:
            c.answer = lambda body: (503 if c.requests else 200, {})
            env["OTEL_EXPORTER_OTLP_ENDPOINT"] = c.url
            self.run_ok("flush", env=env, code=1)
            self.assertEqual(len(spooled(env)) + len(c.spans()), 700)
            c.answer = lambda body: (200, {})
            self.run_ok("flush", env=env)
            self.assertEqual([s["name"] for s in c.spans()], [f"x{i}" for i in range(700)])


if __name__ == "__main__":
    main()
