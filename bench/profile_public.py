#!/usr/bin/env python3
"""`sol profile` over public CUDA programs on this machine's GPU, and the first launch of each one's longest kernel beside
ncu's. Their sources are not part of this repository: check them out, and say where.
usage: profile_public.py OUT.json [samples=DIR] [llm.c=DIR] [PolyBench-ACC=DIR] [HeCBench=DIR] [seconds=N]
Prints a line per program; OUT.json has the table. SOL names another build's tool. Needs nvcc and ncu."""
import concurrent.futures
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import time

FLAGS = ["-O3", "-std=c++17", "-arch=sm_90", "-w"]
LLMC = ["--use_fast_math", "-lcublas", "-lcublasLt"]
# name, from, sources, flags, arguments
PROGRAMS = [
    ("jacobiCudaGraphs", "samples", "Samples/3_CUDA_Features/jacobiCudaGraphs/*.c*", ["-ICommon"], []),
    ("simpleCudaGraphs", "samples", "Samples/3_CUDA_Features/simpleCudaGraphs/*.cu", ["-ICommon"], []),
    ("transpose", "samples", "Samples/6_Performance/transpose/*.cu", ["-ICommon"], []),
    ("matrixMul", "samples", "Samples/0_Introduction/matrixMul/*.cu", ["-ICommon"], []),
    ("mergeSort", "samples", "Samples/0_Introduction/mergeSort/*.c*", ["-ICommon"], []),
    ("histogram", "samples", "Samples/2_Concepts_and_Techniques/histogram/*.c*", ["-ICommon"], []),
    ("residual_forward", "llm.c", "dev/cuda/residual_forward.cu", LLMC, ["1"]),
    ("gelu_forward", "llm.c", "dev/cuda/gelu_forward.cu", LLMC, ["1"]),
    ("layernorm_forward", "llm.c", "dev/cuda/layernorm_forward.cu", LLMC, ["3"]),
    ("softmax_forward", "llm.c", "dev/cuda/softmax_forward.cu", LLMC, ["4"]),
    ("atax", "PolyBench-ACC", "CUDA/linear-algebra/kernels/atax/atax.cu",
     ["-ICUDA/utilities", "-DcudaThreadSynchronize=cudaDeviceSynchronize"], []),
    ("adam", "HeCBench", "src/adam-cuda/main.cu", [], ["100000", "20", "20"]),
    ("softmax", "HeCBench", "src/softmax-cuda/main.cu", [], ["100000", "784", "1", "50"]),
]
COUNTS = ["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
          "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
          "smsp__inst_executed.sum"]
SOL = os.path.abspath(os.environ.get("SOL", "build/sol"))


def run(command, limit, cwd):
    try:
        done = subprocess.run(command, cwd=cwd, timeout=limit, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return 124, "", ""


def build(program, where, folder):
    name, origin, sources, flags, _ = program
    command = f"nvcc {' '.join(FLAGS)} {sources} {' '.join(flags)} -o {folder}/{name}"
    return run(["bash", "-c", command], 120, where[origin])


def base(name):
    return name.partition("<")[0].rsplit("::", 1)[-1]


def sol(program, folder, options):
    name, _, _, _, arguments = program
    code, out, _ = run([SOL, "profile", "--json", "--seconds", "40", *options, f"./{name}", "--", *arguments], 60, folder)
    return code, json.loads(out) if out.startswith("{") else None


def ncu(program, folder, kernel):
    name, _, _, _, arguments = program
    log = os.path.join(folder, name + ".csv")
    run(["ncu", "--clock-control", "none", "--graph-profiling", "node", "--csv", "--page", "raw", "--print-units", "base",
         "-k", kernel, "-c", "1", "--metrics", ",".join(COUNTS), "--log-file", log, f"./{name}", *arguments], 60, folder)
    rows = [r for r in csv.reader(io.StringIO("".join(line for line in open(log) if line.startswith('"'))))]
    return {c: float(rows[2][rows[0].index(c)].replace(",", "")) for c in COUNTS} if len(rows) > 2 else None


def one(program, folder):
    name, origin, _, _, arguments = program
    code, bill = sol(program, folder, [])
    row = {"program": name, "from": origin, "arguments": " ".join(arguments), "exit_code": code}
    if not bill:
        return row
    top = bill["kernels"][0]
    row.update(launches=bill["launches"], kernels=len(bill["kernels"]),
               graph_launches=sum(k["graph_launches"] for k in bill["kernels"]), ended=bill["ended"], notes=bill["notes"],
               top={k: top[k] for k in ("name", "grid", "block", "launches", "time_us", "share", "bound", "band", "roof_share")})
    _, first = sol(program, folder, ["--kernel", base(top["name"]), "--launch-count", "1"])
    theirs = ncu(program, folder, base(top["name"]))
    if first and theirs:
        ours = {c: first["kernels"][0]["counters"][c] for c in COUNTS}
        row["first_launch"] = {"ours": ours, "ncu": theirs, "equal": ours == theirs}
    return row


def main():
    where, limit = {}, 600.0
    for argument in sys.argv[2:]:
        key, _, value = argument.partition("=")
        if key == "seconds":
            limit = float(value)
        else:
            where[key] = os.path.abspath(value)
    start = time.time()
    todo = [p for p in PROGRAMS if p[1] in where]
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            built = list(pool.map(lambda p: build(p, where, folder), todo))
        table = []
        for program, (code, _, err) in zip(todo, built):
            if code or time.time() - start > limit:
                print(f"{program[0]:18} {'does not compile: ' + err.strip()[-100:] if code else 'no time'}", flush=True)
                continue
            row = one(program, folder)
            table.append(row)
            top, first = row.get("top"), row.get("first_launch")
            print(f"{row['program']:18} exit {row['exit_code']}", end="")
            if top:
                print(f", {row['launches']} launches ({row['graph_launches']} in graphs) of {row['kernels']} kernels; "
                      f"{top['name'][-40:]} {100 * top['share']:.0f}%, {top['bound']}, {top['band']}; "
                      f"first launch {'equals ncu' if first and first['equal'] else first}", end="")
            print(f" [{time.time() - start:.0f} s]", flush=True)
        with open(sys.argv[1], "w") as f:
            json.dump({"command": "bench/profile_public.py", "programs": table}, f, indent=1)


main()
