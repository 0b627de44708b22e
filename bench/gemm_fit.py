#!/usr/bin/env python3
"""Fits the table of src/ops/gemm_rule.c to what bench/gemm_sweep.cpp measured: of each kernel what a step, a step's lines that lie across
two, a tile's end and a call take.

Half of the shapes are fitted and the other half is only scored, then the other way around: how much slower what the estimate takes is than
the best kernel, and its speed to cuBLAS's. Then the table, fitted to all, and the kernels in the order in which they pay.

    python3 bench/gemm_fit.py sweep.jsonl [KERNEL...]    # of these kernels alone, such as 1x256x4_2x1 or split_64x4
"""

import json
import math
import re
import sys

SMS = 132
# Clusters of 1 to 8 blocks that run at a time, as gemm_sweep prints: one block to an SM, and two.
AT_A_TIME = {1: [132, 66, 39, 30, 22, 17, 15, 15], 2: [264, 132, 79, 62, 47, 39, 32, 30]}
TWO_A_BLOCK = {(64, 4), (16, 6), (32, 5)}  # width and stages of kernels that run twice on an SM
FAR = 1.7  # plans that are so many times slower than the best do not count


def ceil_div(a, b):
    return -(-a // b)


def variant(plan):
    """The kernel of "2_00_1x256x4_2x1/1" or "2_00_split_64x4/3s"; s: the operands are swapped."""
    name, parts = plan.split("/")
    split = re.match(r"2_00_split_(\d+)x(\d+)$", name)
    if split:
        wide, stages = map(int, split.groups())
        tall, down, across = 1, 1, 1
    else:
        tall, wide, stages, down, across = map(int, re.match(r"2_00_(\d)x(\d+)x(\d)_(\d)x(\d)$", name).groups())
    return {"rows": 128 * tall, "wide": wide, "down": down, "across": across, "split": bool(split), "swapped": parts[-1] == "s",
            "per_sm": 2 if (wide, stages) in TWO_A_BLOCK else 1, "parts": int(parts.rstrip("s"))}


def counts(shape, v):
    """How often a plan takes each of its kernel's constants: steps, lines beyond one a row, ends of tiles, calls."""
    m, n, k = shape
    down, across = (n, m) if v["swapped"] else (m, n)
    size = v["down"] * v["across"] * v["parts"]
    tiles = ceil_div(down, v["rows"] * v["down"]) * ceil_div(across, v["wide"] * v["across"])
    at_a_time = AT_A_TIME[v["per_sm"]][size - 1]
    alone = tiles * size <= SMS  # an SM has one block at most, even of those that two fit of
    turns = ceil_div(tiles * (1 if alone else v["per_sm"]), at_a_time)
    steps = turns * ceil_div(ceil_div(k, 64), v["parts"])
    more = next(x for bytes, x in ((128, 0), (64, 0.5), (32, 0.75), (1, 0.9)) if 2 * k % bytes == 0)
    copied = tiles * ceil_div(k, 64) * 128 * (v["rows"] * v["down"] + v["wide"] * v["across"]) * (1 + 0.3 * more)
    return steps, steps * more, ceil_div(tiles, at_a_time), 1, copied


def memory(shape, copied=0):
    """DRAM's time, or that of copies from L2 into shared memory."""
    m, n, k = shape
    return 2.5 + max(2 * (m * k + n * k + m * n) / 4.3e6, copied / 8e6)


def estimate(shape, of, constants):
    time, light = sum(a * b for a, b in zip(of, constants)), memory(shape, of[-1])
    return max(time, light) + 0.3 * min(time, light)


class Row:
    def __init__(self, measured, only):
        self.shape = measured["m"], measured["n"], measured["k"]
        self.cublas, self.copy = measured["cublas"], measured["copy"]
        plans = {name: us for name, us in measured["us"].items() if not only or name.split("/")[0][5:] in only}
        self.plans = [(name.split("/")[0], name, counts(self.shape, variant(name)), us) for name, us in plans.items()]
        self.best = min(us for _, _, _, us in self.plans)

    def taken(self, table):
        return min((estimate(self.shape, of, table[kernel]), name, us) for kernel, name, of, us in self.plans)


def solve(rows, times, weights):
    """Least squares by the normal equations."""
    n = len(rows[0])
    m = [[sum(w * r[i] * r[j] for r, w in zip(rows, weights)) + (1e-9 if i == j else 0) for j in range(n)]
         + [sum(w * r[i] * t for r, t, w in zip(rows, times, weights))] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda j: abs(m[j][i]))
        m[i], m[pivot] = m[pivot], m[i]
        for j in range(n):
            if j != i:
                f = m[j][i] / m[i][i]
                m[j] = [a - f * b for a, b in zip(m[j], m[i])]
    return [m[i][n] / m[i][i] for i in range(n)]


def fit(rows):
    """Of each kernel four constants, by relative error; what is far off counts less."""
    table = {}
    for kernel in sorted({plan[0] for r in rows for plan in r.plans}):
        mine = [(of[:-1], us, us < FAR * r.best and us > 1.02 * memory(r.shape)) for r in rows for k, _, of, us in r.plans if k == kernel]
        near = [x for x in mine if x[2]]
        counted, times = zip(*((of, us) for of, us, _ in (near if len(near) > 7 else mine)))
        weights = [1 / t**2 for t in times]
        for _ in range(20):
            found = solve(counted, times, weights)
            weights = [1 / t**2 / (abs(sum(a * b for a, b in zip(of, found)) / t - 1) + 0.03) for of, t in zip(counted, times)]
        table[kernel] = found
    return table


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def score(what, rows, table, show=0):
    rated = sorted((r.taken(table)[2] / r.best, r.cublas / r.taken(table)[2], r.cublas / r.best, r.shape, r.taken(table)[1],
                    min((us, name) for _, name, _, us in r.plans)[1]) for r in rows)
    print(f"{what}: taken {mean([x[0] for x in rated]):.3f} times the best kernel's time; to cuBLAS {mean([x[1] for x in rated]):.3f}, least "
          f"{min(x[1] for x in rated):.3f}; the best kernels {mean([x[2] for x in rated]):.3f}, least {min(x[2] for x in rated):.3f}")
    for off, ratio, best, shape, name, better in rated[::-1][:show]:
        print(f"  {'x'.join(map(str, shape)):>18} {ratio:.3f}, the best {best:.3f}; taken {name}, best {better}")


def order(rows, most=16):
    """Kernels, each the one that with those before it takes least."""
    times = {}
    for i, r in enumerate(rows):
        for kernel, _, _, us in r.plans:
            of = times.setdefault(kernel, {})
            of[i] = min(us, of.get(i, 1e9))
    cost = lambda chosen: sum(math.log(min(times[k].get(i, 1e6) for k in chosen)) for i in range(len(rows))) / len(rows)
    chosen, all = [], cost(list(times))
    while len(chosen) < min(most, len(times)):
        chosen.append(min((k for k in times if k not in chosen), key=lambda k: cost(chosen + [k])))
        print(f"  {chosen[-1]:<24} with those before {math.exp(cost(chosen) - all):.4f} times the time of all")


def main():
    rows = [Row(json.loads(line), sys.argv[2:]) for line in open(sys.argv[1]) if line.strip().endswith("}}")]
    many = [r for r in rows if r.shape[0] > 16]
    for first, second in ((0, 1), (1, 0)):
        table = fit(many[first::2])
        score("the half that was fitted", many[first::2], table)
        score("the half that is scored", many[second::2], table)
    table = fit(many)
    score("all", many, table, 16)
    for kernel, (step, more, end, call) in table.items():
        v = variant(kernel + "/1")
        print(f"    {{{v['wide']}, {v['down']}, {v['across']}, {str(v['split']).lower()}, "
              f"{step * 1e3:.0f}, {more * 1e3:.0f}, {end:.2f}, {call:.2f}}},")
    print("kernels, each the one that pays most:")
    order(many)
    for r in rows:
        if r.copy:
            us, name = min((us, name) for _, name, _, us in r.plans)
            print(f"  {'x'.join(map(str, r.shape)):>18} {us:8.2f} us {name}, {us / r.copy:.3f} of a copy's time, to cuBLAS {r.cublas / us:.3f}")


if __name__ == "__main__":
    main()
