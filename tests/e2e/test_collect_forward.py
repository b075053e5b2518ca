# SPDX-License-Identifier: MIT
"""weft collect --forward: what one collector acknowledged is in another one, once, whatever happens to either."""
import glob
import os
import signal
import subprocess
import time

import otlp_made as made
from cluster_of import free_port
from collect_server import Collect
from span_collector import Collector
from test_collect import rich, sound
from weft_e2e import SLOWDOWN, Case, main, need, scratch, weft


def trace(n):
    return f"{n:032x}"


def spans(first, n, **more):
    return made.of([made.made(trace(i), 1, f"span {i}", **more) for i in range(first, first + n)])


def until(what, tries=300):
    for _ in range(tries * SLOWDOWN):
        if what():
            return True
        time.sleep(0.1)
    return False


def place():
    """Sets up a collector that comes and goes: returns the option, and its address for others."""
    address = f"127.0.0.1:{free_port('127.0.0.1')}"
    return ["--otlp-http", address], "http://" + address


class Forward(Case):
    def check_there(self, collect, numbers):
        self.assertTrue(until(lambda: collect.spans(trace(numbers[-1]))))
        for n in numbers:
            self.assertEqual([s["name"] for _, _, s in collect.spans(trace(n))], [f"span {n}"], n)

    def test_whole(self):
        """Everything that a span can hold, and open ones."""
        request = made.of([rich(), made.made(trace(7), 7, attributes=[made.text("weft.state", "open")])],
                          version=made.text("v", "1")["value"]["stringValue"])
        request["resourceSpans"][0].update(schemaUrl="https://example.org/r")
        request["resourceSpans"][0]["scopeSpans"][0].update(schemaUrl="https://example.org/s")
        with Collect() as last, Collect("--forward", last.otlp) as first:
            self.assertEqual(first.send(request).status, 200)
            for number in (rich()["traceId"], trace(7)):
                self.assertTrue(until(lambda n=number: last.spans(n)))
                self.assertEqual(sound(last.spans(number)), sound(first.spans(number)))
            self.assertEqual(last.get("/api/v3/traces/" + trace(7)).json(),
                             first.get("/api/v3/traces/" + trace(7)).json())

    def test_killed_and_restarted(self):
        """The peer is away, killed, back; this collector killed and back: every span arrives once."""
        store, far, (port, url) = scratch(), scratch(), place()
        first = Collect("--forward", url, store=store)
        self.assertEqual(first.send(spans(1, 50)).status, 200)  # peer still away
        last = Collect(*port, store=far)
        self.check_there(last, range(1, 51))
        self.assertEqual(first.send(spans(100, 50)).status, 200)
        last.stop(signal.SIGKILL)
        self.assertEqual(first.send(spans(200, 50)).status, 200)
        first.stop(signal.SIGKILL)
        first = Collect("--forward", url, store=store)
        self.assertEqual(first.send(spans(300, 50)).status, 200)
        last = Collect(*port, store=far)
        self.check_there(last, [*range(1, 51), *range(100, 150), *range(200, 250), *range(300, 350)])
        self.assertEqual((first.stop(), last.stop()), (0, 0))

    def test_large(self):
        """Large batches, above one request, from one and from many."""
        with Collect() as last, Collect("--forward", last.otlp + "/v1/traces") as first:
            self.assertEqual(first.send(spans(1, 300, attributes=[made.text("k", "v" * 60000)])).status, 200)
            for n in range(1000, 1100):
                self.assertEqual(first.send(spans(n, 1)).status, 200)
            self.check_there(last, [*range(1, 301), *range(1000, 1100)])

    def test_peers(self):
        """A peer that hangs, one that refuses, one that is busy: this collector goes on."""
        answers = []

        def answer(body):
            answers.append(time.monotonic())
            return [(503, {"Retry-After": "2"}), (429, {}), (400, {}), (200, {})][min(len(answers) - 1, 3)]

        with Collector(answer) as peer, Collect("--forward", peer.url) as c:
            self.assertEqual(c.send(spans(1, 10)).status, 200)
            self.assertTrue(until(lambda: len(answers) == 3))
            self.assertGreaterEqual(answers[1] - answers[0], 1.9)  # pause given by Retry-After
            self.assertEqual(c.send(spans(20, 1)).status, 200)
            self.assertTrue(until(lambda: len(answers) == 4))
            time.sleep(1)
            self.assertEqual(len(answers), 4)  # refused with 400: not repeated
            path, headers, _ = peer.requests[0]
            self.assertEqual((path, headers["Content-Type"]), ("/v1/traces", "application/x-protobuf"))
            self.assertEqual(c.stop(), 0)
            self.assertRegex(c.said, "10 spans were refused, and will not be sent again: it answers with status 400")
        with Collector(lambda body: "hang") as peer, Collect("--forward", peer.url) as c:
            begin = time.monotonic()
            for n in range(1, 50):
                self.assertEqual(c.send(spans(n, 1)).status, 200)
            self.assertEqual(len(c.spans(trace(49))), 1)
            self.assertEqual(c.stop(), 0)
            self.assertLess(time.monotonic() - begin, 20 * SLOWDOWN)

    def test_spool(self):
        """Spool above its limit: the oldest spans are dropped with a message; the rest is forwarded."""
        store, far, (port, url) = scratch(), scratch(), place()
        for n in (1, 2, 3):  # starts; each begins a file of the log
            with Collect("--forward", url, "--forward-spool", "1M", store=store) as c:
                attributes = [made.text("k", os.urandom(200000).hex())]
                self.assertEqual(c.send(spans(n, 1, attributes=attributes)).status, 200)
                self.assertEqual(len(c.spans(trace(n))), 1)
        self.assertRegex(c.said, "bytes of the oldest spans are left out")
        self.assertGreater(len(glob.glob(os.path.join(store, "log", "*.log"))), 1)
        with Collect(*port, store=far) as last:
            with Collect("--forward", url, "--forward-spool", "1M", store=store) as c:
                self.assertTrue(until(lambda: last.spans(trace(3))))
            self.assertEqual([len(last.spans(trace(n))) for n in (1, 2, 3)], [0, 1, 1])

    def test_token_and_certificate(self):
        """Spans arrive by https, with the token; without either nothing is lost, and the reason is reported."""
        openssl, at = need("openssl"), scratch()
        key, cert, token = (os.path.join(at, x) for x in ("key.pem", "cert.pem", "token"))
        subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days",
                        "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True,
                       capture_output=True)
        with open(token, "w", encoding="utf-8") as f:
            f.write("open sesame\n")
        trusts, shows, store = ["--forward-ca", cert], ["--forward-token-file", token], scratch()
        with Collect("--tls-cert", cert, "--tls-key", key, "--token-file", token) as last:
            for n, (more, why) in enumerate(((shows, "certificate"), (trusts, "status 401")), 1):
                with Collect("--forward", last.otlp, *more, store=store) as c:
                    self.assertEqual(c.send(spans(n, 1)).status, 200)
                    self.assertIn(why, c.process.stderr.readline())
            self.assertEqual(weft("spans", "table", "--store", last.store).text.count("\n"), 1)
            with Collect("--forward", last.otlp, *trusts, *shows, store=store):
                self.assertTrue(until(lambda: weft("spans", "table", "--store", last.store).text.count("\n") == 3))

    def test_to_itself(self):
        """Forwarding to itself is refused, by any name of this machine, at any of its doors."""
        port, free = free_port("127.0.0.1"), free_port("127.0.0.1")
        for listen, url in ((f"127.0.0.1:{port}", f"http://127.0.0.1:{port}"),
                            (f"127.0.0.1:{port}", f"http://localhost:{port}/v1/traces"),
                            (f"127.0.0.1:{port}", f"http://user@LOCALHOST:{port}"),
                            (f"127.0.0.1:{port}", f"http://0.0.0.0:{port}"),
                            (f"0.0.0.0:{port}", f"http://127.0.0.2:{port}"),
                            (f"0.0.0.0:{port}", f"http://localhost:{port}")):
            for door in ("otlp-http", "query"):
                with self.subTest(f"{door} {listen} {url}"), self.assertRaisesRegex(AssertionError, "collector itself"):
                    Collect("--forward", url, "--" + door, listen)
        for url in (f"http://127.0.0.2:{port}", f"http://127.0.0.1:{free}", "http://nobody.invalid:4318"):
            with Collect("--forward", url, "--otlp-http", f"127.0.0.1:{port}") as c:
                self.assertEqual(c.send(spans(1, 1)).status, 200)

    def test_wrong_use(self):
        for args in (["--forward", "somewhere"], ["--forward", "http://127.0.0.1:1", "--forward-spool", "much"],
                     ["--forward-token-file", "for --forward URL"],
                     ["--forward", "http://127.0.0.1:1", "--forward-ca", "/no"]):
            with self.assertRaisesRegex(AssertionError, args[-1]):
                Collect(*args)


if __name__ == "__main__":
    main()
