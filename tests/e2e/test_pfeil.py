# SPDX-License-Identifier: MIT
"""Called as pfeil: arguments, environment and output of the tool that the GlideinWMS scripts call, without its defects.
What goes to a Jaeger collector is decoded here by the rules of Thrift's binary protocol, and named by Jaeger's
definition of Batch."""
import os
import shutil
import struct
import subprocess
import time

from span_collector import NOBODY, SPAN, Collector, attributes, environment, span, spooled
from weft_e2e import SLOWDOWN, Case, main, need, scratch

PARENT = "0af7651916cd43dd8448eb211c80319c:b7ad6b7169203331:0:01"


class Thrift:
    """Binary protocol: a struct is {field id: value}."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        value, = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def value(self, kind):
        if kind == 12:
            fields = {}
            while (of := self.take("b")) != 0:
                key = self.take("h")
                fields[key] = self.value(of)
            return fields
        if kind == 15:
            of, n = self.take("b"), self.take("i")
            return [self.value(of) for _ in range(n)]
        if kind == 11:
            n = self.take("i")
            self.at += n
            return self.data[self.at - n:self.at].decode()
        return self.take({2: "?", 8: "i", 10: "q"}[kind])

    @classmethod
    def read(cls, data):
        reader = cls(data)
        value = reader.value(12)
        assert reader.at == len(data)
        return value


def tags(of):
    """Thrift's list of Tag: 1 key, 2 type (0 text, 2 bool, 3 whole number), 3, 5, 6 the value."""
    return {t[1]: t[{0: 3, 2: 5, 3: 6}[t[2]]] for t in of}


class Pfeil(Case):
    def setUp(self):
        need(SPAN)
        self.pfeil = os.path.join(scratch(), "pfeil")
        os.symlink(SPAN, self.pfeil)

    def run_ok(self, *args, env, code=0):
        run = span(*args, env=env, program=self.pfeil)
        self.assertEqual(run.returncode, code, run)
        return run

    def test_jaeger(self):
        with Collector() as c:
            env = environment(JAEGER_ENDPOINT=c.url + "/api/traces?format=jaeger.thrift", JAEGER_SERVICE_NAME="glidein",
                              TRACE_ID=PARENT, JAEGER_USER="u", JAEGER_PASSWORD="p", JAEGER_TAGS="site=here")
            before = time.time_ns() // 1000
            run = self.run_ok("-v", "-t", "span=setup,UUID=17", "-t", "x=a=b", "setup", env=env)
            after = time.time_ns() // 1000
            (path, headers, body), = c.requests
            self.assertEqual((path, headers["Content-Type"], headers["Authorization"]),
                             ("/api/traces?format=jaeger.thrift", "application/x-thrift", "Basic dTpw"))
            batch = Thrift.read(body)
            self.assertEqual((batch[1][1], tags(batch[1][2])["site"], tags(batch[1][2])["host.name"]),
                             ("glidein", "here", os.uname().nodename))
            told, = batch[2]
            self.assertEqual([told[2] % 2**64, told[1] % 2**64, told[4] % 2**64, told[5], told[7]],
                             [0x0af7651916cd43dd, 0x8448eb211c80319c, 0xb7ad6b7169203331, "setup", 1])
            self.assertTrue(before <= told[8] <= told[8] + told[9] <= after)
            self.assertEqual({**tags(told[10]), **{"span.kind": "server", "span": "setup", "UUID": "17", "x": "a=b"}},
                             tags(told[10]))
            self.assertNotIn("error", tags(told[10]))
            own = f"{told[3] % 2**64:016x}"
            self.assertEqual(run.stdout.decode(), f"{PARENT[:32]}:{own}:b7ad6b7169203331:01")

    def test_command(self):
        with Collector() as c:
            env = environment(c.url, JAEGER_SERVICE_NAME="s")
            run = self.run_ok("op", "sh", "-c", "echo $TRACE_ID; exit 7", env=env, code=7)
            inner, own = run.stdout.decode().split("\n")
            self.assertEqual(inner, own)
            (resource, told), = c.all_spans()
            said = attributes(told)
            self.assertEqual((said["cmd.cmd"], said["cmd.args"], said["exit_code"]),
                             ("sh", "-c echo $TRACE_ID; exit 7", 7))
            self.assertEqual((told["status"]["code"], told["kind"]), (2, 2))
            self.assertEqual(attributes(resource)["service.name"], "s")
            self.run_ok("op", "no-such-command", env=env, code=127)
            self.assertEqual(c.spans()[-1]["status"]["code"], 2, "a command that cannot start has its span")

    def test_sampling_and_service(self):
        with Collector() as c:
            env = environment(c.url)
            self.assertRegex(self.run_ok("-n", "op", env=env).stdout, b"^[0-9a-f]{32}:[0-9a-f]{16}:0:00$")
            self.assertEqual(c.requests, [])
            never = {"JAEGER_SAMPLER_TYPE": "const", "JAEGER_SAMPLER_PARAM": "0"}
            self.run_ok("-y", "-s", "named", "op", env={**env, **never})
            self.assertEqual([attributes(r)["service.name"] for r, _ in c.all_spans()], ["named"])
            for wrong in ((), ("-x", "op"), ("-t",)):
                self.run_ok(*wrong, env=env, code=2)

    def test_no_trace(self):
        with Collector() as c:
            run = self.run_ok("op", env=environment(c.url, TRACE_ID="None"))
            self.assertIn(b"TRACE_ID: it is malformed, a new trace begins", run.stderr)
            self.assertEqual(len(c.spans()), 1)

    def test_zones_of_date(self):
        """Whatever zone `date` prints, the start is the moment that it meant: GNU date is the judge."""
        moment = 1660327275
        with Collector() as c:
            for zone in ("UTC", "America/Chicago", "Asia/Kolkata", "Asia/Dubai", "Australia/Lord_Howe",
                         "Europe/Zurich"):
                env = environment(c.url, TZ=zone)
                env["TRACE_START"] = subprocess.run(["date", "-d", f"@{moment}"], env=env, stdout=subprocess.PIPE,
                                                    check=True, text=True).stdout.strip()
                self.run_ok("op", env=env)
                self.assertEqual(int(c.spans()[-1]["startTimeUnixNano"]), moment * 10**9, env["TRACE_START"])
            for given in ("1660327275.25", "1660327275250000000"):
                self.run_ok("op", env=environment(c.url, TRACE_START=given))
                self.assertEqual(int(c.spans()[-1]["startTimeUnixNano"]), moment * 10**9 + 250_000_000)
            run = self.run_ok("op", env=environment(c.url, TRACE_START="yesterday"))
            self.assertIn(b"TRACE_START", run.stderr)

    def test_stages_of_a_script(self):
        """Stages as glidein_startup.sh reports them, with `date` cut to the second: each has its true duration."""
        script = os.path.join(scratch(), "startup.sh")
        lasts = [("init", 0.05), ("pre_setup", 0.3), ("setup", 0.7), ("empty", 0)]
        with open(script, "w", encoding="ascii") as f:
            f.write('trace() { export TRACE_START="$start"; pfeil -t span=$1 $1 >/dev/null; start=$(date); }\n'
                    'start=$(date)\ntrace pretracing\n' + "".join(f"sleep {s}\ntrace {name}\n" for name, s in lasts))
        with Collector() as c:
            env = environment(c.url, TRACE_ID=PARENT)
            env["PATH"] = os.path.dirname(self.pfeil) + ":" + env["PATH"]
            subprocess.run(["bash", script], env=env, check=True)
            told = {s["name"]: s for s in c.spans()}
            ends = [int(s["endTimeUnixNano"]) for s in c.spans()]
            for (name, slept), before in zip(lasts, ends):
                start, end = int(told[name]["startTimeUnixNano"]), int(told[name]["endTimeUnixNano"])
                # Stage begins are cut to the second if a second ended between the call and `date`.
                self.assertTrue(start == before or start % 10**9 == 0 and start > before, (name, start, before))
                self.assertTrue(slept <= (end - start) / 1e9 + 0.02 < slept + 0.8 * SLOWDOWN, (name, end - start))

    def test_dead_collector(self):
        """Seven calls, none lost, held up once."""
        env = environment(JAEGER_ENDPOINT=NOBODY, JAEGER_SERVICE_NAME="s", TRACE_ID=PARENT)
        begin = time.monotonic()
        for i in range(7):
            self.run_ok(f"stage{i}", env=env)
        self.assertLess(time.monotonic() - begin, 3 * SLOWDOWN)
        self.assertEqual([s["name"] for s in spooled(env)], [f"stage{i}" for i in range(7)])
        self.assertIn(b"OTEL_EXPORTER_OTLP_ENDPOINT", span("flush", env=env).stderr)
        with Collector() as c:
            self.assertEqual(span("flush", env={**env, "OTEL_EXPORTER_OTLP_ENDPOINT": c.url}).returncode, 0)
            self.assertEqual(len(c.spans()), 7)

    def test_nobody_to_tell(self):
        env = environment(TRACE_ID=PARENT)
        self.assertRegex(self.run_ok("op", env=env).stdout.decode(),
                         f"^{PARENT[:32]}:[0-9a-f]{{16}}:b7ad6b7169203331:01$")
        copy = os.path.join(scratch(), "pfeil")
        shutil.copy(SPAN, copy)
        self.assertEqual(span("op", env=env, program=copy).returncode, 0)


if __name__ == "__main__":
    main()
