#!/usr/bin/env python3
"""Two answers of `sol profile --json` beside each other, kernel by kernel and counter by counter: our own counters
and those of ncu's CSV (--import), say. usage: profile_compare.py OURS.json NCU.json
Prints a line per counter: on how many kernels the two are equal, and where they differ most."""
import json
import sys


def base(name):
    """ncu leaves namespaces out: "mix::transpose<0>" is "transpose<0>"."""
    head, angle, rest = name.partition("<")
    return head.rsplit("::", 1)[-1] + angle + rest


def kernels(path):
    with open(path) as f:
        return {(base(k["name"]), k["grid"], k["block"]): k for k in json.load(f)["kernels"]}


ours, theirs = kernels(sys.argv[1]), kernels(sys.argv[2])
both = [k for k in ours if k in theirs]
print(f"{len(both)} kernels in both, {len(ours) - len(both)} only in the first, {len(theirs) - len(both)} only in the second")
names = sorted({n for k in both for n in ours[k]["counters"]})
for name in names:
    equal, known, worst, where = 0, 0, 0.0, ""
    for key in both:
        a, b = ours[key], theirs[key]
        # sums are of all launches: of one launch each
        per_a, per_b = (1, 1) if name.endswith((".ratio", ".pct")) or ".pct_of" in name else (a["launches"], b["launches"])
        x, y = a["counters"].get(name), b["counters"].get(name)
        if x is None or y is None:
            continue
        known += 1
        x, y = x / per_a, y / per_b
        off = abs(x - y) / max(abs(y), 1e-9) if x != y else 0.0
        equal += off == 0
        if off > worst:
            worst, where = off, f"{key[0]}: {x:.10g} and {y:.10g}"
    print(f"{name:75} equal {equal}/{known}" + (f", most {100 * worst:.2f}% ({where})" if worst else ""))
