# SPDX-License-Identifier: MIT
"""Distant broker: a TCP proxy in a thread of the test, which forwards data with a delay, both ways, in order. It counts
queries to nodes through it, the round trips among them, and the broker's table queries."""
import asyncio
import re
import threading

QUESTION = re.compile(rb"MSG weft\.[^ ]+\.ask\.([^ ]+) \d+ ([^ ]+) ")
ANSWER = re.compile(rb"PUB (_INBOX\.weft-[^ ]+) ")
OF_TABLES = re.compile(rb"PUB \$JS\.API\.([A-Z.]+)\.KV_([a-z_]+)")


class Delay:
    """Proxy to the broker at `port` of this machine, with a delay of `delay_s` each way."""

    def __init__(self, port, delay_s):
        self.to, self.delay_s, self.writers = port, delay_s, []
        self.forget()
        self.loop, started = asyncio.new_event_loop(), threading.Event()
        self.thread = threading.Thread(target=self.run, args=(started,))
        self.thread.start()
        started.wait()
        self.url = f"nats://127.0.0.1:{self.port}"

    def forget(self):
        """Resets the counts: queries by node; trips: queries sent while no other was open; (query, table)."""
        self.open, self.questions, self.trips, self.of_tables = set(), {}, 0, []

    def run(self, started):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(asyncio.start_server(self.connection, "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]
        self.loop.call_soon(started.set)
        self.loop.run_forever()
        self.server.close()
        for writer in self.writers:
            writer.transport.abort()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(self.loop), return_exceptions=True))
        self.loop.close()

    async def connection(self, reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.to)
        self.writers += [writer, far_writer]
        await asyncio.gather(self.hand_on(reader, far_writer, self.answered),
                             self.hand_on(far_reader, writer, self.asked), return_exceptions=True)

    async def hand_on(self, reader, writer, look):
        try:
            while True:
                data = await reader.read(1 << 16)
                look(data)
                self.loop.call_later(self.delay_s, self.write, writer, data)
                if not data:
                    return
        except OSError:
            self.write(writer, b"")

    @staticmethod
    def write(writer, data):
        if data:
            writer.write(data)
        else:
            writer.close()

    def asked(self, data):
        for node, reply in QUESTION.findall(data):
            self.trips += not self.open
            self.open.add(reply)
            self.questions[node.decode()] = self.questions.get(node.decode(), 0) + 1

    def answered(self, data):
        self.open.difference_update(ANSWER.findall(data))
        self.of_tables += [(what.decode(), table.decode()) for what, table in OF_TABLES.findall(data)]

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


def depth_of(answer):
    """Returns the nesting depth of hosts in the explanation: each message that had to be followed to another host
    before the next was known adds one. Computed from the segments and links alone, from the last to the first:
    without a link, the path continues where it was before, since a wait was explained."""
    links = {}
    for link in answer["links"]:
        links.setdefault(tuple(link["to"][k] for k in ("host", "tid", "time")), []).append(link["from"])
    stack, deepest = [], 0
    for s in reversed(answer["segments"]):
        row = (s["host"], s["tid"])
        came = [f for f in links.get((*row, s["end"]), ())]
        if row not in stack:
            stack.append(row)
        del stack[stack.index(row) + 1:]
        stack += [(f["host"], f["tid"]) for f in came[:1]]
        deepest = max(deepest, sum(a[0] != b[0] for a, b in zip(stack, stack[1:])))
    return deepest
