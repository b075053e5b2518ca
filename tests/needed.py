# SPDX-License-Identifier: MIT
"""Recordings and programs that a test needs, and seeds of random numbers.

WEFT_REQUIRE_DATA set (as .ci/run does): an absent one fails the test. Otherwise the test is skipped.
WEFT_SEED=N is added to all seeds; 0 (as in .ci/run): every run has the same random numbers, also tests whose seed
otherwise varies."""
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


# Folders of programs that Debian keeps where only root, or only their own wrapper, looks for them.
ELSEWHERE = ("/usr/sbin", "/sbin", "/usr/lib/postgresql/*/bin")


def program(name):
    """Returns the path of a program, or None."""
    found = shutil.which(name)
    for where in ELSEWHERE if not found else ():
        found = found or max(glob.glob(os.path.join(where, name)), default=None)
    return found


def need(*things):
    """Requires paths, or names of programs, for the running test. Returns the last of them: a path, or the program's
    command."""
    for thing in things:
        if os.path.isabs(thing) and not os.path.exists(thing):
            absent(f"{thing} is absent (recordings: set WEFT_DATA)")
        if not os.path.isabs(thing) and not program(thing):
            absent(f"{thing} is not installed")
    last = things[-1]
    return last if os.path.isabs(last) or shutil.which(last) else program(last)


def needs(*things):
    """Decorates a test that needs these."""
    def decorate(test):
        @functools.wraps(test)
        def run(self):
            need(*things)
            test(self)
        return run
    return decorate


def have(*things):
    """Returns whether all are present, for an optional part of a test. Fails if WEFT_REQUIRE_DATA is set and one is
    absent."""
    try:
        need(*things)
    except unittest.SkipTest as why:
        print(f"left out: {why}", flush=True)
        return False
    return True


def run(main):
    """Runs a test that is a plain function; exit status 77 (skipped) if something it needs is absent."""
    try:
        main()
    except unittest.SkipTest as why:
        print(f"skipped: {why}")
        sys.exit(77)


def seed(usual):
    """Returns the seed of random numbers: the usual one plus WEFT_SEED; printed, so that a failure can be repeated.
    usual None: a new one in every run, unless WEFT_SEED is set."""
    moved = int(os.environ.get("WEFT_SEED") or (random.randrange(1, 10**6) if usual is None else 0))
    print(f"random numbers: WEFT_SEED={moved}", flush=True)
    return (usual or 0) + moved


def new_dice(usual):
    return random.Random(seed(usual))
