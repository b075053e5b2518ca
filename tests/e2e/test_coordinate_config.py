#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Configuration of weft coordinate: reading, errors with their places, generation, and its effect on the servers."""
import os
import re
import subprocess
import time

from coordinated import Coordinator, serve
from tsp_server import Server
from weft_e2e import SLOWDOWN, Case, main, scenario, scratch, weft


def write(text, name="coordinator.yml"):
    path = os.path.join(scratch(), name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


class Check(Case):
    def check(self, text):
        return weft("coordinate", "--check", "--config", write(text))

    def test_what_other_coordinators_read(self):
        run = self.check(
            'trace-servers:\n  - host: "http://one"\n    port: 8081\n    traces-path: ["/a", "/b"]\n'
            '  - host: two\n    traces-path: /c\n    filter: ".*"\n'
            'experiments:\n  - name: all\n    traces-path: [".*"]\n'
        )
        self.assertEqual((run.code, run.text), (0, "2 servers, 3 traces to open, 1 experiments\n"), run)
        self.assertIn("line 7, column 5: filter is not used", run.message)

    def test_what_is_wrong_is_said_with_its_place(self):
        for text, where in (
            ("trace-servers:\n  - host: a\n    prot: 1\n", "line 3, column 5: 'prot' is no key"),
            ("trace-servers:\n  - host: a\n    port: 70000\n", "line 3, column 11: a whole number"),
            ("trace-servers:\n  - port: 1\n", "line 2, column 5: a server has either host and port, or url"),
            ("trace-servers:\n  - host: a\n    url: http://b\n", "line 2, column 5"),
            ("trace-servers:\n  - url: ftp://b\n", "line 2, column 5: ftp://b: give http://"),
            ("trace-servers:\n  - host: 'a b'\n", "line 2, column 5: http://a b:8080: an address"),
            ("trace-servers: 7\n", "line 1, column 16: a list is expected"),
            ("trace-servers:\n  - [1]\n", "line 2, column 5: a server is expected"),
            ("trace-servers:\n  - host: a\n    timeout: soon\n", "line 3, column 14: a time is expected"),
            ("trace-servers:\n  - host: a\n    token-file: /nothing/here\n", "line 3, column 17: token-file"),
            ("trace-servers: [{host: a}]\nexperiments: [{name: x}]\n", "line 2, column 15: an experiment needs"),
            ("trace-servers: [{host: a}]\nexperiments: [{name: x, traces-path: '('}]\n", "line 2, column 38"),
            ("trace-servers: [\n", "line 2, column 1"),
            ("- a\n", "line 1, column 1: trace-servers:"),
            ("server: 1\n", "line 1, column 1: 'server' is no key here"),
            ("trace-servers: [{host: a}, {host: a}]\n", "line 1: the server a:8080 is there twice"),
            ("trace-servers: []\n", "no server is in it"),
            ("", "no server is in it"),
        ):
            with self.subTest(text):
                run = self.check(text)
                self.assertIn(run.code, (1, 2), run)
                self.assertIn(where, run.message)
                self.assertTrue(run.message.startswith("weft: "))

    def test_where_it_is_looked_for(self):
        path = write("trace-servers: [{host: a}, {host: b}]\n")
        here = scratch()
        run = weft("coordinate", "--check", cwd=here, env={"TRACE_COORDINATOR_FILE": path})
        self.assertIn("2 servers", run.text)
        run = weft("coordinate", "--check", cwd=here)
        self.assertEqual(run.code, 2, run)
        self.assertIn("--server NAME=URL", run.message)
        with open(os.path.join(here, ".trace-coordinator.yml"), "w", encoding="utf-8") as f:
            f.write("trace-servers: [{host: a}]\n")
        self.assertIn("1 servers", weft("coordinate", "--check", cwd=here).text)
        self.assertIn("1 servers", weft("coordinate", "--check", "--server", "x=http://y:1", cwd=here).text)
        self.assertIn("3 servers", weft("coordinate", "--check", "--server", "x=http://y:1", "--config", path).text)
        self.assertEqual(weft("coordinate", "--server", "gopher://x").code, 2)
        self.assertEqual(weft("coordinate", "--server", "a:1", "somewhere").code, 2)


class Generate(Case):
    def test_lists_and_inventories(self):
        hosts = write("# ours\nalpha\nbeta:9000\n\n10.0.0.7\n", "hosts")
        inventory = write(
            "lone ansible_host=192.0.2.1\n[workers]\nnode[08:10].example ansible_user=x\nalpha trace_server_port=81\n"
            "[workers:vars]\nansible_port=22\n[others]\nnope\n",
            "inventory",
        )
        for files, options, wanted in (
            (
                [hosts],
                [],
                [
                    ("alpha", "http://alpha", 8080),
                    ("beta", "http://beta", 9000),
                    ("10.0.0.7", "http://10.0.0.7", 8080),
                ],
            ),
            (
                [inventory],
                ["--groups", "workers", "--port", "81"],
                [(f"node{n}.example", f"http://node{n}.example", 81) for n in ("08", "09", "10")]
                + [("alpha", "http://alpha", 81)],
            ),
            ([hosts, inventory], [], None),
        ):
            run = self.ok("coordinate", "--generate", *options, "--trace-path", "/var/traces", *files)
            try:
                import yaml
            except ImportError:
                yaml = None
            if yaml and wanted:
                said = yaml.safe_load(run.text)["trace-servers"]
                self.assertEqual([(s["name"], s["host"], s["port"]) for s in said], wanted)
                self.assertTrue(all(s["traces-path"] == ["/var/traces"] for s in said))
            made = write(run.text)
            self.assertEqual(weft("coordinate", "--check", "--config", made).code, 0)
        self.assertIn("192.0.2.1", run.text)

    def made(self, text, *options):
        """{name: (host, port)} of what is made of an inventory, in its order."""
        run = self.ok("coordinate", "--generate", *options, write(text, "inventory"))
        self.assertEqual(weft("coordinate", "--check", "--config", write(run.text)).code, 0)
        found = re.findall(r'- name: "(.*)"\n    host: "http://(.*)"\n    port: (\d+)\n', run.text)
        self.assertEqual(run.text.count("- name"), len(found))
        return {name: (host, int(port)) for name, host, port in found}

    def test_inventories_in_yaml(self):
        """Inventories as Ansible reads them: groups below groups, and the setting nearest to the host wins."""
        text = """---
# our machines
all:
  vars:
    trace_server_port: 7000
    ansible_user: root
  hosts:
    lone: {ansible_host: 192.0.2.1}
  children:
    site:
      vars: {trace_server_port: "7001"}
      children:
        workers:
          hosts:
            node[08:10].example:
            alpha:
              ansible_host: fd00::1
              trace_server_port: 81
              roles: [{name: x}, y]
        masters: ~
masters:
  hosts:
    m1:
    alpha:
  vars:
    trace_server_port: 7002
"""
        nodes = {f"node{n}.example": (f"node{n}.example", 7001) for n in ("08", "09", "10")}
        alpha = {"alpha": ("[fd00::1]", 81)}
        masters = {"m1": ("m1", 7002)}
        self.assertEqual(self.made(text), {"lone": ("192.0.2.1", 7000), **nodes, **alpha, **masters})
        self.assertEqual(list(self.made(text)), ["lone", *nodes, "alpha", "m1"])
        self.assertEqual(self.made(text, "--groups", "workers"), {**nodes, **alpha})
        self.assertEqual(self.made(text, "--groups", "masters"), {**alpha, **masters})
        self.assertEqual(self.made(text, "--groups", "site"), {**nodes, **alpha, **masters})
        self.assertEqual(len(self.made(text, "--groups", "all")), 6)
        # INI form of the same inventory.
        ini = ("[all:vars]\ntrace_server_port=7000\n[workers]\nnode[08:10].example\n"
               "alpha ansible_host=fd00::1 trace_server_port=81\n"
               "[masters]\nm1\nalpha\n[site:children]\nworkers\nmasters\n[site:vars]\ntrace_server_port = 7001\n"
               "[masters:vars]\ntrace_server_port=7002\n")
        for group in ("workers", "masters", "site"):
            self.assertEqual(self.made(ini, "--groups", group), self.made(text, "--groups", group))
        # Aliases and merges, as templates of variables are written.
        text = ("x: &x\n  vars: &v {trace_server_port: 90}\n  hosts: {a: &a {ansible_host: h}}\n"
                "y:\n  hosts:\n    b: {<<: *a, trace_server_port: 91}\n    c: {<<: [*v, *a], ansible_host: g}\n"
                "  vars: *v\nz: *x\n")
        self.assertEqual(self.made(text), {"a": ("h", 90), "b": ("h", 91), "c": ("g", 90)})
        self.assertEqual(self.made(text, "--groups", "z"), {"a": ("h", 90)})
        self.assertEqual(self.made("all: {vars: {trace_server_port: 90}}\nx: {hosts: {a: }}\n"), {"a": ("a", 90)})
        self.assertEqual(self.made("{all: {hosts: {a: , b: }}}"), {"a": ("a", 8080), "b": ("b", 8080)})

    def test_inventories_in_yaml_that_are_wrong(self):
        bomb = "a0: &a0 {hosts: {h: }}\n" + "".join(
            f"a{n}: &a{n} {{children: {{{', '.join(f'b{k}: *a{n - 1}' for k in range(10))}}}}}\n" for n in range(1, 9))
        for text, what in (
            ("all:\n  hosts: [a, b]\n", "line 2, column 10: a mapping is expected here"),
            ("all:\n  host:\n    a:\n", "line 2, column 3: this is no key of a group"),
            ("all:\n  hosts:\n    a: 7\n", "line 3, column 8: the variables of a host"),
            ("all:\n  hosts:\n    a: {trace_server_port: 99999}\n", "line 3, column 28: the port"),
            ("all:\n  hosts:\n    a: {ansible_host: '{{ ip }}'}\n", "line 3, column 5: this is no name of a host"),
            ("all:\n  hosts:\n    'x[1:':\n", "line 3, column 5: a range"),
            ("all:\n  hosts:\n    'x[1:9999]':\n", "line 3, column 5: a range"),
            ("all:\n  hosts:\n    'x[1:99][1:99]':\n", "line 3, column 5: there are too many hosts"),
            ("plugin: aws_ec2\nregions: [x]\n", "line 1, column 9: a group is expected here"),
            ("a:\n  hosts: {x: \n", "line 3, column 1"),
            ("a:\n  children:\n    b:\n      children:\n        a:\n", "line 5, column 9: the group a is below itself"),
            ("a: &a\n  children: {b: *a}\n", "this is too deep, or is in itself by an alias"),
            (bomb, "repeats itself by its aliases"),
            ("---\n- a\n- b\n", "line 2, column 1: groups are expected here"),
            ("---\n", "no host is in it"),
            ("all:\n  children:\n    a:\n", "no host is in it"),
        ):
            with self.subTest(text[:60]):
                run = weft("coordinate", "--generate", write(text, "inventory.yml"))
                self.assertEqual(run.code, 1, run)
                self.assertIn(what, run.message)
                self.assertEqual(run.text, "")

    def test_what_is_no_list(self):
        self.assertEqual(weft("coordinate", "--generate").code, 2)
        for text, what in (
            ("", "no host is in it"),
            ("[a\n", "line 1: a group"),
            ("[a:kids]\n", "line 1: a group"),
            ("[a:children]\na\n", "line 2: the group a is below itself"),
            ("x[1:\n", "line 1: a range"),
            ("a{b}\n", "line 1: this is no name"),
            ("a:99999\n", "line 1: the port"),
        ):
            run = weft("coordinate", "--generate", write(text))
            self.assertEqual(run.code, 1, run)
            self.assertIn(what, run.message)
            self.assertEqual(run.text, "")


class Made(Case):
    def wait(self, many, name):
        until = time.monotonic() + 20 * SLOWDOWN
        while time.monotonic() < until:
            for x in many.get("/experiments").json:
                if x["name"] == name:
                    return many.opened(x["UUID"])
            time.sleep(0.1)
        self.fail(f"{name} was not made: {many.errors()}")

    def test_traces_are_opened_and_experiments_made(self):
        root = scenario("three-tier")
        one, two = (Server("--no-sync", "--trace-root", root) for _ in range(2))
        path = write(
            f"trace-servers:\n- {{name: one, url: '{one.url}', traces-path: ['{root}/client', '{root}/none']}}\n"
            f"- {{name: two, url: '{two.url}', traces-path: '{root}/web'}}\n"
            "experiments:\n- {name: front, traces-path: [client$, web$]}\n- {name: alone, traces-path: web$}\n"
        )
        many = Coordinator("--config", path, "--name", "everything")
        try:
            x = self.wait(many, "front")
            self.assertEqual([t["properties"]["server"] for t in x["traces"]], ["one", "two"])
            self.assertEqual([t["properties"]["server"] for t in self.wait(many, "alone")["traces"]], ["two"])
            self.assertEqual(self.wait(many, "everything")["nbEvents"], x["nbEvents"])
            self.assertIn("server one: cannot open", many.errors())
        finally:
            for s in (many, one, two):
                s.stop()

    def test_tokens_and_certificates(self):
        where = scratch()
        token = write("open sesame\n", "token")
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-keyout",
                f"{where}/key",
                "-out",
                f"{where}/cert",
                "-subj",
                "/CN=127.0.0.1",
                "-addext",
                "subjectAltName=IP:127.0.0.1",
            ],
            check=True,
            capture_output=True,
        )
        server = Server(
            "--no-sync",
            "--name",
            "shop",
            f"web={scenario('three-tier')}/web",
            "--token-file",
            token,
            "--tls-cert",
            f"{where}/cert",
            "--tls-key",
            f"{where}/key",
        )
        for given, status in (
            (f"token-file: '{token}', ca-file: '{where}/cert'", "UP"),
            (f"token-file: '{token}'", "AWAY"),
        ):
            many = Coordinator("--config", write(f"trace-servers: [{{name: web, url: '{server.url}', {given}}}]\n"))
            try:
                said = many.get("/servers").json[0]
                self.assertEqual(said["status"], status, said)
                if status == "UP":
                    self.assertEqual(len(many.get("/experiments").json), 1)
                else:
                    self.assertIn("certificate", said["statusMessage"])
            finally:
                many.stop()
        many = Coordinator(
            "--config", write(f"trace-servers: [{{name: web, url: '{server.url}', ca-file: '{where}/cert'}}]\n")
        )
        try:
            answer = many.get("/experiments")
            self.assertEqual(answer.json, [])
            self.assertIn("401", answer.headers["Warning"])
        finally:
            many.stop()
            server.stop()


if __name__ == "__main__":
    main()
