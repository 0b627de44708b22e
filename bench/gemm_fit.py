#!/usr/bin/env python3
"""Fits the constants of the estimate in src/ops/gemm_rule.c to what bench/gemm_sweep.cpp measured.

Half of the shapes are fitted, the other half is only scored: how much slower what the estimate takes is than the best kernel, and
its speed to cuBLAS's. Then the kernels in the order in which they pay, and the few rows beside a copy.

    python3 bench/gemm_fit.py sweep.jsonl
"""

import json
import math
import random
import re
import sys

# As in gemm_rule.c; LINES: of rows that are multiples of 64, 32 and 16 bytes apart.
NAMES = ("clock_ghz clock_less line_ns line_more lines_64 lines_32 lines_16 tile_us tile_area_us split_us split_area_us few_us call_us "
         "memory_us memory_tb").split()
START = [1.6, 0.22, 1.08, 0.49, 1.5, 1.75, 1.9, 0.2, 1.8, 0.8, 2.6, 0.5, 2.2, 2.5, 4.3]
SMS = 132
TWO_A_BLOCK = {(64, 4), (128, 3), (16, 6), (32, 5)}  # width and stages of kernels that run twice on an SM


def ceil_div(a, b):
    return -(-a // b)


def variant(plan):
    """The kernel of "2_00_1x256x4_2x1/1" or "2_00_split_64x4_1/3"."""
    name, parts = plan.split("/")
    split = re.match(r"2_00_split_(\d+)x(\d+)_(\d)$", name)
    if split:
        wide, stages, swapped = map(int, split.groups())
        tall, down, across = 1, 1, 1
    else:
        tall, wide, stages, down, across = map(int, re.match(r"2_00_(\d)x(\d+)x(\d)_(\d)x(\d)$", name).groups())
        swapped = 0
    return {"rows": 128 * tall, "wide": wide, "down": down, "across": across, "split": bool(split), "swapped": swapped,
            "per_sm": 2 if (wide, stages) in TWO_A_BLOCK else 1, "parts": int(parts)}


def clusters(size, per_sm):
    blocks, each = SMS * per_sm, 16 * per_sm
    return blocks // size if size <= 2 else blocks // each * (each // size)


def estimate(shape, v, p):
    m, n, k = shape
    down, across = (n, m) if v["swapped"] else (m, n)
    size = v["down"] * v["across"] * v["parts"]
    tiles = ceil_div(down, v["rows"] * v["down"]) * ceil_div(across, v["wide"] * v["across"])
    at_a_time = clusters(size, v["per_sm"])
    waves, turns = ceil_div(tiles, at_a_time), ceil_div(tiles * v["per_sm"], at_a_time)
    lines = next(p[name] if name else 1 for bytes, name in ((128, ""), (64, "lines_64"), (32, "lines_32"), (1, "lines_16"))
                 if 2 * k % bytes == 0)
    clock = p["clock_ghz"] - p["clock_less"] * min(1, 2 * m * n * k / 2e11)
    load = (v["rows"] / v["across"] + v["wide"] / v["down"]) * lines
    load *= p["line_ns"] + p["line_more"] * max(0, 2 * min(1, tiles * size / SMS) - 1)
    step = max(v["rows"] * v["wide"] * 64 / 2048 / clock, load) * 1e-3
    area = v["rows"] * v["wide"] / 32768
    end = p["tile_us"] + p["tile_area_us"] * area
    if v["split"]:
        end = p["few_us" if v["swapped"] else "split_us"] + p["split_area_us"] * area
    time = p["call_us"] + turns * ceil_div(ceil_div(k, 64), v["parts"]) * step + waves * end
    memory = p["memory_us"] + 2 * (m * k + n * k + m * n) / (p["memory_tb"] * 1e6)
    return max(time, memory) + 0.1 * min(time, memory)


class Row:
    def __init__(self, measured):
        self.shape = measured["m"], measured["n"], measured["k"]
        self.cublas, self.copy = measured["cublas"], measured["copy"]
        self.plans = [(name, variant(name), us) for name, us in measured["us"].items()]
        self.best = min(us for _, _, us in self.plans)

    def taken(self, p):
        return min((estimate(self.shape, v, p), name, us) for name, v, us in self.plans)


def error(rows, p):
    """The mean square of the logarithm, over what is not far from the best."""
    all = [math.log(estimate(r.shape, v, p) / us) ** 2 for r in rows for _, v, us in r.plans if us < 1.6 * r.best]
    return sum(all) / len(all)


def regret(rows, p):
    return sum(math.log(r.taken(p)[2] / r.best) for r in rows) / len(rows)


def search(p, cost, tries, spread, seed):
    draw, least = random.Random(seed), cost(p)
    for _ in range(tries):
        other = {name: x * math.exp(draw.gauss(0, spread)) if draw.random() < 0.3 else x for name, x in p.items()}
        found = cost(other)
        if found < least:
            p, least = other, found
    return p


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def score(what, rows, p):
    ratios = sorted((r.cublas / r.taken(p)[2], r.cublas / r.best, r.shape, r.taken(p)[1]) for r in rows)
    print(f"{what}: taken {math.exp(regret(rows, p)):.3f} times the best kernel's time; to cuBLAS {mean([x[0] for x in ratios]):.3f}, least "
          f"{ratios[0][0]:.3f}; the best kernels {mean([x[1] for x in ratios]):.3f}, least {min(x[1] for x in ratios):.3f}; "
          f"estimates off by {math.sqrt(error(rows, p)):.3f}")
    for ratio, best, shape, name in ratios[:8]:
        print(f"  {'x'.join(map(str, shape)):>18} {ratio:.3f}, the best {best:.3f}; taken {name}")


def order(rows, most=14):
    """Kernels, each the one that with those before it takes least."""
    times = {}
    for i, r in enumerate(rows):
        for name, _, us in r.plans:
            of = times.setdefault(name.split("/")[0], {})
            of[i] = min(us, of.get(i, 1e9))
    cost = lambda chosen: sum(math.log(min(times[k].get(i, 1e6) for k in chosen)) for i in range(len(rows))) / len(rows)
    chosen, all = [], cost(list(times))
    while len(chosen) < min(most, len(times)):
        chosen.append(min((k for k in times if k not in chosen), key=lambda k: cost(chosen + [k])))
        print(f"  {chosen[-1]:<24} with those before {math.exp(cost(chosen) - all):.4f} times the time of all")


def main():
    rows = [Row(json.loads(line)) for line in open(sys.argv[1]) if line.strip().endswith("}}")]
    many = [r for r in rows if r.shape[0] > 16]
    fitted, scored, p = many[::2], many[1::2], dict(zip(NAMES, START))
    score("before, the half that is scored", scored, p)
    p = search(p, lambda q: error(fitted, q), 1500, 0.15, 1)
    p = search(p, lambda q: error(fitted, q), 1500, 0.05, 2)
    p = search(p, lambda q: regret(fitted, q) + 0.3 * error(fitted, q), 2000, 0.06, 3)
    print(", ".join(f"{name} = {x:.3g}" for name, x in p.items()))
    score("the half that was fitted", fitted, p)
    score("the half that is scored", scored, p)
    print("kernels, each the one that pays most:")
    order(many)
    for r in rows:
        if r.copy:
            name = min((us, name) for name, _, us in r.plans)[1]
            print(f"  {'x'.join(map(str, r.shape)):>18} {r.best:8.2f} us {name}, {r.best / r.copy:.3f} of a copy's time, to cuBLAS {r.cublas / r.best:.3f}")


if __name__ == "__main__":
    main()
