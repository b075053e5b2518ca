"""The files of deploy/: each is checked as far as it can be without the machines that it is for, and what it starts is
really started."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import urllib.request

from cluster_of import broker_program, free_port, wait_for
from test_cluster import example
from weft_e2e import BIN, ROOT, SLOWDOWN, Case, absent, main, scratch, weft

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
        """What an API server would insist on, and that names which belong together are the same."""
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
                    self.assertIn(c[probe]["httpGet"]["port"], ports)
        service, broker = self.objects["Service", "weft-nats"], self.objects["StatefulSet", "weft-nats"]
        self.assertEqual(service["spec"]["selector"], broker["spec"]["template"]["metadata"]["labels"])
        self.assertEqual(broker["spec"]["serviceName"], service["metadata"]["name"])
        node = self.objects["DaemonSet", "weft-node"]["spec"]["template"]["spec"]
        mounts = {m["name"]: m for m in node["containers"][0]["volumeMounts"]}
        self.assertTrue(mounts["traces"]["readOnly"])
        self.assertNotIn("readOnly", mounts["store"])
        volumes = {v["name"]: v for v in node["volumes"]}
        self.assertEqual({n for n, v in volumes.items() if "hostPath" in v}, {"traces", "store"})
        self.assertEqual(volumes["token"]["secret"]["secretName"], "weft-nats")

    def test_it_runs(self):
        """Both command lines, with the volumes as directories."""
        self.broker_by(self.objects["ConfigMap", "weft-nats"]["data"]["nats.conf"])
        pod = self.objects["DaemonSet", "weft-node"]["spec"]["template"]["spec"]
        c = pod["containers"][0]
        hosts = {"/traces": os.path.join(example("three-tier"), "web"), "/var/lib/weft": scratch(),
                 "/run/weft": self.directory}
        self.assertLessEqual({m["mountPath"] for m in c["volumeMounts"]}, set(hosts) | {"/tmp"})
        environment = {"NODE_NAME": "k-1.example", "POD_IP": "127.0.0.1"}
        self.assertEqual({e["name"] for e in c["env"]}, set(environment))
        command = []
        for word in c["command"] + c["args"]:
            word = re.sub(r"\$\((\w+)\)", lambda m: environment[m.group(1)], word).replace("weft-nats:4222",
                                                                                        f"127.0.0.1:{self.port}")
            for inside, here in hosts.items():
                word = re.sub(rf"(^|=){inside}(?=/|$)", lambda m, to=here: m.group(1) + to, word)
            command.append(word.replace(":8080", ":0"))
        self.assertEqual(command[0], "weft")
        node = self.start([BIN, *command[1:]])
        wait_for("the server listens", lambda: PORT_OF.search(self.said(node)) or node.poll() is not None)
        address = PORT_OF.search(self.said(node)).group(1).decode()
        with urllib.request.urlopen(address + c["livenessProbe"]["httpGet"]["path"], timeout=30) as answer:
            self.assertEqual(answer.status, 200)
        self.answers("web")
        self.refuses_others()


class Systemd(Deployed):
    UNITS = ("weft-node@.service", "weft-nats.service")

    def unit(self, name):
        """{key: values} of its service."""
        found = {}
        for line in text_of("systemd", name).splitlines():
            if re.match(r"[A-Z]\w*=", line):
                key, value = line.split("=", 1)
                found.setdefault(key, []).append(value)
        return found

    def test_verified(self):
        if not shutil.which("systemd-analyze"):
            absent("no systemd-analyze")
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
        """Their command lines, as systemd would take them apart."""
        (broker,), (node,) = (self.unit(name)["ExecStart"] for name in reversed(self.UNITS))
        self.assertEqual(shlex.split(broker), ["/usr/sbin/nats-server", "-c", "/etc/weft/nats.conf"])
        self.broker_by(text_of("systemd", "nats.conf"))
        lines = [line for line in text_of("systemd", "node.env").splitlines() if line and not line.startswith("#")]
        environment = dict(line.split("=", 1) for line in lines)
        self.assertEqual(set(environment), {"WEFT_CLUSTER", "WEFT_TRACES"})
        recording = example("three-tier")
        environment["WEFT_CLUSTER"] = environment["WEFT_CLUSTER"].replace("broker:4222", f"127.0.0.1:{self.port}")
        environment["WEFT_TRACES"] = environment["WEFT_TRACES"].replace(
            "/var/lib/traces", f"{recording}/db {recording}/web")
        self.assertIn("/var/lib/" + self.unit(self.UNITS[0])["StateDirectory"][0], node.split())
        command = []
        for word in node.replace("%i", "s-1").replace("%d", self.directory).split():
            word = re.sub(r"\$\{(\w+)\}", lambda m: environment[m.group(1)], word)
            command += environment[word[1:]].split() if word.startswith("$") else [word]
        self.assertEqual(command[0], "/usr/bin/weft")
        process = self.start([BIN, *[scratch() if w == "/var/lib/weft" else w for w in command[1:]]])
        self.answers("db")
        self.answers("web")
        self.refuses_others()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30 * SLOWDOWN), 0)


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
        # Each task gets what Slurm would set; all are told to end when srun is.
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

    def options(self):
        wait_for("it says how to ask", lambda: os.path.exists(os.path.join(self.shared, "ask")))
        with open(os.path.join(self.shared, "ask"), encoding="utf-8") as f:
            return shlex.split(f.read().split("'")[1])

    def nothing_left(self, process, code):
        self.assertEqual(process.wait(timeout=60 * SLOWDOWN), code, self.said(process))
        self.assertEqual({name.split("-")[0] for name in os.listdir(self.shared)} - {"node", "broker.log"}, set())
        run = weft("threads", "--cluster", self.url)
        self.assertEqual(run.code, 1, run)

    def test_syntax(self):
        subprocess.run(["bash", "-n", self.script], check=True)
        if shutil.which("shellcheck"):
            subprocess.run(["shellcheck", self.script], check=True)

    def test_a_cluster(self):
        """Each host has its own traces; it ends when it is cancelled, and leaves nothing that runs."""
        process = self.run_script(".", "/nowhere")
        options = self.options()
        wait_for("all hosts are there", lambda: all(f'"{h}"' in weft("threads", *options, "--format", "json").text
                                                    for h in self.HOSTS))
        wait_for("a path", lambda: weft("critpath", *options, "--thread", "client:204").code == 0)
        self.assertEqual(os.stat(os.path.join(self.shared, "token")).st_mode & 0o77, 0)
        self.refuses_others()
        process.send_signal(signal.SIGTERM)
        self.nothing_left(process, 143)

    def test_a_command(self):
        """It ends with what it was to run; what all hosts see is indexed before."""
        for host in self.HOSTS:
            shutil.rmtree(os.path.join(self.recording, host, ".weft"), ignore_errors=True)
        command = "sleep 4; $WEFT critpath $WEFT_CLUSTER --thread client:204 --format json"
        process = self.run_script(WEFT_SHARE=self.recording, WEFT_COMMAND=command)
        self.nothing_left(process, 0)
        said = self.said(process).decode()
        for host in self.HOSTS:
            self.assertRegex(said, rf"(?m)^\.?/?{host}\S* +host[012] .*(built|up to date)")
        self.assertIn('"tid":204', said)

    def test_a_broker_that_does_not_start(self):
        process = self.run_script(".", NATS_SERVER="/bin/false")
        self.assertEqual(process.wait(timeout=60), 1)
        self.assertIn(b"the broker did not start", self.said(process))


if __name__ == "__main__":
    main()
