# SPDX-License-Identifier: MIT
"""tsp-typescript-client, as viewers use it, against weft serve. Skips when there is no node, or npm cannot fetch the
client."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from tsp_server import Server  # noqa: E402
from weft_e2e import SLOWDOWN, Case, absent, main, need, scenario  # noqa: E402


def client_directory():
    """A directory with client.js and its modules: this one when they are installed here, else a copy in which npm
    installs them."""
    need("node")
    if os.path.isdir(os.path.join(HERE, "node_modules", "tsp-typescript-client")):
        return HERE
    need("npm")
    directory = os.path.join(os.environ.get("WEFT_NODE")
                             or os.path.join(tempfile.gettempdir(), f"weft-node-{os.getuid()}"), "tsp")
    for name in ("package.json", "package-lock.json", "client.js", ".npmrc"):
        os.makedirs(directory, exist_ok=True)
        shutil.copy(os.path.join(HERE, name), directory)
    shutil.copytree(os.path.join(HERE, "json-bigint"), os.path.join(directory, "json-bigint"), dirs_exist_ok=True)
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=directory, capture_output=True, check=False)
    if done.returncode:
        absent(f"npm cannot fetch the client: {done.stderr.decode()[-300:]}")
    return directory


class TypeScriptClient(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.directory = client_directory()

    def run_client(self, name, hosts, *options):
        root = os.path.realpath(scenario(name))
        with Server("--trace-root", root, *options) as s:
            done = subprocess.run(["node", os.path.join(self.directory, "client.js"), s.url + "/tsp/api",
                                   *(os.path.join(root, h) for h in hosts)],
                                  capture_output=True, timeout=120 * SLOWDOWN, check=False)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            self.assertEqual(s.stop(), 0)
            self.assertNotIn("Sanitizer", s.errors())
        return json.loads(done.stdout)

    def test_three_machines(self):
        figures = self.run_client("three-tier", ["client/kernel", "web/kernel", "db/kernel"])
        for what, least in (("outputs", 10), ("entries", 100), ("states", 1000), ("arrows", 100), ("tooltips", 3),
                            ("series", 10), ("lines", 100), ("styles", 10)):
            self.assertGreaterEqual(figures[what], least, figures)

    def test_lost_events(self):
        self.assertGreater(self.run_client("lost-events", ["solo"])["annotations"], 0)

    def test_user_space(self):
        self.assertGreater(self.run_client("ust-live", ["."])["lines"], 50)


if __name__ == "__main__":
    main()
