# SPDX-License-Identifier: MIT
"""Twenty nodes, each in a network namespace of its own that sees only its own traces, and a broker in one more:
together they give the answer of one program with all traces, and nodes without a part of the path do nothing."""
import json
import os

import test_cluster_patterns as patterns
from cluster_of import Broker, Cluster, wait_for
from namespaces import Network
from test_cluster import Compared, EachRecording, bare, hosts_of
from weft_e2e import SLOWDOWN, main, new_dice, scenario, scratch

NODES = 20
DICE = new_dice(44)
QUESTIONS = max(2, 6 // SLOWDOWN)
QUIET_MS, IDLE_MS = 2, 10 * SLOWDOWN
# Hides other traces: a node sees only its own where the traces of all are.
OWN_TRACES_ONLY = 'mount --bind "$2" "$3" && mount -t tmpfs none "$1" && shift 3 && exec "$@"'


def cpu_ms(pid):
    """Returns the CPU time of all its running threads; to the nanosecond, unlike /proc/PID/stat."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total / 1e6


def told(run):
    """Returns the common bytes of two answers: all but their cost."""
    head, _, rest = run.text.partition('"method":')
    return head + rest[rest.index('"segments":'):rest.index('"cost":')]


class Twenty(EachRecording, Compared):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.network = Network(cls.addClassCleanup, NODES + 1)

    def start(self, top, hosts):
        """hosts: {name: directory below top}; a node each, of that name."""
        broker = Broker(self.network.address_of(NODES), within=self.network.within(NODES))
        cluster = Cluster({}, broker=broker)
        self.addCleanup(cluster.stop)
        self.own = {}
        for i, (host, path) in enumerate(hosts.items()):
            self.own[host] = scratch()
            cluster.add(host, self.own[host], store=scratch(), within=[
                *self.network.within(i), "sh", "-c", OWN_TRACES_ONLY, "sh", top, path, self.own[host]])
        cluster.settle()
        return cluster

    def three_methods(self, cluster, traces, thread, *options):
        """The index's answer, or None where the question has none."""
        near = self.local(traces, cluster.store, thread, *options)
        index, broadcast = (cluster.ask(thread, "--method", how, *options) for how in ("index", "broadcast"))
        self.assertEqual((index.code, broadcast.code), (near.code, near.code), f"{index}\n{broadcast}\n{near}")
        if near.code:
            return None
        self.assertTrue(told(index) == told(near), index)
        self.assertTrue(told(broadcast) == told(near), broadcast)
        answer = json.loads(index.out)
        self.assertGreaterEqual(set(json.loads(broadcast.out)["cost"]["nodes"]), set(answer["cost"]["nodes"]))
        return answer

    def few_windows_in_vain(self, answers):
        windows, unused = (sum(a["cost"][what] for a in answers) for what in ("windows", "windows_unused"))
        self.assertGreater(windows, 0)
        self.assertLessEqual(unused, 0.05 * windows, f"{unused} of {windows} windows")

    def recorded(self, name):
        recording = scenario(name)
        hosts, answers = hosts_of(recording), []
        cluster = self.start(recording, hosts)
        for thread, options in self.questions(recording, cluster.store, QUESTIONS):
            with self.subTest(thread=thread, options=options):
                answer = self.three_methods(cluster, [recording], thread, *options)
                if answer:
                    self.check_cost(answer, {h: [h] for h in hosts}, True)
                    if "--request" not in options:  # goes back further, beyond what the answer shows
                        answers.append(answer)
        self.assertGreater(len(answers), 0)
        for host in hosts:  # whole lives, of which there are more windows
            for row in self.json("threads", recording, "--store", cluster.store)[:QUESTIONS]:
                if row["host"] == host:
                    answers.append(self.three_methods(cluster, [recording], f"{host}:{row['tid']}"))
        self.few_windows_in_vain([a for a in answers if a])

    def made(self, *how):
        made = patterns.make(*how)
        hosts = {h.name: os.path.join(made.folder, h.name) for h in made.hosts}
        self.assertEqual(len(hosts), NODES)
        cluster = self.start(made.folder, hosts)
        windows = [(str(t), patterns.window(begin, end)) for t, begin, end in made.windows()]
        return made, cluster, DICE.sample(windows, QUESTIONS)

    def test_copies(self):
        made, cluster, questions = self.made("scp", NODES - 1, "files=3")
        answers = []
        for thread, window in questions:
            for clocks in ((), ("--reference", made.hosts[0].name)):
                answers.append(self.three_methods(cluster, [made.folder], thread, *window, *clocks))
                self.check_cost(answers[-1], {h.name: [h.name] for h in made.hosts}, True)
                self.assertLessEqual(len(answers[-1]["cost"]["nodes"]), 2)
        self.few_windows_in_vain(answers)
        self.the_others_rest(cluster, questions)

    def test_supersteps(self):
        for mix in ("mix=random", "mix=slow"):
            made, cluster, questions = self.made("mpi", NODES, mix)
            answers = []
            for thread, window in questions:
                answers.append(self.three_methods(cluster, [made.folder], thread, *window, "--reference",
                                                  made.hosts[0].name))
                self.check_cost(answers[-1], {h.name: [h.name] for h in made.hosts}, True)
            self.few_windows_in_vain(answers)
            self.doCleanups()

    # ---- nodes without a part of the path

    def quiet(self, cluster):
        """Waits until all are idle; returns the time each has used so far."""
        used = {}

        def rests():
            before = dict(used)
            used.update({name: cpu_ms(node.process.pid) for name, node in cluster.nodes.items()})
            return before and all(used[name] - before[name] < QUIET_MS * SLOWDOWN for name in used)
        wait_for("the nodes rest", rests)
        return dict(used)

    def the_others_rest(self, cluster, questions):
        first = bare(json.loads(cluster.ask(questions[0][0], *questions[0][1]).out))
        for thread, window in questions:
            before = self.quiet(cluster)
            answer = json.loads(cluster.ask(thread, *window).out)
            spent = {name: cpu_ms(node.process.pid) - before[name] for name, node in cluster.nodes.items()}
            asked = set(answer["cost"]["nodes"])
            for name in set(spent) - asked:
                self.assertLessEqual(spent[name], IDLE_MS, f"{name} has nothing of the path of {thread}")
            self.assertGreater(max(spent[name] for name in asked), 0)
        self.assertEqual(bare(json.loads(cluster.ask(questions[0][0], *questions[0][1]).out)), first)


if __name__ == "__main__":
    main()
