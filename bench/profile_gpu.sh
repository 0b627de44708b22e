#!/usr/bin/env bash
# `sol profile` on this machine's GPU against ncu and CUDA events, and what it costs: about two minutes.
# usage: bench/profile_gpu.sh [OUT]     results go to the folder OUT (default build/profile-gpu); needs nvcc and ncu
# SOL names another build's tool; PROGRAMS a folder with the programs ready made.
set -u
cd "$(dirname "$0")/.." || exit 1
out=${1:-build/profile-gpu}
sol=${SOL:-build/sol}
bin=${PROGRAMS:-$out}
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [ -z "${PROGRAMS:-}" ]; then
  bin=$out
  nvcc=$(scripts/cuda-env nvcc) || { echo "no nvcc" >&2; exit 1; }
  for p in mix many graphs; do "$nvcc" -arch=sm_90 -lineinfo -cudart shared "tests/profile/$p.cu" -o "$bin/$p" & done
  "$nvcc" -arch=sm_90 tests/profile/graphs.cu -o "$bin/graphs_static" &
  wait
fi
home=$(scripts/cuda-env home 2>/dev/null)
export LD_LIBRARY_PATH=${home:-/usr/local/cuda}/lib64:${LD_LIBRARY_PATH:-}
ncu=$(command -v ncu || echo "$home/bin/ncu")
title() { printf '\n== %s [%d s]\n' "$*" $SECONDS; }
brief() { # FILE: what a bill says, in a few lines
  python3 - "$1" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
counted = [k for k in d["kernels"] if k["counters"]["smsp__inst_executed.sum"] is not None]
print("%d launches, %d kernels, %d of them counted; %s; notes %s" % (d["launches"], len(d["kernels"]), len(counted), d["ended"], d["notes"]))
for k in d["kernels"][:3]:
    print("  %-50.50s %5d launches (%d in graphs) %10.1f us  %s, %s" % (k["name"], k["launches"], k["graph_launches"], k["time_us"], k["bound"], k["band"]))
P
}
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed "s/$/, $(date -u +%F), bench\/profile_gpu.sh/"

title "times, against events"
"$sol" profile --times --json "$bin/mix" >"$out/times.json" 2>"$out/events.txt"
grep events "$out/events.txt"
python3 -c "
import json, sys
for k in json.load(open(sys.argv[1]))['kernels']: print('%-20s %9.2f us by sol profile --times (least of %d)' % (k['name'], k['least_us'], k['launches']))" "$out/times.json"

title "graphs: results as without the profiler, and counts"
for p in graphs graphs_static; do
  printf '%s alone: %s; under sol profile: ' $p "$("$bin/$p" | tr '\n' ' ')"
  "$sol" profile --json "$bin/$p" 2>&1 >"$out/$p.json" | tail -n 1
  brief "$out/$p.json"
done
"$sol" profile --json "$sol" -- bench rmsnorm --shape 4096x4096 --dtype bf16 --quick >"$out/bench.json" 2>/dev/null
printf 'sol bench rmsnorm: ' && brief "$out/bench.json"

title "counters, against ncu"
compare() { # NAME OPTION ARGS...: of mix
  local name=$1 option=$2 metrics cache
  shift 2
  "$sol" profile --json ${option:+"$option"} "$bin/mix" -- "$@" >"$out/$name.json" 2>/dev/null
  metrics=$(python3 -c "
import json, sys
print(','.join(m for m, v in json.load(open(sys.argv[1]))['kernels'][0]['counters'].items() if v is not None))" "$out/$name.json")
  for cache in none all; do
    "$ncu" --clock-control none --cache-control $cache --graph-profiling node --csv --page raw --metrics "$metrics" \
      --log-file "$out/$name-$cache.csv" "$bin/mix" "$@" >/dev/null 2>&1
    "$sol" profile --json --import "$out/$name-$cache.csv" >"$out/$name-$cache.json"
    echo "-- mix $option $*, ncu --cache-control $cache"
    python3 bench/profile_compare.py "$out/$name.json" "$out/$name-$cache.json"
    [ "$name" = ours ] || break
  done
}
compare ours ""
compare graph "" graph
compare dram --dram

title "what timing costs: 10,000 launches, ms, least and median of 5"
rounds() { for _ in 1 2 3 4 5; do "$@" 2>&1 | sed -n 's/.*launches: \([0-9.]*\) ms.*/\1/p'; done | sort -n | awk '{ a[NR] = $1 } END { print a[1], a[3] }'; }
for elements in 65536 2097152 4194304; do
  printf '%8d elements each: plain %s; under sol profile --times %s\n' $elements \
    "$(rounds "$bin/many" 10000 $elements)" "$(rounds "$sol" profile --times "$bin/many" -- 10000 $elements)"
done

title "PyTorch"
for how in eager compile; do
  "$sol" profile --json python3 -- tests/profile/torch_mix.py $how >"$out/torch-$how.json" 2>"$out/torch-$how.txt"
  printf '%s: ' $how && brief "$out/torch-$how.json"
done

title "no permission"
grep RmProfilingAdminOnly /proc/driver/nvidia/params
who=$(command -v setpriv) && [ "$(id -u)" = 0 ] && # a user without rights, where there is one to be had
  TMPDIR=/tmp "$who" --reuid 65534 --regid 65534 --clear-groups "$sol" profile "$bin/many" -- 3 4096 2>&1 | tail -n 12
lib=$(ldconfig -p | sed -n 's/.*libcupti.so.13.* => //p' | head -n 1)
"${CC:-cc}" -shared -fPIC tests/profile/forbid.c -o "$out/forbid.so" -Wl,--no-as-needed "${lib:-$home/lib64/libcupti.so.13}" -Wl,-rpath,"${home:-/usr/local/cuda}/lib64"
SOL_CUPTI=$out/forbid.so "$sol" profile --json "$bin/many" -- 3 4096 2>/dev/null |
  python3 -c "
import json, sys
d = json.load(sys.stdin)
print(d['notes'], [(r['counter'], r['measured'], r['emulated']) for a in d.get('against', []) for r in a['counters']][:6])"
title "done"
