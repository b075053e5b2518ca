"""weft collect with a store in PostgreSQL: the same as with one in a directory (test_collect.py)."""
import otlp_made as made
import test_collect
from postgres_server import PostgresCollect
from weft_e2e import main

test_collect.Collect = PostgresCollect


class Back(test_collect.Back):
    def test_there(self):
        self.c.send(made.of([made.made("ab" * 16, n) for n in range(1, 4)]))
        self.assertEqual(len(self.c.spans("ab" * 16)), 3)
        rows = self.c.server.ask("SELECT trace, encode(id, 'hex'), tableoid::regclass FROM spans WHERE trace = "
                                 f"'{'ab' * 16}'::uuid ORDER BY id", self.c.schema)
        self.assertEqual(rows, [["-".join(["abab" * 2] + ["abab"] * 3 + ["abab" * 3]), f"{n:016x}", "spans_20231114"]
                                for n in range(1, 4)])


class Hostile(test_collect.Hostile):
    pass


class Kept(test_collect.Kept):
    pass


if __name__ == "__main__":
    main()
