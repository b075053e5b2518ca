# SPDX-License-Identifier: MIT
"""The files of deploy/: each is checked as far as it can be without the machines that it is for, and what it starts is
really started."""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

from cluster_of import broker_program, free_port, wait_for
from test_cluster import example
from weft_e2e import BIN, ROOT, SLOWDOWN, Case, absent, have, main, need, scratch, weft

DEPLOY = os.path.join(ROOT, "deploy")
PORT_OF = re.compile(rb"weft: listening on (\S+)")


def text_of(*path):
    with open(os.path.join(DEPLOY, *path), encoding="utf-8") as f:
        return f.read()


def write(path, text, mode=0o600):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


class Deployed(Case):
    def setUp(self):
        self.directory = scratch()
        self.token = "t0123456789"
        self.port = free_port("127.0.0.1")
        self.url = f"nats://127.0.0.1:{self.port}"
        self.token_file = write(os.path.join(self.directory, "token"), self.token + "\n")

    def start(self, command, **how):
        log = open(os.path.join(scratch(), "log"), "wb+")
        self.addCleanup(log.close)
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **how)
        process.log = log.name
        self.addCleanup(self.stop, process)
        return process

    def address(self, process):
        wait_for("it listens", lambda: PORT_OF.search(self.said(process)) or process.poll() is not None)
        return PORT_OF.search(self.said(process)).group(1).decode()

    def asked(self, url, token, path):
        request = urllib.request.Request(url + "/tsp/api" + path, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=60 * SLOWDOWN) as answer:
            return json.load(answer)

    def coordinates(self, url, token, hosts):
        """Checks that all nodes are there, as one experiment with the traces of all hosts; without a token nothing is
        answered."""
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.asked(url, "t999", "/servers")
        self.assertEqual(refused.exception.code, 401)

        def found():
            experiments = self.asked(url, token, "/experiments")
            return [x for x in experiments if {t["name"] for t in x["traces"]} == set(hosts)]
        wait_for("an experiment of all hosts", found)
        self.assertEqual({s["status"] for s in self.asked(url, token, "/servers")}, {"UP"})
        uuid = found()[0]["UUID"]
        wait_for("it opens", lambda: self.asked(url, token, f"/experiments/{uuid}")["indexingStatus"] == "COMPLETED")

    def stop(self, process):
        if process.poll() is None:
            process.terminate()
            process.wait(timeout=40 * SLOWDOWN)

    def said(self, process):
        with open(process.log, "rb") as f:
            return f.read()

    def broker_by(self, configuration):
        """A broker with a configuration of deploy/, its ports and directories changed to what is free here."""
        text = configuration.replace("0.0.0.0:4222", f"127.0.0.1:{self.port}")
        text = re.sub(r'http: "0.0.0.0:\d+"', f'http: "127.0.0.1:{free_port("127.0.0.1")}"', text)
        text = re.sub(r'store_dir: "[^"]*"', f'store_dir: "{scratch()}"', text)
        path = write(os.path.join(self.directory, "nats.conf"), text)
        return self.start([broker_program(), "-c", path], env=dict(os.environ, WEFT_NATS_TOKEN=self.token))

    def ask(self, *args, token=None):
        return weft(*args, "--cluster", self.url, "--nats-token-file", token or self.token_file)

    def answers(self, host):
        wait_for(f"{host} answers", lambda: f'"{host}"' in self.ask("threads", "--format", "json").text)

    def refuses_others(self):
        other = write(os.path.join(self.directory, "other"), "t999\n")
        self.assertEqual(self.ask("threads", token=other).code, 1)


class Kubernetes(Deployed):
    def setUp(self):
        super().setUp()
        try:
            import yaml
        except ImportError:
            absent("no python3-yaml")
        objects = yaml.safe_load_all(text_of("kubernetes", "weft.yaml"))
        self.objects = {(o["kind"], o["metadata"]["name"]): o for o in objects}

    def test_structure(self):
        """Rules of an API server, and equality of names that belong together."""
        versions = {"ConfigMap": "v1", "Service": "v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1"}
        self.assertEqual({kind for kind, _ in self.objects}, set(versions))
        for (kind, name), o in self.objects.items():
            self.assertEqual(o["apiVersion"], versions[kind])
            self.assertRegex(name, r"^[a-z]([a-z0-9-]*[a-z0-9])?$")
            if kind not in ("StatefulSet", "DaemonSet"):
                continue
            pod = o["spec"]["template"]
            labels = pod["metadata"]["labels"]
            self.assertEqual(o["spec"]["selector"]["matchLabels"], labels)
            volumes = {v["name"] for v in pod["spec"].get("volumes", [])}
            volumes |= {v["metadata"]["name"] for v in o["spec"].get("volumeClaimTemplates", [])}
            for c in pod["spec"]["containers"]:
                self.assertLessEqual({"name", "image", "command"}, set(c))
                self.assertEqual({m["name"] for m in c["volumeMounts"]}, volumes)
                self.assertFalse(c["securityContext"]["allowPrivilegeEscalation"])
                self.assertTrue(c["securityContext"]["readOnlyRootFilesystem"])
                ports = {p["name"] for p in c["ports"]}
                for probe in ("livenessProbe", "readinessProbe"):
                    self.assertIn((c[probe].get("httpGet") or c[probe]["tcpSocket"])["port"], ports)
        for name in ("weft-nats", "weft-coordinate"):
            service, pods = self.objects["Service", name], self.objects["StatefulSet", name]
            self.assertEqual(service["spec"]["selector"], pods["spec"]["template"]["metadata"]["labels"])
            self.assertEqual(pods["spec"]["serviceName"], service["metadata"]["name"])
        node = self.objects["DaemonSet", "weft-node"]["spec"]["template"]["spec"]
        mounts = {m["name"]: m for m in node["containers"][0]["volumeMounts"]}
        self.assertTrue(mounts["traces"]["readOnly"])
        self.assertNotIn("readOnly", mounts["store"])
        volumes = {v["name"]: v for v in node["volumes"]}
        self.assertEqual({n for n, v in volumes.items() if "hostPath" in v}, {"traces", "store"})
        self.assertEqual(volumes["token"]["secret"]["secretName"], "weft-nats")

    def test_it_runs(self):
        """Command lines of all containers, with directories as volumes."""
        self.broker_by(self.objects["ConfigMap", "weft-nats"]["data"]["nats.conf"])
        pod = self.objects["DaemonSet", "weft-node"]["spec"]["template"]["spec"]
        probe = pod["containers"][0]["livenessProbe"]["httpGet"]["path"]
        node = self.start([BIN, *self.command(pod, {"/traces": os.path.join(example("three-tier"), "web"),
                                                    "/run/weft": self.directory})])
        with urllib.request.urlopen(self.address(node) + probe, timeout=30) as answer:
            self.assertEqual(answer.status, 200)
        self.answers("web")
        self.refuses_others()
        pod = self.objects["StatefulSet", "weft-coordinate"]["spec"]["template"]["spec"]
        viewers = scratch()
        write(os.path.join(viewers, "token"), "t77\n")
        coordinator = self.start([BIN, *self.command(pod, {"/run/weft": self.directory, "/run/viewers": viewers})])
        self.coordinates(self.address(coordinator), "t77", ["web"])

    def command(self, pod, hosts):
        """Returns a container's command, with directories here for those in it."""
        c = pod["containers"][0]
        hosts = {"/var/lib/weft": scratch(), **hosts}
        self.assertLessEqual({m["mountPath"] for m in c["volumeMounts"]}, set(hosts) | {"/tmp"})
        environment = {"NODE_NAME": "k-1.example", "POD_IP": "127.0.0.1"}
        self.assertLessEqual({e["name"] for e in c["env"]}, set(environment))
        command = []
        for word in c["command"] + c["args"]:
            word = re.sub(r"\$\((\w+)\)", lambda m: environment[m.group(1)], word).replace("weft-nats:4222",
                                                                                        f"127.0.0.1:{self.port}")
            for inside, here in hosts.items():
                word = re.sub(rf"(^|=){inside}(?=/|$)", lambda m, to=here: m.group(1) + to, word)
            command.append(word.replace(":8080", ":0"))
        self.assertEqual(command[0], "weft")
        return command[1:]


class Compose(Deployed):
    def setUp(self):
        super().setUp()
        try:
            import yaml
        except ImportError:
            absent("no python3-yaml")
        self.file = yaml.safe_load(text_of("container", "compose.yaml"))
        self.services = self.file["services"]

    def test_structure(self):
        self.assertEqual(set(self.services), {"broker", "node", "coordinator"})
        for name, s in self.services.items():
            self.assertTrue(s["read_only"], name)
            self.assertEqual(s["cap_drop"], ["ALL"])
            self.assertLessEqual(set(s["secrets"]), set(self.file["secrets"]))
            named = {v.split(":")[0] for v in s["volumes"] if not v.startswith("$")}
            self.assertLessEqual(named, set(self.file["volumes"]))
            self.assertLessEqual(set(s.get("depends_on", [])), set(self.services))
        # Published is what viewers ask, and here only.
        self.assertEqual([(n, s["ports"]) for n, s in self.services.items() if "ports" in s],
                         [("coordinator", ["127.0.0.1:8080:8080"])])
        self.assertTrue(any(v.endswith(":/traces:ro") for v in self.services["node"]["volumes"]))

    def test_it_runs(self):
        """Run of all three, with directories as volumes and secrets."""
        secrets, inside = scratch(), {"/var/lib/weft": None, "/traces": os.path.join(example("three-tier"), "db")}
        for name, text in (("token", self.token), ("viewer-token", "t77")):
            write(os.path.join(secrets, name), text + "\n")
        data = scratch()
        script = self.services["broker"]["command"][0].replace("$$", "$").replace("/run/secrets", secrets)
        script = script.replace("/tmp/nats.conf", f"{data}/nats.conf").replace('"/data"', f'"{data}"')
        script = script.replace("0.0.0.0:4222", f"127.0.0.1:{self.port}").replace("/usr/sbin/nats-server",
                                                                                 broker_program())
        self.assertEqual(self.services["broker"]["entrypoint"], ["sh", "-c"])
        self.start(["sh", "-c", script])
        started = []
        for name in ("node", "coordinator"):
            command = []
            for word in self.services[name]["command"]:
                word = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", word).replace("broker:4222", f"127.0.0.1:{self.port}")
                word = word.replace("/run/secrets", secrets).replace("0.0.0.0:8080", "127.0.0.1:0")
                for there, here in inside.items():
                    word = re.sub(rf"(^|=){there}$", lambda m, to=here: m.group(1) + (to or scratch()), word)
                command.append(word)
            started.append(self.start([BIN, *command]))
            if name == "node":
                self.answers("db")
        self.refuses_others()
        self.coordinates(self.address(started[1]), "t77", ["db"])


class Systemd(Deployed):
    UNITS = ("weft-node@.service", "weft-nats.service", "weft-coordinate.service", "weft-serve.service")

    def unit(self, name):
        """{key: values} of its service."""
        found = {}
        for line in text_of("systemd", name).splitlines():
            if re.match(r"[A-Z]\w*=", line):
                key, value = line.split("=", 1)
                found.setdefault(key, []).append(value)
        return found

    def test_verified(self):
        need("systemd-analyze")
        for name in self.UNITS:
            text = text_of("systemd", name).replace("/usr/bin/weft", "/bin/true").replace("/usr/sbin/nats-server",
                                                                                         "/bin/true")
            path = write(os.path.join(self.directory, name), text)
            run = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, timeout=60)
            if "Failed to" in run.stderr and run.returncode:
                absent(f"systemd-analyze does not work here: {run.stderr}")
            self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_hardened(self):
        for name in self.UNITS:
            unit = self.unit(name)
            self.assertEqual(unit["NoNewPrivileges"] + unit["DynamicUser"] + unit["PrivateTmp"], ["yes"] * 3)
            self.assertEqual((unit["ProtectSystem"], unit["CapabilityBoundingSet"]), (["strict"], [""]))

    def test_it_runs(self):
        """Command lines, split as systemd would."""
        (node,), (broker,), (coordinator,) = (self.unit(name)["ExecStart"] for name in self.UNITS[:3])
        self.assertEqual(shlex.split(broker), ["/usr/sbin/nats-server", "-c", "/etc/weft/nats.conf"])
        self.broker_by(text_of("systemd", "nats.conf"))
        environment = self.environment("node.env")
        self.assertEqual(set(environment), {"WEFT_CLUSTER", "WEFT_LISTEN", "WEFT_TRACES"})
        recording = example("three-tier")
        environment["WEFT_TRACES"] = environment["WEFT_TRACES"].replace(
            "/var/lib/traces", f"{recording}/db {recording}/web")
        self.assertIn("/var/lib/" + self.unit(self.UNITS[0])["StateDirectory"][0], node.split())
        process = self.start(self.command(node, environment))
        self.answers("db")
        self.answers("web")
        self.refuses_others()
        write(os.path.join(self.directory, "viewer-token"), "t77\n")
        self.assertIn("/var/lib/" + self.unit(self.UNITS[2])["StateDirectory"][0], coordinator.split())
        environment = self.environment("coordinate.env")
        environment["WEFT_LISTEN"] = environment["WEFT_LISTEN"].replace("8080", "0")
        viewer = self.start(self.command(coordinator, environment))
        self.coordinates(self.address(viewer), "t77", ["db", "web"])
        for p in (viewer, process):
            p.send_signal(signal.SIGTERM)
            self.assertEqual(p.wait(timeout=30 * SLOWDOWN), 0)

    def test_one_server(self):
        """Single server without a cluster: viewers open traces below its directory, with their token."""
        (line,) = self.unit("weft-serve.service")["ExecStart"]
        environment = self.environment("serve.env")
        environment["WEFT_LISTEN"] = environment["WEFT_LISTEN"].replace("8080", "0")
        environment["WEFT_TRACE_ROOT"] = environment["WEFT_TRACES"] = example("three-tier")
        write(os.path.join(self.directory, "viewer-token"), "t77\n")
        server = self.start(self.command(line, environment))
        request = urllib.request.Request(self.address(server) + "/tsp/api/experiments",
                                         headers={"Authorization": "Bearer t77"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            self.assertEqual(len(json.load(answer)), 1)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(timeout=30 * SLOWDOWN), 0)

    def environment(self, name):
        lines = [line for line in text_of("systemd", name).splitlines() if line and not line.startswith("#")]
        environment = dict(line.split("=", 1) for line in lines)
        if "WEFT_CLUSTER" in environment:
            environment["WEFT_CLUSTER"] = environment["WEFT_CLUSTER"].replace("broker:4222", f"127.0.0.1:{self.port}")
        return environment

    def command(self, line, environment):
        command = []
        for word in line.replace("%i", "s-1").replace("%d", self.directory).split():
            word = re.sub(r"\$\{(\w+)\}", lambda m: environment[m.group(1)], word)
            command += environment[word[1:]].split() if word.startswith("$") else [word]
        self.assertEqual(command[0], "/usr/bin/weft")
        return [BIN, *[scratch() if w.startswith("/var/lib/weft") else w for w in command[1:]]]


class Slurm(Deployed):
    """The script is run as Slurm does, with stand-ins for srun and scontrol: three "hosts" are processes with a working
    directory each."""
    HOSTS = ("client", "db", "web")

    def setUp(self):
        super().setUp()
        self.recording, self.bin = example("three-tier"), scratch()
        self.shared = os.path.join(self.directory, "run")
        first = "\\n".join(("127.0.0.1", "host1", "host2"))
        write(os.path.join(self.bin, "scontrol"), f"""#!/bin/sh
[ "$1 $2 $3" = 'show hostnames list[0-2]' ] && printf '{first}\\n'
""", 0o755)
        # Variables of each task as Slurm would set them; all tasks are stopped when srun is.
        write(os.path.join(self.bin, "srun"), f"""#!/bin/bash
while [[ "$1" == --* ]]; do shift; done
pids=()
for i in 0 1 2; do
    names=({' '.join(self.HOSTS)})
    (cd "{self.recording}/${{names[i]}}" && SLURM_NODEID=$i SLURMD_NODENAME=host$i exec "$@") &
    pids+=($!)
done
trap 'kill -TERM "${{pids[@]}}"' TERM
wait "${{pids[@]}}"
wait "${{pids[@]}}"
""", 0o755)
        # Slurm runs a copy of its own.
        self.script = shutil.copy(os.path.join(DEPLOY, "slurm", "weft-cluster.sbatch"),
                                  os.path.join(self.bin, "script"))

    def run_script(self, *args, **environment):
        env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "WEFT": BIN, "NATS_SERVER": broker_program(),
               "SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "list[0-2]", "WEFT_PORT": str(self.port),
               "WEFT_RUN": self.shared, **environment}
        return self.start(["bash", self.script, *args], env=env)

    def told(self):
        """Returns the command to query, and the viewer's address."""
        wait_for("it says how to ask", lambda: os.path.exists(os.path.join(self.shared, "ask")))
        with open(os.path.join(self.shared, "ask"), encoding="utf-8") as f:
            _, options, viewer = f.read().split("'")
        return shlex.split(options), viewer.split("=", 1)[1].strip()

    def options(self):
        return self.told()[0]

    def nothing_left(self, process, code):
        self.assertEqual(process.wait(timeout=60 * SLOWDOWN), code, self.said(process))
        left = {name.split("-")[0] for name in os.listdir(self.shared)}
        self.assertEqual(left - {"node", "broker.log", "viewer.log"}, set())
        run = weft("threads", "--cluster", self.url)
        self.assertEqual(run.code, 1, run)

    def test_syntax(self):
        subprocess.run(["bash", "-n", self.script], check=True)
        if have("shellcheck"):
            subprocess.run(["shellcheck", self.script], check=True)

    def test_a_cluster(self):
        """Cluster in which each host has its own traces; it ends when it is cancelled, and leaves no running
        process."""
        process = self.run_script(".", "/nowhere")
        options = self.options()
        wait_for("all hosts are there", lambda: all(f'"{h}"' in weft("threads", *options, "--format", "json").text
                                                    for h in self.HOSTS))
        wait_for("a path", lambda: weft("critpath", *options, "--thread", "client:204").code == 0)
        self.refuses_others()
        for name in ("token", "viewer-token"):
            self.assertEqual(os.stat(os.path.join(self.shared, name)).st_mode & 0o77, 0)
        with open(os.path.join(self.shared, "viewer-token"), encoding="utf-8") as f:
            self.coordinates(self.told()[1], f.read(), self.HOSTS)
        process.send_signal(signal.SIGTERM)
        self.nothing_left(process, 143)

    def test_a_command(self):
        """Job that ends with its command; traces that all hosts see are indexed before."""
        for host in self.HOSTS:
            shutil.rmtree(os.path.join(self.recording, host, ".weft"), ignore_errors=True)
        command = "sleep 4; $WEFT critpath $WEFT_CLUSTER --thread client:204 --format json"
        process = self.run_script(WEFT_SHARE=self.recording, WEFT_COMMAND=command)
        self.nothing_left(process, 0)
        said = self.said(process).decode()
        for host in self.HOSTS:
            self.assertRegex(said, rf"(?m)^\.?/?{host}\S* +host[012] .*(built|up to date)")
        self.assertIn('"tid":204', said)

    def test_a_command_that_does_not_end(self):
        """A job that is cancelled meanwhile leaves nothing that runs."""
        process = self.run_script(".", WEFT_COMMAND=f"touch {self.bin}/begun; exec sleep 1000")
        wait_for("it runs", lambda: os.path.exists(os.path.join(self.bin, "begun")))
        process.send_signal(signal.SIGTERM)
        self.nothing_left(process, 143)

    def test_in_an_image(self):
        """Programs run in an image, and see the directories of the job."""
        write(os.path.join(self.bin, "apptainer"), f"""#!/bin/sh
[ "$1 $2 $4 $6" = "exec --bind --pwd image.sif" ] || exit 9
cd "$5" || exit 9
echo "$3 $7" >>"{self.bin}/ran"
shift 6
exec "$@"
""", 0o755)
        process = self.run_script(".", WEFT_IMAGE="image.sif",
                                  WEFT_COMMAND="until $WEFT threads $WEFT_CLUSTER; do sleep 0.1; done")
        self.assertEqual(process.wait(timeout=60 * SLOWDOWN), 0, self.said(process))
        with open(os.path.join(self.bin, "ran"), encoding="utf-8") as f:
            ran = [line.split() for line in f]
        self.assertEqual(sorted(p for _, p in ran), sorted([broker_program(), "bash", *[BIN] * 4]))
        for directories, program in ran:
            self.assertIn(self.shared, directories.split(","))
        for host in self.HOSTS:
            where = os.path.realpath(os.path.join(self.recording, host))
            self.assertTrue(any(where in d.split(",") for d, p in ran if p == BIN))

    def test_a_broker_that_does_not_start(self):
        process = self.run_script(".", NATS_SERVER="/bin/false")
        self.assertEqual(process.wait(timeout=60), 1)
        self.assertIn(b"the broker did not start", self.said(process))


if __name__ == "__main__":
    main()
