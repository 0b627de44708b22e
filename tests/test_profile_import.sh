#!/usr/bin/env bash
# sol profile --import and --against, and sol devices --measure, from the command line.
# usage: SOL=build/sol tests/test_profile_import.sh
set -u
export COLUMNS=160 # whole tables; test_width has the narrow ones
cd "$(dirname "$0")/.." || exit 1
sol=${SOL:-build/sol}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/cache NO_COLOR=1
passed=0 failed=0
data=tests/data/ncu

ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)) && echo "FAIL $1" && sed 's/^/  | /' "$tmp/out" "$tmp/err"; }
run() { # WANTED_EXIT_CODE ARGUMENTS...: what it printed is in $tmp/out and $tmp/err
  local want=$1 rc=0
  shift
  what="sol $*"
  "$sol" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || rc=$?
  if [ $rc = "$want" ]; then ok; else bad "$what: exit code $rc, not $want"; fi
}
has() { if grep -qF -- "$2" "$tmp/$1"; then ok; else bad "$what: no '$2' in $1"; fi; }
lacks() { if grep -qF -- "$2" "$tmp/$1"; then bad "$what: '$2' in $1"; else ok; fi; }
json() { # EXPRESSION of d, which must be true
  command -v python3 >/dev/null || return 0
  if python3 -c "import json, sys; d = json.load(open('$tmp/out')); sys.exit(0 if $1 else 1)"; then ok; else bad "$what: not so: $1"; fi
}

# Every metric set reads, in words and as JSON, and says what it lacks.
for file in "$data"/*.csv; do
  run 0 profile --import "$file"
  has out "Coalescing"
  has out "Spills"
  run 0 profile --import "$file" --json
  json "d['schema'] == 1 and d['source'] == 'ncu csv' and len(d['kernels']) == 1"
  json "[s['step'] for s in d['kernels'][0]['steps']] == ['bound', 'coalescing', 'throughput', 'shared', 'spills']"
done
run 0 profile --import $data/h200-full-raw.csv
has out "on NVIDIA H200, measured"
has out "bank_conflict"
has out "4325376 wavefronts"
lacks out "not counted"
run 0 profile --import $data/h200-full-raw.csv --json
json "d['gpu']['device'] == 'h200' and d['kernels'][0]['global_load'] == {'requests': 131072, 'sectors': 524288}"
json "d['kernels'][0]['counters']['dram__bytes_read.sum'] == 16780544"
json "d['kernels'][0]['counters']['lts__t_sectors_op_read.sum'] is None"
json "d['kernels'][0]['bound'] == 'l1' and d['kernels'][0]['band'] == 'poor'"
json "d['kernels'][0]['findings'][0]['rule'] == 'bank_conflict'"
run 0 profile --import $data/h200-basic.csv
has out "not counted: requests and sectors"
has out "The file does not name the GPU"
run 0 profile --import $data/h200-basic.csv --device h200
has out "on NVIDIA H200, measured"
run 2 profile --import $data/h200-basic.csv --device a100
has err "sm_80, but the kernels ran on sm_90"

# L1 hits and busy pipes, and nothing wider than the terminal.
COLUMNS=80 run 0 profile --import $data/h200-full-raw.csv
has out "cache hits    L1 0%, L2 50%"
has out "busy          issue slots"
has out "fp32 "
if awk 'length($0) > 80 { exit 1 }' "$tmp/out"; then ok; else bad "$what: a line is wider than 80 columns"; fi
run 0 profile --import $data/h200-full-raw.csv
has out "L1 hits"

# A report of ncu's own is read by ncu.
cp $data/h200-full-raw.csv "$tmp/one.ncu-rep"
# shellcheck disable=SC2016 # the script's own variables
printf '#!/bin/sh\n[ "$*" = "--import %s --csv --page raw" ] && exec cat "$2"\nexit 3\n' "$tmp/one.ncu-rep" >"$tmp/ncu"
chmod +x "$tmp/ncu"
NCU=$tmp/ncu run 0 profile --import "$tmp/one.ncu-rep" --json
json "d['input'].endswith('one.ncu-rep') and d['kernels'][0]['counters']['dram__bytes_read.sum'] == 16780544"
PATH=$tmp:$PATH run 0 profile --import "$tmp/one.ncu-rep"
has out "one.ncu-rep on NVIDIA H200, measured"
NCU=$tmp/none run 2 profile --import "$tmp/one.ncu-rep"
has err "Nsight Compute's ncu, which alone can read"
has err "ncu --import FILE --csv --page raw"
cp "$tmp/one.ncu-rep" "$tmp/two.ncu-rep"
NCU=$tmp/ncu run 1 profile --import "$tmp/two.ncu-rep"
has err "exit code 3"
run 1 profile --import "$tmp/three.ncu-rep"

# What cannot be read is an error with its place.
head -c 6000 $data/h200-basic.csv >"$tmp/cut.csv"
run 2 profile --import "$tmp/cut.csv"
has err "$tmp/cut.csv:"
has err "cut off"
sed 's/"82.13"/"82,13"/' $data/h200-basic.csv >"$tmp/german.csv"
run 2 profile --import "$tmp/german.csv"
has err "$tmp/german.csv:8:"
has err "LC_ALL=C"
echo hello >"$tmp/other.csv"
run 2 profile --import "$tmp/other.csv"
has err "Kernel Name"
run 2 profile --import "$tmp/none.csv"
run 2 profile --import "$tmp"
run 2 profile --import
run 2 profile
run 2 profile --import $data/h200-basic.csv ./prog
run 2 profile --import $data/h200-basic.csv --kernel nothing
has err "none of the file's 1 launches"

# Beside a bill.
printf '{"device": "h200", "kernels": [{"name": "transpose", "symbol": "x", "launches": 1, "sampled": 1,
  "global_load": {"requests": 131072, "sectors": 524300, "ideal_sectors": 524288}, "dram_read_bytes": 16777216}]}' >"$tmp/bill.json"
run 0 profile --import $data/h200-full-raw.csv --against "$tmp/bill.json"
has out "equal"
has out "-0.00%"
run 0 profile --import $data/h200-full-raw.csv --against "$tmp/bill.json" --json
json "d['against'][0]['counters'][1] == {'counter': 'load_sectors', 'measured': 524288, 'emulated': 524300, 'difference': -12}"
echo '{"kernels"' >"$tmp/bill.json"
run 2 profile --import $data/h200-full-raw.csv --against "$tmp/bill.json"
has err "$tmp/bill.json:"

# Ceilings: none, then some that were measured.
run 2 roofline --device this --bytes 1e9
has err "sol devices --measure"
mkdir -p "$tmp/cache/sol/devices"
printf '{"schema": 1, "gpu": "NVIDIA H200", "uuid": "GPU-1", "date": "2026-11-15", "sms": 132, "measured":
  {"dram_read": 4.5e12, "dram_write": 4.3e12, "dram_copy": 4.2e12, "launch_us": 3.25}}' >"$tmp/cache/sol/devices/GPU-1.json"
run 0 devices this
has out "measured on this machine, 2026-11-15"
has out "3.25 us"
run 0 profile --import $data/h200-full-raw.csv
has out "4.5 TB/s (measured on this GPU)" # nearly all of its bytes are read
run 2 devices --measure h100

# Two answers beside each other (bench/profile_compare.py): sums are of a launch, kernels are found by their shape where
# the other names them otherwise, and a count that is off shows.
beside() { # PYTHON, over the other's kernel k
  what="beside: $1"
  PYTHONPATH=bench python3 -B -c "
import copy, json, profile_compare
ours = json.load(open('$tmp/bill'))
theirs = copy.deepcopy(ours)
k = theirs['kernels'][0]
$1
profile_compare.show(profile_compare.compare(ours, theirs))" >"$tmp/out" 2>"$tmp/err"
}
loads=l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
if command -v python3 >/dev/null; then
  "$sol" profile --json --import $data/h200-full-raw.csv >"$tmp/bill"
  beside "k['launches'], k['counters']['$loads'] = 2, 2 * k['counters']['$loads']"
  has out "1 kernels in both, 0 only in the first, 0 only in the second"
  has out "$(printf '%-75s equal 1/1' $loads)"
  beside "k['name'] = 'another'; k['counters']['$loads'] += 1"
  has out "1 kernels in both"
  has out "$(printf '%-75s equal 0/1, most 0.000%% (another: 524288 and 524289)' $loads)"
  beside "k['grid'] = '1,2,3'"
  has out "0 kernels in both, 1 only in the first, 1 only in the second"
fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
