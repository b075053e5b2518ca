#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CTF 2 beside CTF 1.8: python3 bench/formats.py [--build DIR] [--events N] [--classes N] [--hosts N] [--rounds N].

Generates a kernel trace in both formats and decodes them in turn; the best of all rounds counts. Then opens a trace
with many event classes, and many hosts with the same declarations. Prints a Markdown table."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
FORMATS = ("1.8", "2")
TRACE = """/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 8; align = 8; signed = false; } := u8;
trace { major = 1; minor = 8; uuid = "%(uuid)s"; byte_order = le;
	packet.header := struct { u32 magic; u8 uuid[16]; u32 stream_id; }; };
env { hostname = "%(host)s"; domain = "kernel"; tracer_name = "lttng-modules"; };
clock { name = monotonic; uuid = "%(uuid)s"; freq = 1000000000; };
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := t64;
stream { id = 0; event.header := struct { u32 id; t64 timestamp; };
	packet.context := struct { t64 timestamp_begin; t64 timestamp_end; u64 content_size; u64 packet_size; }; };
"""
EVENT = ('event { name = "event_%d"; id = %d; stream_id = 0; fields := struct { integer { size = 32; align = 8; '
         "signed = true; } _tid; string _name; u64 _address; u32 _n; u64 _list[ _n ]; }; };\n")


class Bench:
    def __init__(self, options):
        self.options, self.top = options, tempfile.mkdtemp(prefix="weft-formats-", dir=options.tmp)

    def program(self, *where):
        return os.path.join(os.path.abspath(self.options.build), *where)

    def run(self, *args):
        return subprocess.run(args, check=True, stdout=subprocess.PIPE, text=True).stdout

    def row(self, what, values, unit, less_is_better=False):
        ratio = values[0] / values[1] if less_is_better else values[1] / values[0]
        print(f"| {what} | {values[0]:.3g} {unit} | {values[1]:.3g} {unit} | {ratio:.2f}× |", flush=True)

    def decode(self):
        traces = [os.path.join(self.top, "decode-" + f) for f in FORMATS]
        for trace, more in zip(traces, ([], ["--ctf2"])):
            self.run(self.program("bench", "make_trace"), *more, trace, str(self.options.events))
        best, checks = {}, {}
        for _ in range(self.options.rounds):
            for i, trace in enumerate(traces):
                for line in self.run(self.program("bench", "bench_decode"), trace).splitlines()[1:]:
                    what, rate, check = re.match(r"(.*?)  +.* ([0-9.]+) M events/s +\(check (\w+)\)", line).groups()
                    if checks.setdefault(what, check) != check:
                        sys.exit(f"{what}: the formats differ: {checks[what]}, {check}")
                    best.setdefault(what, [0, 0])[i] = max(best.get(what, [0, 0])[i], float(rate))
        for what, rates in best.items():
            self.row("decode, " + what, rates, "M events/s")

    def declared(self, path, host, n_classes, is_ctf2):
        os.makedirs(path)
        with open(os.path.join(path, "metadata"), "w", encoding="ascii") as f:
            f.write(TRACE % {"uuid": uuid.uuid5(uuid.NAMESPACE_DNS, host), "host": host})
            f.writelines(EVENT % (i, i) for i in range(n_classes))
        if is_ctf2:
            self.run(self.program("tests", "writer", "to_ctf2"), os.path.join(path, "metadata"))
        return os.path.getsize(os.path.join(path, "metadata"))

    def opened(self, what, tops):
        best, more = [float("inf")] * 2, [0, 0]
        for _ in range(self.options.rounds):
            for i, top in enumerate(tops):
                out = self.run(self.program("bench", "bench_open"), top)
                best[i] = min(best[i], float(re.search(r'"processor":([0-9.]+)', out).group(1)))
                more[i] = float(re.search(r'further_trace":([0-9]+)', out).group(1)) / 1000
        self.row(what, best, "s", less_is_better=True)
        return more

    def declarations(self):
        n = self.options.classes
        tops = [os.path.join(self.top, "classes-" + f) for f in FORMATS]
        sizes = [self.declared(os.path.join(top, "t"), "h", n, top == tops[1]) / 1e6 for top in tops]
        self.row(f"metadata of {n} event classes", sizes, "MB", less_is_better=True)
        self.opened("… opened", tops)
        tops = [os.path.join(self.top, "hosts-" + f) for f in FORMATS]
        for i in range(self.options.hosts):
            for top in tops:
                self.declared(os.path.join(top, str(i)), f"h{i}", 1000, top == tops[1])
        more = self.opened(f"{self.options.hosts} hosts with the same 1000 event classes opened", tops)
        self.row("… memory of each further host", more, "kB", less_is_better=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--tmp")
    parser.add_argument("--events", type=int, default=3000000)
    parser.add_argument("--classes", type=int, default=100000)
    parser.add_argument("--hosts", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=8)
    bench = Bench(parser.parse_args())
    begin = time.monotonic()
    print("| what | CTF 1.8 | CTF 2 | ratio |\n|---|---|---|---|")
    bench.decode()
    bench.declarations()
    subprocess.run(["rm", "-rf", bench.top], check=True)
    print(f"{time.monotonic() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
