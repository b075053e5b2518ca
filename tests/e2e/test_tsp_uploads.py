#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trace server: archives that are small and make a lot of work are refused with the limit that they exceed, and what a
server leaves behind when it is killed is in nobody's way at the next start."""
import gzip
import io
import os
import signal
import tarfile
import time

from tsp_server import Server, ServerCase
from weft_e2e import SLOWDOWN, main, scenario, scratch

MAX_UPLOAD = 128 << 10  # an archive may unpack to 32 times that
MAX_DIRS, MAX_ENTRIES, MAX_DEPTH, MAX_PATH, MAX_NAME = 20000, 100000, 32, 1024, 255


def archive(*names, size=0, headers=None):
    """A packed archive of directories, or of files of zeros where a size is given."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz", format=tarfile.PAX_FORMAT, preset=1) as t:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size = tarfile.REGTYPE if size else tarfile.DIRTYPE, size
            entry.pax_headers = headers or {}
            t.addfile(entry, io.BytesIO(bytes(size)))
    return out.getvalue()


def recording():
    """A packed archive of a trace."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        t.add(os.path.join(scenario("three-tier"), "web", "kernel"), arcname="kernel")
    return out.getvalue()


def wide(directories, depth=MAX_DEPTH - 1):
    """Returns an archive of so many directories below few names."""
    whole, rest = divmod(directories, depth)
    return archive(*(f"{i}" + "/a" * (depth - 1) for i in range(whole)), *(f"r{i}" for i in range(rest)))


class Uploads(ServerCase):
    def begin(self, *args):
        self.state = scratch()
        server = Server("--state", self.state, *args)
        self.addCleanup(server.stop)
        return server

    def upload(self, s, data, name="x"):
        return s.ask("POST", f"/upload?name={name}", data, raw=True,
                     headers={"Content-Type": "application/octet-stream"})

    def await_nothing(self, uploads):
        until = time.monotonic() + 300 * SLOWDOWN
        while os.listdir(uploads) and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(os.listdir(uploads), [])

    def test_limits_are_named(self):
        s = self.begin("--max-upload", MAX_UPLOAD)
        bomb = archive("/".join("a" * 60000))
        self.assertLess(len(bomb), 1273)
        comment = {"comment": "x" * 900000}  # maximum size of a header
        for data, limit in ((bomb, f"{MAX_PATH} bytes"),
                            (archive("/".join("a" * (MAX_DEPTH + 1))), f"{MAX_DEPTH} deep"),
                            (archive("a" * (MAX_PATH + 1)), f"{MAX_PATH} bytes"),
                            (archive("d/" + "a" * (MAX_NAME + 1)), f"{MAX_NAME} bytes"),
                            (archive("d/" + "a" * (MAX_NAME + 1) + "/e", size=1), f"{MAX_NAME} bytes"),
                            (wide(60000), f"{MAX_DIRS} directories"),
                            (archive(*["a"] * (MAX_ENTRIES + 1)), f"{MAX_ENTRIES} files and directories"),
                            (archive("f", size=MAX_UPLOAD * 32 + 1), f"{MAX_UPLOAD * 32} bytes"),
                            (archive(*"abcdefghi", headers=comment), "too much beside its files")):
            self.assertLess(len(data), MAX_UPLOAD)
            self.refused(self.upload(s, data), 413, limit)
        self.refused(self.upload(s, gzip.compress(archive("a"))), 400, "several times")
        # Archives at the limit are accepted, and hold no trace.
        for data in (wide(MAX_DIRS), archive("/".join("a" * MAX_DEPTH) + "/"), archive("a" * MAX_NAME),
                     archive(*["a"] * MAX_ENTRIES), archive("f", size=MAX_UPLOAD * 32),
                     archive(*"abcd", headers=comment)):
            self.refused(self.upload(s, data), 501)

    def test_left_by_a_killed_server(self):
        """Leftovers of a killed server are hidden once the next one listens, however large, and removed in the
        background."""
        self.begin().stop()
        uploads = os.path.join(self.state, "uploads")
        for name in (".incoming-aaaaaa", "half"):
            os.mkdir(os.path.join(uploads, name))
            at = os.open(os.path.join(uploads, name), os.O_RDONLY)
            for _ in range(2100):  # deeper than any path may be long
                os.mkdir("d", dir_fd=at)
                os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=at))
                down = os.open("d", os.O_RDONLY, dir_fd=at)
                os.close(at)
                at = down
            os.close(at)
        for name in (".settling-half", ".upload-aaaaaa", "upload-bbbbbb"):
            with open(os.path.join(uploads, name), "w", encoding="ascii"):
                pass
        with Server("--state", self.state) as s:
            left = os.listdir(uploads)
            self.assertEqual([n for n in left if not n.startswith(".removed-")], [])
            self.assertEqual(s.get("/health").status, 200)
            self.await_nothing(uploads)

    def test_any_name_stays(self):
        """Traces may be called as archives were that older servers left."""
        names = ("upload-2024", "upload-bbbbbb", "upload-")
        state = scratch()
        with Server("--state", state) as s:
            self.assertEqual([self.good(self.upload(s, recording(), n))["name"] for n in names], list(names))
        for _ in range(2):
            with Server("--state", state) as s:
                traces = s.get("/traces").json
                self.assertEqual([t["name"] for t in traces], list(names))
                x = self.good(s.post("/experiments", {"name": "all", "traces": [t["UUID"] for t in traces]}))
                self.assertGreater(s.opened(x["UUID"])["nbEvents"], 0)
                self.good(s.delete(f"/experiments/{x['UUID']}"))
        self.assertEqual(sorted(os.listdir(os.path.join(state, "uploads"))), sorted(names))

    def test_a_trace_that_is_not_remembered_goes(self):
        """Files of a trace that a killed server could not record belong to no trace, and are removed."""
        s = self.begin()
        traces = os.path.join(self.state, "traces")
        os.rename(traces, traces + "-away")  # simulates a full disk
        answer = self.upload(s, recording(), "lost")
        self.assertEqual(self.good(answer)["name"], "lost")
        s.stop(signal.SIGKILL)
        os.rename(traces + "-away", traces)
        with Server("--state", self.state) as s:
            self.assertEqual(s.get("/traces").json, [])
            self.await_nothing(os.path.join(self.state, "uploads"))


if __name__ == "__main__":
    main()
