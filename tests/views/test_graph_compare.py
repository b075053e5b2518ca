# SPDX-License-Identifier: MIT
"""Critical Path Comparison: the parts and the sentence of `weft critpath --compare`, and sums of the segments of both
paths; and what is refused."""
import collections
import json
import subprocess

from graph_client import WEFT, Server, recorded, run

COMPARISON = "weft.critical-path-comparison"
PART = ("host", "comm", "state", "detail", "from", "reason", "assumed")


def told(path, store, a, b):
    args = [WEFT, "critpath", path, "--store", store, "--thread", a["thread"], "--format", "json"]
    args += ["--begin", str(a["begin"]), "--end", str(a["end"])]
    args += ["--compare", "%s,%d,%d" % (b["thread"], b["begin"], b["end"])]
    return json.loads(subprocess.run(args, capture_output=True, text=True, check=True).stdout)


def spent(truth, side):
    """Returns the time of one path by machine, thread's last name and state; messages by machine."""
    sums = collections.Counter()
    names = {(t["host"], t["tid"]): t["comm"] for t in truth[side]["totals"]}
    for s in truth[side]["segments"]:
        name = None if s["state"] == "network" else names[s["host"], s["tid"]]
        sums[s["host"], name, s["state"]] += s["end"] - s["begin"]
    return sums


def check(server, path, a, b):
    truth = told(path, server.store, a, b)
    model = server.model("/data/%s/tree" % COMPARISON, a=a, b=b)
    entries = model["entries"]
    assert [x["name"] for x in model["headers"]] == ["Machine", "Thread", "State", "What", "a", "b", "b − a"]
    got = []
    for e in entries:
        meta = {k: v[0] for k, v in e["metadata"].items()}
        part = {k: meta[k] for k in PART if k in meta}
        got.append({**part, "tid": meta.get("TID", -1), "a": meta["a"], "b": meta["b"]})
        assert e["parentId"] == -1 and len(e["labels"]) == 7 and e["labels"][0] == meta["host"], e
        assert e["labels"][6][0] == ("+" if meta["b"] > meta["a"] else "−" if meta["b"] < meta["a"] else "0"), e
    expected = [{**{k: str(v).lower() if v is True else v for k, v in p.items() if v is not None}} for p in
                truth["parts"]]
    assert got == expected, (got, expected)
    assert [e["metadata"].get("sentence") for e in entries] == [[truth["sentence"]]] + [None] * (len(entries) - 1)
    for side in "ab":
        sums = collections.Counter()
        for p in got:
            network = p["state"] == "network"
            sums[p["host"], None if network else p.get("comm"), p["state"]] += p[side]
        assert +sums == spent(truth, side), (side, sums, spent(truth, side))
        assert sum(sums.values()) == truth[side]["query"]["end"] - truth[side]["query"]["begin"]
    assert len({e["id"] for e in entries}) == len(entries)
    # derived output with swapped sides: the same parts under the same ids
    status, derived = server.request("POST", server.outputs + "/" + COMPARISON,
                                     {"name": "x", "sourceTypeId": COMPARISON, "parameters": {"a": b, "b": a}})
    assert status == 200 and derived["type"] == "DATA_TREE" and derived["capabilities"]["canDelete"], derived
    swapped = server.model("/data/%s/tree" % derived["id"])["entries"]
    assert ({e["id"]: (e["metadata"]["b"], e["metadata"]["a"]) for e in swapped}
            == {e["id"]: (e["metadata"]["a"], e["metadata"]["b"]) for e in entries})
    # sides queried separately and joined, as if each path were known to another server: the same
    none, alone = {"parts": []}, {}
    for side, question in (("a", a), ("b", b)):
        sides = {"a": none, "b": none, side: question}
        alone[side] = {"parts": [e["metadata"] for e in server.model("/data/%s/tree" % COMPARISON, **sides)["entries"]]}
        other = "b" if side == "a" else "a"
        assert all(p[other] == [0] for p in alone[side]["parts"])
    for sides in ({"a": a, "b": alone["b"]}, {"a": alone["a"], "b": b}, alone):
        again = server.model("/data/%s/tree" % COMPARISON, **sides)["entries"]
        assert again == entries, (again, entries)
    print("%s and %s: %d parts as critpath tells: %s" % (a["thread"], b["thread"], len(got), truth["sentence"]))
    return len(got)


def check_refusals(server):
    good = {"thread": "client:204"}
    assert server.model("/data/%s/tree" % COMPARISON)["entries"] == []
    status, types = server.request("GET", server.outputs + "/" + COMPARISON + "/configTypes")
    assert status == 200 and types[0]["id"] == COMPARISON and types[0]["schema"]["required"] == ["a", "b"]
    for wrong, words in (({"a": good}, "parameters: b"), ({"b": good}, "parameters: a"),
                         ({"a": good, "b": 3}, "parameters: b"), ({"a": [], "b": good}, "parameters: a"),
                         ({"a": {"thread": "tier"}, "b": good}, "client:204 tier"),
                         ({"a": good, "b": {"thread": "nobody"}}, "no such thread")):
        status, answer = server.request("POST", server.outputs + "/" + COMPARISON,
                                        {"name": "x", "sourceTypeId": COMPARISON, "parameters": wrong})
        assert status == 400 and words in answer["title"], (wrong, status, answer)
        status, answer = server.request("POST", "%s/data/%s/tree" % (server.outputs, COMPARISON),
                                        {"parameters": wrong})
        assert status == 200 and answer["status"] == "FAILED" and words in answer["statusMessage"], (wrong, answer)
    def ask(sides, derive=False):
        if derive:
            body = {"name": "x", "sourceTypeId": COMPARISON, "parameters": sides}
            return server.request("POST", server.outputs + "/" + COMPARISON, body)
        return server.request("POST", "%s/data/%s/tree" % (server.outputs, COMPARISON), {"parameters": sides})
    part = {"host": ["x"], "comm": ["y"], "state": ["running"], "b": [2**62]}
    changes = ({"host": [7]}, {"host": "x"}, {"state": ["flying"]}, {"state": ["network"]}, {"b": [-1]}, {"b": [1.5]},
               {"b": []}, {"reason": ["none"]}, {})  # the last one: both are longer than there is time
    for wrong in (3, {}, *({**part, **change} for change in changes)):
        sides = {"a": good, "b": {"parts": [part, wrong]}}
        status, answer = ask(sides)
        assert status == 200 and answer["status"] == "FAILED", (wrong, answer)
        assert "b (part 1 is none of a path)" in answer["statusMessage"], answer
    status, answer = ask(sides, derive=True)  # derived outputs are not kept
    assert status == 400 and "thread (of b)" in answer["title"], answer
    elsewhere = {"thread": "x:1", "server": "there"}
    status, answer = ask({"a": elsewhere, "b": elsewhere}, derive=True)
    assert status == 400 and "no such thread" in answer["title"], answer
    status, answer = ask({"a": good, "b": elsewhere})
    assert answer["status"] == "FAILED" and "another server, there" in answer["statusMessage"], answer


def main():
    (three,) = recorded("three-tier")
    with Server(three) as server:
        check_refusals(server)
        step = (server.end - server.begin) // 20
        at = [server.begin + step * k for k in range(20)]
        a = {"thread": "client:204", "begin": at[8], "end": at[11]}
        parts = check(server, three, a, {"thread": "client:204", "begin": at[11], "end": at[15]})
        assert parts >= 5, parts
        check(server, three, a, {"thread": "db:204", "begin": at[8], "end": at[12]})
        check(server, three, a, a)


run(main)
