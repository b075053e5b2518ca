# SPDX-License-Identifier: MIT
"""The Debian package: built in a minimal system that has what tools/install-deps lists and no network, installed in one
that has nothing else, and the demo run from it."""
import pathlib
import re
import subprocess
import unittest

import weft_e2e
from needed import program
from weft_e2e import Case, main, needs, scratch

ROOT = pathlib.Path(weft_e2e.ROOT)


def call(*command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    if done.returncode:
        said = done.stdout[-3000:] + done.stderr[-3000:]
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n{said}")
    return done.stdout


def of_minimal_debian(tool, *arguments):
    """Runs a tool that makes a minimal Debian, which is not possible everywhere. Returns its output."""
    made = subprocess.run([ROOT / "tools" / tool, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if made.returncode == 77:
        raise unittest.SkipTest(made.stderr.strip())
    if made.returncode:
        raise AssertionError(made.stdout[-3000:] + made.stderr[-3000:])
    return made.stdout.strip()


def minimal_system(where):
    """A Debian with nothing but what every Debian has."""
    call("cp", "-a", of_minimal_debian("minimal-debian", "bare"), where / "root")
    return where / "root"


class Package(Case):
    @needs("debootstrap", "git")
    def test_installed_in_a_minimal_system(self):
        made = pathlib.Path(scratch())
        of_minimal_debian("check-minimal", made)
        package, = (p for p in made.glob("weft_*.deb"))
        version = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())[1]
        self.assertEqual(call("dpkg-deb", "-f", package, "Version").strip(), version)

        if lintian := program("lintian"):
            call(lintian, "--allow-root", "--fail-on", "error", package)

        root = minimal_system(made)
        (root / "tmp" / package.name).write_bytes(package.read_bytes())
        inside = lambda *command: call("chroot", root, *command, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        inside("apt-get", "update", "-q")
        inside("apt-get", "install", "-q", "-y", "--no-install-recommends", "xz-utils", f"/tmp/{package.name}")
        said = inside("/usr/share/doc/weft/examples/demo.sh")
        self.assertRegex(said, r"88\.49 ms: .*web, of which 196 tier computed",
                         "the sentence of the request that took 88 ms")
        picture = re.search(r"The picture is in (\S+)", said)[1]
        self.assertIn("<svg", (root / picture[1:]).read_text())
        self.assertIn(version, inside("weft", "--version"))
        for held in "bin/weft-span", "share/man/man1/weft-critpath.1.gz", "share/zsh/vendor-completions/_weft":
            self.assertTrue((root / "usr" / held).exists(), held)
        # Services do not run by themselves, and removal leaves no file.
        self.assertFalse(list((root / "etc/systemd/system").rglob("*weft*")))
        inside("dpkg", "--purge", "weft")
        self.assertFalse([p for p in (root / "usr/bin").glob("weft*")])


main()
