#!/usr/bin/env python3
"""`sol profile` over public CUDA programs on this machine's GPU, and the first launches of each one against ncu.
Their sources are not part of this repository: check them out, and say where.
usage: profile_public.py OUT.json [samples=DIR[@COMMIT]] [llm.c=...] [PolyBench-ACC=...] [HeCBench=...] [seconds=N] [only=NAME,...]
Prints a line per program; OUT.json has the table, written anew after each; others that are in it stay. SOL names another build's tool. Needs nvcc and ncu."""
import concurrent.futures
import os
import sys
import tempfile
import time

from profile_compare import COUNTS, WAVEFRONTS, compare, load, machine, ncu, now, run, save, sol, toolkit

FIRST = 6  # launches that are compared with ncu's
FLAGS = ["-O3", "-std=c++17", "-arch=sm_90", "-w"]
LLMC = ["--use_fast_math", "-lcublas", "-lcublasLt"]
POLY = ["-ICUDA/utilities", "-DcudaThreadSynchronize=cudaDeviceSynchronize"]
# name, from, sources, flags, arguments
PROGRAMS = [
    ("jacobiCudaGraphs", "samples", "Samples/3_CUDA_Features/jacobiCudaGraphs/*.c*", ["-ICommon"], []),
    ("simpleCudaGraphs", "samples", "Samples/3_CUDA_Features/simpleCudaGraphs/*.cu", ["-ICommon"], []),
    ("transpose", "samples", "Samples/6_Performance/transpose/*.cu", ["-ICommon"], []),
    ("layernorm_forward", "llm.c", "dev/cuda/layernorm_forward.cu", LLMC, ["3"]),
    ("softmax", "HeCBench", "src/softmax-cuda/main.cu", [], ["100000", "784", "1", "50"]),
    ("atax", "PolyBench-ACC", "CUDA/linear-algebra/kernels/atax/atax.cu", POLY, []),
    ("matrixMul", "samples", "Samples/0_Introduction/matrixMul/*.cu", ["-ICommon"], []),
    ("mergeSort", "samples", "Samples/0_Introduction/mergeSort/*.c*", ["-ICommon"], []),
    ("histogram", "samples", "Samples/2_Concepts_and_Techniques/histogram/*.c*", ["-ICommon"], []),
    ("residual_forward", "llm.c", "dev/cuda/residual_forward.cu", LLMC, ["1"]),
    ("gelu_forward", "llm.c", "dev/cuda/gelu_forward.cu", LLMC, ["1"]),
    ("adam", "HeCBench", "src/adam-cuda/main.cu", [], ["100000", "20", "20"]),
    ("scan", "samples", "Samples/2_Concepts_and_Techniques/scan/*.c*", ["-ICommon"], []),
    ("fastWalshTransform", "samples", "Samples/5_Domain_Specific/fastWalshTransform/*.{cu,cpp}", ["-ICommon"], []),
]


def build(program, where, folder):
    name, origin, sources, flags, _ = program
    command = f"nvcc {' '.join(FLAGS)} {sources} {' '.join(flags)} -o {folder}/{name}"
    return run(["bash", "-c", command], 120, cwd=where[origin])


def one(program, folder):
    name, origin, _, _, arguments = program
    row = {"program": name, "from": origin, "arguments": " ".join(arguments), "date": now()}
    bill, said = sol(["--each", "1", f"./{name}", "--", *arguments], 40, cwd=folder)
    if not bill:
        row["failed"] = said[-300:]
        return row
    top = bill["kernels"][0]
    row.update(launches=bill["launches"], kernels=len(bill["kernels"]),
               graph_launches=sum(k["graph_launches"] for k in bill["kernels"]), ended=bill["ended"], notes=bill["notes"],
               top={k: top[k] for k in ("name", "grid", "block", "launches", "time_us", "share", "bound", "band", "roof_share",
                                        "load_sectors_per_request", "store_sectors_per_request")})
    ours, _ = sol(["--launch-count", str(FIRST), f"./{name}", "--", *arguments], 30, cwd=folder)
    theirs = ncu([f"./{name}", *arguments], COUNTS + WAVEFRONTS, os.path.join(folder, name + ".csv"), 30, ["-c", str(FIRST), "--kill", "yes"], folder)
    row["beside_ncu"] = compare(ours, theirs)
    row["equal"] = bool(row["beside_ncu"]) and not row["beside_ncu"]["unmatched"] and not different(row["beside_ncu"], COUNTS)
    return row


def different(comparison, names):
    return [f"{r['counter']} {r['most_percent']:.3f}% ({r['where']})" for r in comparison["counters"] if "where" in r and r["counter"] in names]


def line(row):
    if "failed" in row:
        return "failed: " + row["failed"].strip().replace("\n", " ")
    top, comparison = row["top"], row["beside_ncu"]
    off = [*comparison["unmatched"], *different(comparison, COUNTS)] if comparison else ["ncu: no answer"]
    same = "; ".join(off) or f"requests, sectors and instructions of {comparison['kernels_in_both']} kernels equal ncu's"
    if comparison:
        same += "".join("; " + text for text in different(comparison, WAVEFRONTS))
    return (f"{row['ended']}, {row['launches']} launches ({row['graph_launches']} in graphs) of {row['kernels']} kernels; "
            f"{top['name'][-40:]} {100 * top['share']:.0f}%, {top['bound']}, {top['band']}; first launches: {same}")


def main():
    where, commits, limit, only = {}, {}, 600.0, None
    for argument in sys.argv[2:]:
        key, _, value = argument.partition("=")
        if key == "seconds":
            limit = float(value)
        elif key == "only":
            only = value.split(",")
        else:
            folder, _, commits[key] = value.partition("@")
            where[key] = os.path.abspath(folder)
    toolkit()
    start = time.time()
    results = load(sys.argv[1], {**machine("bench/profile_public.py"), "first_launches": FIRST, "commits": commits})
    rows = {row["program"]: row for row in results.get("programs", [])}
    todo = [p for p in PROGRAMS if p[1] in where and (not only or p[0] in only)]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor() as pool:
        built = list(pool.map(lambda p: build(p, where, folder), todo))
        for program, (code, _, err) in zip(todo, built):
            if code or time.time() - start > limit:
                print(f"{program[0]:18} {'does not compile: ' + err.strip()[-300:] if code else 'no time'}", flush=True)
                continue
            row = one(program, folder)
            rows[row["program"]] = row
            results["programs"] = list(rows.values())
            save(sys.argv[1], results)
            print(f"{row['program']:18} {line(row)} [{time.time() - start:.0f} s]", flush=True)


if __name__ == "__main__":
    main()
