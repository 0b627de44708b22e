#!/usr/bin/env python3
"""`sol profile` on this machine's GPU against ncu and CUDA events, and what it costs: less than three minutes.
usage: profile_gpu.py OUT.json [STEP...]     steps: as they stand below; all where none is named
OUT.json is written anew after each step; steps that are not named stay in it. SOL names another build's tool. Needs nvcc and ncu; PyTorch where there is one.
The exit code is 0 when everything held."""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from profile_compare import COUNTS, ROOT, SOL, WAVEFRONTS, compare, load, machine, ncu, now, run, save, show, sol, toolkit

HOME = toolkit()
PROFILE = os.path.join(ROOT, "tests", "profile")
DRAM = ["dram__bytes_read.sum", "dram__bytes_write.sum"]
PROGRAMS = {"mix": ["mix.cu", "-cudart", "shared"], "many": ["many.cu", "-cudart", "shared"],
            "graphs": ["graphs.cu", "-cudart", "shared"], "graphs_static": ["graphs.cu"]}
held = []  # (what was claimed, whether it held)


def claim(what, holds):
    held.append((what, bool(holds)))
    print(f"  {'holds' if holds else 'DOES NOT HOLD'}: {what}", flush=True)
    return bool(holds)


def brief(bill):
    """A bill, in a few lines."""
    if not bill:
        print("  no answer")
        return None
    counted = [k for k in bill["kernels"] if k["counters"]["smsp__inst_executed.sum"] is not None]
    result = {"launches": bill["launches"], "kernels": len(bill["kernels"]), "counted": len(counted),
              "graph_launches": sum(k["graph_launches"] for k in bill["kernels"]), "ended": bill.get("ended"), "notes": bill["notes"],
              "most": [{n: k[n] for n in ("name", "launches", "graph_launches", "time_us", "bound", "band")} for k in bill["kernels"][:3]]}
    print(f"  {result['launches']} launches ({result['graph_launches']} in graphs) of {result['kernels']} kernels, {len(counted)} counted; "
          f"{result['ended']}; notes {result['notes']}")
    for k in result["most"]:
        print(f"    {k['name'][:50]:50} {k['launches']:5} launches {k['time_us']:10.1f} us  {k['bound']}, {k['band']}")
    return result


def times(at):
    """Kernel times against CUDA events of the program alone, and of the same process: ten launches between two events,
    since a pair costs 4 to 10 us. Where CUPTI takes times, kernels are some us apart."""
    def events(said):
        return {name: float(us) for name, us in re.findall(r"^(\S+) +([0-9.]+) us by events", said, re.M)}
    alone = events(run([f"{at}/mix", "times"], 30)[1])
    bill, said = sol(["--times", f"{at}/mix", "--", "times"], 30)
    same_process = events(said)
    rows = [{"kernel": k["name"].rpartition("::")[2], "launches": k["launches"], "sol_us": k["time_us"] / k["launches"]} for k in bill["kernels"]]
    for r in rows:
        r["events_us"], r["events_beside_us"] = alone[r["kernel"]], same_process[r["kernel"]]
        r["percent"] = 100 * (r["sol_us"] / r["events_us"] - 1)
        print(f"  {r['kernel']:14} {r['sol_us']:10.2f} us by sol profile --times, {r['events_us']:10.2f} by events of the program alone: "
              f"{r['percent']:+.2f}%; {r['events_beside_us']:.2f} in the same process")
    claim("times are within 3% of CUDA events", all(abs(r["percent"]) < 3 for r in rows))
    return rows


def within(result, what, names, most):
    """Whether these counters are known of every kernel, and differ by no more than so many percent."""
    rows = [r for r in result["counters"] if r["counter"] in names] if result else []
    return claim(what, rows and not result["unmatched"] and all(r.get("most_percent", 0) <= most for r in rows))


def counts_within(result, where):
    within(result, f"requests, sectors and instructions {where} equal ncu's", COUNTS, 0)
    within(result, f"wavefronts {where} are within 1% of ncu's", WAVEFRONTS, 1)


def against_ncu(at, name, options, arguments, again=False):
    ours, _ = sol([*options, f"{at}/mix", "--", *arguments], 40)
    metrics = [m for m, v in ours["kernels"][0]["counters"].items() if v is not None]
    program = [f"{at}/mix", *arguments]
    theirs = ncu(program, metrics, f"{at}/{name}.csv", 60)
    twice = ncu(program, [m for m in metrics if m in COUNTS + WAVEFRONTS + DRAM], f"{at}/{name}-again.csv", 40) if again else None
    result = compare(ours, theirs, twice)
    show(result)
    return result


def counters(at):
    """Every counter of every kernel of tests/profile/mix.cu, three launches each; ncu twice, to see what differs by itself."""
    result = against_ncu(at, "ours", [], [], True)
    counts_within(result, "of plain launches")
    within(result, "bytes read from DRAM are within 2% of ncu's", DRAM[:1], 2)
    return result


def graph(at):
    """Kernels in a CUDA graph."""
    result = against_ncu(at, "graph", [], ["graph"])
    counts_within(result, "of a graph")
    return result


def dram(at):
    """DRAM's counters alone: each launch is run once."""
    result = against_ncu(at, "dram", ["--dram"], [])
    within(result, "with --dram, bytes of DRAM are within 2% of ncu's", DRAM, 2)
    return result


def overhead(at):
    """10,000 launches alone and timed, by turns; ms of the launches."""
    rows = []
    for elements in (65536, 2097152, 4194304):
        program, took = [f"{at}/many", "10000", str(elements)], ([], [])
        for _ in range(5):
            for i, command in enumerate((program, [SOL, "profile", "--times", program[0], "--", *program[1:]])):
                _, out, err = run(command, 15)
                took[i].extend(float(ms) for ms in re.findall(r"launches: ([0-9.]+) ms", out + err))
        alone, timed = (statistics.median(t) for t in took)
        rows.append({"elements": elements, "alone_ms": sorted(took[0]), "timed_ms": sorted(took[1]), "median_percent": 100 * (timed / alone - 1),
                     "least_percent": 100 * (min(took[1]) / min(took[0]) - 1)})
        print(f"  {elements:8} elements: alone {alone:.2f} ms, under --times {timed:.2f} ms (medians of 5): {rows[-1]['median_percent']:+.1f}%, "
              f"of the least {rows[-1]['least_percent']:+.1f}%")
    claim("timing costs less than 5% where kernels take 7 us or more", all(r["median_percent"] < 5 for r in rows[1:]))
    return rows


def graphs(at):
    """Graphs of every kind compute under the profiler what they compute alone."""
    result = {}
    for name in ("graphs", "graphs_static"):
        alone = run([f"{at}/{name}"], 20)[1].strip()
        bill, said = sol(["--each", "2", f"{at}/{name}"], 40)
        print(f"  {name} alone: {alone}; under sol profile: {said.strip().rpartition(chr(10))[2]}")
        result[name] = brief(bill)
        claim(f"{name} computes the same under sol profile", alone == "all right" and "all right" in said and "wrong" not in said)
    bill, _ = sol(["--each", "2", SOL, "--", "bench", "rmsnorm", "--shape", "4096x4096", "--dtype", "bf16", "--quick"], 40)
    print("  sol bench rmsnorm --shape 4096x4096 --dtype bf16 --quick:")
    result["bench"] = brief(bill)
    claim("every kernel of sol bench is counted", bill and result["bench"]["counted"] == len(bill["kernels"]))
    return result


def torch_eager(at):
    """A PyTorch script, all of it counted, against ncu."""
    program = ["python3", os.path.join(PROFILE, "torch_mix.py"), "eager"]
    ours, _ = sol(["--launch-count", "100", program[0], "--", *program[1:]], 40)
    result = {"bill": brief(ours)}
    claim("every kernel of eager PyTorch is counted", ours and result["bill"]["counted"] == len(ours["kernels"]))
    result["beside_ncu"] = compare(ours, ncu(program, COUNTS + WAVEFRONTS, f"{at}/torch.csv", 60), short=True)
    show(result["beside_ncu"])
    counts_within(result["beside_ncu"], "of eager PyTorch")
    return result


def torch_compile(at):
    """The same, compiled."""
    ours, _ = sol(["--each", "1", "python3", "--", os.path.join(PROFILE, "torch_mix.py"), "compile"], 60)
    result = brief(ours)
    claim("every kernel of compiled PyTorch is counted", ours and result["counted"] == len(ours["kernels"]))
    return result


def forbidden(at):
    """Counters refused: by a CUPTI that reports so (tests/profile/forbid.c), and by the driver to a user without rights."""
    found = run(["bash", "-c", "ldconfig -p | sed -n 's/.*libcupti.so.13.* => //p'"], 10)[1].split()
    cupti = next((p for p in [*found, f"{HOME}/lib64/libcupti.so.13", f"{HOME}/extras/CUPTI/lib64/libcupti.so.13"] if os.path.exists(p)), "")
    code, _, err = run([os.environ.get("CC", "cc"), "-shared", "-fPIC", os.path.join(PROFILE, "forbid.c"), "-o", f"{at}/forbid.so",
                        "-Wl,--no-as-needed", cupti, f"-Wl,-rpath,{os.path.dirname(cupti)}"], 20)
    if code:
        print("  " + err)
    bill, said = sol([f"{at}/many", "--", "3", "4096"], 40, env={**os.environ, "SOL_CUPTI": f"{at}/forbid.so"})
    if not bill:
        print("  " + said[-600:])
    shim = {"notes": bill["notes"], "kernels": [[k["name"], k["launches"], k["time_us"]] for k in bill["kernels"]],
            "against": [[r["counter"], r["measured"], r["emulated"]] for a in bill.get("against", []) for r in a["counters"]][:8]} if bill else None
    print(f"  {shim}")
    claim("refused counters are told of, times are measured and counts emulated", shim and "forbidden" in str(shim["notes"]) and shim["against"])
    params = run(["grep", "RmProfilingAdminOnly", "/proc/driver/nvidia/params"], 5)[1].strip()
    result = {"shim": shim, "driver": params}
    print(f"  {params}")
    if os.getuid() == 0 and shutil.which("setpriv"):
        with tempfile.TemporaryDirectory(prefix="sol-user-") as open_to_all:  # the build may be where others cannot read
            os.chmod(open_to_all, 0o755)
            for path in (SOL, f"{at}/many"):
                shutil.copy(path, open_to_all)
            for folder in ("inject", "shim"):
                shutil.copytree(os.path.join(os.path.dirname(SOL), folder), os.path.join(open_to_all, folder))
            _, out, err = run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "./sol", "profile", "./many", "--", "3", "4096"],
                              40, cwd=open_to_all, env={**os.environ, "HOME": "/nonexistent", "TMPDIR": "/tmp"})
        result["user_without_rights"] = (out + err).splitlines()[:40]
        print("\n".join("  | " + line for line in result["user_without_rights"][:14]))
        claim("a user without rights gets a bill, or is told why not", "forbidden" in out + err or "add" in out)
    return result


STEPS = [times, counters, dram, graph, overhead, graphs, forbidden, torch_eager, torch_compile]


def build(at):
    children = [subprocess.Popen(["nvcc", "-arch=sm_90", "-lineinfo", os.path.join(PROFILE, how[0]), *how[1:], "-o", f"{at}/{name}"])
                for name, how in PROGRAMS.items()]
    return all([child.wait() == 0 for child in children])


def main():
    path, names = sys.argv[1], sys.argv[2:] or [s.__name__ for s in STEPS]
    start = time.time()
    results = load(path, machine("bench/profile_gpu.py"))
    with tempfile.TemporaryDirectory() as at:
        if not build(at):
            sys.exit("the programs do not compile")
        for step in STEPS:
            if step.__name__ not in names:
                continue
            print(f"\n== {step.__name__}: {step.__doc__} [{time.time() - start:.0f} s]", flush=True)
            before, held_before = time.time(), len(held)
            try:
                result = step(at)
            except Exception as e:  # the others are still worth their time
                result = {"failed": repr(e)}
                claim(f"{step.__name__} ran to its end ({e!r})", False)
            results.setdefault("steps", {})[step.__name__] = {"date": now(), "seconds": round(time.time() - before, 1), "claims": dict(held[held_before:]), "result": result}
            save(path, results)
    print(f"\n{sum(ok for _, ok in held)} of {len(held)} hold [{time.time() - start:.0f} s]")
    sys.exit(0 if all(ok for _, ok in held) else 1)


main()
