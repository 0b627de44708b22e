#!/usr/bin/env python3
"""Two answers of `sol profile --json` compared, kernel by kernel and counter by counter: our own counters
and those of ncu's CSV (--import), say. usage: profile_compare.py OURS.json NCU.json [NCU-AGAIN.json]
Prints a line per counter: on how many kernels the two are equal, and where they differ most; with a third file, how
far ncu is from itself. profile_gpu.py and profile_public.py take from here what they share."""
import datetime
import json
import os
import signal
import subprocess
import sys

COUNTS = [f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st", "atom", "red") for what in ("requests", "sectors")] + [
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", "smsp__inst_executed.sum"]
# These count what else passes the pipe while the kernel runs, too: they differ from run to run, of ncu as well.
WAVEFRONTS = ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
              "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOL = os.path.abspath(os.environ.get("SOL", "build/sol"))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def run(command, limit, **how):
    """(exit code, stdout, stderr); 124 where it took longer than limit seconds: then all that it started is ended."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True,
                             text=True, errors="replace", **how)
    try:
        out, err = child.communicate(timeout=limit)
        return child.returncode, out, err
    except BaseException as e:  # also where this process is asked to end
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        if not isinstance(e, subprocess.TimeoutExpired):
            raise
        return 124, out, err


def sol(arguments, limit, **how):
    """The answer of sol profile --json, and what it and the program printed. None: there is no answer."""
    code, out, err = run([SOL, "profile", "--json", *arguments], limit, **how)
    return (json.loads(out) if code != 124 and out.startswith("{") else None), err


def ncu(program, metrics, log, limit, options=(), cwd=None):
    """What ncu counts of a program, as sol profile --import has it. The log is a CSV file."""
    if os.path.exists(log):
        os.remove(log)
    run(["ncu", "--clock-control", "none", "--cache-control", "none", "--graph-profiling", "node", "--csv", "--page", "raw",
         "--metrics", ",".join(metrics), "--log-file", log, *options, *program], limit, cwd=cwd)
    return sol(["--import", log], 20)[0]


def toolkit():
    """The CUDA toolkit's folder; its programs and libraries are found from here on."""
    code, out, _ = run([os.path.join(ROOT, "scripts", "cuda-env"), "home"], 10)
    home = out.strip() if code == 0 else "/usr/local/cuda"
    for variable, folder in (("PATH", "bin"), ("LD_LIBRARY_PATH", "lib64")):
        os.environ[variable] = os.path.join(home, folder) + ":" + os.environ.get(variable, "")
    return home


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%F %H:%M")


def machine(script):
    """The head of a file of results."""
    _, out, _ = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], 20)
    name, _, driver = out.strip().partition("\n")[0].partition(", ")
    _, version, _ = run(["ncu", "--version"], 20)
    return {"command": " ".join([script, *sys.argv[1:]]), "date": now(), "gpu": name, "driver": driver, "ncu": version.strip().rpartition("\n")[2]}


def load(path, results):
    """What is in the file of an earlier call stays there, unless it is measured anew."""
    if os.path.exists(path):
        with open(path) as f:
            return {**json.load(f), **results}
    return results


def save(path, results):
    """Whole or not at all: a run that is cut off keeps what it had."""
    with open(path + ".part", "w") as f:
        json.dump(results, f, indent=1)
    os.replace(path + ".part", path)


def base(name, short):
    """ncu leaves namespaces out: "mix::transpose<0>" is "transpose<0>". Short: no template arguments either."""
    head, angle, rest = name.partition("<")
    return head.rsplit("::", 1)[-1] + ("" if short else angle + rest)


def kernels(bill, short):
    """{(name, grid, block): [launches, {counter: mean of a launch}]}; kernels of one short name and shape are one."""
    found = {}
    for k in bill["kernels"]:
        old = found.setdefault((base(k["name"], short), k["grid"], k["block"]), [0, {}])
        for name, value in k["counters"].items():
            if value is not None:  # sums are of all launches
                mean = name.endswith((".ratio", ".pct")) or ".pct_of" in name
                sum_ = old[1].get(name, 0) * old[0] + value * (k["launches"] if mean else 1)
                old[1][name] = sum_ / (old[0] + k["launches"])
        old[0] += k["launches"]
    return found


def differ(ours, theirs, counter):
    """(kernels that have it in both, those where it is equal, the most it differs by, where)"""
    known, equal, worst, where = 0, 0, 0.0, ""
    for key in ours:
        x, y = ours[key][1].get(counter), theirs.get(key, [0, {}])[1].get(counter)
        if x is None or y is None:
            continue
        known += 1
        off = abs(x - y) / max(abs(y), 1e-9) if x != y else 0.0
        equal += off == 0
        if off > worst:
            worst, where = off, f"{key[0]}: {x:.10g} and {y:.10g}"
    return known, equal, worst, where


def compare(ours, theirs, again=None, short=False):
    """A row a counter; again: ncu once more. None where a bill is missing."""
    if not ours or not theirs:
        return None
    a, b, c = (kernels(bill, short) if bill else {} for bill in (ours, theirs, again))
    for key in [k for k in a if k not in b]:  # of another name there: where one alone has that shape
        alike = [[k for k in x if k[1:] == key[1:] and (k in a) != (k in b)] for x in (a, b)]
        if len(alike[0]) == len(alike[1]) == 1:
            a[alike[1][0]] = a.pop(key)
    rows = []
    for counter in sorted({name for _, counters in a.values() for name in counters}):
        known, equal, worst, where = differ(a, b, counter)
        if known:
            row = {"counter": counter, "kernels": known, "equal": equal}
            if worst:
                row.update(most_percent=round(100 * worst, 4), where=where)
            known, equal, worst, where = differ(b, c, counter)
            if known:
                row["ncu_itself"] = {"equal": equal, "most_percent": round(100 * worst, 4)}
            rows.append(row)
    both = sum(k in b for k in a)
    return {"kernels_in_both": both, "only_ours": len(a) - both, "only_ncu": len(b) - both,
            "launches": [sum(k[0] for k in kinds.values()) for kinds in (a, b)], "unmatched": [k[0] for k in {**a, **b} if (k in a) != (k in b)], "counters": rows}


def show(result):
    if not result:
        print("no answer to compare")
        return
    print(f"{result['kernels_in_both']} kernels in both, {result['only_ours']} only in the first, {result['only_ncu']} only in the second", *result["unmatched"])
    for r in result["counters"]:
        print(f"{r['counter']:75} equal {r['equal']}/{r['kernels']}", end="")
        if "where" in r:
            print(f", most {r['most_percent']:.3f}% ({r['where']})", end="")
        if "ncu_itself" in r:
            print(f"; ncu and itself: equal {r['ncu_itself']['equal']}, most {r['ncu_itself']['most_percent']:.3f}%", end="")
        print()


if __name__ == "__main__":
    show(compare(*(json.load(open(path)) for path in sys.argv[1:4])))
