#!/usr/bin/env python3
"""Fits the constants of src/ops/gemm_rule.c's estimate, which all kernels share, to what bench/gemm_sweep.cpp measured.

Half of the shapes are fitted and the other half is only scored, then the other way around: how much slower what the estimate takes is than
the best plan that was timed, and its speed to cuBLAS's. Then the constants, fitted to all, and the kernels in the order in which they pay.

    python3 bench/gemm_fit.py sweep.jsonl...
"""

import json
import math
import re
import sys

SMS = 132
# Clusters of 1 to 8 blocks that run at a time, as gemm_sweep prints: one block to an SM, and two.
AT_A_TIME = {1: [132, 66, 39, 30, 22, 17, 15, 15], 2: [264, 132, 79, 62, 47, 39, 32, 30]}
FAR = 1.5  # plans that are so many times slower than the best do not count
START = {"mma_ghz": 1.61, "shared_rate": 144, "l2_rate": 93, "l2_one_rate": 108, "l2_more": 0.856, "empty_more": 0.0268, "step_ns": 3, "dram_tb": 3.76,
         "call_us": 3.13, "end_us": 1.99, "cluster_us": 0.373, "parts_us": 1.13, "sums_us": 0.478, "overlap": 5.5}


def ceil_div(a, b):
    return -(-a // b)


def kernels(path):
    """Blocks to an SM of each kernel of gemm.def."""
    text, out = "".join(line for line in open(path) if not line.startswith("//")), {}
    for rows, wide, stages, per_sm in re.findall(r"TILED\([^,]*, 0, 0, (\d+), (\d+), (\d+), (\d)\)", text):
        out[f"{rows}x{wide}x{stages}"] = int(per_sm)
    for wide, stages, per_sm in re.findall(r"SPLIT\([^,]*, 0, 0, (\d+), (\d+), (\d)\)", text):
        out[f"split_{wide}x{stages}"] = int(per_sm)
    return out


class Plan:
    """ "128x256x4/2x1", "split_64x4/3s" or "split_64x4/2x1x3"; s: the operands are swapped. Of a shape: all that the estimate takes from it."""

    def __init__(self, name, us, shape, per_sm):
        m, n, k = shape
        self.name, self.us, self.kernel = name, us, name.split("/")[0]
        way, swapped = name.split("/")[1].rstrip("s"), name.endswith("s")
        split, per_sm = self.kernel.startswith("split_"), per_sm[self.kernel]
        sizes = [int(x) for x in self.kernel.replace("split_", "128x").split("x")]
        self.rows, self.wide = sizes[:2]
        cluster = [int(x) for x in way.split("x")]
        self.parts = cluster.pop() if split else 1
        down, across = cluster or (1, 1)
        tiles = ceil_div(n if swapped else m, self.rows * down) * ceil_div(m if swapped else n, self.wide * across)
        size = down * across * self.parts
        at_a_time = AT_A_TIME[per_sm][size - 1]
        blocks = min(tiles, at_a_time) * size
        self.turns, self.busy = ceil_div(tiles, at_a_time), min(blocks, SMS) / SMS
        self.blocks, self.steps = per_sm if size > 1 else blocks / min(blocks, SMS), self.turns * ceil_div(ceil_div(k, 64), self.parts)
        self.more = next(x for bytes, x in ((128, 0), (64, 0.5), (32, 0.75), (1, 0.9)) if 2 * k % bytes == 0)
        self.shares, self.read = down * across > 1, 128 * (self.rows / across + self.wide / down)
        self.bytes = 2 * (m * k + n * k + m * n)
        self.empty = 1 - m * n / (tiles * down * across * self.rows * self.wide)

    def estimate(self, c):
        norm = lambda *x: sum(v ** c["overlap"] for v in x) ** (1 / c["overlap"])
        read = self.read * (1 + c["l2_more"] * self.more)
        step = self.blocks * norm(self.rows * self.wide / 32 / c["mma_ghz"], 128 * (self.rows + self.wide) / c["shared_rate"],
                                  read / c["l2_rate"] * self.busy, read / c["l2_one_rate"]) * (1 + c["empty_more"] * self.empty) + c["step_ns"]
        area = self.rows * self.wide
        sums = c["parts_us"] + c["sums_us"] * area / 16384 * (self.parts - 1) / self.parts if self.parts > 1 else 0
        return norm(self.steps * step * 1e-3, self.bytes / c["dram_tb"] * 1e-6) + c["call_us"] + c["cluster_us"] * self.shares + self.turns * (c["end_us"] * max(self.rows, 128) * self.wide / 32768 + sums)


class Row:
    def __init__(self, measured, per_sm):
        self.shape = measured["m"], measured["n"], measured["k"] * measured.get("bytes", 2) // 2  # fp8: as bf16 of half the k
        self.cublas, self.copy = measured["cublas"], measured["copy"]
        self.plans = [Plan(name, us, self.shape, per_sm) for name, us in measured["us"].items() if name.split("/")[0] in per_sm]
        self.best = min(p.us for p in self.plans)

    def taken(self, constants):
        return min(self.plans, key=lambda p: p.estimate(constants))


def loss(plans, constants):
    """Of the logarithms, what is far off counts less; a little more where it takes one that is slower than it says."""
    total = 0
    for p in plans:
        off = math.log(p.estimate(constants) / p.us)
        total += min(abs(off), 0.5) * (1.3 if off < 0 else 1)
    return total / len(plans)


def fit(rows, constants, rounds=24):
    """One constant at a time, by steps that grow while they help."""
    plans = [p for r in rows for p in r.plans if p.us < FAR * r.best]
    constants, by = dict(constants), {name: 0.15 for name in constants}
    least = loss(plans, constants)
    for _ in range(rounds):
        for name in constants:
            for factor in (1 + by[name], 1 / (1 + by[name])):
                tried = {**constants, name: constants[name] * factor}
                found = loss(plans, tried)
                if found < least:
                    least, constants, by[name] = found, tried, by[name] * 1.3
                    break
            else:
                by[name] *= 0.5
    return constants


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def score(what, rows, constants, show=0):
    rated = sorted(((r.taken(constants).us / r.best, r.cublas / r.taken(constants).us, r.cublas / r.best, r) for r in rows), key=lambda x: -x[0])
    print(f"{what}: taken {mean([x[0] for x in rated]):.3f} times the best plan's time, at most {rated[0][0]:.2f}; to cuBLAS "
          f"{mean([x[1] for x in rated]):.3f}, least {min(x[1] for x in rated):.3f}; the best plans {mean([x[2] for x in rated]):.3f}, least "
          f"{min(x[2] for x in rated):.3f}")
    for off, ratio, best, r in rated[:show]:
        p = r.taken(constants)
        print(f"  {'x'.join(map(str, r.shape)):>18} {ratio:.3f}, the best {best:.3f}; taken {p.name} {p.us} us (estimated {p.estimate(constants):.1f}), "
              f"best {min(r.plans, key=lambda p: p.us).name} {r.best}")


def order(rows, most=20):
    """Kernels, each the one that with those before it takes least."""
    times = {}
    for i, r in enumerate(rows):
        for p in r.plans:
            of = times.setdefault(p.kernel, {})
            of[i] = min(p.us, of.get(i, 1e9))
    cost = lambda chosen: sum(math.log(min(times[k].get(i, 1e6) for k in chosen)) for i in range(len(rows))) / len(rows)
    chosen, all = [], cost(list(times))
    while len(chosen) < min(most, len(times)):
        chosen.append(min((k for k in times if k not in chosen), key=lambda k: cost(chosen + [k])))
        print(f"  {chosen[-1]:<16} with those before {math.exp(cost(chosen) - all):.4f} times the time of all")


def main():
    per_sm = kernels(sys.path[0] + "/../kernels/gemm/gemm.def")
    rows = [Row(json.loads(line), per_sm) for path in sys.argv[1:] for line in open(path) if line.strip().endswith("}}")]
    rows = [r for r in rows if r.shape[0] > 16]
    for first, second in ((0, 1), (1, 0)):
        constants = fit(rows[first::2], START)
        score("the half that was fitted", rows[first::2], constants)
        score("the half that is scored", rows[second::2], constants)
    constants = fit(rows, START)
    score("all", rows, constants, 16)
    print(", ".join(f"{name} = {value:.3g}" for name, value in constants.items()))
    print("kernels, each the one that pays most:")
    order(rows)


if __name__ == "__main__":
    main()
