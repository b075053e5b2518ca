# SPDX-License-Identifier: MIT
"""What a test does when a recording or a program that it needs is not here, and where its random numbers come from.

WEFT_REQUIRE_DATA set (as .ci/run does): what is absent fails the test. Otherwise the test is skipped.
WEFT_SEED=N moves all seeds on; 0 (as in .ci/run): the same random numbers in every run, also where they differ else.
"""
import functools
import glob
import os
import random
import shutil
import sys
import unittest


def absent(what):
    """Ends the test that is running, because `what` is not here."""
    if os.environ.get("WEFT_REQUIRE_DATA"):
        raise AssertionError(f"{what}, and WEFT_REQUIRE_DATA is set")
    raise unittest.SkipTest(what)


# Debian keeps some programs where only root, or only their own wrapper, looks for them.
ELSEWHERE = ("/usr/sbin", "/sbin", "/usr/lib/postgresql/*/bin")


def program(name):
    """The path of a program, or None."""
    found = shutil.which(name)
    for where in ELSEWHERE if not found else ():
        found = found or max(glob.glob(os.path.join(where, name)), default=None)
    return found


def need(*things):
    """Paths, or names of programs, without which the test that is running can say nothing. Returns the last of them: a
    path, or what starts the program."""
    for thing in things:
        if os.path.isabs(thing) and not os.path.exists(thing):
            absent(f"{thing} is absent (recordings: set WEFT_DATA)")
        if not os.path.isabs(thing) and not program(thing):
            absent(f"{thing} is not installed")
    last = things[-1]
    return last if os.path.isabs(last) or shutil.which(last) else program(last)


def needs(*things):
    """Marks one test that needs these."""
    def decorate(test):
        @functools.wraps(test)
        def run(self):
            need(*things)
            test(self)
        return run
    return decorate


def have(*things):
    """Whether all are here, for a part of a test that is left out without them; it fails where all must be here."""
    try:
        need(*things)
    except unittest.SkipTest as why:
        print(f"left out: {why}", flush=True)
        return False
    return True


def run(main):
    """Runs a test that is a plain function; exit status 77 (skipped) when what it needs is absent."""
    try:
        main()
    except unittest.SkipTest as why:
        print(f"skipped: {why}")
        sys.exit(77)


def seed(usual):
    """The seed of random numbers: the usual one, moved on by WEFT_SEED; printed, so that a failure can be repeated.

    usual None: another one in every run, where WEFT_SEED does not say which.
    """
    moved = int(os.environ.get("WEFT_SEED") or (random.randrange(1, 10**6) if usual is None else 0))
    print(f"random numbers: WEFT_SEED={moved}", flush=True)
    return (usual or 0) + moved


def new_dice(usual):
    return random.Random(seed(usual))
