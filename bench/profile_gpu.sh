#!/usr/bin/env bash
# `sol profile` on this machine's GPU against ncu and CUDA events, and what it costs.
# usage: bench/profile_gpu.sh [OUT]     results go to the folder OUT (default build/profile-gpu); needs nvcc and ncu
# SOL and INJECT name another build's tool and library; PROGRAMS a folder with the programs ready made.
set -u
cd "$(dirname "$0")/.." || exit 1
out=${1:-build/profile-gpu}
sol=${SOL:-build/sol}
bin=${PROGRAMS:-$out}
mkdir -p "$out"
if [ -z "${PROGRAMS:-}" ]; then
  nvcc=$(scripts/cuda-env nvcc) || { echo "no nvcc" >&2; exit 1; }
  for p in mix many; do "$nvcc" -arch=sm_90 -lineinfo -cudart shared "tests/profile/$p.cu" -o "$bin/$p" || exit 1; done
fi
home=$(scripts/cuda-env home 2>/dev/null)
export LD_LIBRARY_PATH=${home:-/usr/local/cuda}/lib64:${LD_LIBRARY_PATH:-}
ncu=$(command -v ncu || echo "$home/bin/ncu")
title() { printf '\n== %s [%d s]\n' "$*" $SECONDS; }
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed "s/$/, $(date -u +%F), bench\/profile_gpu.sh/"

title "times, against events"
"$sol" profile --times --json "$bin/mix" >"$out/times.json" 2>"$out/events.txt"
grep events "$out/events.txt"
python3 -c "
import json, sys
for k in json.load(open(sys.argv[1]))['kernels']: print('%-20s %9.2f us by sol profile --times (least of %d)' % (k['name'], k['least_us'], k['launches']))" "$out/times.json"

title "counters, against ncu"
"$sol" profile --json "$bin/mix" >"$out/ours.json" 2>/dev/null
metrics=$(python3 -c "
import json, sys
print(','.join(json.load(open(sys.argv[1]))['kernels'][0]['counters']))" "$out/ours.json")
for cache in none all; do
  "$ncu" --clock-control none --cache-control $cache --csv --page raw --metrics "$metrics" --log-file "$out/ncu-$cache.csv" "$bin/mix" >/dev/null 2>&1
  "$sol" profile --json --import "$out/ncu-$cache.csv" >"$out/ncu-$cache.json"
  echo "-- ncu --cache-control $cache"
  python3 bench/profile_compare.py "$out/ours.json" "$out/ncu-$cache.json"
done

title "what timing costs: 10,000 launches, ms, least and median of 9"
rounds() { for _ in 1 2 3 4 5 6 7 8 9; do "$@" 2>&1 | sed -n 's/.*launches: \([0-9.]*\) ms.*/\1/p'; done | sort -n | awk '{ a[NR] = $1 } END { print a[1], a[5] }'; }
for elements in 65536 1048576 2097152 4194304; do
  printf '%8d elements each: plain %s; under sol profile --times %s\n' $elements \
    "$(rounds "$bin/many" 10000 $elements)" "$(rounds "$sol" profile --times "$bin/many" -- 10000 $elements)"
done

title "PyTorch"
for how in eager compile; do
  "$sol" profile --json python3 -- tests/profile/torch_mix.py $how >"$out/torch-$how.json" 2>"$out/torch-$how.txt"
  python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
print('$how: %d launches, %d kernels, %s' % (d['launches'], len(d['kernels']), d['ended']), d['notes'])" "$out/torch-$how.json"
done

title "no permission"
lib=$(ldconfig -p | sed -n 's/.*libcupti.so.13.* => //p' | head -n 1)
"${CC:-cc}" -shared -fPIC tests/profile/forbid.c -o "$out/forbid.so" -Wl,--no-as-needed "${lib:-$home/lib64/libcupti.so.13}" -Wl,-rpath,"${home:-/usr/local/cuda}/lib64"
SOL_CUPTI=$(cd "$out" && pwd)/forbid.so "$sol" profile --json "$bin/many" -- 3 4096 2>/dev/null |
  python3 -c "
import json, sys
d = json.load(sys.stdin)
print(d['notes'], [(r['counter'], r['measured'], r['emulated']) for a in d.get('against', []) for r in a['counters']][:6])"
