#!/usr/bin/env bash
# How long 1,000 small audits take over one rank and over two, on one machine of at least two idle cores.
# usage: bench/fleet.sh [JOBS]
set -eu
cd "$(dirname "$0")/.."
sol=$(realpath "${SOL:-build/sol}") jobs=${1:-1000} scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for i in $(seq "$jobs"); do
  rows=$((64 + i % 64))
  echo "audit $PWD/examples/scale.ptx --kernel column_scale --arg out:f32[$rows*64] --arg f32[$rows*64] --arg f32[64] --arg $rows --arg 64 --workers 1"
done >"$scratch/jobs.txt"
# Both ranks need a core of their own: what else runs here is part of the answer.
read -r busy _ </proc/loadavg
echo "$jobs audits on a machine of $(nproc) cores, load before: $busy"
seconds=()
for n in 1 2; do
  start=$EPOCHREALTIME
  mpirun --oversubscribe --bind-to none -n $n "$sol" fleet "$scratch/jobs.txt" --out "$scratch/$n.json" >/dev/null || echo "some jobs failed"
  seconds+=("$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')")
  printf '%d rank%s: %.2f s\n' $n "$([ $n = 1 ] || echo s)" "${seconds[-1]}"
done
awk -v one="${seconds[0]}" -v two="${seconds[1]}" 'BEGIN { printf "two ranks are %.2f times as fast as one\n", one / two }'
python3 - "$scratch" <<'PY'
import json, sys
one, two = (json.load(open(f'{sys.argv[1]}/{n}.json')) for n in (1, 2))
assert one['results'] == two['results'] and not one['failed'], one['results'][0]
print('the results are equal')
PY
