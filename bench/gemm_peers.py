#!/usr/bin/env python3
"""sol_gemm, with the library's own choice of kernel, against torch.matmul (cuBLAS), in one process on the same buffers.

A lies by rows, B by columns, as a model's weights do. Calls are captured into CUDA graphs over several sets of A, B and C
(400 MB at least), which are replayed by turns; the median of the rounds counts. Results are held against torch in fp32
first. Shapes: those of models, and random ones, drawn from --seed, that nobody has looked at before; and few rows, as in
decoding, where the bytes a second count: the time of a copy that moves as many is beside it. fp8: against torch._scaled_mm
with fast accumulation; sizes are rounded to the multiples of 16 that it takes. Weights of 8 and 4 bits: against torch with 16.

    make && python3 bench/gemm_peers.py --seed 20261116 --json gemm-peers.json
    python3 bench/gemm_peers.py --dtype fp8 --seed 20261116 --json gemm-peers-fp8.json
"""

import argparse
import datetime
import json
import math
import os
import random
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import torch  # noqa: E402
from sol_c import Sol  # noqa: E402

HIDDEN = [(4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (8192, 28672)]
MODEL = [(m, n, k) for n, k in HIDDEN for m in (128, 512, 2048, 4096, 8192)]
FEW = [(m, n, k) for n, k in HIDDEN for m in (1, 8, 16)]


def random_shapes(seed, count=30):
    """Sizes over three decades; K and N are multiples of 8, or a third of the time of 64."""
    draw, out = random.Random(seed), []
    while len(out) < count:
        m = int(2 ** draw.uniform(5, 13.5))
        n, k = (int(2 ** draw.uniform(8, 14)) // s * s or s for s in (draw.choice((8, 8, 64)),) * 2)
        if 2e9 < 2.0 * m * n * k < 4e12:
            out.append((m, n, k))
    return out


class Case:
    def __init__(self, sol, m, n, k, fp8):
        if fp8:
            n, k = (max(16, x // 16 * 16) for x in (n, k))
        self.sol, self.shape, self.fp8 = sol, (m, n, k), fp8
        size, dtype = (1, torch.float8_e4m3fn) if fp8 else (2, torch.bfloat16)
        self.bytes = size * (m * k + n * k) + 2 * m * n
        sets = max(2, min(32, math.ceil(400e6 / self.bytes)))
        make = lambda *size, dtype=dtype: [torch.randn(*size, device="cuda").to(dtype) for _ in range(sets)]
        self.a, self.b, self.c = make(m, k), make(n, k), make(m, n, dtype=torch.bfloat16)
        self.one = torch.ones((), device="cuda")
        kind = sol.SOL_FP8 if fp8 else sol.SOL_BF16
        self.args = [
            sol.struct("SolGemm", c=c.data_ptr(), a=a.data_ptr(), b=b.data_ptr(), m=m, n=n, k=k, dtype=kind, b_columns=1)
            for a, b, c in zip(self.a, self.b, self.c)
        ]
        self.make_copy()

    def make_copy(self):
        half = self.bytes // 1024 * 512  # so that both halves are aligned: otherwise torch copies more slowly
        self.bulk = torch.empty(max(2 * half, 400_000_000), dtype=torch.uint8, device="cuda")
        self.halves = [self.bulk[i * half : (i + 1) * half] for i in range(self.bulk.numel() // half)]

    def ours(self, i):
        self.sol.call("sol_gemm", self.args[i % len(self.args)], torch.cuda.current_stream().cuda_stream)

    def theirs(self, i):
        i %= len(self.a)
        if self.fp8:
            torch._scaled_mm(self.a[i], self.b[i].t(), scale_a=self.one, scale_b=self.one, out_dtype=torch.bfloat16,
                             use_fast_accum=True)
        else:
            torch.matmul(self.a[i], self.b[i].t(), out=self.c[i])

    def copy(self, i):
        i = 2 * i % (len(self.halves) - 1)
        self.halves[i].copy_(self.halves[i + 1])

    def weights(self):
        return self.b[0].float()

    def check(self):
        rows = min(self.shape[0], 256)
        self.c[0].fill_(float("nan"))
        self.ours(0)
        want = self.a[0][-rows:].float() @ self.weights().t()
        got = self.c[0].float()
        if torch.isnan(got).any():
            return math.inf
        return ((got[-rows:] - want).norm() / want.norm()).item()


class Weights(Case):
    """Few rows of bf16 by weights of 8 or 4 bits; torch multiplies weights of 16."""

    def __init__(self, sol, m, n, k, bits):
        self.sol, self.shape, self.fp8, self.bits = sol, (m, n, k), False, bits
        groups = (k + 127) // 128
        self.bytes = m * k * 2 + n * k * bits // 8 + m * n * 2 + (n * groups * 4 if bits == 4 else 0)
        sets = max(2, min(32, math.ceil(400e6 / self.bytes)))
        make = lambda *size: [torch.randn(*size, device="cuda").bfloat16() for _ in range(sets)]
        self.a, self.c = make(m, k), make(m, n)
        if bits == 8:
            self.packed = [torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn) for _ in range(sets)]
        else:
            self.packed = [torch.randint(0, 256, (n, k // 2), device="cuda", dtype=torch.uint8) for _ in range(sets)]
        self.scales = torch.rand(n, groups, device="cuda") + 0.5
        self.b = [torch.randn(n, k, device="cuda").bfloat16() for _ in range(2)]
        more = {"weights": 1} if bits == 8 else {"weights": 2, "b_scales": self.scales.data_ptr()}
        self.args = [
            sol.struct("SolGemm", c=c.data_ptr(), a=a.data_ptr(), b=b.data_ptr(), m=m, n=n, k=k, dtype=sol.SOL_BF16, b_columns=1, **more)
            for a, b, c in zip(self.a, self.packed, self.c)
        ]
        self.make_copy()

    def theirs(self, i):
        torch.matmul(self.a[i % len(self.a)], self.b[i % 2].t(), out=self.c[i % len(self.c)])

    def weights(self):
        n, k = self.shape[1:]
        if self.bits == 8:
            return self.packed[0].float()
        fours = torch.stack((self.packed[0] & 15, self.packed[0] >> 4), 2).reshape(n, k).float()
        return torch.where(fours > 7, fours - 16, fours) * self.scales.repeat_interleave(128, 1)[:, :k]


def captured(call, calls):
    for i in range(2):
        call(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(calls):
            call(i)
    graph.replay()
    return graph


def rounds(graphs, calls, count=7):
    """Microseconds a call of each graph, in turns."""
    times = [[] for _ in graphs]
    for turn in range(count):
        for graph, mine in zip(graphs, times):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            if turn:
                mine.append(start.elapsed_time(end) * 1000 / calls)
    return [statistics.median(t) for t in times]


def measure(sol, shape, few, fp8, bits):
    case = Weights(sol, *shape, bits) if bits else Case(sol, *shape, fp8)
    error, right = case.check(), 1e-2 if fp8 else 4e-3
    m, n, k = case.shape
    flops = 2.0 * m * n * k
    calls = max(len(case.a), min(40, int(3e-3 / max(flops / 6e14, case.bytes / 4e12))))
    graphs = [captured(call, calls) for call in [case.ours, case.theirs] + [case.copy] * few]
    ours, theirs, *copy = rounds(graphs, calls)
    row = {"shape": f"{m}x{n}x{k}", "us": round(ours, 2), "torch_us": round(theirs, 2), "to_torch": round(theirs / ours, 3),
           "tflops": round(flops / ours * 1e-6, 1), "gb_per_s": round(case.bytes / ours * 1e-3), "error": float(f"{error:.2g}")}
    what, beside = f"{row['tflops']:6.1f} TFLOP/s", ""
    if few:
        row["copy_us"], row["of_copy"] = round(copy[0], 2), round(ours / copy[0], 3)
        what, beside = f"{row['gb_per_s']:5d} GB/s", f", a copy {row['copy_us']:7.2f}: {row['of_copy']:.3f}"
    print(f"{row['shape']:>18} {what} {row['us']:9.2f} us, torch {row['torch_us']:9.2f}: {row['to_torch']:.3f}"
          + beside + ("" if error < right else f"  WRONG {error}"), flush=True)
    row["right"] = error < right
    return row


def this_run():
    """What a kept result says of its run."""
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True, check=False)
    names = [os.path.basename(a) if os.path.isabs(a) else a for a in sys.argv[1:]]
    return {"schema": 1, "gpu": torch.cuda.get_device_name(), "driver": driver.stdout.strip(), "date": datetime.date.today().isoformat(),
            "command": " ".join(["bench/" + os.path.basename(sys.argv[0]), *names])}


def main():
    p = argparse.ArgumentParser(description="sol_gemm against torch.matmul; see the top of this file.")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--lib", default=os.path.join(HERE, "..", "build", "libsol.so"))
    p.add_argument("--dtype", choices=("bf16", "fp8"), default="bf16")
    p.add_argument("--only", help="of model, random, few, few_fp8_weights, few_int4_weights, separated by commas")
    p.add_argument("--json")
    args = p.parse_args()
    sol, out = Sol(args.lib, trust_pointers=True), {**this_run(), "dtype": args.dtype, "seed": args.seed}
    fp8, sets = args.dtype == "fp8", [("model", MODEL, 0), ("random", random_shapes(args.seed), 0), ("few", FEW, 0)]
    sets += [] if fp8 else [("few_fp8_weights", FEW, 8), ("few_int4_weights", FEW, 4)]
    for name, shapes, bits in sets:
        if args.only and name not in args.only.split(","):
            continue
        print(f"{name}: sol_gemm, and how many times torch's speed")
        rows = out[name] = [measure(sol, s, "few" in name, fp8, bits) for s in shapes]
        ratios = [r["to_torch"] for r in rows]
        print(f"{name}: geometric mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}, most {max(ratios):.3f}")
        if "few" in name:
            print(f"{name}: of a copy's time at most {max(r['of_copy'] for r in rows):.3f}")
        if args.json:
            with open(args.json, "w") as f:
                json.dump(out, f, indent=1)
    return not all(r["right"] for name, _, _ in sets for r in out.get(name, ()))


if __name__ == "__main__":
    sys.exit(main())
