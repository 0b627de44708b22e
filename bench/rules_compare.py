#!/usr/bin/env python3
"""What an H200 measured of the programs in examples/ (tests/data/h200-rules.csv) against what `sol audit` predicts for them.

    bench/rules_compare.py [--sol build/sol] [--markdown]     # the table; exit 1 where a count that is exact differs
    bench/rules_compare.py --reduce rules.csv > tests/data/h200-rules.csv    # of what bench/rules_gpu.sh printed
"""

import argparse
import collections
import csv
import json
import math
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEPT = os.path.join(ROOT, "tests", "data", "h200-rules.csv")
COUNTS = ["load_requests", "load_sectors", "store_requests", "store_sectors"]
COLUMNS = ["program", "kernel", "launches", "time_ns", "dram_read", "dram_write"] + COUNTS + ["load_wavefronts",
                                                                                             "store_wavefronts"]
METRICS = {
    "time_ns": "gpu__time_duration.sum", "dram_read": "dram__bytes_read.sum", "dram_write": "dram__bytes_write.sum",
    "load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
}
SCALE = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3,
         "ms": 1e6, "msecond": 1e6}  # others count


def reduce(path):
    with open(path, encoding="utf-8") as f:
        lines = f.readlines()
    rows = list(csv.reader(line for line in lines if line.startswith('"')))
    head, units = rows[0], rows[1]
    place = {name: head.index(metric) for name, metric in METRICS.items()}
    sums = collections.OrderedDict()
    for row in rows[2:]:
        key = (row[0], row[head.index("Kernel Name")].split("(")[0])
        one = sums.setdefault(key, collections.Counter())
        one["launches"] += 1
        for name, at in place.items():
            one[name] += float(row[at].replace(",", "")) * SCALE.get(units[at], 1)
    print(lines[0].strip())
    print("# sums over a kernel's launches; caches cold before each, clocks not locked. bench/rules_compare.py --reduce")
    print(",".join(COLUMNS))
    for (program, kernel), one in sums.items():
        print(",".join([program, kernel] + [str(round(one[c])) for c in COLUMNS[2:]]))


def audit(sol, program):
    """The bill's kernels by name; None where the program is not there."""
    path = next((p for p in (os.path.join(ROOT, "examples", "rules", program + ".cu"),
                             os.path.join(ROOT, "examples", program + ".cu")) if os.path.exists(p)), None)
    if not path:
        return None
    done = subprocess.run([sol, "audit", path, "--device", "h200", "--json", "--cold"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"{program}: sol audit: exit code {done.returncode}\n{done.stderr.decode()[-2000:]}")
    return {k["name"].split("(")[0]: k for k in json.loads(done.stdout)["kernels"]}


def rule_of(program, bill):
    """The finding that a pair's bad half is about: the rule with the longest name that the program's begins with."""
    named = [f for f in bill["findings"] if program.startswith(f["rule"])]
    return max(named, key=lambda f: len(f["rule"]), default=None)


def gains(measured, bills, bar):
    """Each pair's gain as the first half's bill predicts it, beside the one that was measured."""
    times, errors = collections.Counter(), []
    for m in measured:
        times[m["program"]] += float(m["time_ns"]) / 1e3
    print("\n" + bar.join(["pair".ljust(26), "predicted gain", "measured", "ratio"]))
    for program in sorted(times):
        if not program.endswith("_bad") or program[:-4] + "_good" not in times:
            continue
        name, said = program[:-4], None
        for bill in (bills[program] or {}).values():
            said = said or rule_of(name, bill)
        was = times[program] / times[name + "_good"]
        if said and said["rule"] == "launch_bound":  # what it saves lies between the kernels, which ncu does not show
            print(bar.join([name.ljust(26), f"{said['gain']:14.2f}", "between kernels: not in ncu's times"]))
            continue
        if said:
            errors.append(abs(math.log(said["gain"] / was)))
        print(bar.join([name.ljust(26), f"{said['gain']:14.2f}" if said else "no finding".rjust(14), f"{was:8.2f}",
                        f"{said['gain'] / was:5.2f}" if said else "    -"]))
    if errors:
        print(f"\ngains off by {math.expm1(statistics.median(errors)):.0%} at the median, "
              f"{math.expm1(max(errors)):.0%} at worst, over {len(errors)} pairs")


def compare(sol, markdown):
    with open(KEPT, encoding="utf-8") as f:
        measured = list(csv.DictReader(line for line in f if not line.startswith("#")))
    bills, rows, differ = {}, [], []
    for m in measured:
        if m["program"] not in bills:
            bills[m["program"]] = audit(sol, m["program"])
        bill = (bills[m["program"]] or {}).get(m["kernel"])
        if not bill:
            differ.append(f"{m['program']}: no kernel {m['kernel']} in the bill")
            continue
        said = {"load_requests": bill["global_load"]["requests"], "load_sectors": bill["global_load"]["sectors"],
                "store_requests": bill["global_store"]["requests"], "store_sectors": bill["global_store"]["sectors"]}
        for count in COUNTS:
            if said[count] != int(m[count]):
                differ.append(f"{m['program']} {m['kernel']} {count}: emulated {said[count]}, measured {m[count]}")
        dram = (float(m["dram_read"]) + float(m["dram_write"])) / 1e6
        rows.append((m["program"], int(m["launches"]), bill["time_us"], float(m["time_ns"]) / 1e3,
                     bill["dram_bytes"] / 1e6, dram))
    bar = " | " if markdown else "  "
    heads = ["program", "launches", "predicted us", "measured us", "ratio", "DRAM MB modelled", "measured"]
    print(("| " if markdown else "") + bar.join(heads) + (" |" if markdown else ""))
    if markdown:
        print("|" + "---|" * len(heads))
    for name, launches, said, was, dram_said, dram in rows:
        cells = [name, str(launches), f"{said:.2f}", f"{was:.2f}", f"{said / was:.2f}", f"{dram_said:.2f}", f"{dram:.2f}"]
        print(("| " if markdown else "") + bar.join(c if markdown else c.rjust(len(h)) if i else c.ljust(20)
                                                    for i, (c, h) in enumerate(zip(cells, heads)))
              + (" |" if markdown else ""))
    errors = [abs(math.log(said / was)) for _, _, said, was, _, _ in rows]
    if errors:
        print(f"\ntime off by {math.expm1(statistics.median(errors)):.0%} at the median, "
              f"{math.expm1(max(errors)):.0%} at worst, over {len(rows)} kernels")
    gains(measured, bills, bar)
    print(f"{len(differ)} of {len(COUNTS) * len(rows)} exact counts differ")
    for line in differ:
        print("  " + line)
    return bool(differ)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--sol", default=os.path.join(ROOT, "build", "sol"))
    p.add_argument("--markdown", action="store_true")
    p.add_argument("--reduce", metavar="CSV")
    args = p.parse_args()
    if args.reduce:
        return reduce(args.reduce)
    return compare(args.sol, args.markdown)


if __name__ == "__main__":
    sys.exit(main())
