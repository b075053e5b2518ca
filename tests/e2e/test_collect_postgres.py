# SPDX-License-Identifier: MIT
"""weft collect with a store in PostgreSQL: the same as with one in a directory (test_collect.py, test_spans.py), and
what becomes of spans when the server goes, hangs, crashes or is another's."""
import json
import os
import signal
import subprocess
import threading
import time

import otlp_made as made
import test_collect
import test_collect_search
import test_spans
from collect_server import call
from postgres_server import PASSWORD, Postgres, PostgresCollect
from tsp_server import Server
from weft_e2e import BIN, SLOWDOWN, Case, main, new_dice, scratch

test_collect.Collect = test_collect_search.Collect = test_spans.Collect = PostgresCollect
DAY = 86400 * 10**9


def weft(*args, **env):
    return subprocess.run([BIN, *args], capture_output=True, text=True, timeout=60 * SLOWDOWN, check=False,
                          env={**os.environ, **env})


class Back(test_collect.Back):
    def test_there(self):
        self.c.send(made.of([made.made("ab" * 16, n) for n in range(1, 4)]))
        self.assertEqual(len(self.c.spans("ab" * 16)), 3)
        rows = self.c.ask("SELECT trace, encode(id, 'hex'), tableoid::regclass FROM spans WHERE trace = "
                          f"'{'ab' * 16}'::uuid ORDER BY id")
        self.assertEqual(rows, [["-".join(["abab" * 2] + ["abab"] * 3 + ["abab" * 3]), f"{n:016x}", "spans_20231114"]
                                for n in range(1, 4)])


    def test_all_conditions(self):
        """Search in a trace too long to be received at once: service, operation, time and duration, each of which
        excludes some."""
        begin = 1_700_000_000 * 10**9
        for service in ("a", "b"):
            self.c.send(made.of([made.made("cd" * 16, (service == "b") * 1000 + n, f"op {n % 2}", begin + n * 1000,
                                           lasted=n) for n in range(1, 1000)], service=service))
        self.assertEqual(len(self.c.spans("cd" * 16)), 1998)
        at = begin // 1000
        found = self.c.data("/api/traces", service="a", operation="op 1", start=at, end=at + 500, minDuration="400ns",
                            maxDuration="402ns")
        self.assertEqual([t["traceID"] for t in found], ["cd" * 16])
        for narrow in ({"minDuration": "501ns"}, {"maxDuration": "0ns"}, {"operation": "op 2"}, {"service": "c"},
                       {"start": at + 2000}):
            self.assertEqual(self.c.data("/api/traces", **{"service": "a", "operation": "op 1", "start": at,
                                                           "end": at + 500, **narrow}), [])
        run = weft("spans", "stats", "--format", "json", "--trace", "cd" * 16, "--service", "b", "--begin",
                   str(begin + 100_000), "--end", str(begin + 200_000), "--store", self.c.where)
        self.assertEqual({s["stage"]: s["n"] for s in json.loads(run.stdout)["stages"]}, {"op 0": 50, "op 1": 50})


class Hostile(test_collect.Hostile):
    def test_spans_of_all_times(self):
        """Spans of all times do not make an unlimited number of tables."""
        spans = [made.made(f"{n + 1:032x}", 1, begin=n * DAY) for n in range(1000)]
        self.c.send(made.of(spans, service="ever"))
        self.assertTrue(self.c.until(lambda: len(self.c.spans(f"{1000:032x}")) == 1))
        self.assertEqual(self.c.ask("SELECT count(*), count(DISTINCT trace) FROM spans s JOIN texts t ON s.service = "
                                    "t.number WHERE text = 'ever'"), [["1000", "1000"]])
        tables, = self.c.ask("SELECT count(*) FROM pg_inherits WHERE inhparent = 'spans'::regclass")[0]
        self.assertLess(int(tables), 500)
        self.c.send(made.of([made.made("e7" * 16, 1, begin=int(time.time() * 1e9))], service="today"))
        self.assertEqual(len(self.c.spans("e7" * 16)), 1)
        today = time.strftime("spans_%Y%m%d", time.gmtime())
        self.assertEqual(self.c.ask(f"SELECT count(*) FROM {today} s JOIN texts t ON s.service = t.number "
                                    "WHERE text = 'today'"), [["1"]])


class Kept(test_collect.Kept):
    pass


def make_older(c):
    """Makes its store as it was in schema 1."""
    c.ask("DROP TABLE calls, uncounted, groups, terms, unnumbered; ALTER TABLE days DROP COLUMN counts; ALTER TABLE "
          "spans DROP COLUMN number; UPDATE about SET value = 1 WHERE key = 'schema'; DELETE FROM about WHERE key LIKE "
          "'next %'")
    for index, in c.ask("SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND indexdef LIKE "
                        "'%(trace, parent)'"):
        c.ask(f"DROP INDEX {index}")


class Search(test_collect_search.Search):
    MANY = 400  # number of traces; each one found is a query to the server

    def test_terms_are_written(self):
        """Terms of all groups but the last, which is incomplete."""
        self.assertTrue(self.c.until(lambda: self.c.ask("SELECT count(*), count(DISTINCT grp) FROM groups JOIN terms "
                                                        "ON grp = number")[0][1] == "3"))


class Indexed(test_collect_search.Indexed):
    def damage(self, c):
        c.ask("UPDATE spans SET body = '\\xff' WHERE name <> (SELECT number FROM texts WHERE text = 'kept')")


class SearchAmongDropped(Case):
    def test_cost(self):
        """Searches do not query numbers of deleted spans."""
        gone = 1000  # groups
        with PostgresCollect("--keep", "none") as c:
            c.send(made.of([made.made(f"{n:032x}", 1, attributes=[made.text("k", f"v{n}")]) for n in range(1, 9)]))
            self.assertEqual(len(c.spans(f"{8:032x}")), 1)
            self.assertEqual(c.stop(), 0)
        c.ask(f"UPDATE spans SET number = number + {gone} * 8192; UPDATE about SET value = value + {gone} * 8192 WHERE "
              f"key = 'next number'; UPDATE about SET value = {gone} WHERE key = 'next group'")
        said = os.path.join(c.server.dir, "said")
        begin = os.path.getsize(said)
        c.ask("ALTER ROLE weft SET log_statement = 'all'")
        try:
            with PostgresCollect("--keep", "none", store=c.store) as c:
                service, = c.data("/api/services")
                found = c.data("/api/traces", service=service, tags=json.dumps({"k": "v3"}), start=0,
                               end=int(time.time() * 1e6))
                self.assertEqual([t["traceID"] for t in found], [f"{3:032x}"])
        finally:
            c.ask("ALTER ROLE weft RESET log_statement")
        with open(said, encoding="utf-8") as f:
            f.seek(begin)
            asked = [line for line in f if "number >= $1" in line]
        self.assertTrue(0 < len(asked) < 10, len(asked))


class SearchInOlderStore(test_collect_search.Search):
    """Two thirds of the spans are of schema 1, and have neither numbers nor terms."""
    MANY = 400

    @classmethod
    def send(cls, begin, end):
        super().send(begin, end * 2 // 3)
        assert cls.c.stop() == 0, cls.c.said
        make_older(cls.c)
        cls.c = PostgresCollect("--keep", "none", store=cls.c.store)
        super().send(end * 2 // 3, end)

    test_cost = None  # old spans are looked at


class Dependencies(test_collect_search.Dependencies):
    def make_older(self, c):
        make_older(c)

    def used(self, c):
        """Tables of days."""
        return int(c.ask("SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = "
                         "'spans'::regclass")[0][0])

    def uncounted(self, c):
        return int(c.ask("SELECT count(*) FROM uncounted")[0][0])

    def test_parts_of_days_go(self):
        """Parts of days: spans received long ago, of days that stay."""
        dice = new_dice(28)
        spans = self.random_spans(dice, 2000)
        with self.collect("--keep", "1d") as c:
            for k in range(0, 2000, 400):
                self.send(c, spans[k:k + 400])
            self.compare(c, spans, dice)
            self.assertEqual(c.stop(), 0)
        long_ago = int(time.time() * 1e9) - 9 * DAY
        c.ask(f"UPDATE spans SET came = {long_ago} WHERE begin % 3 = 0; UPDATE days SET first_came = {long_ago}")
        with self.collect("--keep", "1d", store=c.store) as c:
            self.assertTrue(c.until(lambda: c.ask(f"SELECT count(*) FROM spans WHERE came = {long_ago}") == [["0"]]))
            left = self.left(c, spans)
            self.assertTrue(0 < len(left) < len(spans), len(left))
            self.compare(c, left, dice)

    def test_other_days_are_not_searched(self):
        """For the other ends of calls: only days in which the traces have spans."""
        begin = self.BASE * 10**6
        with self.collect("--keep", "none") as c:
            for days in range(3):
                self.send(c, [("a", made.made(f"{days + 1:032x}", n, begin=begin + days * DAY)) for n in (1, 2)])
            self.assertEqual(len(c.spans(f"{3:032x}")), 2)
            self.assertEqual(c.stop(), 0)
        c.ask("SELECT pg_stat_reset()")
        with self.collect("--keep", "none", store=c.store) as c:
            self.send(c, [("b", made.made(f"{2:032x}", n, begin=begin + DAY, parent=1 + n % 2)) for n in range(3, 103)])
            self.assertEqual(len(c.spans(f"{2:032x}")), 102)
            self.assertEqual(c.stop(), 0)
        self.assertEqual(c.ask("SELECT sum(n) FROM calls WHERE width = 1"), [["100"]])
        used = dict(c.ask("SELECT relname, sum(idx_scan) FROM pg_stat_user_indexes WHERE schemaname = current_schema() "
                          "GROUP BY 1"))
        for day, searched in ("14", False), ("15", True), ("16", False):
            self.assertEqual(int(used["spans_202311" + day]) >= 100, searched, used)

    def test_calls_that_count_nothing(self):
        """Uncounted calls leave no rows: an open span that ends with another begin."""
        begin = self.BASE * 10**6
        with self.collect() as c:
            self.send(c, [("a", made.made("1" * 32, 1))])
            for n in range(2, 6):
                self.send(c, [("b", made.made("1" * 32, n, begin=begin, parent=1,
                                              attributes=[made.text("weft.state", "open")]))])
                self.assertTrue(c.until(lambda: c.ask("SELECT count(*) FROM spans_open") == [["1"]]))
                self.send(c, [("b", made.made("1" * 32, n, begin=begin + 5 * 10**9 * n, parent=1, lasted=10**9))])
            self.assertTrue(c.until(lambda: c.ask("SELECT sum(n) FROM calls WHERE width = 1") == [["4"]]))
            self.assertEqual(c.ask("SELECT * FROM calls WHERE n = 0"), [])

    def test_index_of_a_large_day(self):
        """The index is built while nothing else waits for it: spans come, and no collector is blocked. An index left
        unfinished by a stopped collector is built anew."""
        with self.collect("--keep", "none") as c:
            self.send(c, [("a", made.made("1" * 32, 1)), ("b", made.made("1" * 32, 2, parent=1))])
            self.assertEqual(len(c.spans("1" * 32)), 2)
            self.assertEqual(c.stop(), 0)
        c.ask("INSERT INTO uncounted (day) SELECT day FROM days; DELETE FROM calls")
        for index, in c.ask("SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND tablename = "
                            "'spans_20231114' AND indexdef ~ '(parent|number).$'"):
            c.ask(f"DROP INDEX {index}")
        server, name = c.server, "holds_" + c.schema
        for attempt in range(2):
            # Lock as long as building an index takes: writers are not blocked by it, but another build is.
            with subprocess.Popen(
                    [server.bin + "/psql", "-X", "-q", "-h", server.dir, "-U", "weft", "postgres", "-c",
                     f"SET application_name = '{name}'; BEGIN; LOCK TABLE {c.schema}.spans_20231114 IN SHARE UPDATE "
                     "EXCLUSIVE MODE; SELECT pg_sleep(3600)"],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **server.place()) as holder:
                waits = ("SELECT l.pid FROM pg_locks l JOIN pg_class t ON t.oid = l.relation WHERE NOT granted AND "
                         f"t.relname = 'spans_20231114' AND relnamespace = '{c.schema}'::regnamespace")
                try:
                    self.assertTrue(c.until(lambda: c.ask("SELECT 1 FROM pg_stat_activity WHERE application_name = "
                                                          f"'{name}' AND wait_event = 'PgSleep'")))
                    with self.collect("--keep", "none", store=c.store) as c:
                        self.assertTrue(c.until(lambda: c.ask(waits)))
                        self.assertEqual(c.ask("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND "
                                               f"classid = {0x77656674} AND pid IN ({waits})"), [])
                        for n in range(3, 6):
                            self.send(c, [("c", made.made("1" * 32, n + attempt * 3, parent=2))])
                            self.assertEqual(len(c.spans("1" * 32)), n + attempt * 3)
                        self.assertEqual(c.stop(), 0)
                finally:
                    c.ask(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'")
                    holder.wait()
        with self.collect("--keep", "none", store=c.store) as c:
            self.assertTrue(c.until(lambda: c.ask("SELECT * FROM uncounted") == []))
            self.assertEqual(c.ask("SELECT sum(n) FROM calls WHERE width = 1"), [["7"]])
            self.assertEqual((c.stop(), c.said), (0, ""))

    def test_days_that_an_older_collector_dropped(self):
        """Days that an older collector dropped: their terms are skipped, and deleted."""
        with self.collect("--keep", "none") as c:
            self.send(c, [("a", made.made("1" * 32, 1)), ("b", made.made("1" * 32, 2, parent=1))])
            self.assertEqual(len(c.spans("1" * 32)), 2)
            self.assertEqual(c.stop(), 0)
        c.ask("INSERT INTO uncounted (day) VALUES (12345); INSERT INTO unnumbered VALUES (12345); INSERT INTO calls "
              "VALUES (1, 5, 1, 2, 12345, 12345, 1)")
        run = weft("spans", "stats", "--format", "json", "--service", "b", "--store", c.where)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        with self.collect("--keep", "none", store=c.store) as c:
            self.assertTrue(c.until(lambda: c.ask("SELECT day FROM uncounted UNION SELECT day FROM unnumbered") == []))
            self.assertEqual((c.stop(), c.said), (0, ""))
        c.ask("INSERT INTO days (day, first_came, last_came, counts) VALUES (-1, 0, 0, true)")  # old enough day
        with self.collect("--keep", "1d", store=c.store) as c:
            self.assertTrue(c.until(lambda: c.ask("SELECT * FROM calls WHERE parent_day = 12345") == []))
            self.assertEqual((c.stop(), c.said), (0, ""))

    def test_older_collector(self):
        """A collector of the release before, which counts nothing, adds nothing to a counted store."""
        with self.collect() as c:
            self.send(c, [("a", made.made("1" * 32, 1))])
            self.assertEqual(len(c.spans("1" * 32)), 1)
            said = c.server.psql("INSERT INTO days (day, first_came, last_came) VALUES (7, 0, 0)", check=False,
                                 schema=c.schema)  # statement of each batch
            self.assertIn("violates check constraint", said.stderr)


class Store(test_spans.Store):
    pass


class Days(Case):
    """Retention by day, with the day's table."""

    def test_oldest_days_go(self):
        store = scratch()
        now = int(time.time() * 1e9)
        with PostgresCollect(store=store) as c:
            for days in range(5, -1, -1):  # the oldest comes first
                for part in range(4):
                    c.send(made.of([made.made(f"{days + 1:032x}", part * 100 + n, begin=now - days * DAY,
                                              attributes=[made.text("k", os.urandom(500).hex())])
                                    for n in range(1, 100)]))
                self.assertEqual(len(c.spans(f"{days + 1:032x}")), 396)
            tables = [t for t, in c.ask("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND "
                                        "tablename ~ '^spans_[0-9]' ORDER BY 1")]
            self.assertEqual(len(tables), 6)
            all_of_them = c.used()
            self.assertEqual(c.stop(), 0)
        # Four days fit, and two go: a day is a sixth of it.
        with PostgresCollect("--keep-size", str(all_of_them * 3 // 4), store=store) as c:
            self.assertTrue(c.until(lambda: c.used() < all_of_them * 3 // 4))
            left = [t for t, in c.ask("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND "
                                      "tablename ~ '^spans_[0-9]' ORDER BY 1")]
            self.assertTrue(left and tables[-len(left):] == left and len(left) in (3, 4), left)
            self.assertEqual([len(c.spans(f"{days + 1:032x}")) for days in (0, 5)], [396, 0])
            self.assertEqual(c.stop(), 0)

    def test_terms_go_with_their_spans(self):
        begin = int(time.time() * 1e9) - 5 * DAY
        with PostgresCollect("--keep", "none") as c:
            for k in range(0, 9000, 3000):
                c.send(made.of([made.made(f"{k + n + 1:032x}", 1, begin=begin + k + n) for n in range(3000)]))
            self.assertTrue(c.until(lambda: c.ask("SELECT count(*) FROM groups") == [["1"]]))
            self.assertNotEqual(c.ask("SELECT count(*) FROM terms"), [["0"]])
            self.assertEqual(c.stop(), 0)
        c.ask("UPDATE days SET first_came = 0, last_came = 0")
        with PostgresCollect("--keep", "1d", store=c.store) as c:
            self.assertTrue(c.until(lambda: c.ask("SELECT count(*) FROM spans") == [["0"]]))
            self.assertTrue(c.until(lambda: c.ask("SELECT (SELECT count(*) FROM groups) + (SELECT count(*) FROM "
                                                  "terms)") == [["0"]]))
            self.assertEqual((c.stop(), c.said), (0, ""))

    def test_young_among_old(self):
        """A span that came late keeps its day, and not the others of it for ever."""
        with PostgresCollect("--keep", "1d") as c:
            c.send(made.of([made.made(test_collect.TRACE, n) for n in (1, 2)]))
            self.assertEqual(len(c.spans(test_collect.TRACE)), 2)
            long_ago = int(time.time() * 1e9) - 9 * DAY
            c.stop()
            c.ask(f"UPDATE spans SET came = {long_ago} WHERE id = '\\x{1:016x}'; UPDATE days SET first_came = "
                  f"{long_ago}")
        with PostgresCollect("--keep", "1d", store=c.store) as c:
            self.assertTrue(c.until(lambda: len(c.spans(test_collect.TRACE)) == 1))


    def test_parts_of_days_go_by_and_by(self):
        """Parts of days are deleted in transactions of their own; later statements are planned as usual."""
        with PostgresCollect("--keep", "none") as c:
            for k in range(0, 12000, 3000):
                c.send(made.of([made.made(f"{k + n + 1:032x}", 1) for n in range(3000)]))
            self.assertEqual(len(c.spans(f"{12000:032x}")), 1)
            self.assertEqual(c.stop(), 0)
        long_ago = int(time.time() * 1e9) - 9 * DAY
        c.ask(f"UPDATE spans SET came = {long_ago} WHERE trace <> '{7:032x}'; UPDATE days SET first_came = {long_ago}; "
              "CREATE TABLE deleted (by bigint, hashes text); CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql "
              "AS $$ BEGIN INSERT INTO deleted VALUES (txid_current(), current_setting('enable_hashjoin')); RETURN "
              "NULL; END $$; CREATE TRIGGER note AFTER DELETE ON spans_20231114 FOR EACH STATEMENT EXECUTE FUNCTION "
              "note(); CREATE TRIGGER note AFTER DELETE ON terms FOR EACH STATEMENT EXECUTE FUNCTION note()")
        with PostgresCollect("--keep", "1d", store=c.store) as c:
            self.assertTrue(c.until(lambda: c.ask("SELECT trace FROM spans") == [["0" * 8 + "-0000-0000-0000-" +
                                                                                  f"{7:012x}"]]))
            self.assertTrue(c.until(lambda: c.ask("SELECT * FROM deleted WHERE hashes = 'on'")))
            parts = c.ask("SELECT count(DISTINCT by) FROM deleted WHERE hashes = 'off'")
            self.assertEqual(parts, [["3"]])
            self.assertEqual((c.stop(), c.said), (0, ""))

    def test_a_single_day_is_shortened_by_and_by(self):
        """Its oldest spans and their calls go in transactions of at most 1 MiB, and the space is freed."""
        with PostgresCollect("--keep", "none") as c:
            for k in range(1, 4001, 1000):
                for service, parent in (("a", None), ("b", 1)):
                    c.send(made.of([made.made(f"{n:032x}", 2 if parent else 1, parent=parent, attributes=[
                        made.text("k", os.urandom(300).hex())]) for n in range(k, k + 1000)], service))
            self.assertEqual(len(c.spans(f"{4000:032x}")), 2)
            self.assertEqual(c.stop(), 0)
        c.ask("CREATE TABLE deleted (by bigint, bytes bigint); CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql "
              "AS $$ BEGIN INSERT INTO deleted VALUES (txid_current(), pg_column_size(OLD)); RETURN OLD; END $$; "
              "CREATE TRIGGER note BEFORE DELETE ON spans_20231114 FOR EACH ROW EXECUTE FUNCTION note()")
        size = c.used()
        with PostgresCollect("--keep", "none", "--keep-size", str(size // 2), store=c.store) as c:
            self.assertTrue(c.until(lambda: c.used() < size // 2))
            left, = c.ask("SELECT count(*) FROM spans")[0]
            self.assertTrue(0 < int(left) < 6000, left)
            self.assertTrue(c.spans(f"{4000:032x}"))  # the last one
            self.assertEqual((c.stop(), c.said), (0, ""))
        parts = c.ask("SELECT sum(bytes) FROM deleted GROUP BY by")
        self.assertGreater(len(parts), 1)
        self.assertLessEqual(max(int(n) for n, in parts), 1 << 20)
        self.assertEqual(c.ask("SELECT coalesce(sum(n), 0) FROM calls WHERE width = 1"), c.ask(
            "SELECT count(*) FROM spans c JOIN spans p ON p.trace = c.trace AND p.id = c.parent"))

    def test_size_counts_terms(self):
        now = int(time.time() * 1e9)
        with PostgresCollect("--keep", "none") as c:
            for days in (2, 1):
                c.send(made.of([made.made(f"{days:032x}", n, begin=now - days * DAY, attributes=[
                    made.text("k", os.urandom(500).hex())]) for n in range(1, 1000)]))
                self.assertEqual(len(c.spans(f"{days:032x}")), 999)
            size = int(c.ask("SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = "
                             "'spans'::regclass")[0][0])
            self.assertEqual(c.stop(), 0)
        c.ask("ALTER TABLE terms ALTER COLUMN spans SET STORAGE EXTERNAL; INSERT INTO terms SELECT 0, n, "
              f"convert_to(repeat('x', 10000), 'UTF8') FROM generate_series(1, {size // 10000 + 1}) n")
        with PostgresCollect("--keep-size", str(size * 3 // 2), store=c.store) as c:
            self.assertTrue(c.until(lambda: len(c.spans(f"{2:032x}")) == 0))
            self.assertEqual((len(c.spans(f"{1:032x}")), c.stop(), c.said), (999, 0, ""))


class Away(Case):
    """A server of the test's own, which goes and comes."""

    @classmethod
    def setUpClass(cls):
        cls.server = Postgres()

    @classmethod
    def tearDownClass(cls):
        cls.server.remove()

    def collect(self, *options, schema=None, store=None):
        test = self

        class Here(PostgresCollect):
            def place(self, wanted):
                self.server, self.store = test.server, wanted or scratch()
                self.schema = schema or test.server.new_schema()
                self.url = test.server.url(self.schema)
                return ["--store", self.url, "--log", self.store]

        return Here(*options, store=store)

    def health(self, c):
        answers = [call(address + "/health") for address in (c.otlp, c.query)]
        self.assertEqual([a.status for a in answers], [200, 200])
        return answers[0].json()

    def send_until(self, c, stop, acknowledged, number):
        n = 0
        while not stop.is_set():
            n += 1
            trace = f"{number:08x}{n:024x}"
            try:
                if c.send(made.of([made.made(trace, i) for i in range(1, 6)])).status == 200:
                    acknowledged.append(trace)
            except OSError:
                return

    def test_crash_while_spans_come(self):
        with self.collect() as c:
            stop, acknowledged = threading.Event(), []
            threads = [threading.Thread(target=self.send_until, args=(c, stop, acknowledged, n)) for n in range(1, 4)]
            for t in threads:
                t.start()
            for _ in range(2):
                before = len(acknowledged)
                self.assertTrue(c.until(lambda n=before: len(acknowledged) > n + 50))
                self.server.stop(signal.SIGQUIT)
                before = len(acknowledged)
                self.assertTrue(c.until(lambda n=before: len(acknowledged) > n + 50))
                self.assertTrue(c.until(lambda: self.health(c)["status"] == "behind"))
                self.assertEqual(c.get("/api/services").status, 503)
                self.server.start()
                self.assertTrue(c.until(lambda: self.health(c)["status"] == "ok"))
            stop.set()
            for t in threads:
                t.join()
            self.assertEqual(len(c.spans(acknowledged[-1])), 5)
            self.assertTrue(c.until(lambda: self.health(c)["waitingBytes"] == 0))
            rows = {t.replace("-", ""): n for t, n in c.ask("SELECT trace, count(*) FROM spans GROUP BY trace")}
            self.assertEqual({t: rows.get(t) for t in acknowledged}, dict.fromkeys(acknowledged, "5"))
            self.assertEqual(c.stop(), 0)
        said = c.said.splitlines()
        self.assertEqual(len(said), 2, said)  # messages are not repeated at each attempt
        self.assertIn("takes no spans now", said[0])
        self.assertIn("takes spans again", said[1])

    def test_away_when_it_starts(self):
        schema = self.server.new_schema()
        self.server.stop()
        try:
            with self.collect(schema=schema) as c:
                self.assertEqual(c.send(made.of([made.made("a" * 32, 1)])).status, 200)
                self.assertEqual(self.health(c)["status"], "behind")
                c.stop(signal.SIGKILL)
        finally:
            self.server.start()
        with self.collect(schema=schema, store=c.store) as c:
            self.assertEqual(len(c.spans("a" * 32)), 1)

    def test_back_before_spans_come(self):
        """The server's return is noticed although nothing waits for it."""
        schema = self.server.new_schema()
        self.server.stop()
        try:
            c = self.collect(schema=schema)
        finally:
            self.server.start()
        with c:
            self.assertTrue(c.until(lambda: self.health(c)["status"] == "ok"))
            self.assertEqual(c.data("/api/services"), [])
            self.assertEqual(c.stop(), 0)
        said = c.said.splitlines()
        self.assertEqual(len(said), 2, said)
        self.assertIn("takes spans again", said[1])

    def test_hangs(self):
        with self.collect() as c:
            c.send(made.of([made.made("b" * 32, 1)]))
            self.assertEqual(len(c.spans("b" * 32)), 1)
            stopped = self.server.all_processes()
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            try:
                for n in range(2, 30):
                    self.assertEqual(c.send(made.of([made.made("b" * 32, n)])).status, 200)
            finally:
                for pid in stopped:
                    os.kill(pid, signal.SIGCONT)
            self.assertTrue(c.until(lambda: len(c.spans("b" * 32)) == 29))

    def test_refuses(self):
        """The schema is gone, and comes back empty: what comes then is kept."""
        with self.collect() as c:
            c.send(made.of([made.made("c" * 32, 1)]))
            self.assertEqual(len(c.spans("c" * 32)), 1)
            self.server.psql(f"ALTER SCHEMA {c.schema} RENAME TO hidden")
            self.assertEqual(c.send(made.of([made.made("c" * 32, 2)])).status, 200)
            self.assertTrue(c.until(lambda: self.health(c)["status"] == "behind"))
            self.server.psql(f"ALTER SCHEMA hidden RENAME TO {c.schema}")
            self.assertTrue(c.until(lambda: self.health(c)["status"] == "ok"))
            self.assertEqual(len(c.spans("c" * 32)), 2)

    def test_full_until_days_go(self):
        """A database that takes nothing more, of which retention may make room: it is not held up by that."""
        store, schema = scratch(), self.server.new_schema()
        with self.collect("--keep", "1s", store=store, schema=schema) as c:
            c.send(made.of([made.made("d" * 32, 1)]))
            self.assertTrue(c.until(lambda: c.ask("SELECT count(*) FROM days") == [["1"]]))
            c.stop()
            # Inserts are refused as long as the old day exists.
            c.ask("CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF to_regclass("
                  "'spans_20231114') IS NOT NULL THEN RAISE SQLSTATE '53100' USING MESSAGE = 'no space left'; END IF; "
                  "RETURN NEW; END $$; CREATE TRIGGER full_disk BEFORE INSERT ON texts EXECUTE FUNCTION full_disk()")
        time.sleep(1.2)
        with self.collect("--keep", "none", store=store, schema=schema) as c:
            self.assertEqual(c.send(made.of([made.made("e" * 32, 1, "new", int(time.time() * 1e9))])).status, 200)
            self.assertTrue(c.until(lambda: "no space left (free some space" in self.health(c)["database"]))
            self.assertEqual(len(c.spans("d" * 32)), 1)  # reading goes on
            self.assertEqual(c.stop(), 0)
        with self.collect("--keep", "1s", store=store, schema=schema) as c:
            self.assertTrue(c.until(lambda: c.ask("SELECT to_regclass('spans_20231114') IS NULL") == [["t"]]))
            self.assertTrue(c.until(lambda: self.health(c)["waitingBytes"] == 0))

    def test_two_collectors(self):
        schema = self.server.new_schema()
        with self.collect(schema=schema) as one, self.collect(schema=schema) as two:
            traces = [f"{n:032x}" for n in range(1, 60)]

            def send(c, mine):
                for n, trace in enumerate(traces):
                    both = [made.made(trace, i, f"op {i}") for i in range(1, 20)]
                    both = both[::-1] if mine else both
                    own = [made.made(trace, 100 + mine * 50 + i, f"own {mine}") for i in range(10)]
                    state = [made.text("weft.state", "open")] if (n + mine) % 2 else []
                    c.send(made.of([*both, *own, made.made(trace, 0x1000, "job", attributes=state,
                                                           lasted=5 if state else 10**9)], service=f"s{n % 7}"))
            threads = [threading.Thread(target=send, args=(c, mine)) for mine, c in enumerate((one, two))]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            for c in (one, two):
                self.assertTrue(c.until(lambda c=c: self.health(c)["waitingBytes"] == 0))
            for trace in traces:
                ids = sorted(int(s["spanId"], 16) for _, _, s in one.spans(trace))
                self.assertEqual(ids, [*range(1, 20), *range(100, 110), *range(150, 160), 0x1000])
            self.assertEqual(one.ask("SELECT count(*) FROM spans_open"), [["0"]])
            self.assertEqual(one.data("/api/services"), [f"s{n}" for n in range(7)])
            self.assertEqual(two.data("/api/services/s3/operations"), sorted(
                [*(f"op {i}" for i in range(1, 20)), "job", "own 0", "own 1"]))
            self.assertEqual((one.stop(), two.stop(), one.said, two.said), (0, 0, "", ""))

    def test_names_come_again(self):
        """Names deleted by one collector that another knows by number."""
        schema = self.server.new_schema()
        with self.collect(schema=schema) as one:
            one.send(made.of([made.made("1" * 32, 1, "first")], service="early"))
            self.assertEqual(len(one.spans("1" * 32)), 1)
            time.sleep(1.2)  # old enough when the other one looks first
            with self.collect("--keep", "1s", schema=schema) as two:
                self.assertTrue(two.until(lambda: one.ask("SELECT count(*) FROM texts") == [["0"]]))
            one.send(made.of([made.made("2" * 32, 1, "first")], service="early"))
            self.assertEqual(len(one.spans("2" * 32)), 1)
            self.assertEqual(one.data("/api/services/early/operations"), ["first"])

    def test_newer_schema(self):
        with self.collect() as c:
            c.send(made.of([made.made("1" * 32, 1)]))
            self.assertEqual(len(c.spans("1" * 32)), 1)
            c.ask("UPDATE about SET value = 99 WHERE key = 'schema'")
        for args in (["collect", "--log", scratch()], ["spans", "table"]):
            run = weft(*args, "--store", c.url)
            self.assertEqual((run.returncode, run.stdout), (1, ""))
            self.assertIn("has version 99, and this weft reads 1 to 2: use the weft that made it", run.stderr)

    def test_own_schema(self):
        """The default schema is `weft`, without a search_path; a read-only user may read."""
        test = self

        class Plain(PostgresCollect):
            def place(self, store):
                self.server, self.store, self.schema = test.server, scratch(), "weft"
                return ["--store", test.server.url(), "--log", self.store]

        with Plain() as c:
            c.send(made.of([made.made("1" * 32, 1, "here")]))
            self.assertEqual(len(c.spans("1" * 32)), 1)
        self.server.psql(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'; GRANT USAGE ON SCHEMA weft TO reader; "
                         "GRANT SELECT ON ALL TABLES IN SCHEMA weft TO reader")
        run = weft("spans", "stats", "--format", "json", "--store", self.server.url(user="reader"))
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual([s["stage"] for s in json.loads(run.stdout)["stages"]], ["here"])

    def test_passwords(self):
        """Passwords by each of libpq's ways; shown nowhere."""
        with self.collect() as c:
            c.send(made.of([made.made("1" * 32, 1)]))
            self.assertEqual(len(c.spans("1" * 32)), 1)
        plain = c.url.replace(c.url.split("@")[0], "postgresql://weft")
        pgpass = os.path.join(scratch(), "pgpass")
        with open(pgpass, "w", encoding="ascii") as f:
            f.write("*:*:*:weft:" + PASSWORD.replace(":", "\\:") + "\n")
        os.chmod(pgpass, 0o600)
        for env in ({"PGPASSWORD": PASSWORD}, {"PGPASSFILE": pgpass}):
            self.assertEqual(weft("spans", "table", "--store", plain, **env).returncode, 0)
        for wrong in (self.server.url(password="wrong/one"), self.server.url(password="wrong/one", user="no"),
                      plain + "&password=wrong%2Fone", "postgresql://weft:wrong/one@nowhere",
                      self.server.url(password="wrong/one") + "&no=1"):
            for args in (["spans", "table", "--store"], ["serve", "--listen", "127.0.0.1:0", "--spans"]):
                run = weft(*args, wrong, XDG_STATE_HOME=scratch())
                self.assertIn(run.returncode, (1, 2))
                self.assertNotRegex(run.stdout + run.stderr, "wrong")
                self.assertIn("postgresql:", run.stderr)

    def test_served(self):
        """The viewer's server, which shows no password either."""
        with self.collect() as c:
            c.send(made.of([made.made("1" * 32, n, f"op {n}") for n in range(1, 8)]))
            self.assertEqual(len(c.spans("1" * 32)), 7)
        os.environ["XDG_STATE_HOME"] = scratch()
        with Server("--spans", c.url) as server:
            experiment = server.first()
            self.assertEqual(experiment["nbEvents"], 7)
            self.assertNotIn("p%40ss", json.dumps(experiment) + json.dumps(server.get("/traces").json))


if __name__ == "__main__":
    main()
