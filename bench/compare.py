#!/usr/bin/env python3
"""Results of sol bench --json or bench/peers.py as a table, or two of them compared.

    python3 bench/compare.py NOW.json             # all cases, then the summary
    python3 bench/compare.py --short NOW.json     # the summary and the outliers
    python3 bench/compare.py NOW.json BEFORE.json # what changed, beyond the spread marked
"""

import json
import math
import signal
import sys

LARGE = 64 << 20


def read(path):
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    if not isinstance(data, dict) or not isinstance(data.get("cases"), list):
        sys.exit(f"{path}: holds no cases")
    return data


def time_of(case):
    return case.get("time_us") or case.get("us")


def key_of(case):
    return (case["op"], case.get("option") or "", case["dtype"], case.get("out_dtype") or case["dtype"],
            case["shape"], int(case.get("misalign") or 0))


def name_of(case):
    op, option, dtype, out, shape, misalign = key_of(case)
    return " ".join(p for p in (op, option, dtype if out == dtype else f"{dtype}->{out}", shape,
                                f"+{misalign}" if misalign else "") if p)


def to_light(case):
    light = case.get("rows_light_us") or case.get("light_us")
    return time_of(case) / light if time_of(case) and light else None


def geomean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def best_peer(case):
    peers = case.get("peers") or {}
    return min(peers.items(), key=lambda p: p[1]) if peers else None


def text(value, form="{:.2f}"):
    return form.format(value) if value is not None else "-"


def error_of(case):
    errors = case.get("errors") or {}
    return case.get("error") or errors.get("ours")


def print_cases(cases):
    width = max(len(name_of(c)) for c in cases)
    print(f"{'case':<{width}}{'us':>10}{'GB/s':>8}{'light':>10}{'/light':>8}{'spread':>8}{'best peer':>20}")
    for c in cases:
        us, best = time_of(c), best_peer(c)
        rate = c["bytes"] / us / 1e3 if us else None
        peer = f"{best[0]} {best[1]:.2f}" if best else ""
        light = c.get("rows_light_us") or c.get("light_us")
        print(f"{name_of(c):<{width}}{text(us):>10}{text(rate, '{:.0f}'):>8}{text(light):>10}{text(to_light(c)):>8}"
              f"{text(c.get('spread'), '{:.1%}'):>8}{peer:>20}" + (f"  {error_of(c)}" if error_of(c) else ""))


def print_summary(data):
    cases = data["cases"]
    timed = [c for c in cases if time_of(c)]
    large = [c for c in timed if c["bytes"] >= LARGE and to_light(c)]
    print(f"{data.get('gpu') or data.get('backend')}, driver {data.get('driver')}, {data.get('date')}: "
          f"{len(timed)} of {len(cases)} cases timed")
    for c in cases:
        if error_of(c):
            print(f"  failed: {name_of(c)}: {error_of(c)}")
    print(f"time / light, geometric mean: {text(geomean(to_light(c) for c in timed), '{:.3f}')}; of {len(large)} cases "
          f"that move 64 MiB or more: {text(geomean(to_light(c) for c in large), '{:.3f}')}")
    for c in sorted(large, key=lambda c: -to_light(c)):
        if to_light(c) > 1.05:
            print(f"  {to_light(c):.3f} {name_of(c)}: {time_of(c):.2f} us")
    compared = [c for c in timed if best_peer(c)]
    if compared:
        print(f"best peer / ours, geometric mean: {text(geomean(best_peer(c)[1] / time_of(c) for c in compared), '{:.3f}')}; "
              f"slower than it by more than 3%:")
        for c in sorted(compared, key=lambda c: best_peer(c)[1] / time_of(c)):
            if time_of(c) > 1.03 * best_peer(c)[1]:
                print(f"  {time_of(c) / best_peer(c)[1]:.3f} {name_of(c)}: {time_of(c):.2f} us, {best_peer(c)[0]} "
                      f"{best_peer(c)[1]:.2f}")
    small = [c for c in timed if c["shape"] in ("1x4096", "8x4096")]
    if small:
        print("small: " + ", ".join(f"{name_of(c)} {time_of(c):.2f}" for c in small) + " us")
    over = [c["host_over_us"] for c in timed if c.get("host_over_us") is not None]
    if over:
        over.sort()
        print(f"host time of a call beyond the driver's own launch ({text(data.get('launch_us'))} us): median "
              f"{over[len(over) // 2]:.2f} us, most {over[-1]:.2f} us")


def print_changes(now, before):
    earlier = {key_of(c): c for c in before["cases"] if time_of(c)}
    both = [(c, earlier[key_of(c)]) for c in now["cases"] if time_of(c) and key_of(c) in earlier]
    if not both:
        sys.exit("the two have no case in common")
    width = max(len(name_of(c)) for c, _ in both)
    print(f"{'case':<{width}}{'now':>10}{'before':>10}{'change':>9}")
    for c, old in both:
        change = time_of(c) / time_of(old) - 1
        noise = max(0.01, (c.get("spread") or 0) + (old.get("spread") or 0))
        mark = "slower" if change > noise else "faster" if change < -noise else ""
        print(f"{name_of(c):<{width}}{time_of(c):>10.2f}{time_of(old):>10.2f}{change:>+9.1%}  {mark}".rstrip())
    print(f"geometric mean of now / before: {geomean(time_of(c) / time_of(old) for c, old in both):.3f}")


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    files = [a for a in sys.argv[1:] if a != "--short"]
    if len(files) not in (1, 2) or any(f.startswith("-") for f in files):
        sys.exit(__doc__)
    now = read(files[0])
    if len(files) == 2:
        return print_changes(now, read(files[1]))
    if "--short" not in sys.argv and now["cases"]:
        print_cases(now["cases"])
        print()
    print_summary(now)


if __name__ == "__main__":
    main()
