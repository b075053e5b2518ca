# SPDX-License-Identifier: MIT
"""Options set in files and in the environment; completion and manual pages, which are made from the verbs and their
pages."""
import os
import re
import subprocess

import weft_e2e
from weft_e2e import ROOT, Case, have, main, scenario, scratch, weft

MAKE_MAN = os.path.join(ROOT, "tools", "make-man")
PAGES = os.path.join(ROOT, "docs", "verbs")
VERBS = sorted(name[:-3] for name in os.listdir(PAGES) if name != "README.md")


class Settings(Case):
    def setUp(self):
        self.home = scratch()
        self.trace = scenario("three-tier")

    def file(self, text, *where):
        path = os.path.join(self.home, *where or ("weft.conf",))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def run_with(self, *args, **environment):
        return weft(*args, env={"WEFT_CONFIG": "", "HOME": self.home, "XDG_CONFIG_HOME": "", **environment})

    def settings(self, *args, **environment):
        run = self.run_with("config", *args, "--format", "csv", **environment)
        self.assertEqual(run.code, 0, run)
        rows = [line.split(",") for line in run.text.splitlines()]
        return [dict(zip(rows[0], row)) for row in rows[1:]]

    def test_nothing_is_set(self):
        run = self.run_with("config")
        self.assertEqual((run.code, len(run.text.splitlines())), (0, 1), run)
        self.assertIn(f"{self.home}/.config/weft/weft.conf: not there", run.message)

    def test_each_place_counts_more_than_those_before(self):
        mine = self.file("format = csv\n[sync]\nreference = web\n", ".config", "weft", "weft.conf")
        self.assertEqual(self.run_with("sync", self.trace).text.splitlines()[0].count(","), 9)
        rows = {row["option"]: row for row in self.settings("sync")}
        self.assertEqual((rows["reference"]["value"], rows["reference"]["from"]), ("web", f"{mine}:3"))
        for args, environment, star in (((), {}, "web"), ((), {"WEFT_REFERENCE": "db"}, "db"),
                                        (("--reference", "client"), {"WEFT_REFERENCE": "db"}, "client")):
            run = self.run_with("sync", self.trace, "--format", "json", *args, **environment)
            self.assertIn(f'"reference":"{star}"', run.text.replace(" ", ""), run)
        other = self.file("[sync]\nreference = client\n", "xdg", "weft", "weft.conf")
        where = {"XDG_CONFIG_HOME": os.path.join(self.home, "xdg")}
        self.assertEqual([row["from"] for row in self.settings("sync", **where)], [f"{other}:2"])
        self.assertEqual(self.settings("sync", WEFT_CONFIG=os.devnull), [])

    def test_lists_and_flags(self):
        self.file("quiet\nno-color = yes\n[events]\nnames = sched_switch\nnames = net_*\n",
                  ".config", "weft", "weft.conf")

        def names(*args, **environment):
            run = self.run_with("events", self.trace, *args, **environment)
            self.assertEqual(run.code, 0, run)
            return {re.search(r" (\w+): ", line)[1] for line in run.text.splitlines()}
        both = names()
        self.assertIn("sched_switch", both)
        self.assertTrue(any(n.startswith("net_") for n in both))
        self.assertEqual(names(WEFT_NAMES="sched_waking"), {"sched_waking"})
        self.assertEqual(names("--names", "sched_wakeup"), {"sched_wakeup"})
        rows = self.settings("events", "--all", WEFT_NAMES="sched_waking", WEFT_QUIET="no")
        counts = {(row["option"], row["value"]): row["counts"] for row in rows}
        self.assertEqual((counts["names", "net_*"], counts["names", "sched_waking"]), ("no", "yes"))
        self.assertEqual((counts["quiet", "yes"], counts["quiet", "no"]), ("no", "yes"))

    def test_a_cluster_gives_way_to_traces(self):
        url = "nats://user:secret@127.0.0.1:1"
        self.file(f"cluster = {url}\ntimeout = 1s\n", ".config", "weft", "weft.conf")
        for verb in (("sync", self.trace), ("threads", self.trace), ("flows", self.trace), ("index", self.trace),
                     ("critpath", self.trace, "--thread", "client:204")):
            self.assertEqual(self.run_with(*verb).code, 0, verb)
        run = self.run_with("sync")
        self.assertEqual(run.code, 1, run)
        self.assertIn("127.0.0.1:1", run.message)
        listed = self.run_with("config")
        for said in (run, listed):
            self.assertNotIn("secret", said.message + said.text)
        self.assertIn("nats://…@127.0.0.1:1", listed.text)
        both = self.run_with("sync", "--cluster", url, self.trace)
        self.assertEqual(both.code, 2, both)

    def test_passwords_of_databases(self):
        for url, shown in (("postgresql://u:secret@h/d", "postgresql://…@h/d"),
                           ("postgresql://u@h/d?password=secret", "postgresql://…")):
            self.file(f"[collect]\nstore = {url}\n", ".config", "weft", "weft.conf")
            listed = self.run_with("config")
            self.assertIn(shown, listed.text)
            self.assertNotIn("secret", listed.message + listed.text)

    def test_wrong_files(self):
        for text, verb, hint in (("[sync]\nreferense = x\n", "sync", 'weft.conf:2: sync has no option "referense"'),
                                 ("\n\nbogus = 1\n", "config", 'weft.conf:3: no verb has an option "bogus"'),
                                 ("[snyc]\nquiet\n", "config", 'weft.conf:2: no verb "snyc"; did you mean sync?'),
                                 ("[span]\nname = x\n", "config", "weft.conf:2: span is a program of its own"),
                                 ("[sync\n", "sync", "weft.conf:1: a section is a verb in brackets"),
                                 ("--quiet\n", "sync", "weft.conf:1: a setting is the name of an option"),
                                 ("two words = 1\n", "sync", "weft.conf:1: a setting is"),
                                 ("quiet = perhaps\n", "sync", "weft.conf:1: sync: --quiet \"perhaps\": yes or no"),
                                 ("[sync]\nreference =\n", "sync", "weft.conf:2: sync: --reference"),
                                 ("[events]\nlimit = many\n", "events", "weft.conf:2: events: --limit")):
            path = self.file(text)
            run = self.run_with(verb, WEFT_CONFIG=path)
            self.survived(run)
            self.assertEqual(run.code, 2, run)
            self.assertIn(hint, run.message)
        self.assertEqual(self.run_with("sync", self.trace, WEFT_CONFIG=self.file("bogus = 1\n")).code, 0)
        self.assertEqual(self.run_with("config", WEFT_CONFIG=self.home).code, 1)
        for verb in ("config", "sync"):
            nowhere = self.run_with(verb, *[self.trace] * (verb == "sync"), WEFT_CONFIG=self.home + "/nowhere.conf")
            self.assertEqual(nowhere.code, 2, nowhere)
            self.assertIn("nowhere.conf: there is no such file", nowhere.message)
        self.assertEqual(self.run_with("config", "critpaht").code, 2)
        with open(self.file(""), "wb") as f:
            f.write(bytes(range(256)) * 8)
        self.survived(self.run_with("config", WEFT_CONFIG=os.path.join(self.home, "weft.conf")))
        self.assertEqual(self.run_with("config", WEFT_CONFIG=self.file("#" * (2 << 20))).code, 1)


class Completion(Case):
    def complete(self, *words):
        """Returns bash's completions of the last word."""
        script = ('source <("$1" completion bash); shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weft; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        run = subprocess.run(["bash", "-c", script, "bash", weft_e2e.BIN, "weft", *words], cwd=self.place,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, text=True)
        return set(run.stdout.split())

    def setUp(self):
        self.place = scratch()
        os.mkdir(os.path.join(self.place, "a-trace"))

    def test_verbs(self):
        self.assertEqual(self.complete(""), {*VERBS, "help", "--version"})
        self.assertEqual(self.complete("help", "cr"), {"critpath"})

    def test_options_are_those_of_the_help(self):
        for verb in VERBS:
            shown = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", self.ok(verb, "--help").text, re.M))
            self.assertEqual(self.complete(verb, "--"), shown, verb)

    def test_values_and_traces(self):
        self.assertEqual(self.complete("sync", "--format", "j"), {"json"})
        self.assertEqual(self.complete("sync", "a-"), {"a-trace"})
        self.assertEqual(self.complete("sync", "--store", "a-"), {"a-trace"})

    def test_words_after_a_verb(self):
        """First words after a verb according to its help: its actions, or a verb."""
        spans = {"table", "stats", "outliers", "compare", "clusters", "critpath"}
        self.assertEqual(self.complete("spans", ""), spans)
        self.assertEqual(self.complete("spans", "c"), {"compare", "clusters", "critpath"})
        self.assertEqual(self.complete("spans", "stats", "a-"), {"a-trace"})
        self.assertEqual(self.complete("span", ""), {"run", "start", "event", "end", "emit", "context", "flush"})
        self.assertEqual(self.complete("config", ""), set(VERBS))
        self.assertEqual(self.complete("completion", ""), {"bash", "zsh"})
        for verb in ("spans", "span", "config"):
            shown = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", self.ok(verb, "--help").text, re.M))
            self.assertEqual(self.complete(verb, "x", "--"), shown, verb)
        text = self.ok("completion", "zsh").text
        self.assertIn("'1:what:(table stats outliers compare clusters critpath)'", text)
        self.assertIn(sorted(VERBS), [sorted(words.split()) for words in re.findall(r"'1:what:\((.*)\)'", text)])

    def test_zsh(self):
        text = self.ok("completion", "zsh").text
        self.assertTrue(text.startswith("#compdef weft\n"))
        for verb in VERBS:
            self.assertIn(f"\n    {verb})\n", text)
        if have("zsh"):
            subprocess.run(["zsh", "-n", "/dev/stdin"], input=text, text=True, check=True)
        for wrong in ((), ("fish",), ("bash", "zsh")):
            self.assertEqual(weft("completion", *wrong).code, 2)


class Manual(Case):
    def page(self, name):
        out = os.path.join(scratch(), "page.1")
        subprocess.run([MAKE_MAN, "1.2", out, os.path.join(PAGES, name + ".md")], check=True)
        with open(out, encoding="utf-8") as f:
            return f.read()

    def rendered(self, source):
        run = subprocess.run(["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-P-c", "-P-b", "-P-u", "-rLL=500n"],
                             input=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
        self.assertEqual(run.stderr, "")
        return " ".join(run.stdout.split())

    def test_each_page(self):
        groff = have("groff")
        for name in [*VERBS, "README"]:
            source = self.page(name)
            self.assertRegex(source, r'\A\.TH WEFT\S* 1 "" "weft 1\.2"\n\.SH NAME\nweft\S* \\- \w')
            self.assertNotRegex(source, r"\]\(|\*\*|```")
            if not groff:
                continue
            text = self.rendered(source)
            if name != "README":
                for option in re.findall(r"^ +(?:-\w, )?(--[\w-]+)", self.ok(name, "--help").text, re.M):
                    if option not in ("--help", "--quiet", "--no-color"):
                        self.assertIn(option, text, name)

    def test_words_that_roff_would_take(self):
        path = os.path.join(scratch(), "x.md")
        with open(path, "w", encoding="utf-8") as f:
            f.write("# x\n\n.so /etc/passwd\n'x\n\n```\n.so y\n\\x\n```\n\n| a | b |\n|---|---|\n| `.c\\|d` | \\e |\n")
        with open(os.path.join(os.path.dirname(path), "README.md"), "w", encoding="utf-8") as f:
            f.write("| [x](x.md) | does things |\n")
        out = path + ".1"
        subprocess.run([MAKE_MAN, "1", out, path], check=True)
        with open(out, encoding="utf-8") as f:
            source = f.read()
        self.assertNotRegex(source, r"(?m)^(\.so|'x)")
        self.assertIn("does things", source)
        if have("groff"):
            text = self.rendered(source)
            for words in (".so /etc/passwd 'x", ".so y \\x", ".c|d", "\\e"):
                self.assertIn(words, text)


if __name__ == "__main__":
    main()
