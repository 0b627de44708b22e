#!/usr/bin/env python3
"""Makes tests/data/h200-corpus.csv of what bench/corpus_gpu.py measured.
usage: corpus_table.py [--all] MEASURED.json... > tests/data/h200-corpus.csv
A row is a kernel in one launch shape. Kept are those that take 10 us to 10 ms as the program runs, at most eight kernels of a
program, taken by a hash of their names, and of each the four shapes that take longest. Sums are means of a launch, of the first
launches with cold caches (--all: every kernel, of 5 us and more); time_us is the mean over all launches as the program runs, cold_us the mean of those that were counted."""
import csv
import hashlib
import json
import sys

import corpus

KERNELS, SHAPES, LEAST_US, MOST_US = 8, 4, 10, 10000
WHO = ["collection", "program", "version", "kind", "arguments", "kernel", "grid", "block"]
RUN = ["launches", "time_us", "least_us", "most_us", "counted", "steady", "shapes", "check", "cold_us"]
SHAPE = ["registers", "static_shared", "dynamic_shared"]
COUNTS = ["dram_read", "dram_written", "gld_requests", "gld_sectors", "gst_requests", "gst_sectors", "gatom_requests", "gatom_sectors",
          "gred_requests", "gred_sectors", "lld_sectors", "lst_sectors", "sld_wavefronts", "sst_wavefronts",
          "sld_wavefronts_by_instruction", "sst_wavefronts_by_instruction", "texture_sectors", "warp_instructions",
          "thread_instructions", "issue_active", "sm_cycles_active", "cycles", "l1_hit_pct", "l2_hit_pct", "l2_sectors", "occupancy_pct"]
SAME = [c for c in COUNTS if c.endswith(("_requests", "_sectors")) and c[0] == "g"]  # what shows that launches do the same


def shapes(run):
    """{(kernel, grid, block): [launches counted]}; names as on every machine."""
    found = {}
    for one in run["ncu"]["launches"]:
        found.setdefault((corpus.symbol(one["kernel"]), one["grid"], one["block"]), []).append(one)
    return found


def mean(rows, column):
    values = [r[column] for r in rows if r.get(column) is not None]
    if not values:
        return ""
    value = sum(values) / len(values)
    return int(value) if value == int(value) else round(value, 2)


def table(run, commits, least=LEAST_US):
    counted = shapes(run)
    timed = {(corpus.symbol(k["symbol"]), k["grid"], k["block"]): k for k in run["times"].get("kernels", []) if k["launches"]}
    rows = []
    for place in counted or timed:  # where nothing was counted, all that was timed
        k, found = timed.get(place), counted.get(place, [])
        if not k or not least <= k["time_us"] / k["launches"] <= MOST_US:
            continue
        row = dict(zip(WHO, [run["collection"], run["program"], commits.get(run["collection"], ("", ""))[1][:12], run["kind"], run["arguments"], *place]))
        row.update(launches=k["launches"], time_us=round(k["time_us"] / k["launches"], 3), least_us=round(k["least_us"], 3),
                   most_us=round(k["most_us"], 3), counted=len(found), check=run["times"]["check"],
                   steady=int(bool(found) and all(len({r[c] for r in found}) == 1 for c in SAME)),
                   shapes=len({p for p in {**counted, **timed} if p[0] == place[0]}), cold_us=round(mean(found, "time_ns") / 1e3, 3) if found else "")
        row.update({c: mean(found, c) for c in SHAPE + COUNTS})
        rows.append(row)
    return rows


def chosen(rows):
    kernels = {}
    for r in rows:
        kernels.setdefault(r["kernel"], []).append(r)
    first = sorted(kernels, key=lambda k: hashlib.sha256(k.encode()).hexdigest())[:KERNELS]
    return [r for k in kernels if k in first for r in sorted(kernels[k], key=lambda r: -r["time_us"] * r["launches"])[:SHAPES]]


def main():
    every = "--all" in sys.argv
    files = [json.load(open(path, encoding="utf-8")) for path in sys.argv[1:] if path != "--all"]
    if not files:
        sys.exit(__doc__)
    runs = {name: (run, f["commits"]) for f in files for name, run in f["runs"].items() if run["ncu"]["launches"] or every}
    rows = [r for name in sorted(runs) for r in (table(*runs[name], 5) if every else chosen(table(*runs[name])))]
    for f in files:
        print(f"# {f['gpu']}, driver {f['driver']}, ncu {f['ncu']}, {f['date']} UTC; {f['command']}")
    for name, (repository, commit) in sorted(files[0]["commits"].items()):
        print(f"# {name}: {repository} {commit}")
    print("# nvcc", " ".join(files[0]["flags"]), "and those of bench/corpus.csv; clocks not locked. Columns: bench/corpus_table.py")
    out = csv.DictWriter(sys.stdout, WHO + RUN + SHAPE + COUNTS, lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
    print(f"{len(rows)} rows, {len({(r['program'], r['kernel']) for r in rows})} kernels, "
          f"{len({(r['collection'], r['program']) for r in rows})} programs", file=sys.stderr)


if __name__ == "__main__":
    main()
