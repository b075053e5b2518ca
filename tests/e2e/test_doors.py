#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests refused by every server of weft: old versions of TLS, names that other sites' pages may use, invalid tokens,
and paths that mean another one behind a coordinator."""
import http.client
import http.server
import os
import resource
import socket
import ssl
import subprocess
import threading

from collect_server import Collect
from coordinated import Coordinator
from tsp_server import Server, ServerCase
from weft_e2e import BIN, main, need, scratch


CONNECTIONS = 2048  # simultaneous connections


def pair():
    """A certificate of its own, and its key."""
    openssl, at = need("openssl"), scratch()
    cert, key = os.path.join(at, "cert"), os.path.join(at, "key")
    subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days",
                    "2", "-subj", "/CN=localhost"], check=True, capture_output=True)
    return cert, key


def speaks(address, version, protocols=()):
    """Returns whether the server there speaks that version of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")  # makes OpenSSL offer the old ones
    context.minimum_version = context.maximum_version = version
    if protocols:
        context.set_alpn_protocols(list(protocols))
    host, port = address.split("//")[-1].rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as plain:
        try:
            with context.wrap_socket(plain):
                return True
        except (ssl.SSLError, ConnectionError):
            return False


def status(address, path, host):
    connection = http.client.HTTPConnection(*address.split("//")[-1].rsplit(":", 1), timeout=30)
    connection.request("GET", path, headers={"Host": host})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def raw(address, request):
    """Returns all bytes received until the server closes."""
    host, port = address.split("//")[-1].rsplit(":", 1)
    answer = b""
    with socket.create_connection((host, int(port)), timeout=60) as c:
        c.sendall(request.encode())
        try:
            while more := c.recv(65536):
                answer += more
        except ConnectionError:
            pass  # bytes behind the refused request are not read
    return answer


class Doors(ServerCase):
    def versions(self, *where):
        for address, protocols in where:
            for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
                self.assertFalse(speaks(address, version, protocols), (address, version))
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                self.assertTrue(speaks(address, version, protocols), (address, version))

    def test_tls(self):
        cert, key = pair()
        server = Server("--tls-cert", cert, "--tls-key", key, "--trace-root", scratch())
        self.addCleanup(server.stop)
        with Collect("--tls-cert", cert, "--tls-key", key) as c:
            self.versions((server.url, ()), (c.otlp, ()), (c.grpc, ("h2",)))

    def test_names(self):
        server = Server("--trace-root", scratch(), "--host", "traces.example", listen="0.0.0.0:0")
        self.addCleanup(server.stop)
        coordinator = Coordinator(f"--server=a={server.url.replace('0.0.0.0', '127.0.0.1')}", "--host=traces.example",
                                  listen="0.0.0.0:0")
        self.addCleanup(coordinator.stop)
        with Collect("--host", "traces.example") as c:
            for address, path in ((server.url, "/tsp/api/traces"), (coordinator.url, "/tsp/api/traces"),
                                  (c.otlp, "/v1/traces"), (c.query, "/api/services")):
                answer, text = status(address, path, "evil.example")
                self.assertEqual(answer, 421, (address, text))
                self.assertIn("--host", text)
                for host in ("traces.example", "TRACES.EXAMPLE:80", "localhost", "127.0.0.1", "192.0.2.1", "[::1]:80",
                             socket.gethostname()):
                    self.assertNotEqual(status(address, path, host)[0], 421, (address, host))
        for url in (server.url, coordinator.url):  # monitoring calls servers by address
            self.assertEqual(status(url, "/tsp/api/health", "192.0.2.1")[0], 200)

    def test_tokens_of_blanks(self):
        token = os.path.join(scratch(), "token")
        for text in (" ", "   \n", "\t\nsecret\n", "\n", ""):
            with open(token, "w", encoding="ascii") as f:
                f.write(text)
            for verb, *more in (["serve", "--trace-root", scratch()], ["coordinate", "--server=a=http://127.0.0.1:1"],
                                ["collect", "--store", scratch()]):
                ports = [] if verb == "collect" else ["--listen", "127.0.0.1:0"]
                run = subprocess.run([BIN, verb, *more, *ports, "--token-file", token], capture_output=True, text=True,
                                     timeout=60, check=False)
                self.assertEqual(run.returncode, 2, (verb, text, run))
                self.assertIn("not blanks", run.stderr)

    def servers(self):
        """The address of each kind of server, and something that it takes."""
        server = Server("--state", scratch())
        self.addCleanup(server.stop)
        coordinator = Coordinator(f"--server=a={server.url}")
        self.addCleanup(coordinator.stop)
        collect = self.enterContext(Collect())
        return ((server.url, "/tsp/api/traces"), (coordinator.url, "/tsp/api/experiments"),
                (collect.otlp, "/v1/traces"), (collect.query, "/api/services"))

    def test_lines_between_chunks(self):
        """Two servers in a row must not disagree where a body ends (RFC 9112, section 11.2)."""
        for address, path in self.servers():
            head = (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n")
            for body in ("2\n{}\r\n0\r\n\r\n", "1\r\n{\n1\r\n}\r\n0\r\n\r\n", "2\r\n{}\r\n0\r\nX: a\n\r\n",
                         "2\r\n{}\r\n0\r\nX: a\r\n\r\n"):
                hidden = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                answer = raw(address, head + body + hidden)
                self.assertRegex(answer, rb"^HTTP/1.1 400 ", (address, body))
                self.assertEqual(answer.count(b"HTTP/1.1 "), 1, (address, body, answer))

    def test_all_connections_taken(self):
        """Health checks are answered by a server with all connections taken."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        server = Server("--trace-root", scratch())
        self.addCleanup(server.stop)
        taken = [socket.create_connection(server.host.split(":"), timeout=60) for _ in range(CONNECTIONS)]
        self.addCleanup(lambda: [c.close() for c in taken])
        for _ in range(3):
            self.assertEqual(status(server.url, "/tsp/api/health", "localhost")[0], 200)
        waiting = socket.create_connection(server.host.split(":"), timeout=60)
        self.addCleanup(waiting.close)
        waiting.sendall(b"GET /tsp/api/traces HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertEqual(status(server.url, "/tsp/api/health", "localhost")[0], 200)
        taken.pop().close()
        self.assertRegex(waiting.recv(1000), rb"^HTTP/1.1 200 ")

    def test_dots_are_not_passed_on(self):
        asked = []

        class Spy(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                asked.append(self.path)
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_POST = do_PUT = do_DELETE = do_GET

            def log_message(self, *args):
                pass

        spy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Spy)
        threading.Thread(target=spy.serve_forever, daemon=True).start()
        self.addCleanup(spy.shutdown)
        coordinator = Coordinator(f"--server=a=http://127.0.0.1:{spy.server_port}")
        self.addCleanup(coordinator.stop)
        for path in ("/experiments/../outputs", "/experiments/%2e%2e/outputs", "/experiments/x/outputs/..",
                     "/experiments/x/outputs/table/%2E./columns", "/traces/.", "/traces/..%2f..%2fetc",
                     "/experiments/x%2f../outputs"):
            connection = http.client.HTTPConnection(coordinator.host, timeout=60)
            connection.request("GET", "/tsp/api" + path)
            answer = connection.getresponse()
            self.assertEqual(answer.status, 400, (path, answer.read()))
            connection.close()
        for path in asked:
            self.assertNotRegex(path.lower(), r"/(\.|%2e){1,2}(/|$)")


if __name__ == "__main__":
    main()
