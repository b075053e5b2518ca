# SPDX-License-Identifier: MIT
"""Idle threads: each CPU has one, all of them have the number 0."""
import os

from weft_e2e import Case, main, scenario, scratch, weft


class IdleThreads(Case):
    def test_each_cpu_has_one(self):
        client = os.path.join(scenario("three-tier"), "client")
        store = ["--store", scratch()]
        run = weft("critpath", client, "--thread", "0", *store)
        self.assertEqual(run.code, 2, run)
        self.assertIn("each CPU has an idle thread", run.message)
        self.assertNotIn("used again", run.message)
        self.assertRegex(run.message, "client:0  swapper/0 .*\n.*client:0  swapper/1 ")
        for name in ("swapper/0", "client:swapper/1"):
            run = weft("critpath", client, "--thread", name, *store)
            self.assertEqual(run.code, 0, run)
            self.assertIn(name.split(":")[-1], run.text)


if __name__ == "__main__":
    main()
