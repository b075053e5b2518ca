#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small factory: submits batches of glideins, as a batch system runs them (each in a directory of its own, all at
once), and brings home what they could not send.

    factory.py --collector http://127.0.0.1:4318 --glideins 4 --out run

One trace and one span `parent` for each batch, with entry and client; `-traceid` hands it to the glideins."""
import argparse
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import glideinTracer  # noqa: E402


def submit(options, entry, client):
    """Starts a batch; returns the processes."""
    tracer = glideinTracer.Tracer(options.collector, "glidein")
    tracer.initial_trace({"entry": entry, "client": client})
    started = []
    for number in range(options.glideins):
        home = os.path.join(options.out, f"{entry}.{number}")
        os.makedirs(home)
        arguments = ["-entry", entry, "-clientname", client, "-work", str(options.work)]
        if tracer.GLIDEIN_TRACE_ID:  # never "None"
            arguments += ["-traceid", tracer.GLIDEIN_TRACE_ID]
        if number in options.slow_disk:
            arguments += ["-diskdelay", "0.1"]
        env = {**os.environ, "WEFT_SPAN_SPOOL": os.path.join(home, "spans")}
        env["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:1" if number in options.no_collector \
            else options.collector
        with open(os.path.join(home, "log"), "wb") as log:
            started.append(subprocess.Popen([os.path.join(HERE, "glidein_startup.sh"), *arguments], cwd=home, env=env,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True))
        started[-1].home = home
    return started


def works(process):
    """Waits until a glidein works, or is gone."""
    while process.poll() is None:
        with open(os.path.join(process.home, "log"), encoding="utf-8") as log:
            if "jobs begin" in log.read():
                return
        time.sleep(0.05)


def end_early(options, processes):
    """Removes and kills those of a batch that are to be, while they work."""
    for number in options.remove + options.kill:
        works(processes[number])
        if number in options.kill:
            os.killpg(processes[number].pid, signal.SIGKILL)
        else:
            processes[number].terminate()


def bring_home(options):
    """Sends what waits in the glideins' directories; whether all of it was taken."""
    program, env, sent = os.environ.get("WEFT_SPAN", "weft-span"), dict(os.environ), True
    for name in sorted(os.listdir(options.out)):
        spool = os.path.join(options.out, name, "spans")
        if os.path.isdir(spool):
            env.update(WEFT_SPAN_SPOOL=spool, OTEL_EXPORTER_OTLP_ENDPOINT=options.collector)
            sent &= subprocess.run([program, "flush"], env=env, check=False).returncode == 0
    return sent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = {"type": int, "action": "append", "default": [], "metavar": "N"}
    parser.add_argument("--collector", default="http://127.0.0.1:4318", help="where spans go (OTLP over HTTP)")
    parser.add_argument("--glideins", type=int, default=4, help="in a batch")
    parser.add_argument("--batch", action="append", metavar="ENTRY:CLIENT", help="several may be given")
    parser.add_argument("--work", type=float, default=0.3, help="seconds of each glidein's main stage")
    parser.add_argument("--out", default="run", help="a new directory")
    parser.add_argument("--remove", **numbers, help="glidein N of each batch is sent SIGTERM while it works")
    parser.add_argument("--kill", **numbers, help="… is killed without a word, with all its processes")
    parser.add_argument("--no-collector", **numbers, help="… cannot reach the collector; its spans come home on disk")
    parser.add_argument("--slow-disk", **numbers, help="… has a disk that is slow")
    options = parser.parse_args()
    options.out = os.path.abspath(options.out)
    os.makedirs(options.out)
    started = []
    for batch in options.batch or ["entry_a:frontend"]:
        started.append(submit(options, *batch.split(":")))
    for processes in started:
        end_early(options, processes)
    statuses = [[p.wait() for p in processes] for processes in started]
    print(f"glideins ended with {statuses}")
    sys.exit(0 if bring_home(options) else 1)


if __name__ == "__main__":
    main()
