# SPDX-License-Identifier: MIT
"""Inputs beyond system limits: very many stream files, few open files, little memory; and input made to be expensive.
Counts are those written."""
import os
import resource
import struct
import subprocess
import time

import small_trace
import weft_e2e
from weft_e2e import Case, scratch, weft

TYPES = ("/* CTF 1.8 */\n"
         "typealias integer { size = 8; align = 8; } := uint8_t;\n"
         "typealias integer { size = 32; align = 8; } := uint32_t;\n"
         "typealias integer { size = 64; align = 8; } := uint64_t;\n")
HEAD = "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint32_t magic; %s }; };\n"
STREAM = ("stream { packet.context := struct { uint32_t packet_size; }; };\n"
          "event { name = e; fields := struct { uint8_t x; }; };\n")
MAGIC = 0xC1FC1FC1
TEN_SECONDS = 10 * weft_e2e.SLOWDOWN


def write(directory, metadata, streams):
    os.makedirs(directory)
    with open(os.path.join(directory, "metadata"), "w", encoding="utf-8") as f:
        f.write(metadata)
    for name, data in streams:
        with open(os.path.join(directory, name), "wb") as f:
            f.write(data)
    return directory


def many_files(directory, n):
    """Writes files of one event each, with values of 1 to 255 in turn."""
    return write(directory, TYPES + HEAD % "" + STREAM,
                 ((f"c_{i:06}", struct.pack("<IIB", MAGIC, 72, 1 + i % 255)) for i in range(n)))


class Limits(Case):
    def setUp(self):
        self.dir = os.path.join(scratch(), "trace")

    def quick(self, *args):
        start = time.monotonic()
        run = weft(*args)
        self.assertLess(time.monotonic() - start, TEN_SECONDS, args)
        self.assertEqual(run.code, 0, run.err)
        run.out = run.out.decode()
        return run

    def test_more_files_than_are_kept_mapped(self):
        n = 15000 # a process keeps a sixth of vm.max_map_count (65530) mapped
        run = self.quick("events", many_files(self.dir, n), "--format", "json")
        values = [line.split('"x":')[1] for line in run.out.splitlines()]
        self.assertEqual(len(values), n)
        self.assertEqual([int(v.split("}")[0]) for v in values], [1 + i % 255 for i in range(n)])
        self.assertIn(f"{n // 1000} 000 events in {n // 1000} 000 streams", self.quick("info", self.dir).out)

    def limited(self, what, limit, *args):
        return subprocess.run([weft_e2e.BIN, *args], capture_output=True, text=True, timeout=weft_e2e.TIMEOUT_S,
                              check=False, preexec_fn=lambda: resource.setrlimit(what, (limit, limit)))

    def test_few_open_files(self):
        many_files(self.dir, 500)
        run = self.limited(resource.RLIMIT_NOFILE, 16, "events", self.dir)
        self.assertEqual((run.returncode, len(run.stdout.splitlines())), (0, 500), run.stderr)
        run = self.limited(resource.RLIMIT_NOFILE, 3, "events", self.dir)
        self.assertGreater(run.returncode, 0)

    def test_little_address_space(self):
        if weft_e2e.SANITIZER: # sanitizers reserve address space
            return
        many_files(self.dir, 5000)
        run = self.limited(resource.RLIMIT_AS, 40 << 20, "events", self.dir)
        self.assertEqual(run.returncode, 1, run.stderr[:500])
        self.assertIn("ENOMEM", run.stderr)
        self.assertIn("ulimit -v", run.stderr)

    def test_streams_without_number_in_one_file(self):
        n = 60000
        data = b"".join(struct.pack("<IQIB", MAGIC, i, 17 * 8, 1) for i in range(n))
        write(self.dir, TYPES + HEAD % "uint64_t stream_instance_id;" + STREAM, [("stream", data)])
        self.assertEqual(len(self.quick("events", self.dir).out.splitlines()), n)

    def test_stream_blocks_without_number(self):
        n = 20000
        blocks = "".join("stream { id = %d; packet.context := struct { uint32_t packet_size; }; };\n"
                         "event { name = e%d; stream_id = %d; fields := struct { uint8_t x; }; };\n" % (i, i, i)
                         for i in range(n))
        data = b"".join(struct.pack("<IIIB", MAGIC, i, 13 * 8, 1) for i in range(n))
        write(self.dir, TYPES + HEAD % "uint32_t stream_id;" + blocks, [("stream", data)])
        self.assertEqual(len(self.quick("events", self.dir).out.splitlines()), n)
        self.assertIn("20 000 events in 20 000 streams", self.quick("info", self.dir).out)

    def test_event_types_without_a_clock(self):
        n = 65000
        events = "".join("event { name = e%d; id = %d; fields := struct { uint8_t x; }; };\n" % (i, i)
                         for i in range(n))
        write(self.dir, TYPES + "trace { major = 1; minor = 8; byte_order = le; };\n"
              "stream { event.header := struct { uint32_t id; }; };\n" + events,
              [("stream", b"".join(struct.pack("<IB", i, 1) for i in range(n)))])
        lines = self.quick("events", self.dir).out.splitlines()
        self.assertEqual((len(lines), lines[-1]), (n, f"e{n - 1}: {{ x = 1 }}"))

    def test_heads_that_are_long_lists(self):
        """A header whose list fills the file, damaged in its first packet: each page might begin another."""
        n = 4 << 20
        header = "uint8_t uuid[16]; uint32_t n; struct { uint8_t m; uint8_t z[m]; } l[n];"
        md = TYPES + (HEAD % header).replace("byte_order", 'uuid = "10111213-1415-1617-1819-1a1b1c1d1e1f"; byte_order')
        page = (struct.pack("<I", MAGIC) + small_trace.UUID + struct.pack("<I", n // 2)).ljust(4096, b"\0")
        data = b"\0" * 4096 + page * (n // 4096)
        write(self.dir, md + STREAM, [("stream", data)])
        start = time.monotonic()
        run = weft("events", self.dir)
        self.assertLess(time.monotonic() - start, TEN_SECONDS)
        self.assertEqual(run.out, b"")

    def test_events_that_refer_behind_a_long_list(self):
        """Events that would each read the whole list again."""
        header = "uint32_t n; struct { uint8_t m; uint8_t z[m]; } l[n]; uint8_t len;"
        fields = "stream { };\nevent { name = e; fields := struct { uint8_t x[len]; uint8_t y; string s; }; };\n"
        for elements, events in ((100, 3), (1 << 20, 0)):
            data = struct.pack("<II", MAGIC, elements) + bytes(elements) + b"\1" + b"\1\2a\0" * 3
            if not events:
                data += b"\1\2a\0" * (1 << 18)
            write(self.dir + str(elements), TYPES + HEAD % header + fields, [("stream", data)])
            start = time.monotonic()
            run = weft("events", self.dir + str(elements))
            self.assertLess(time.monotonic() - start, TEN_SECONDS)
            self.assertEqual(len(run.out.splitlines()), events)
            self.assertEqual(b"too long" in run.err, not events, run.err)

    def test_damaged_cpu_number(self):
        """CPU number of the only packet of a kernel trace is damaged: no stream corrects it, and no memory is allocated
        for the CPUs below."""
        events = small_trace.PACKETS[0]
        packet = bytearray(small_trace.packet(0, events))
        packet[72:76] = struct.pack("<I", 2000000000)
        small_trace.write(self.dir, stream=bytes(packet))
        for args in (["events", self.dir, "--filter", "tid = 10"], ["info", self.dir], ["index", self.dir]):
            run = self.limited(resource.RLIMIT_AS, (1 << 30) * (1 if not weft_e2e.SANITIZER else 1 << 16), *args)
            self.assertLess(run.returncode, 4, run.stderr)
            self.assertGreaterEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    weft_e2e.main()
