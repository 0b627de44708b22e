#!/usr/bin/env bash
# All that wants a GPU, in one call: builds, checks and times, and prints a short table last.
# usage: bench/gpu.sh [OUT]    results go to OUT (default build/gpu): *.json to keep under bench/results/, logs
# Needs nvcc and a C compiler; installs nothing.
set -u
cd "$(dirname "$0")/.." || exit 1
out=${1:-build/gpu}
mkdir -p "$out" build
nvcc=$(scripts/cuda-env nvcc) || { echo "no nvcc" >&2; exit 1; }
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)
failed=0
rows=()
step() { # NAME COMMAND...: runs it, keeps its output, notes the verdict
  local name=$1 start=$SECONDS verdict=ok
  shift
  "$@" >"$out/$name.log" 2>&1 || { verdict=FAIL failed=1; tail -n 20 "$out/$name.log"; }
  rows+=("$(printf '%-10s %-5s %4d s  %s' "$name" "$verdict" $((SECONDS - start)) "$(tail -n 1 "$out/$name.log" | cut -c1-90)")")
}

ceilings() { "$nvcc" -O3 -arch=native bench/ceilings.cu -o build/ceilings && build/ceilings "$driver" >"$out/ceilings.json" && echo "written"; }

step build make -j"$(nproc)" all
step ceilings ceilings
[ -x tests/ptx/gpu.sh ] && step corpus tests/ptx/gpu.sh
printf '%s\n' "${rows[@]}"
exit $failed
