# SPDX-License-Identifier: MIT
"""Network namespaces of this machine on a bridge, each joined to it by a pair of veth: removed when the test ends."""
import os
import subprocess

from weft_e2e import absent, need


def run_ip(*args):
    subprocess.run(["ip", *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def run_ip_batch(lines):
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines).encode(), check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE)


class Network:
    """Bridge with n namespaces. at_end: registers the removal (addCleanup). The bridge itself has `address`, space i
    has address_of(i)."""

    def __init__(self, at_end, n):
        need("ip")
        if os.geteuid():
            absent("network namespaces need root")
        self.name = f"w{os.getpid() % 100000}"
        at_end(self.remove)
        self.spaces = [f"{self.name}-{i}" for i in range(n)]
        self.net = f"10.219.{os.getpid() % 250}"
        self.address = f"{self.net}.254"
        try:
            self.add()
        except subprocess.CalledProcessError as e:
            absent(f"no network namespaces here: {e.stderr.decode()}")

    def add(self):
        run_ip("link", "add", self.name, "type", "bridge")
        run_ip("addr", "add", f"{self.address}/24", "dev", self.name)
        run_ip("link", "set", self.name, "up")
        run_ip_batch([f"netns add {space}" for space in self.spaces])
        run_ip_batch([f"link add {s} type veth peer name eth0 netns {s}" for s in self.spaces])
        run_ip_batch([f"link set {s} master {self.name} up" for s in self.spaces])
        for i, space in enumerate(self.spaces):
            lines = f"addr add {self.address_of(i)}/24 dev eth0\nlink set eth0 up\nlink set lo up"
            subprocess.run(["ip", "-n", space, "-batch", "-"], check=True, stderr=subprocess.PIPE,
                           input=lines.encode())

    def address_of(self, i):
        return f"{self.net}.{i + 1}"

    def within(self, i):
        return ["ip", "netns", "exec", self.spaces[i]]

    def link(self, i, state):
        run_ip("link", "set", self.spaces[i], state)

    def remove(self):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL, check=False)
            subprocess.run(["ip", "link", "del", space], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["ip", "link", "del", self.name], stderr=subprocess.DEVNULL, check=False)
