# SPDX-License-Identifier: MIT
"""weft-span: commands are run untouched, spans arrive, wait, or are said to be lost. The judge is a stand-in collector
that knows JSON and HTTP from Python alone; times are those of this process's clock."""
import glob
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time

from collect_server import Collect
from span_collector import NOBODY, SPAN, Collector, Span, attributes, environment, spool_of, spooled
from weft_e2e import BIN, SANITIZER, SLOWDOWN, absent, main, need, new_dice, scratch

ERROR = 2  # value of OTLP's status


class Marks(Span):
    """Begin and end in the kernel's trace, whose file is a plain one here: what is written, when, by whom."""

    def test_begin_and_end(self):
        marks, spool = os.path.join(scratch(), "marks"), scratch()
        open(marks, "w", encoding="utf-8").close()
        env = environment(None, spool, WEFT_SPAN_SPOOL=spool, WEFT_SPAN_MARK=marks)
        script = ('id=$("$0" start --name "a  stage") && export TRACEPARENT=$id && '
                  '"$0" run --name inner -- sh -c \'cat "$1"; echo " $PPID"\' x "$WEFT_SPAN_MARK" && '
                  'echo $$ && "$0" end "$id"')
        run = subprocess.run(["sh", "-c", script, SPAN], env=env, capture_output=True, text=True, check=True)
        inside, shell = run.stdout.splitlines()
        outer, inner = sorted(spooled(env), key=lambda s: s["name"])
        begun = [f"weft-span begin {outer['traceId']} {outer['spanId']} - {shell} a  stage",
                 f"weft-span begin {inner['traceId']} {inner['spanId']} {outer['spanId']} {inside.split()[-1]} inner"]
        self.assertEqual(inside.split(" ")[-1], begun[1].split(" ")[-2], "the command is the child of who is named")
        self.assertEqual(inside[:inside.rindex(" ")], "".join(begun), "before the command")
        with open(marks, encoding="utf-8") as f:
            self.assertEqual(f.read(), "".join(begun + [f"weft-span end {s['traceId']} {s['spanId']}"
                                                        for s in (inner, outer)]))
        self.assertEqual(attributes(outer)["process.pid"], int(shell))

    def test_the_namespace(self):
        """The pid namespace of a container, in which processes have other numbers; outside of containers there is no
        attribute."""
        apart = ["unshare", "--pid", "--fork"]
        if subprocess.run(apart + ["true"], capture_output=True, check=False).returncode:
            absent("no pid namespaces here")
        for before in ([], apart):
            env = environment(None, scratch(), WEFT_SPAN_SPOOL=scratch())
            script = 'stat -Lc %i /proc/self/ns/pid; "$0" run true; :'
            run = subprocess.run(before + ["sh", "-c", script, SPAN], env=env, capture_output=True, text=True,
                                 check=True)
            inode = int(run.stdout)
            with open(os.path.join(env["WEFT_SPAN_SPOOL"], "spans.jsonl"), encoding="utf-8") as f:
                told = json.loads(f.read())["resourceSpans"][0]["resource"]
            self.assertEqual(attributes(told).get("weft.pid_namespace"), None if inode == 0xeffffffc else inode)

    def test_none(self):
        marks = os.path.join(scratch(), "marks")
        for more in ({"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_SAMPLER": "always_off"}):
            open(marks, "w", encoding="utf-8").close()
            self.run_ok("run", "true", env=environment(NOBODY, WEFT_SPAN_MARK=marks, **more))
            self.assertEqual(os.path.getsize(marks), 0)
        run = self.run_ok("run", "true", env=environment(NOBODY, WEFT_SPAN_MARK="/nonexistent/marks"))
        self.assertIn(b"WEFT_SPAN_MARK", run.stderr)
        run = self.run_ok("run", "true", env=environment(NOBODY, WEFT_SPAN_MARK="no"))
        self.assertNotIn(b"mark", run.stderr)


class Wrapped(Span):
    """Effects visible to the command and its caller."""

    def test_exit_status(self):
        env = environment(NOBODY)
        for code in (0, 1, 2, 3, 77, 125, 255):
            self.run_ok("run", "--", "sh", "-c", f"exit {code}", env=env, code=code)
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
            self.run_ok("run", "sh", "-c", f"kill -{int(number)} $$", env=env, code=128 + number)
        self.run_ok("run", "no-such-command-here", env=env, code=127)
        self.run_ok("run", "/", env=env, code=126)
        self.run_ok("run", "--quiet", "--", "sh", "-c", "exit 9", env=environment(), code=9)

    def test_streams_are_untouched(self):
        data = new_dice(1).randbytes(3_000_000)
        with Collector() as c:
            for env in (environment(c.url), environment()):
                run = self.run_ok("run", "--quiet", "--", "sh", "-c", "tee /dev/stderr", env=env, stdin=data)
                self.assertTrue(run.stdout == data and run.stderr == data)

    def test_environment_of_signals(self):
        """Masks and ignored signals, as without weft-span."""
        show = ["grep", "-E", "Sig(Blk|Ign|Cgt)", "/proc/self/status"]

        def prepare():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})

        plain = subprocess.run(show, stdout=subprocess.PIPE, preexec_fn=prepare, check=True)
        run = self.run_ok("run", "--", *show, env=environment(NOBODY), preexec_fn=prepare)
        self.assertEqual(run.stdout, plain.stdout)

    def test_closed_streams(self):
        """The command finds them closed as well; notes do not go where a file was opened instead."""
        env = environment(NOBODY)
        show = "ls /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/0"
        run = self.run_ok("-c", f"exec 0<&- 1>&- 2>&-; exec {SPAN} run -- {show}", env=env, program="/bin/sh", code=2)
        self.assertEqual((run.stdout, run.stderr), (b"", b""))
        self.assertEqual([s["name"] for s in spooled(env)], ["ls"])

    def test_readers_see_the_end_at_once(self):
        with Collector(lambda body: "hang") as c:
            env = environment(c.url, OTEL_EXPORTER_OTLP_TIMEOUT="3000")
            wrapper = subprocess.Popen([SPAN, "run", "echo", "out"], env=env, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL)
            self.assertEqual(wrapper.stdout.read(), b"out\n")
            self.assertIsNone(wrapper.poll(), "the wrapper still waits for the collector")
            wrapper.stdout.close()
            c.open = False
            self.assertEqual(wrapper.wait(), 0)

    def test_signals_are_passed_on(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            with Collector() as c:
                wrapper = subprocess.Popen(
                    [SPAN, "run", "--name", "trapped", "--", "sh", "-c",
                     f"trap 'echo caught; exit 7' {number.name[3:]}; echo ready; while :; do sleep 0.01; done"],
                    env=environment(c.url), stdout=subprocess.PIPE,
                    # A shell cannot trap what was ignored when it began, as in jobs of the background.
                    preexec_fn=lambda number=number: signal.signal(number, signal.SIG_DFL))
                self.assertEqual(wrapper.stdout.readline(), b"ready\n")
                wrapper.send_signal(number)
                self.assertEqual(wrapper.stdout.read(), b"caught\n")
                wrapper.stdout.close()
                self.assertEqual(wrapper.wait(), 7)
                self.assertEqual([attributes(s)["process.exit.code"] for s in c.spans()], [7])

    def test_killed_by_a_passed_signal(self):
        with Collector() as c:
            wrapper = subprocess.Popen([SPAN, "run", "--", "sh", "-c", "echo ready; exec sleep 60"],
                                       env=environment(c.url), stdout=subprocess.PIPE)
            wrapper.stdout.readline()
            wrapper.terminate()
            self.assertEqual(wrapper.wait(), 128 + signal.SIGTERM)
            wrapper.stdout.close()
            told, = c.spans()
            self.assertEqual((told["status"]["code"], attributes(told)["process.exit.signal"]), (ERROR, signal.SIGTERM))

    def test_wrong_use(self):
        env = environment(NOBODY)
        for args in ((), ("rnu",), ("run",), ("start",), ("end",), ("event",), ("emit", "--name", "x"),
                     ("end", "a", "b"), ("run", "--nmae", "x", "--"), ("start", "--nmae", "x"),
                     ("start", "--name"), ("context", "--format", "odd"),
                     ("emit", "--name", "x", "--start", "never"), ("emit", "--name", "x", "--start", "9999999999"),
                     ("emit", "--name", "x", "--start", "99999999999999999"),
                     ("emit", "--name", "x", "--start", "0"), ("emit", "--name", "x", "--start", "+1s"),
                     ("emit", "--name", "x", "--start", "5", "--end", "4")):
            run = self.run_ok(*args, env=env, code=2)
            self.assertEqual(run.stdout, b"")
            self.assertRegex(run.stderr, rb"weft-span")

    def test_the_job_runs_whatever_the_options(self):
        """Invalid options are named in a note; the command keeps its streams and exit status, and valid options
        count."""
        with Collector() as c:
            env = environment(c.url)
            for args, why in (
                    (("-a", ""), b"KEY=VALUE"), (("-a", "novalue"), b"novalue"), (("-a", "=v"), b"KEY=VALUE"),
                    (("--kind", "odd"), b"odd"), (("--kind", ""), b"--kind"), (("--nmae", "x"), b"--nmae"),
                    (("--nmae=x",), b"--nmae"), (("-Z",), b"-Z"), (("--start", "5"), b"--start"),
                    (("--attribute",), b"needs a value"), (("--name",), b"needs a value"), (("-n",), b"needs a value")):
                run = self.run_ok("run", "-a", "good=1", *args, "--", "sh", "-c", "cat; exit 3", env=env, code=3,
                                  stdin=b"in")
                self.assertEqual(run.stdout, b"in", args)
                self.assertIn(b"note", run.stderr)
                self.assertIn(why, run.stderr)
                told = c.spans()[-1]
                self.assertEqual((told["name"], attributes(told)["good"]), ("sh", "1"))
                self.assertEqual(self.run_ok("run", "-q", *args, "--", "true", env=env).stderr, b"")
            for args in (("--nmae=x",), ("-Z",), ("-a", ""), ("--name", ""), ("--service", "")):
                self.run_ok("run", *args, "sh", "-c", "exit 4", env=env, code=4)
                self.assertEqual(c.spans()[-1]["name"], "sh")

    def test_scripts_go_on_without_odd_values(self):
        with Collector() as c:
            env = environment(c.url)
            for args in (("-a", ""), ("--kind", "odd"), ("--start", "never"), ("--start", "")):
                run = self.run_ok("start", "--name", "x", *args, env=env)
                self.assertIn(b"left out", run.stderr)
                name = run.stdout.decode().strip()
                for more in (("event", name, "--name", "e", "-a", "x"),
                             ("end", name, "-a", "", "--status", "odd", "--end", "1")):
                    self.assertIn(b"left out", self.run_ok(*more, env=env).stderr)
                told = c.spans()[-1]
                self.assertEqual((told["name"], len(told["events"])), ("x", 1))
                self.assertLess(abs(int(told["endTimeUnixNano"]) - time.time_ns()), 60 * 10**9)
            self.run_ok("emit", "--name", "y", "--start", "5", "--kind", "odd", "--status", "", "-a", "", env=env)
            self.assertEqual(c.spans()[-1]["name"], "y")

    def test_links_only_the_c_library(self):
        need("readelf")
        told = subprocess.run(["readelf", "-d", SPAN], stdout=subprocess.PIPE, check=True, text=True).stdout
        sanitizers = r"|lib([atu]|ub)san\.|libm\.|libgcc_s\.|libstdc\+\+\.|libdl\.|libpthread\." if SANITIZER else ""
        for library in re.findall(r"NEEDED.*\[(.*)\]", told):
            self.assertRegex(library, rf"^(libc\.so|ld-linux{sanitizers})")

    def test_main_program_hands_over(self):
        both, alone = os.path.join(scratch(), "weft"), os.path.join(scratch(), "weft")
        shutil.copy(BIN, both)
        shutil.copy(BIN, alone)
        shutil.copy(SPAN, os.path.dirname(both))
        with Collector() as c:
            self.run_ok("span", "run", "--name", "a", "sh", "-c", "exit 4", env=environment(c.url), program=both,
                        code=4)
            self.assertEqual([s["name"] for s in c.spans()], ["a"])
        run = self.run_ok("span", "run", "true", env=environment(PATH=os.path.dirname(alone)), program=alone, code=1)
        self.assertIn(b"weft-span", run.stderr)
        env = environment(PATH=os.path.dirname(SPAN) + ":/usr/bin:/bin")
        self.run_ok("span", "run", "sh", "-c", "exit 6", env=env, program=alone, code=6)


class Told(Span):
    """Spans received by the collector."""

    def test_times_and_words(self):
        with Collector() as c:
            env = environment(c.url, OTEL_SERVICE_NAME="glidein", OTEL_EXPORTER_OTLP_HEADERS="x-token=a%20b, other = c",
                              OTEL_RESOURCE_ATTRIBUTES="site=T2%2CUK,entry=e1,service.name=not-this")
            before = time.time_ns()
            self.run_ok("run", "--name", "stage ü", "-a", "a=b=c", "--kind=server", "--", "sleep", "0.05", env=env)
            after = time.time_ns()
            (path, headers, _), = c.requests
            (resource_told, told), = c.all_spans()
            self.assertEqual((path, headers["Content-Type"], headers["x-token"], headers["other"]),
                             ("/v1/traces", "application/json", "a b", "c"))
            said = attributes(resource_told)
            self.assertEqual((said["service.name"], said["site"], said["entry"], said["host.name"]),
                             ("glidein", "T2,UK", "e1", os.uname().nodename))
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
                self.assertEqual(said["host.boot_id"], f.read().strip())
            self.assertEqual((told["name"], told["kind"], attributes(told)["a"]), ("stage ü", 2, "b=c"))
            start, end = int(told["startTimeUnixNano"]), int(told["endTimeUnixNano"])
            self.assertTrue(before < start and start + 50_000_000 <= end < after)
            self.assertRegex(told["traceId"], "^[0-9a-f]{32}$")
            self.assertNotIn("parentSpanId", told)

    def test_contexts_reach_the_command(self):
        with Collector() as c:
            run = self.run_ok("run", "--name", "outer", "--", SPAN, "run", "--name", "inner", "--", "env",
                              env=environment(c.url, TRACESTATE="of=another"))
            seen = dict(line.split("=", 1) for line in run.stdout.decode().splitlines())
            inner, outer = c.spans()
            trace, own = inner["traceId"], inner["spanId"]
            self.assertEqual((inner["parentSpanId"], trace), (outer["spanId"], outer["traceId"]))
            self.assertEqual(seen["TRACEPARENT"], f"00-{trace}-{own}-01")
            self.assertEqual(seen["TRACE_ID"], f"{trace}:{own}:{outer['spanId']}:01")
            self.assertEqual(seen["UBER_TRACE_ID"], seen["TRACE_ID"])
            self.assertEqual(seen["B3"], f"{trace}-{own}-1")
            self.assertNotIn("TRACESTATE", seen)
            parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            run = self.run_ok("run", "--", "sh", "-c", "echo $TRACESTATE",
                              env=environment(c.url, TRACEPARENT=parent, TRACESTATE="a=1,b@c=x y"))
            self.assertEqual((run.stdout, c.spans()[-1]["traceState"]), (b"a=1,b@c=x y\n", "a=1,b@c=x y"))
            self.assertEqual((c.spans()[-1]["traceId"], c.spans()[-1]["parentSpanId"]), (parent[3:35], parent[36:52]))

    def test_start_event_end(self):
        with Collector() as c:
            env = environment(c.url)
            before = time.time_ns()
            name = self.run_ok("start", "--name", "main, 100%", "-a", "k=v,%=", env=env).stdout.decode().strip()
            for i in range(3):
                self.run_ok("event", name, "--name", f"e {i}", "-a", f"i={i}", env=env)
            self.run_ok("end", name, "--message", "lost the lease", "-a", "more=1", env=env)
            after = time.time_ns()
            told, = c.spans()
            self.assertEqual(name, f"00-{told['traceId']}-{told['spanId']}-01")
            self.assertEqual((told["name"], attributes(told)["k"], attributes(told)["more"], told["status"]),
                             ("main, 100%", "v,%=", "1", {"code": ERROR, "message": "lost the lease"}))
            self.assertEqual([(e["name"], attributes(e)) for e in told["events"]],
                             [(f"e {i}", {"i": str(i)}) for i in range(3)])
            times = [int(told["startTimeUnixNano"]), *(int(e["timeUnixNano"]) for e in told["events"]),
                     int(told["endTimeUnixNano"])]
            self.assertEqual(times, sorted(times))
            self.assertTrue(before < times[0] and times[-1] < after)
            self.assertIn(b"not open", self.run_ok("end", name, env=env).stderr)
            self.assertEqual(len(c.spans()), 1)

    def test_events_of_the_command_itself(self):
        with Collector() as c:
            self.run_ok("run", "--", SPAN, "event", "--name", "half", env=environment(c.url))
            told, = c.spans()
            self.assertEqual([e["name"] for e in told["events"]], ["half"])

    def test_emit(self):
        with Collector() as c:
            env = environment(c.url)
            for start, end, ns in (("1795225268", "1795225269.5", (1795225268, 1.5)),
                                   ("1795225268000000001", "1795225268000000002", (1795225268.000000001, 1e-9)),
                                   ("2026-11-21T01:41:08Z", "2026-11-21T01:41:09Z", (1795225268, 1))):
                self.run_ok("emit", "--name", "e", "--start", start, "--end", end, "--status", "ok", env=env)
                told = c.spans()[-1]
                self.assertEqual(int(told["startTimeUnixNano"]) // 10**9, int(ns[0]))
                self.assertEqual(int(told["endTimeUnixNano"]) - int(told["startTimeUnixNano"]), round(ns[1] * 1e9))

    def test_units_of_times(self):
        """Times as printed by shells, Java, JavaScript and Python."""
        wanted = 1_790_000_000_123_456_789
        with Collector() as c:
            for digits in (10, 13, 16, 19):
                given = str(wanted)[:digits]
                for name in ("--start", "--end"):
                    other = ("--end", "2030-01-01") if name == "--start" else ("--start", "5")
                    self.run_ok("emit", "--name", "x", name, given, *other, env=environment(c.url))
                    told = c.spans()[-1]["startTimeUnixNano" if name == "--start" else "endTimeUnixNano"]
                    self.assertEqual(told, given + "0" * (19 - digits))

    def test_paths_of_endpoints(self):
        with Collector() as c:
            for more in ({"OTEL_EXPORTER_OTLP_ENDPOINT": c.url + end} for end in
                         ("", "/", "/v1/traces")):
                self.run_ok("run", "true", env=environment(**more))
                self.assertEqual(c.requests[-1][0], "/v1/traces")
            self.run_ok("run", "true", env=environment(c.url + "/at/v1/traces"))
            self.assertEqual(c.requests[-1][0], "/at/v1/traces")
            self.run_ok("run", "true", env=environment(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=c.url + "/odd"))
            self.assertEqual(c.requests[-1][0], "/odd")

    def test_defaults_meet(self):
        """Defaults of a collector and of weft-span, without options: in a network of their own, where the ports are
        free."""
        for program in ("unshare", "ip"):
            need(program)
        alone = ["unshare", "--user", "--map-root-user", "--net"]
        if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL).returncode:
            absent("no network namespaces here")
        state = scratch()
        script = f"""ip link set lo up || exit 9
            {SPAN} run --name early true 2>{state}/early || exit 8
            {BIN} collect >{state}/out & collector=$!
            until grep -q 16686 {state}/out; do sleep 0.02; done
            rm {state}/weft/spans/rests-* # 30 s
            {SPAN} run --name first true 2>{state}/first && {SPAN} flush 2>{state}/flush; code=$?
            kill $collector; wait $collector; exit $code"""
        env = {**environment(spool=state), "WEFT_CONFIG": os.devnull}
        run = subprocess.run([*alone, "sh", "-c", script], env=env, capture_output=True, timeout=60 * SLOWDOWN)
        self.assertEqual(run.returncode, 0, run)
        with open(os.path.join(state, "early"), encoding="utf-8") as f:
            self.assertRegex(f.read(), "note: the collector http://127.0.0.1:4318 cannot be reached")
        with open(os.path.join(state, "first"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "")
        told = subprocess.run([BIN, "spans", "stats", "--format", "json"], env=env, stdout=subprocess.PIPE).stdout
        self.assertEqual({s["stage"] for s in json.loads(told)["stages"]}, {"early", "first"})
        self.run_ok("run", "true", env=environment(WEFT_SPAN_SPOOL=scratch()))  # a spool alone: nothing is sent

    def test_open_spans_are_told_and_closed(self):
        with Collector() as c:
            self.run_ok("run", "--name", "long", "sleep", str(0.6 * SLOWDOWN), env=environment(c.url))
            first, last = c.spans(open_too=True)
            self.assertEqual((attributes(first)["weft.state"], attributes(last).get("weft.state")), ("open", None))
            for same in ("traceId", "spanId", "startTimeUnixNano", "name"):
                self.assertEqual(first[same], last[same])
            self.assertLess(int(first["endTimeUnixNano"]), int(last["endTimeUnixNano"]))
            self.run_ok("run", "sleep", str(0.6 * SLOWDOWN), env=environment(c.url, WEFT_SPAN_OPEN="no"))
            self.assertEqual(len(c.spans(open_too=True)), 3)
            env = environment(c.url)
            self.run_ok("start", "--name", "hours", env=env)
            deadline = time.monotonic() + 20
            while len(c.spans(open_too=True)) < 4 and time.monotonic() < deadline:
                time.sleep(0.02)
            self.assertEqual(attributes(c.spans(open_too=True)[-1])["weft.state"], "open")

    def test_killed_scripts_lose_nothing(self):
        """Kill of the whole process group: the next flush reports it."""
        with Collector() as c:
            env = environment(c.url)
            script = subprocess.Popen(
                ["sh", "-c", f"id=$({SPAN} start --name main); {SPAN} event $id --name e; {SPAN} run --name inner -- "
                 "sh -c 'echo ready; exec sleep 60'"], env=env, stdout=subprocess.PIPE, start_new_session=True)
            self.assertEqual(script.stdout.readline(), b"ready\n")
            self.run_ok("flush", env=env)
            self.assertEqual(c.spans(), [], "they live")
            os.killpg(script.pid, signal.SIGKILL)
            script.wait()
            script.stdout.close()
            notes, deadline = b"", time.monotonic() + 20
            while len(c.spans()) < 2 and time.monotonic() < deadline:  # meanwhile the others are killed
                notes += self.run_ok("flush", env=env).stderr
            self.assertIn(b"were never ended", notes)
            lost = {s["name"]: s for s in c.spans()}
            self.assertEqual(sorted(lost), ["inner", "main"])
            for s in lost.values():
                self.assertEqual((attributes(s)["weft.state"], s["status"]["code"]), ("lost", ERROR))
            self.assertEqual(lost["main"]["endTimeUnixNano"], lost["main"]["events"][0]["timeUnixNano"])

    def test_nothing_is_recorded(self):
        with Collector() as c:
            for more in ({"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"},
                         {"OTEL_TRACES_SAMPLER": "always_off"},
                         {"JAEGER_SAMPLER_TYPE": "const", "JAEGER_SAMPLER_PARAM": "0"},
                         {"TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}):
                env = environment(c.url, **more)
                run = self.run_ok("run", "--", "sh", "-c", "echo $TRACEPARENT; exit 3", env=env, code=3)
                name = self.run_ok("start", "--name", "x", env=env).stdout.decode().strip()
                self.run_ok("end", name, env=env)
                if "OTEL_SDK_DISABLED" not in more and "OTEL_TRACES_EXPORTER" not in more:
                    self.assertRegex(run.stdout, b"-00\n$")
            self.assertEqual(c.requests, [])


class Secure(Span):
    """Collectors over TLS, whose certificates are verified."""

    def certificate(self, *names):
        at = scratch()
        key, cert = os.path.join(at, "key.pem"), os.path.join(at, "cert.pem")
        subprocess.run([need("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj",
                        "/CN=weft", "-addext",
                        "subjectAltName=" + ",".join(names)], check=True, capture_output=True)
        return key, cert

    def test_https(self):
        key, cert = self.certificate("DNS:localhost", "IP:127.0.0.1")
        with Collect("--tls-cert", cert, "--tls-key", key) as c:
            self.assertTrue(c.otlp.startswith("https://127.0.0.1:"))
            env = environment(c.otlp)
            run = self.run_ok("run", "--name", "untrusted", "sh", "-c", "echo out; exit 5", env=env, code=5)
            self.assertEqual(run.stdout, b"out\n")
            self.assertRegex(run.stderr, rb"cannot be reached \(.*certificate is NOT trusted")
            self.assertEqual(len(spooled(env)), 1)
            trusting = {**env, "OTEL_EXPORTER_OTLP_CERTIFICATE": cert}
            self.assertEqual(self.run_ok("run", "--name", "first", "true", env=environment(
                c.otlp, OTEL_EXPORTER_OTLP_CERTIFICATE=cert)).stderr, b"")
            name = c.otlp.replace("127.0.0.1", "localhost")
            self.assertEqual(self.run_ok("run", "--name", "named", "true", env=environment(
                name, OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE=cert)).stderr, b"")
            self.run_ok("flush", env=trusting)
            self.assertEqual(spooled(env), [])
            told = subprocess.run([BIN, "spans", "stats", "--store", c.store, "--format", "json"], check=True,
                                  stdout=subprocess.PIPE).stdout
            self.assertEqual({s["stage"] for s in json.loads(told)["stages"]}, {"untrusted", "first", "named"})

    def test_servers_that_are_not_meant(self):
        key, cert = self.certificate("DNS:elsewhere.example")
        with Collect("--tls-cert", cert, "--tls-key", key) as c, Collector(lambda body: "hang") as plain:
            silent = socket.create_server(("127.0.0.1", 0))
            for url, ca, why in ((c.otlp, cert, b"name"), (c.otlp, cert + ".none", b"none"),
                                 (c.otlp, key, b"certificate"),
                                 (plain.url.replace("http:", "https:"), cert, b"TLS"),
                                 (f"https://127.0.0.1:{silent.getsockname()[1]}", cert, b"in time")):
                env = environment(url, OTEL_EXPORTER_OTLP_CERTIFICATE=ca, OTEL_EXPORTER_OTLP_TIMEOUT="1000")
                begin = time.monotonic()
                run = self.run_ok("run", "sh", "-c", "exit 3", env=env, code=3)
                self.assertLess(time.monotonic() - begin, 1 + 3 * SLOWDOWN)
                self.assertIn(why, run.stderr)
                self.assertEqual(len(spooled(env)), 1)
            silent.close()


class Hostile(Span):
    def test_every_variable(self):
        """Binary, huge and nonsensical values: the command is run, and what is sent is JSON in UTF-8."""
        dice = new_dice(2)
        names = ["TRACEPARENT", "TRACESTATE", "TRACE_ID", "UBER_TRACE_ID", "B3", "X_B3_TRACEID", "X_B3_SPANID",
                 "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_EXPORTER_OTLP_HEADERS",
                 "OTEL_EXPORTER_OTLP_TIMEOUT", "JAEGER_TAGS", "JAEGER_USER", "JAEGER_SAMPLER_PARAM",
                 "WEFT_SPAN_SPOOL_BYTES", "OTEL_TRACES_SAMPLER_ARG"]
        values = [bytes(range(1, 256)), b"a" * 100_000, b"k=" + b"v" * 60_000, b"=,=%,%0,%zz,\xff=\xff", b"-1",
                  b"\r\nX: y", b",".join(b"k%d=v" % i for i in range(3000))]
        with Collector() as c:
            sent = 0
            for name in names:
                for value in dice.sample(values, 3):
                    env = {**{k.encode(): v.encode() for k, v in environment(c.url).items()}, name.encode(): value}
                    run = self.run_ok("run", "-q", "--", "sh", "-c", "exit 3", env=env, code=3)
                    self.assertEqual(run.stderr, b"")
                    sent += 1
            self.assertEqual(len(c.spans()), sent)
            for resource_told, told in c.all_spans():
                self.assertLessEqual(len(resource_told["attributes"]), 128)
                self.assertEqual(told["name"], "sh")

    def test_arguments(self):
        with Collector() as c:
            env = environment(c.url)
            self.run_ok("run", "--name", b"\xff\x01" + b"n" * 5000, *(b"-ak%d=\xc3" % i for i in range(300)),
                        "--", "true", env=env)
            told, = c.spans()
            self.assertEqual(told["name"], "\ufffd\x01" + "n" * 1022)
            self.assertEqual(len(told["attributes"]), 128)
            for name in ("", "x", "00-" + "0" * 32 + "-" + "1" * 16 + "-01", "../../etc/passwd", "\n", "00-" * 40000):
                self.assertEqual(self.run_ok("end", name, env=env).stdout, b"")
                self.run_ok("event", name, "--name", "e", env=env)

    def test_files_of_open_spans(self):
        """Damaged by anything: no crash, and scripts go on."""
        dice = random.Random(new_dice(3).random())
        with Collector() as c:
            env = environment(c.url)
            name = self.run_ok("start", "--name", "x", "-a", "k=v", env=env).stdout.decode().strip()
            path, = glob.glob(os.path.join(spool_of(env), "open", "*"))
            with open(path, "rb") as f:
                good = f.read()
            for _ in range(40):
                bad = bytearray(good[:dice.randrange(len(good))] if dice.random() < 0.5 else good)
                for _ in range(3):
                    if bad:
                        bad[dice.randrange(len(bad))] = dice.randrange(256)
                with open(path, "wb") as f:
                    f.write(bad)
                self.run_ok("event", name, "--name", "e", env=env)
                self.run_ok("end", name, "-q", env=env)


if __name__ == "__main__":
    main()
