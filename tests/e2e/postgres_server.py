# SPDX-License-Identifier: MIT
"""PostgreSQL server of one test, on a socket in a directory of its own, and weft collect with a store in it."""
import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse

from collect_server import Collect
from needed import absent, need, program
from weft_e2e import SLOWDOWN, scratch

PASSWORD = "p@ss:w/rd"


def programs():
    """Returns the folder of initdb and postgres."""
    return os.path.dirname(os.path.realpath(program(need("initdb"))))


def unprivileged():
    """Returns a user who may run it: it refuses root."""
    if os.geteuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        except KeyError:
            continue
    return absent("there is no user but root to run PostgreSQL")


class Postgres:
    """Server; each schema is a store."""

    def __init__(self):
        self.bin, self.who = programs(), unprivileged()
        self.dir = tempfile.mkdtemp(prefix="weft-pg-", dir="/tmp")  # short, since a socket's path is limited
        atexit.register(self.remove)
        self.data, self.schemas, self.process = os.path.join(self.dir, "data"), 0, None
        password = os.path.join(self.dir, "password")
        with open(password, "w", encoding="ascii") as f:
            f.write(PASSWORD + "\n")
        if self.who:
            os.chown(self.dir, self.who["user"], self.who["group"])
            os.chown(password, self.who["user"], self.who["group"])
        subprocess.run([self.bin + "/initdb", "-D", self.data, "-U", "weft", "-A", "scram-sha-256", "--no-sync", "-E",
                        "UTF8", "--locale=C.UTF-8", "--pwfile", password], check=True, stdout=subprocess.DEVNULL,
                       **self.place())
        self.start()

    def place(self):
        return {**self.who, "cwd": self.dir, "env": {"PATH": os.environ["PATH"], "TZ": "UTC", "PGPASSWORD": PASSWORD}}

    def start(self):
        with open(os.path.join(self.dir, "said"), "ab") as said:
            self.process = subprocess.Popen(
                [self.bin + "/postgres", "-D", self.data, "-k", self.dir, "-c", "listen_addresses=", "-c", "fsync=off",
                 "-c", "max_connections=40", "-c", "log_statement=none"], stdout=said, stderr=said, **self.place())
        until = time.time() + 60 * SLOWDOWN
        while self.psql("SELECT 1", check=False).returncode:
            if time.time() > until or self.process.poll() is not None:
                with open(os.path.join(self.dir, "said"), encoding="utf-8") as said:
                    raise AssertionError(said.read())
            time.sleep(0.05)

    def stop(self, number=signal.SIGINT):
        """Stops the server: SIGINT in order, at once; SIGQUIT as a crash."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
            self.process.wait(timeout=60 * SLOWDOWN)

    def remove(self):
        if self.process and self.process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.dir, ignore_errors=True)

    def all_processes(self):
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(children, encoding="ascii") as f:
            return [self.process.pid, *map(int, f.read().split())]

    def psql(self, sql, check=True, schema=None):
        path = f"SET search_path = {schema}; " if schema else ""
        return subprocess.run([self.bin + "/psql", "-X", "-q", "-A", "-t", "-h", self.dir, "-U", "weft", "postgres",
                               "-v", "ON_ERROR_STOP=1", "-c", path + sql],
                              check=check, capture_output=True, text=True, timeout=60 * SLOWDOWN, **self.place())

    def ask(self, sql, schema=None):
        """Returns rows of texts."""
        return [line.split("|") for line in self.psql(sql, schema=schema).stdout.splitlines()]

    def url(self, schema=None, password=PASSWORD, user="weft", database="postgres"):
        quoted = urllib.parse.quote(password, safe="")
        options = "&options=-csearch_path%3D" + schema if schema else ""
        return (f"postgresql://{user}:{quoted}@/{database}?host={urllib.parse.quote(self.dir, safe='')}{options}")

    def new_schema(self):
        self.schemas += 1
        name = f"s{self.schemas}"
        self.psql(f"CREATE SCHEMA {name}")
        return name


class PostgresCollect(Collect):
    """Collector with a PostgreSQL store; `store` is the directory of the log, and each has a schema."""
    server, schemas = None, {}
    most_names = 42  # operations are deleted once nothing received in their hour is left

    def used(self):
        return int(self.server.ask("SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c JOIN"
                                   f" pg_namespace n ON n.oid = relnamespace WHERE relkind = 'r' AND nspname = "
                                   f"'{self.schema}'")[0][0])

    def ask(self, sql):
        return self.server.ask(sql, self.schema)

    def lose_database(self):
        self.server.psql(f"DROP SCHEMA {self.schema} CASCADE; CREATE SCHEMA {self.schema}")
        if os.path.exists(self.store + "/filled"):
            os.unlink(self.store + "/filled")

    def place(self, store):
        cls = PostgresCollect
        if not cls.server:
            cls.server = Postgres()
        self.store = store or scratch()
        self.schema = cls.schemas.setdefault(self.store, None) or cls.server.new_schema()
        cls.schemas[self.store] = self.schema
        self.url = self.where = cls.server.url(self.schema)
        return ["--store", self.url, "--log", self.store]
