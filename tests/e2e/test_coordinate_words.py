#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weft coordinate over servers one of which says everything in other words (rewording.py): what is merged and decided
is the same."""
from coordinated import COMPARISON, Coordinator, serve
from rewording import Rewording
from weft_e2e import Case, main, scratch


class Messages(Case):
    """A server with two machines, and one with the third: as they are, and the first one in other words."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.two, cls.db = serve("client", "web", store=scratch()), serve("db", store=scratch())
        cls.other = Rewording(cls.two)
        cls.uuid = cls.two.first()["UUID"]
        cls.db.opened(cls.uuid)
        cls.older = Rewording(cls.two, drop=("code", "codes"))
        cls.plain, cls.words, cls.mixed = (Coordinator(f"--server=two={two.url}", f"--server=db={cls.db.url}")
                                           for two in (cls.two, cls.other, cls.older))
        cls.whole = cls.plain.opened(cls.uuid)
        cls.words.opened(cls.uuid), cls.mixed.opened(cls.uuid)

    @classmethod
    def tearDownClass(cls):
        for s in (cls.plain, cls.words, cls.mixed, cls.other, cls.older, cls.two, cls.db):
            s.stop()

    def compared(self, server, a, b):
        return server.post(f"/experiments/{self.uuid}/outputs/data/{COMPARISON}/tree", {"a": a, "b": b}).json

    def test_a_number_of_several_machines_is_refused(self):
        """Thread 1 is on every machine: the one of db must not be taken for the one that is meant."""
        when = {"begin": self.whole["end"] - 10**9, "end": self.whole["end"] - 10**8}
        codes, named, meant = [], {"thread": "db:1", **when}, {"thread": 1, **when}
        for a, b in ((meant, named), (named, meant)):
            for server in (self.plain, self.words):
                answer = self.compared(server, a, b)
                self.assertEqual((answer["status"], answer["model"]), ("FAILED", None))
                codes.append(answer.get("code"))
                made = server.ask("POST", f"/experiments/{self.uuid}/outputs/{COMPARISON}", {
                    "name": "two", "sourceTypeId": COMPARISON, "parameters": {"a": a, "b": b}})
                self.assertEqual(made.status, 400, made)
                codes.append(made.json.get("code"))
        self.assertEqual(codes, ["AMBIGUOUS_THREAD"] * 8)

    def test_an_older_version_is_not_guessed_at(self):
        """It fails without a code: it may mean several, or none."""
        when = {"begin": self.whole["end"] - 10**9, "end": self.whole["end"] - 10**8}
        named, meant = {"thread": "db:1", **when}, {"thread": 1, **when}
        answer = self.compared(self.mixed, meant, named)
        self.assertEqual((answer["status"], answer["model"], answer["code"]), ("FAILED", None, "AMBIGUOUS_THREAD"))
        self.assertEqual(self.compared(self.mixed, named, named)["status"], "COMPLETED")

    def test_a_thread_that_one_server_does_not_know(self):
        """The server that knows the thread answers; the other one's refusal is no lack, whatever its words."""
        answers = [self.compared(s, {"thread": "db:1"}, {"thread": "db:1"}) for s in (self.plain, self.words)]
        for answer in answers:
            self.assertEqual(answer["status"], "COMPLETED", answer)
            self.assertEqual(answer["code"], "LOCAL_PATH")
            self.assertNotIn("hosts", answer)
        self.assertEqual(*answers)
        nobody = {"thread": "db:1", "host": "nowhere"}
        for server in (self.plain, self.words):
            answer = self.compared(server, nobody, {"thread": "db:1"})
            self.assertEqual((answer["status"], answer["code"]), ("FAILED", "INVALID_QUERY"), answer)

    def test_usual_words_are_no_notes(self):
        """A message that says no more than the status is not told as one that does."""
        path = f"/experiments/{self.uuid}/outputs/table/weft.notes/columns"
        self.assertIn(self.two.post(path).status, (200, 405))
        for kind, output in (("timeGraph", "weft.summary"), ("data", "weft.selection.threads")):
            said = [s.post(f"/experiments/{self.uuid}/outputs/{kind}/{output}/tree").json
                    for s in (self.two, self.plain, self.words)]
            self.assertEqual([(a["status"], a["statusMessage"], a.get("code")) for a in said],
                             [("COMPLETED", "Completed", None)] * 3)


class Errors(Case):
    """Every refusal has a code."""

    def test_codes(self):
        server = serve("db", store=scratch())
        try:
            uuid = server.first()["UUID"]
            many = Coordinator(f"--server=db={server.url}")
            many.opened(uuid)
            for s in (server, many):
                self.assertTrue(s.get("/identifier").json["codes"])
                for method, path, body, status, code in (
                        ("GET", "/experiments/none", None, 404, "NOT_FOUND"),
                        ("GET", "/nothing", None, 404, "NOT_FOUND"),
                        ("PUT", "/traces", {}, 405, "NOT_OFFERED"),
                        ("POST", f"/experiments/{uuid}/outputs/timeGraph/none/tree", {}, 405, "NOT_OFFERED"),
                        ("POST", f"/experiments/{uuid}/outputs/timeGraph/weft.summary/states", {}, 400,
                         "INVALID_QUERY"),
                        ("POST", "/traces", {"parameters": {}}, 400, "INVALID_QUERY")):
                    with self.subTest(path=path, coordinator=s is many):
                        answer = s.ask(method, path, body)
                        self.assertEqual((answer.status, answer.json.get("code")), (status, code), answer)
            many.stop()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
