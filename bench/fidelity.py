#!/usr/bin/env python3
"""What the emulator predicts for the corpus against what an H200 measured (tests/data/h200-corpus.csv).
usage: fidelity.py SRC [--learn] [--more | --kinds | --fresh | --next | --blind] [--markdown] [--only NAME,...] [--seconds S] [--sol PATH] [--work DIR]
               [--records DIR] [--predict OUT.json | --predicted FILE.json]
SRC has the programs' sources, or some of them (bench/corpus.py says how): they are compiled and run through `sol audit`. What each
gave is kept under DIR (build/fidelity) by the build of sol that gave it, so that a run that was cut off goes on from there.
Which kernels the model may be made from (--learn lists them, worst first) and which are only scored the list says, or a hash of their names
(two thirds and one): nothing here shows the latter kernel by kernel. --more and its like: the programs of bench/corpus_NAME.csv (LISTS of
bench/corpus.py says which those are). --predict: what is predicted of a list goes to OUT.json, nothing is compared, and nothing need have been measured; --predicted
holds what such a file says to the table, so that predictions can be made before the measurement. --records: the launches of each program are recorded in DIR once, and priced from there by
build/bench/bench_price: a change of the time model alone needs no program to run again. DRAM bytes and counts are then left out.
A kernel that the emulator stops, such as one that writes past an allocation, is left out, and so is a shape whose launch took more than 1.5 times as
long while the program ran as with cold caches: it had other work in that run (quicksort, whose blocks are as many as its pivots make).
Times are those of a launch as the program runs; DRAM bytes are those with cold caches (`sol audit --cold`, where there is one).
Errors of times are of the ratio: twice and half are both 100% off. Errors of DRAM bytes are parts of what was measured, 1 MB at
least. Requests, sectors and wavefronts are of loads and stores, over all launches, where every shape of the kernel was counted."""
import argparse
import csv
import hashlib
import json
import math
import os
import shlex
import statistics
import sys

import corpus
from profile_compare import ROOT, now, run, save, toolkit

MB = 1e6
OTHERS = 1.5  # a launch as the program runs over the same one with cold caches, which take longer: beyond this they are not the same
NOISE = 0.003  # the pipe's counter of wavefronts differs by so much from run to run
KEPT = ("symbol", "launches", "end", "bound", "shapes", "global_load", "global_store", "shared_load", "shared_store", "dram_read_bytes", "dram_write_bytes")


def measured(name=""):
    """{(collection, program, arguments): rows of the table}"""
    found = {}
    if not os.path.exists(corpus.table_of(name)):
        sys.exit(f"nothing of bench/corpus_{name}.csv was measured yet: bench/corpus_gpu.py OUT.json SRC --list bench/corpus_{name}.csv --times does "
                 f"so on a GPU, and bench/corpus_table.py --all OUT.json makes tests/data/h200-corpus-{name}.csv of it")
    with open(corpus.table_of(name), encoding="utf-8") as f:
        for row in csv.DictReader(line for line in f if not line.startswith("#")):
            found.setdefault((row["collection"], row["program"], row["arguments"]), []).append(row)
    return found


def number(row, column):
    return float(row[column] or 0)


class Sol:
    def __init__(self, tool, work, seconds):
        self.tool, self.seconds = os.path.abspath(tool), seconds
        digest = hashlib.sha256()
        for path in (self.tool, os.path.join(os.path.dirname(self.tool), "shim", "libcudart.so.13")):
            if os.path.exists(path):
                with open(path, "rb") as f:
                    digest.update(f.read())
        self.kept = os.path.join(os.path.abspath(work), digest.hexdigest()[:16])
        self.bin = os.path.join(os.path.abspath(work), "bin")
        os.makedirs(self.kept, exist_ok=True)
        os.makedirs(self.bin, exist_ok=True)
        self.cold = "--cold" in run([self.tool, "audit", "--help"], 20)[1]

    def audit(self, source, row, options):
        """The bill's kernels, or why there are none."""
        name = hashlib.sha256(" ".join([corpus.key(row), *options]).encode()).hexdigest()[:16] + ".json"
        path = os.path.join(self.kept, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                return json.load(f)
        built, said = corpus.build(source, row, self.bin, ["-cudart", "shared"])
        bill = self.bill(source, row, options) if built else {"failed": "does not compile: " + said[-200:]}
        with open(path + ".part", "w", encoding="utf-8") as f:
            json.dump(bill, f)
        os.replace(path + ".part", path)
        return bill

    def bill(self, source, row, options):
        program = corpus.binary(self.bin, row)
        code, out, err = run([self.tool, "audit", program, "--device", "h200", "--json", "--seconds", str(self.seconds), *options, "--",
                              *shlex.split(row["arguments"])], self.seconds + 60, cwd=corpus.place(source, row))
        if not out.startswith("{"):
            return {"failed": f"exit code {code}: {err.strip()[-200:]}"}
        bill = json.loads(out)
        kernels = [{k: one.get(k) for k in KEPT} for one in bill["kernels"]]
        return {"ended": bill.get("ended"), "kernels": kernels}


class Records:
    """The same from launches that were recorded, once, by the shim."""

    def __init__(self, tool, work, seconds, folder):
        self.shim, self.price = (os.path.join(os.path.dirname(os.path.abspath(tool)), *p) for p in (("shim", "libcudart.so.13"), ("bench", "bench_price")))
        self.seconds, self.folder, self.bin, self.cold = seconds, os.path.abspath(folder), os.path.join(os.path.abspath(work), "bin"), False
        os.makedirs(self.folder, exist_ok=True)
        os.makedirs(self.bin, exist_ok=True)

    def audit(self, source, row, _):
        path = os.path.join(self.folder, hashlib.sha256(corpus.key(row).encode()).hexdigest()[:16])
        if os.path.exists(path + ".why"):
            with open(path + ".why", encoding="utf-8") as f:
                return {"failed": f.read()}
        if not os.path.exists(path):
            why = self.record(source, row, path)
            if why:
                with open(path + ".why", "w", encoding="utf-8") as f:
                    f.write(why)
                return {"failed": why}
        code, out, err = run([self.price, "h200", path], 120)
        return {"failed": err[-200:]} if code else json.loads(out)

    def record(self, source, row, path):
        """Why there is no record; nothing where there is."""
        built, said = corpus.build(source, row, self.bin, ["-cudart", "shared"])
        if not built:
            return "does not compile: " + said[-200:]
        if os.path.exists(path + ".part"):
            os.remove(path + ".part")
        env = {**os.environ, "LD_PRELOAD": self.shim, "LD_LIBRARY_PATH": os.path.dirname(self.shim), "SOL_SHIM_AUDIT": path + ".part", "SOL_DEVICE": "h200"}
        code, _, err = run([corpus.binary(self.bin, row), *shlex.split(row["arguments"])], self.seconds, cwd=corpus.place(source, row), env=env)
        if code == 124 or not os.path.exists(path + ".part"):
            return f"exit code {code}: {err.strip()[-200:]}"
        os.replace(path + ".part", path)
        return ""


class Predicted:
    """The same from a file that predict() wrote."""

    cold = False

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.runs = json.load(f)["runs"]

    def audit(self, _, row, __):
        return self.runs.get(corpus.key(row), {"failed": "not predicted"})


def predict(sol, source, rows, tool, path):
    """A file of what the bills of these programs say: of each launch shape the time, and what bounds its kernel."""
    runs = {corpus.key(row): sol.audit(source, row, []) for row in rows}
    for bill in runs.values():
        for kernel in bill.get("kernels", []):
            times = [{"time_us": round(shape_time(s) * s["launches"], 3), **{k: s[k] for k in ("grid", "block", "launches")}} for s in kernel["shapes"]]
            for what in set(kernel) - {"symbol", "end", "bound"}:
                del kernel[what]
            kernel["shapes"] = times
    version = run([tool, "--version"], 20)[1].strip()
    save(path, {"command": " ".join(["bench/fidelity.py", *sys.argv[1:]]), "date": now(), "version": version, "device": "h200", "runs": runs})


def shape_time(shape):
    """Of a launch; without the gap before it, where the bill separates them."""
    return shape.get("kernel_us", shape["time_us"]) / shape["launches"]


def by_symbol(bill):
    return {corpus.symbol(k["symbol"]): k for k in bill.get("kernels", [])}


def whole(kernel):
    return bool(kernel) and kernel.get("end", "done") == "done"


def alike(kernel, rows):
    """Whether the table has what all these launches did: every shape, and launches that do the same or were all counted."""
    here = {(s["grid"], s["block"]): s["launches"] for s in kernel["shapes"]}
    there = {(r["grid"], r["block"]): r for r in rows}
    return set(here) == set(there) and all(int(r["steady"]) or int(r["counted"]) == here[p] for p, r in there.items())


def expected(kernel, rows, column):
    here = {(s["grid"], s["block"]): s["launches"] for s in kernel["shapes"]}
    return sum(number(r, column) * here[r["grid"], r["block"]] for r in rows)


def counts(kernel, rows):
    """{what: whether it is equal}"""
    equal = {}
    for what in ("requests", "sectors"):
        equal[what] = all(kernel[ours][what] == round(expected(kernel, rows, f"{theirs}_{what}"))
                          for ours, theirs in (("global_load", "gld"), ("global_store", "gst")))
    equal["wavefronts"] = all(near(kernel[ours]["wavefronts"], expected(kernel, rows, theirs + "_wavefronts"),
                                   expected(kernel, rows, theirs + "_wavefronts_by_instruction"))
                              for ours, theirs in (("shared_load", "sld"), ("shared_store", "sst")))
    return equal


def near(ours, pipe, instruction):
    return ours == round(instruction) or abs(ours - pipe) <= NOISE * pipe


def same_launches(row):
    """Whether the launches that were counted do what those that were timed did: a program may give a shape other work in each run."""
    return not row.get("cold_us") or row["counted"] != row["launches"] or number(row, "time_us") < OTHERS * number(row, "cold_us")


def compare(rows, warm, cold, name="next"):
    """A result a row of the table; None where the bill lacks it."""
    found = []
    kernels, flushed = by_symbol(warm), by_symbol(cold)
    for r in rows:
        kernel, other = kernels.get(r["kernel"]), flushed.get(r["kernel"])
        shape = next((s for s in (kernel or {}).get("shapes", []) if (s["grid"], s["block"]) == (r["grid"], r["block"])), None)
        one = {"row": r, "scored": corpus.scored(r["program"], r["kernel"], name),
               "matched": bool(shape and other) and whole(kernel) and whole(other) and same_launches(r)}
        if one["matched"]:
            one.update(bound=kernel["bound"], said=shape_time(shape), was=number(r, "time_us"))
            one["time"] = math.expm1(abs(math.log(max(one["said"], 1e-3) / one["was"])))
            same = [x for x in rows if x["kernel"] == r["kernel"]]
            if "global_load" in other and int(r["shapes"]) == len(same) and alike(other, same) and r is same[0]:
                one["counts"] = counts(other, same)
                one["dram"] = {w: (other[f"dram_{ours}_bytes"], expected(other, same, f"dram_{w}")) for w, ours in (("read", "read"), ("written", "write"))}
        found.append(one)
    return found


def off(pair):
    return abs(pair[0] - pair[1]) / max(pair[1], MB)


def spread(values):
    """median, 90th percentile, worst"""
    values = sorted(values)
    return (statistics.median(values), values[math.ceil(0.9 * len(values)) - 1], values[-1]) if values else (math.nan,) * 3


def summary(results, scored):
    half = [r for r in results if r["scored"] == scored]
    there = [r for r in half if r["matched"]]
    counted = [r for r in there if "counts" in r]
    row = ["scored" if scored else "learnt from", len(half), len(there), *(f"{x:.1%}" for x in spread([r["time"] for r in there]))]
    for which in ("read", "written"):
        row += [f"{x:.1%}" for x in spread([off(r["dram"][which]) for r in counted if max(r["dram"][which]) >= MB])[:2]]
    return row + [f"{sum(r['counts'][c] for r in counted)}/{len(counted)}" for c in ("requests", "sectors", "wavefronts")]


HEADS = ["half", "kernels", "matched", "time median", "90th", "worst", "DRAM read median", "90th", "written median", "90th", "equal requests",
         "sectors", "wavefronts"]


def show(rows, markdown):
    if markdown:
        print("\n".join("| " + " | ".join(map(str, r)) + " |" for r in [HEADS, ["---"] * len(HEADS), *rows]))
        return
    for i, head in enumerate(HEADS):
        print(f"{head:18}" + "".join(f"{str(r[i]):>14}" for r in rows))


def learn(results):
    """What may be looked at, worst first."""
    half = [r for r in results if not r["scored"]]
    for r in sorted((r for r in half if r["matched"]), key=lambda r: -r["time"]):
        row, differ = r["row"], [c for c, equal in r.get("counts", {}).items() if not equal]
        dram = " ".join(f"{w} {a / MB:.1f}/{b / MB:.1f}" for w, (a, b) in r.get("dram", {}).items())
        print(f"{r['said']:9.1f} {r['was']:9.1f} us {r['said'] / r['was']:5.2f} {r['bound']:8} {row['kind']:10} {row['program']:20} "
              f"{row['kernel'][:60]} ({row['grid']})({row['block']}) DRAM MB {dram or '-'} {'differ: ' + ', '.join(differ) if differ else ''}")
    for r in half:
        if not r["matched"]:
            print(f"not in the bill: {r['row']['program']} {r['row']['kernel'][:80]} ({r['row']['grid']})({r['row']['block']})")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("source")
    p.add_argument("--learn", action="store_true")
    which = p.add_mutually_exclusive_group()
    for name, what in corpus.LISTS.items():
        if name:
            which.add_argument("--" + name, dest="list", action="store_const", const=name, default="", help=what)
    p.add_argument("--markdown", action="store_true")
    p.add_argument("--only", help="programs or collections")
    p.add_argument("--records", help="folder of recorded launches, which are priced again")
    p.add_argument("--predict", help="file for what is predicted; nothing is compared")
    p.add_argument("--predicted", help="file of an earlier --predict, in place of the emulator")
    p.add_argument("--seconds", type=int, default=120, help="of a program, then it is cut off")
    p.add_argument("--sol", default=os.path.join(ROOT, "build", "sol"))
    p.add_argument("--work", default=os.path.join(ROOT, "build", "fidelity"))
    a = p.parse_args()
    toolkit()
    source, table = os.path.abspath(a.source), {} if a.predict else measured(a.list)
    programs = corpus.programs(source, a.only and a.only.split(","), corpus.list_of(a.list))
    sol = Predicted(a.predicted) if a.predicted else Records(a.sol, a.work, a.seconds, a.records) if a.records else Sol(a.sol, a.work, a.seconds)
    if a.predict:
        predict(sol, source, programs, a.sol, a.predict)
        return
    results, failed = [], []
    for row in programs:
        rows = table.get((row["collection"], row["program"], row["arguments"]))
        if not rows:
            continue
        warm = sol.audit(source, row, [])
        cold = sol.audit(source, row, ["--cold"]) if sol.cold and not a.list else warm
        if "failed" in warm:
            failed.append(f"{corpus.key(row)}: {warm['failed']}")
        if any("was stopped after" in (bill.get("ended") or "") for bill in (warm, cold)):  # its last launches are in part
            failed.append(f"{corpus.key(row)}: cut off after {a.seconds} s, left out")
            continue
        results += compare(rows, warm, cold, a.list)
        print(f"\r{len(results)} kernels", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if a.learn:
        learn(results)
    show([summary(results, half) for half in (False, True) if a.list not in (corpus.SCORED, corpus.LEARNT)[half]], a.markdown)
    for line in failed:
        print("no bill:", line.replace("\n", " "))


if __name__ == "__main__":
    main()
