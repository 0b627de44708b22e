#!/usr/bin/env python3
"""Measures the corpus (bench/corpus.csv) on this machine's GPU: counters of the first launches of every kernel and shape by
ncu, caches cold; times of every launch as the program runs, by `sol profile --times` (without it by ncu, caches as they are).
usage: corpus_gpu.py OUT.json SRC [--part K/N] [--budget SECONDS] [--jobs N] [--only NAME,...] [--bin DIR] [--list FILE] [--times]
SRC has the sources (bench/corpus.py says how). Builds run concurrently with the measurements, which are made one at a time. OUT.json is
written anew after each program, and what is in it already is not measured again: a run that was cut off goes on from there.
Needs nvcc and ncu; SOL names another build's tool."""
import argparse
import csv
import hashlib
import math
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time

import corpus
from profile_compare import SOL, load, machine, now, run, save, sol, toolkit

LAUNCHES = 2  # of each kernel and shape
SCALE = {"Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}
TIME = "gpu__time_duration.sum"
METRICS = {  # column: ncu's name. Times are nanoseconds.
    "time_ns": TIME, "dram_read": "dram__bytes_read.sum", "dram_written": "dram__bytes_write.sum",
    **{f"g{short}_{what}": f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum"
       for short, op in (("ld", "ld"), ("st", "st"), ("atom", "atom"), ("red", "red")) for what in ("requests", "sectors")},
    **{f"l{op}_sectors": f"l1tex__t_sectors_pipe_lsu_mem_local_op_{op}.sum" for op in ("ld", "st")},
    **{f"s{op}_wavefronts": f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st")},
    **{f"s{op}_wavefronts_by_instruction": f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st")},
    "texture_sectors": "l1tex__t_sectors_pipe_tex_mem_texture.sum",
    "warp_instructions": "smsp__inst_executed.sum", "thread_instructions": "smsp__thread_inst_executed.sum",
    "issue_active": "smsp__issue_active.sum", "sm_cycles_active": "sm__cycles_active.sum", "cycles": "gpc__cycles_elapsed.max",
    "l1_hit_pct": "l1tex__t_sector_hit_rate.pct", "l2_hit_pct": "lts__t_sector_hit_rate.pct", "l2_sectors": "lts__t_sectors.sum",
    "occupancy_pct": "sm__warps_active.avg.pct_of_peak_sustained_active", "occupancy_limit_pct": "sm__maximum_warps_per_active_cycle_pct",
    "registers": "launch__registers_per_thread", "static_shared": "launch__shared_mem_per_block_static",
    "dynamic_shared": "launch__shared_mem_per_block_dynamic", "waves": "launch__waves_per_multiprocessor",
}


def end(program, child):
    """Ends the program alone: ncu then prints what it has of it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(pid)) == child.pid and os.readlink(f"/proc/{pid}/exe") == program:
                os.kill(int(pid), signal.SIGTERM)
        except OSError:
            pass


def patient(command, program, limit, cwd):
    """(exit code, what it printed, whether it took too long)"""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=cwd, text=True,
                             errors="replace", start_new_session=True)
    late = False
    for wait in (limit, 10, 1):
        try:
            said, _ = child.communicate(timeout=wait)
            return child.returncode, said, late
        except subprocess.TimeoutExpired:
            if late:
                os.killpg(child.pid, signal.SIGKILL)
            end(program, child)
            late = True
    return 124, "", True


def launches(text):
    """ncu's raw page: a dictionary a launch, in the units' bases, by our columns."""
    rows = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
    if len(rows) < 3:
        return []
    head, units = rows[0], rows[1]
    found = []
    for row in rows[2:]:
        if row == head or len(row) != len(head):
            continue
        one = dict(zip(head, row))
        out = {"kernel": one["Kernel Name"], "grid": shape(one["Grid Size"]), "block": shape(one["Block Size"])}
        for column, metric in METRICS.items():
            out[column] = number(one.get(metric, ""), units[head.index(metric)] if metric in head else "")
        found.append(out)
    return found


def shape(text):
    return ",".join(re.findall(r"\d+", text))


def number(text, unit):
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    if not math.isfinite(value):  # a ratio of a kernel that did nothing of the kind
        return None
    value *= SCALE.get(unit.partition("/")[0], 1)
    return int(value) if value == int(value) else round(value, 4)


def ncu(program, arguments, metrics, cold, count, limit, cwd):
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "ncu.csv")
        start = time.time()
        code, said, late = patient(
            ["ncu", "--clock-control", "none", "--cache-control", "all" if cold else "none", "--csv", "--page", "raw", "--print-units", "base",
             "--print-kernel-base", "mangled", "--graph-profiling", "node", "--filter-mode", "per-launch-config", "--launch-count", str(count),
             "--metrics", ",".join(metrics), "--log-file", log, program, *arguments], program, limit, cwd)
        text = open(log, errors="replace").read() if os.path.exists(log) else ""
    rows = launches(text)
    out = {"seconds": round(time.time() - start, 1), "late": late, "exit": code, "launches": rows}
    if not rows:
        out["said"] = (text + said)[-600:]
    return out


def times(program, arguments, limit, cwd):
    """Every launch as the program runs: sums by kernel and shape."""
    start = time.time()
    bill, said = sol(["--times", program, "--", *arguments], limit, cwd=cwd) if os.access(SOL, os.X_OK) else (None, "no sol")
    out = {"by": "sol profile --times", "seconds": round(time.time() - start, 1), "said": said[-300:], "check": check(said)}
    if bill:
        out["ended"] = bill.get("ended")
        out["kernels"] = [{k: one[k] for k in ("symbol", "grid", "block", "launches", "graph_launches", "time_us", "least_us", "most_us")}
                          for one in bill["kernels"] if one["time_us"] is not None]
        return out
    warm = ncu(program, arguments, [TIME], False, 20, limit, cwd)
    return {**out, "by": "ncu --cache-control none", "kernels": summed(warm["launches"])}


def summed(rows):
    found = {}
    for r in rows:
        if r["time_ns"] is not None:
            found.setdefault((r["kernel"], r["grid"], r["block"]), []).append(r["time_ns"] / 1e3)
    return [{"symbol": k[0], "grid": k[1], "block": k[2], "launches": len(v), "graph_launches": 0, "time_us": sum(v), "least_us": min(v),
             "most_us": max(v)} for k, v in found.items()]


def check(said):
    """The program's own check of its results."""
    if re.search(r"\bFAIL(ED|URE|S)?\b|\bfail(ed|s)?\b(?! to (open|load))|mismatch(?!es: 0)|incorrect|verification error", said):
        return "fail"
    return "pass" if re.search(r"\bPASS(ED)?\b|\bpass(ed)?\b|\bsuccess|\bSUCCESS|correct\b|\bOK\b", said) else ""


def order(row):
    return hashlib.sha256(corpus.key(row).encode()).hexdigest()


def counted(program, arguments, cwd):
    """A metric that this ncu does not know is left out from here on: ncu names it, and counts nothing."""
    while True:
        one = ncu(program, arguments, METRICS.values(), True, LAUNCHES, 30, cwd)
        unknown = re.search(r"Failed to find metric (\S+)", one.get("said", ""))
        known = [c for c, m in METRICS.items() if unknown and m.startswith(unknown.group(1).rstrip("."))]
        if not known:
            return one
        print(f"ncu does not know {METRICS.pop(known[0])}", flush=True)


def measure(source, row, bin_folder, counters=True):
    program, cwd = os.path.realpath(corpus.binary(bin_folder, row)), corpus.place(source, row)
    arguments = shlex.split(row["arguments"])
    result = {k: row[k] for k in ("collection", "program", "kind", "arguments", "flags")}
    result.update(date=now(), ncu=counted(program, arguments, cwd) if counters else {"seconds": 0, "late": False, "launches": []})
    result["times"] = times(program, arguments, 15, cwd)
    return result


def line(name, one):
    rows = one["ncu"]["launches"]
    kernels = {(r["kernel"], r["grid"], r["block"]) for r in rows}
    us = [k["time_us"] / k["launches"] for k in one["times"].get("kernels", []) if k["launches"]]
    return (f"{name[:44]:44} {len(kernels):3} kernels {len(rows):3} counted {len(us):3} timed"
            + (f" {min(us):7.1f}..{max(us):8.1f} us" if us else " " * 21)
            + f" ncu {one['ncu']['seconds']:4.0f} s{' LATE' if one['ncu']['late'] else ''} run {one['times']['seconds']:4.0f} s {one['times']['check']}"
            + ("" if rows else " NO COUNTERS: " + one["ncu"].get("said", "")[-80:].replace("\n", " ")))


def summary(results):
    runs = results["runs"].values()
    good = [one for one in runs if one["ncu"]["launches"]]
    useful, names = 0, set()
    for one in good:
        for k in one["times"].get("kernels", []):
            if 10 <= k["time_us"] / max(k["launches"], 1) <= 10000:
                useful += 1
                names.add((one["collection"], one["program"]))
    failed = [n for n, said in results["builds"].items() if said]
    print(f"{len(results['builds'])} programs built or tried, {len(failed)} do not compile; {len(results['runs'])} runs, {len(good)} with counters; "
          f"{useful} kernels and shapes of 10 us to 10 ms in {len(names)} programs")
    for name in failed:
        print(f"  does not compile: {name}: {results['builds'][name][-120:]!r}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("source")
    p.add_argument("--part", default="1/1", help="K/N: every N-th program, from the K-th")
    p.add_argument("--budget", type=float, default=500, help="seconds after which nothing new is begun")
    p.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    p.add_argument("--only", help="programs or collections")
    p.add_argument("--bin", default="build/corpus-bin")
    p.add_argument("--times", action="store_true", help="alone, without counters")
    p.add_argument("--list", help="of programs, instead of bench/corpus.csv")
    a = p.parse_args()
    start = time.time()
    toolkit()
    a.bin, a.source = os.path.abspath(a.bin), os.path.abspath(a.source)
    os.makedirs(a.bin, exist_ok=True)
    results = {"builds": {}, "runs": {}, **load(a.out, {**machine("bench/corpus_gpu.py"), "launches": LAUNCHES, "metrics": METRICS,
                                                       "flags": corpus.FLAGS, "commits": corpus.COMMITS})}
    k, n = map(int, a.part.split("/"))
    rows = sorted(corpus.programs(a.source, a.only and a.only.split(","), a.list), key=order)[k - 1::n]
    rows = [r for r in rows if corpus.key(r) not in results["runs"]]
    print(f"{len(rows)} runs to do", flush=True)
    builds = corpus.build_all(a.source, rows, a.bin, a.jobs)
    for name, (built, said) in builds:
        results["builds"][name] = said
        for row in rows if built else ():
            if corpus.title(row) == name and time.time() - start < a.budget:
                one = results["runs"][corpus.key(row)] = measure(a.source, row, a.bin, not a.times)
                print(f"{time.time() - start:4.0f} s {line(corpus.key(row), one)}", flush=True)
        save(a.out, results)
        if time.time() - start > a.budget:
            print("no more time", flush=True)
            builds.close()
    summary(results)


if __name__ == "__main__":
    main()
