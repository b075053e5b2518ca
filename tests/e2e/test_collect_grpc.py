# SPDX-License-Identifier: MIT
"""weft collect over gRPC: the judges are node's HTTP/2, the published numbers of gRPC's statuses, and what comes back
over HTTP; and bytes that no client would send."""
import base64
import gzip
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import threading
import time
import urllib.parse

import otlp_made as made
from collect_server import PROTOBUF, Collect
from weft_e2e import SLOWDOWN, Case, main, need, new_dice, scratch

HERE = os.path.dirname(os.path.abspath(__file__))
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
OK, INVALID, EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, UNAUTHENTICATED = 0, 3, 8, 12, 13, 14, 16
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9


def trace(n):
    return f"{n:032x}"


def request(*spans):
    return made.request(made.of(list(spans)))


def span(n, **more):
    return made.made(trace(n), 1, f"span {n}", **more)


def message(body, packed=0):
    return bytes([packed]) + struct.pack(">I", len(body)) + body


def frame(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def plain_headers(*fields):
    """HPACK without table and Huffman's code; of at most 126 bytes each."""
    return b"".join(b"\0" + bytes([len(k)]) + k.encode() + bytes([len(v)]) + v.encode() for k, v in fields)


HEAD = plain_headers((":method", "POST"), (":scheme", "http"), (":path", EXPORT), (":authority", "x"),
                     ("content-type", "application/grpc"))


class Answer:
    def __init__(self, answer):
        ends = answer["trailers"] if "grpc-status" in answer["trailers"] else answer["headers"]
        self.http, self.error = int(answer["headers"].get(":status", 0)), answer.get("error")
        self.status = int(ends["grpc-status"]) if "grpc-status" in ends else None
        self.message = urllib.parse.unquote(ends.get("grpc-message", ""))
        self.raw, self.ends = ends.get("grpc-message", ""), ends
        self.in_trailers = ends is answer["trailers"]
        self.body = base64.b64decode(answer["body"])


def calls(url, *asked):
    """Sends calls (path, headers, body) or (path, headers, body, pieces), all at once on one connection."""
    asked = [{"path": a[0], "headers": a[1], "body": base64.b64encode(a[2]).decode(), "parts": (*a, 1)[3]}
             for a in asked]
    done = subprocess.run([need("node"), os.path.join(HERE, "grpc_client.mjs"), url], input=json.dumps(asked).encode(),
                          capture_output=True, timeout=120 * SLOWDOWN, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return [Answer(a) for a in json.loads(done.stdout)["answers"]]


def export(url, body, packed=0, parts=1, **headers):
    return calls(url, (EXPORT, headers, message(body, packed), parts))[0]


class Calls(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.c = Collect()

    @classmethod
    def tearDownClass(cls):
        assert cls.c.stop() == 0

    def names(self, n):
        return [s["name"] for _, _, s in self.c.spans(trace(n))]

    def test_taken(self):
        answer = export(self.c.grpc, request(span(1)))
        self.assertEqual((answer.http, answer.status, answer.in_trailers, answer.body), (200, OK, True, message(b"")))
        self.assertEqual(self.names(1), ["span 1"])

    def test_packed(self):
        answer = export(self.c.grpc, gzip.compress(request(span(2))), 1, **{"grpc-encoding": "gzip"})
        self.assertEqual((answer.status, self.names(2)), (OK, ["span 2"]))

    def test_in_pieces(self):
        """Messages in pieces, also with the five bytes before the message split."""
        body = request(span(3, attributes=[made.text("long", "x" * 200)]))
        answer = export(self.c.grpc, body, parts=len(body) + 5)
        self.assertEqual((answer.status, self.names(3)), (OK, ["span 3"]))

    def test_many_at_once(self):
        """Calls above the limit of a connection's streams, on each of several connections."""
        def send(first):
            numbers = range(first, first + 300)
            for answer in calls(self.c.grpc, *((EXPORT, {}, message(request(span(n)))) for n in numbers)):
                self.assertEqual((answer.status, answer.error), (OK, None))
            sent.append(first)
        sent = []
        threads = [threading.Thread(target=send, args=(first,)) for first in (1000, 2000, 3000)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(sorted(sent), [1000, 2000, 3000])
        for first in sent:
            for n in (0, 150, 299):
                self.assertEqual(self.names(first + n), [f"span {first + n}"])

    def test_partial(self):
        bad = {**span(4), "spanId": "00" * 8}
        answer = export(self.c.grpc, request(span(4), bad))
        same = self.c.send(request(span(4), bad), PROTOBUF)
        self.assertEqual((answer.status, answer.body[5:]), (OK, same.body))
        self.assertIn(made.number(1, 1), answer.body)  # rejected_spans
        self.assertEqual(self.names(4), ["span 4"])

    def test_refused(self):
        body = request(span(5))
        packed = gzip.compress(body)
        large = b"\0" + struct.pack(">I", (64 << 20) + 1)
        cases = [
            ("not protobuf", (EXPORT, {}, message(b"\xff" * 40)), INVALID),
            ("no message", (EXPORT, {}, b""), INVALID),
            ("half a head", (EXPORT, {}, b"\0\0\0"), INVALID),
            ("cut off", (EXPORT, {}, message(body)[:-1]), INVALID),
            ("two messages", (EXPORT, {}, message(body) * 2), INVALID),
            ("odd flag", (EXPORT, {}, message(body, 7)), INTERNAL),
            ("packed, not said how", (EXPORT, {}, message(packed, 1)), INTERNAL),
            ("damaged gzip", (EXPORT, {"grpc-encoding": "gzip"}, message(packed[:-9], 1)), INVALID),
            ("other encoding", (EXPORT, {"grpc-encoding": "zstd"}, message(packed, 1)), UNIMPLEMENTED),
            ("too large", (EXPORT, {}, large), EXHAUSTED),
            ("bomb", (EXPORT, {"grpc-encoding": "gzip"}, message(gzip.compress(bytes((64 << 20) + 1)), 1)), EXHAUSTED),
            ("other method", (EXPORT.replace("Export", "Import"), {}, message(body)), UNIMPLEMENTED),
            ("other service", ("/grpc.health.v1.Health/Check", {}, message(b"")), UNIMPLEMENTED),
        ]
        for (what, _, status), answer in zip(cases, calls(self.c.grpc, *(c[1] for c in cases)), strict=True):
            with self.subTest(what):
                self.assertEqual((answer.http, answer.status), (200, status))
                self.assertTrue(answer.message)
                self.assertTrue(answer.raw.isascii())
        self.assertEqual(self.names(5), [])
        for kind, http in (("application/grpc-web", 415), ("application/json", 415), ("application/grpc+proto", 200)):
            self.assertEqual(calls(self.c.grpc, (EXPORT, {"content-type": kind}, message(b"")))[0].http, http, kind)

    def test_page(self):
        answer = calls(self.c.grpc, (EXPORT, {"origin": "http://evil.example"}, message(request(span(6)))))[0]
        self.assertEqual((answer.status, self.names(6)), (7, []))


class Doors(Case):
    def test_token_and_tls(self):
        need("openssl")
        directory = scratch()
        token, cert, key = (os.path.join(directory, n) for n in ("token", "cert", "key"))
        with open(token, "w", encoding="ascii") as f:
            f.write("geheim\n")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
                        "-days", "2", "-subj", "/CN=localhost"], check=True, capture_output=True)
        body = request(span(1))
        with Collect("--token-file", token) as c:
            for given, status in ((None, UNAUTHENTICATED), ("Bearer geheimer", UNAUTHENTICATED), ("Bearer geheim", OK)):
                headers = {"authorization": given} if given else {}
                self.assertEqual(calls(c.grpc, (EXPORT, headers, message(body)))[0].status, status, given)
        with Collect("--tls-cert", cert, "--tls-key", key) as c:
            self.assertTrue(c.grpc.startswith("https://"))
            large = request(span(1, attributes=[made.text("long", "x" * (3 << 20))]))
            self.assertEqual(export(c.grpc, body).status, OK)
            self.assertEqual(export(c.grpc, large).status, OK)
            with socket.create_connection(("127.0.0.1", int(c.grpc.rsplit(":", 1)[1])), 10 * SLOWDOWN) as s:
                s.sendall(PREFACE + frame(SETTINGS, 0, 0))  # connection without TLS
                self.assertEqual([x for x in iter(lambda: quietly(s), b"") if HEAD in x], [])
            self.assertEqual(export(c.grpc, body).status, OK)

    def test_full_disk(self):
        """Full disk: the error says, in both ways, when to retry."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        large = request(span(1, attributes=[made.text("long", "x" * (2 << 20))]))
        with Collect(preexec_fn=limit) as c:
            answer = export(c.grpc, large)
            self.assertEqual(answer.status, UNAVAILABLE)
            self.assertEqual(answer.ends["grpc-retry-pushback-ms"], "2000")
            details = base64.b64decode(answer.ends["grpc-status-details-bin"] + "==")
            delay = made.blob(1, made.number(1, 2))
            retry = made.blob(1, "type.googleapis.com/google.rpc.RetryInfo") + made.blob(2, delay)
            self.assertIn(made.number(1, UNAVAILABLE), details)
            self.assertIn(made.blob(3, retry), details)
            resource.prlimit(c.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            self.assertEqual(export(c.grpc, request(span(2))).status, OK)
            self.assertEqual([s["name"] for _, _, s in c.spans(trace(2))], ["span 2"])

    def test_killed(self):
        """Acknowledged spans survive kill -9."""
        store, acknowledged = scratch(), []
        with Collect(store=store) as c:
            for n in range(1, 4):
                answers = calls(c.grpc, *((EXPORT, {}, message(request(span(100 * n + i)))) for i in range(50)))
                acknowledged += [100 * n + i for i, a in enumerate(answers) if a.status == OK]
            c.process.kill()
            c.process.communicate()
        self.assertEqual(len(acknowledged), 150)
        with Collect(store=store) as c:
            for n in acknowledged:
                self.assertEqual(len(c.spans(trace(n))), 1)


def quietly(s):
    """Reads from the connection; nothing once it is over."""
    try:
        return s.recv(65536)
    except ConnectionError:
        return b""


class Hostile(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.c = Collect()
        cls.port = int(cls.c.grpc.rsplit(":", 1)[1])

    @classmethod
    def tearDownClass(cls):
        assert cls.c.stop() == 0

    def tearDown(self):
        """Whatever was done to it, others are served."""
        self.assertEqual(export(self.c.grpc, request(span(77))).status, OK)

    def connect(self, *frames, begin=PREFACE + frame(SETTINGS, 0, 0)):
        s = socket.create_connection(("127.0.0.1", self.port), 20 * SLOWDOWN)
        try:
            s.sendall(begin + b"".join(frames))
        except ConnectionError:
            pass
        return s

    def frames(self, s):
        """Reads until the end; returns (kind, flags, stream, body)."""
        came = b""
        while piece := quietly(s):
            came += piece
            while len(came) >= 9 and len(came) >= 9 + (n := int.from_bytes(came[:3])):
                yield came[3], came[4], int.from_bytes(came[5:9]), came[9:9 + n]
                came = came[9 + n:]

    def closed(self, *frames, **more):
        """Checks that it ends the connection (else reading takes too long); and its error, if that still arrives."""
        with self.connect(*frames, **more) as s:
            return [int.from_bytes(body[4:8]) for kind, _, _, body in self.frames(s) if kind == GOAWAY][-1:]

    def test_no_http2(self):
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
        no_preface = b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"
        for begin in (b"GET / HTTP/1.1\r\n\r\n" + bytes(40), hello * 9, bytes(100), no_preface):
            self.closed(begin=begin)

    def test_huge_frame(self):
        frame_size_error = 6
        self.assertEqual(self.closed(b"\xff\xff\xff" + bytes([DATA, 0]) + struct.pack(">I", 1)), [frame_size_error])

    def test_header_floods(self):
        name = plain_headers(("x" * 100, "y" * 100))
        # Header block above the limit: the stream is reset, without effect.
        with self.connect(frame(HEADERS, 5, 1, HEAD + name * 75), frame(PING, 0, 0, b"12345678")) as s:
            came = set()
            for kind, _, stream, _ in self.frames(s):
                came.add((kind, stream))
                if {(PING, 0), (RST, 1)} <= came:
                    break
            self.assertNotIn((HEADERS, 1), came)
            self.assertLessEqual({(PING, 0), (RST, 1)}, came)
        # Endless header block.
        self.closed(frame(HEADERS, 1, 1, HEAD), *(frame(CONTINUATION, 0, 1, name * 70),) * 200)
        self.closed(frame(HEADERS, 1, 1, HEAD), *(frame(CONTINUATION, 0, 1),) * 2000)

    def test_rapid_reset(self):
        """A call is given up as soon as it is made, again and again: the connection is ended, not the collector."""
        body = message(request(span(9)))
        pairs = (frame(HEADERS, 4, 2 * i + 1, HEAD) + frame(DATA, 1, 2 * i + 1, body) +
                 frame(RST, 0, 2 * i + 1, struct.pack(">I", 8)) for i in range(20000))
        self.closed(b"".join(pairs))

    def test_many_streams(self):
        """Simultaneous calls above the limit: the excess is refused, and the others are answered when they go on."""
        heads = [frame(HEADERS, 4, 2 * i + 1, HEAD) for i in range(150)]
        body = message(request(span(10)))
        refused, answered = set(), set()
        with self.connect(*heads, *(frame(DATA, 1, 2 * i + 1, body) for i in range(100))) as s:
            for kind, flags, stream, _ in self.frames(s):
                if kind == RST:
                    refused.add(stream)
                elif kind == HEADERS and flags & 1:
                    answered.add(stream)
                if len(refused) + len(answered) == 150:
                    break
        self.assertEqual((refused, answered), ({2 * i + 1 for i in range(100, 150)}, {2 * i + 1 for i in range(100)}))

    def test_half_open(self):
        """Connections that are silent, or stop in the middle of a frame, and pings whose answers are not read."""
        silent = [self.connect(begin=PREFACE[:i % 24]) for i in range(300)]
        half = [self.connect(frame(HEADERS, 4, 1, HEAD), frame(DATA, 0, 1, b"\0\0\0\1\0abc")) for _ in range(100)]
        deaf = self.connect()
        deaf.setblocking(False)
        sent, until = 0, time.monotonic() + 2
        while sent < 64 << 20 and time.monotonic() < until:
            try:
                sent += deaf.send(frame(PING, 0, 0, b"12345678") * 5000)
            except BlockingIOError:
                time.sleep(0.01)
            except ConnectionError:
                break
        self.assertLess(sent, 64 << 20)
        self.assertEqual(export(self.c.grpc, request(span(11))).status, OK)
        with open(f"/proc/{self.c.process.pid}/status", encoding="ascii") as f:
            rss = [int(line.split()[1]) for line in f if line.startswith("VmRSS")][0]
        self.assertLess(rss, 400 * 1024 * SLOWDOWN)
        for s in (*silent, *half, deaf):
            s.close()

    def test_garbage(self):
        """Sound calls with bytes flipped, and random frames."""
        dice = new_dice(4317)
        sound = frame(HEADERS, 4, 1, HEAD) + frame(DATA, 1, 1, message(request(span(12)))) + frame(PING, 0, 0, bytes(8))
        for _ in range(300):
            data = bytearray(sound)
            for _ in range(dice.randrange(1, 6)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            with self.connect(bytes(data)) as s:
                s.shutdown(socket.SHUT_WR)
                for _ in self.frames(s):
                    pass
        for _ in range(100):
            random = (frame(dice.randrange(11), dice.randrange(256), dice.randrange(4),
                            dice.randbytes(dice.randrange(60))) for _ in range(20))
            with self.connect(b"".join(random)) as s:
                s.shutdown(socket.SHUT_WR)
                for _ in self.frames(s):
                    pass


if __name__ == "__main__":
    main()
