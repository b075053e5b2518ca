# SPDX-License-Identifier: MIT
"""Critical Path as a derived output: the same path as `weft critpath` tells, by totals, segments, links and gaps; and
what is refused."""
import concurrent.futures
import json
import subprocess

from graph_client import PATHS, THREADS, WEFT, Server, key, recorded, run, sample_times


def told(path, store, thread, begin=None, end=None, polling=None):
    args = [WEFT, "critpath", path, "--store", store, "--thread", thread, "--format", "json"]
    args += ["--begin", str(begin)] * bool(begin) + ["--end", str(end)] * bool(end)
    args += ["--polling", polling] if polling else []
    return json.loads(subprocess.run(args, capture_output=True, text=True, check=True).stdout)


def check_tree(server, output, truth):
    entries = server.tree(output)
    hosts = {e["id"]: e["labels"][0] for e in entries if e["parentId"] == -1}
    workers = {e["id"]: (hosts[e["parentId"]], e.get("metadata", {}).get("TID", [-1])[0]) for e in entries
               if e["parentId"] != -1}
    got, expected = {}, {}
    for e in entries:
        if e["parentId"] != -1:
            for name, value in e["metadata"].items():
                if name not in ("hostId", "TID", "sum"):
                    k = workers[e["id"]] + (name,)
                    got[k] = got.get(k, 0) + value[0]
    for t in truth["totals"]:
        k = t["host"], t["tid"], t["state"]
        expected[k] = expected.get(k, 0) + t["duration"]
    assert got == expected, (got, expected)
    length = truth["query"]["end"] - truth["query"]["begin"]
    assert sum(e["metadata"]["sum"][0] for e in entries if e["parentId"] == -1) == length
    assert entries[0]["start"] == server.begin
    told = [e["metadata"]["sentence"] for e in entries if "sentence" in e["metadata"]]
    assert told == [entries[0]["metadata"]["sentence"]] == [[truth["sentence"]]], (told, truth["sentence"])
    told = [e["metadata"]["segments"] for e in entries if "segments" in e["metadata"]]
    assert told == [[len(truth["segments"])]] and "segments" in entries[0]["metadata"], told
    return workers


def check_states(server, output, truth, workers):
    """Samples at the middle of each segment find exactly that one, and a blank on all other rows."""
    segments = truth["segments"]
    step = max(1, len(segments) // 200)
    for s in segments[::step]:
        t = (s["begin"] + s["end"]) // 2
        rows = server.model("/timeGraph/%s/states" % output, requested_times=[t], requested_items=list(workers))["rows"]
        shown = [(workers[r["entryId"]], x) for r in rows for x in r["states"] if key(x)]
        assert len(shown) == 1, (s, shown)
        who, x = shown[0]
        assert who == (s["host"], s["tid"]) and (x["start"], x["end"]) == (s["begin"], s["end"]), (s, who, x)
        if s.get("assumed"):
            assert key(x) == "ASSUMED" and x["label"] == "assumed: " + s["detail"], (s, x)
            continue
        assert key(x) == s["state"].upper().replace("-", "_") and x.get("label") == s["detail"], (s, x)
        for r in rows:
            assert len(r["states"]) == 1 and r["states"][0]["start"] <= t < r["states"][0]["end"], r
    # a coarse range: sorted, disjoint, nothing that is not there
    real = {(s["begin"], s["end"], s["host"], s["tid"]) for s in segments}
    rows = server.states(output, list(workers), server.begin, server.end, 500)
    times = sample_times(server.begin, server.end, 500)
    for entry, states in rows.items():
        for a, b in zip(states, states[1:]):
            assert a["end"] <= b["start"]
        for x in states:
            assert key(x) is None or (x["start"], x["end"]) + workers[entry] in real, x
            assert any(x["start"] <= t < x["end"] for t in times) or x["end"] == times[-1], x


def check_rest(server, output, truth, workers):
    links = sorted((l["from"]["time"], l["to"]["time"], l["from"]["host"], l["from"]["tid"], l["to"]["host"],
                    l["to"]["tid"], l["kind"] + "arrow")
                   for l in truth["links"])
    got = [(a["start"], a["end"]) + workers[a["sourceId"]] + workers[a["targetId"]]
           + (key(a).replace("arrow", "").lower() + "arrow",)
           for a in server.arrows(output, server.begin, server.end)]
    if len(links) <= 10000:
        assert sorted(got) == links, (len(got), len(links))
    gaps = server.annotations(output, server.begin, server.end).get("Unexplained", [])
    assert [(g["time"], g["time"] + g["duration"], g["label"].split(":")[0]) for g in gaps] == \
        [(g["begin"], g["end"], g["reason"]) for g in truth["unexplained"]]
    styles = server.model("/%s/style" % output)["styles"]
    used = {s["state"].upper().replace("-",
                                       "_") for s in truth["segments"]} | {key(a)
                                                                           for a in server.arrows(output, server.begin,
                                                                                                  server.end)}
    assert used <= set(styles), used - set(styles)
    some = truth["segments"][len(truth["segments"]) // 2]
    entry = next(e for e, who in workers.items() if who == (some["host"], some["tid"]))
    tip = server.tooltip(output, entry, some["begin"])
    assert tip["Host"] == some["host"] and tip["State"] == some["state"], (tip, some)
    check_assumed(server, output, truth, workers)
    return check_why(server, output, truth, workers)


def check_why(server, output, truth, workers):
    """Checks each segment's tooltip: its number, its neighbours, and its links to others."""
    of_entry = {who: e for e, who in workers.items()}
    segments = truth["segments"]
    words = {"network": "a message from %s:%d ", "wakeup": "woken by %s:%d ", "fork": "forked by %s:%d "}
    who = ["%s interrupt" % s["host"] if s["tid"] < 0 else "%s:%d %s" % (s["host"], s["tid"], s["comm"])
           for s in segments]
    heads, seen = ["%s %s " % (w, s["state"]) for w, s in zip(who, segments)], set()
    for i in range(0, len(segments), max(1, len(segments) // 60)):
        s = segments[i]
        here = s["host"], s["tid"]
        if s["tid"] < 0:
            continue
        tip = server.tooltip(output, of_entry[here], s["begin"])
        assert tip["Segment"] == "%d of %d" % (i + 1, len(segments)), (i, tip)
        assert tip.get("Before", "").startswith(heads[i - 1] if i else ""), (tip, heads[i - 1])
        assert ("Before" in tip) == (i > 0) and ("After" in tip) == (i + 1 < len(segments)), tip
        assert i + 1 == len(segments) or tip["After"].startswith(heads[i + 1]), (tip, heads[i + 1])
        mine = [link for link in truth["links"] if (link["to"]["host"], link["to"]["tid"]) == here
                and link["from"]["tid"] >= 0]
        sent = [link for link in mine if (link["from"]["time"], link["to"]["time"]) == (s["begin"], s["end"])]
        came = [link for link in mine if link["to"]["time"] == s["begin"]]
        if sent and s["state"] == "network":
            seen.add("sent")
            assert any("sent by %s:%d " % (link["from"]["host"], link["from"]["tid"]) in tip["Began"]
                       for link in sent), (tip, sent)
            assert tip["Ended"].endswith("the message came"), tip
        elif came and not sent:
            seen.update(link["kind"] for link in came)
            assert any(words[link["kind"]] % (link["from"]["host"], link["from"]["tid"]) in tip["Began"]
                       for link in came), (tip, came)
    return seen


def check_assumed(server, output, truth, workers):
    """The tooltips of what is assumed say so, and no others."""
    of_entry = {who: e for e, who in workers.items()}
    assumed = [s for s in truth["segments"] if s.get("assumed")]
    others = [s for s in truth["segments"] if s["state"] == "network" and not s.get("assumed")]
    for s in assumed[:20] + others[:20]:
        tip = server.tooltip(output, of_entry[s["host"], s["tid"]], s["begin"])
        assert ("Assumed" in tip) == ("assumed" in s), (tip, s)
    if assumed:
        assert "ASSUMED" in server.model("/%s/style" % output)["styles"]
        assert [link for link in truth["links"] if link.get("assumed")]


signals = set()  # the kinds that a tooltip told of


def check_path(server, path, thread, begin=None, end=None, polling=None):
    truth = told(path, server.store, thread, begin, end, polling)
    asked = {"thread": thread}
    asked.update({"begin": begin} if begin else {})
    asked.update({"end": str(end)} if end else {}) # numbers and text are the same
    asked.update({"polling": polling} if polling else {})
    status, derived = server.derive(**asked)
    assert status == 200, derived
    assert (derived["parentId"] == PATHS and derived["configuration"]["parameters"] == asked
            and derived["capabilities"]["canDelete"])
    workers = check_tree(server, derived["id"], truth)
    if len(set(workers.values())) == len(workers): # lives that share a number are told apart by rows only
        check_states(server, derived["id"], truth, workers)
        signals.update(check_rest(server, derived["id"], truth, workers))
    # tree without a derived output: the same
    plain = server.tree(PATHS, **asked)
    assert plain == server.tree(derived["id"])
    print("%s: %d segments, %d links, %d gaps as critpath tells" % (thread, len(truth["segments"]), len(truth["links"]),
                                                                    len(truth["unexplained"])))
    return truth if polling else derived


def check_refusals(server):
    assert server.model("/timeGraph/%s/tree" % PATHS)["entries"] == []
    _, answer = server.request("POST", "%s/timeGraph/%s/tree" % (server.outputs, PATHS), {"parameters": {}})
    assert answer["statusMessage"].startswith("Choose a thread"), answer
    assert server.model("/timeGraph/%s/states" % PATHS,
                        requested_timerange={"start": server.begin, "end": server.end, "nbTimes": 5},
                        requested_items=[1]) == {"rows": []}
    status, types = server.request("GET", server.outputs + "/" + PATHS + "/configTypes")
    assert status == 200 and types[0]["id"] == "weft.critical-path" and types[0]["schema"]["required"] == ["thread"]
    for wrong, words in (({}, "thread"), ({"thread": "tier"}, "client:204 tier"),
                         ({"thread": "nobody"}, "no such thread"), ({"thread": []}, "thread"),
                         ({"thread": 204, "host": "elsewhere"}, "host"),
                         ({"thread": "client:204", "begin": "soon"}, "begin"),
                         ({"thread": "client:204", "begin": 2, "end": 1}, "begin"),
                         ({"thread": "client:204", "end": 5}, "no such thread"),
                         ({"thread": "client:204", "begin": 1.5}, "begin"), ({"thread": ""}, "thread"),
                         ({"thread": -4}, "thread"), ({"thread": "client:204", "polling": "guess"}, "polling"),
                         ({"thread": "client:204", "polling": True}, "polling"),
                         ({"thread": "client:204", "request": "yes"}, "request")):
        status, answer = server.derive(**wrong)
        assert status == 400 and words in answer["title"], (wrong, status, answer)
    for good in ({"thread": 204, "host": "client"}, {"thread": "204", "host": "client"}, {"thread": "client:tier"},
                 {"thread": "client:204", "host": None}, {"thread": "client:204", "polling": None},
                 {"thread": "client:204", "request": None}, {"thread": "client:204", "request": True}):
        status, answer = server.derive(**good)
        assert status == 200, (good, answer)


def check_many(server):
    """Sends more queries than are cached, by several clients at once."""
    step = (server.end - server.begin) // 100

    def one(i):
        begin = server.begin + 40 * step + i * step // 4
        entries = server.tree(PATHS, thread="client:204" if i % 2 else "db:204", begin=begin, end=begin + 20 * step)
        return sum(e["metadata"]["sum"][0] for e in entries if e["parentId"] == -1) <= 20 * step

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, list(range(90)) * 3))


def check_stop(path):
    """The server ends at once while paths are being computed."""
    with Server(path) as server:
        pool = concurrent.futures.ThreadPoolExecutor(8)
        asked = [pool.submit(server.request, "POST", "%s/timeGraph/%s/tree" % (server.outputs, PATHS),
                             {"parameters": {"thread": "solo:%d" % tid}})
                 for tid in (1, 15, 157, 296, 299, 300, 301, 302)]
        next(concurrent.futures.as_completed(asked))
    pool.shutdown()


def main():
    three, bsp, lost, mpi = recorded("three-tier", "bsp", "lost-events", "mpi")
    with Server(three) as server:
        check_refusals(server)
        derived = check_path(server, three, "client:204")
        check_many(server)
        middle = server.begin + (server.end - server.begin) // 2
        check_path(server, three, "client:204", middle, middle + 10**8)
        check_path(server, three, "db:204")
        check_path(server, three, "web:196", middle)
        status, _ = server.request("DELETE", "%s/%s/%s" % (server.outputs, PATHS, derived["id"]))
        assert status == 200
        status, _ = server.request("POST", "%s/timeGraph/%s/tree" % (server.outputs, derived["id"]), {"parameters": {}})
        assert status == 405
    with Server(bsp) as server:
        threads = {(e["metadata"]["hostId"][0], e["metadata"]["TID"][0]) for e in server.tree(THREADS) if e["labels"][0]
                   == "bsp"}
        assert {host for host, _ in threads} == {"n1", "n2", "n3", "n4"}, threads
        for host, tid in sorted(threads):
            check_path(server, bsp, "%s:%d" % (host, tid))
    with Server(lost) as server:
        for comm in ("stress-ng-pipe", "rcu_preempt"):
            lives = [e["metadata"]["TID"][0] for e in server.tree(THREADS) if e["labels"][0] == comm]
            for tid in lives[:2]:
                check_path(server, lost, "solo:%d" % tid)
    with Server(mpi) as server:  # n1's rank, which polls
        plain = told(mpi, server.store, "n1:279")
        truth = check_path(server, mpi, "n1:279", polling="assume")
        assert any(s.get("assumed") for s in truth["segments"])
        assert not any(s.get("assumed") for s in plain["segments"])
    check_stop(lost)
    assert {"network", "sent", "wakeup"} <= signals, signals


run(main)
