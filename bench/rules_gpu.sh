#!/usr/bin/env bash
# The programs of examples/rules on a GPU, kernel by kernel, by ncu: how long they take and what they move.
# usage: bench/rules_gpu.sh [NAME...] > rules.csv     (ncu's CSV with one line of comment; caches cold, clocks as they are)
# NAME: programs without their .cu; all of them where none is named.
# bench/rules_compare.py compares it with what `sol audit` predicts for the same programs.
set -u
cd "$(dirname "$0")/.." || exit 1
nvcc=$(scripts/cuda-env nvcc) && home=$(scripts/cuda-env home) || { echo "no nvcc" >&2; exit 1; }
ncu=$home/bin/ncu
[ -x "$ncu" ] || ncu=$(command -v ncu) || { echo "no ncu" >&2; exit 1; }
out=${B:-build}/rules-gpu
rm -rf "$out" && mkdir -p "$out"
sources=(examples/rules/*.cu)
if [ $# -gt 0 ]; then sources=("${@/#/examples/rules/}") && sources=("${sources[@]/%/.cu}"); fi
printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -I{} sh -c \
  "'$nvcc' -arch=sm_90 -lineinfo -Iexamples/rules {} -o '$out/'\$(basename {} .cu)"
metrics=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum
for op in ld st; do
  metrics+=,l1tex__t_requests_pipe_lsu_mem_global_op_$op.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_$op.sum
  metrics+=,l1tex__data_pipe_lsu_wavefronts_mem_shared_op_$op.sum
done
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed "s/^/# /; s/$/, $(date -u +%F), bench\/rules_gpu.sh/"
first=1
for program in "$out"/*; do
  [ -x "$program" ] || continue
  "$ncu" --clock-control none --csv --page raw --metrics "$metrics" "$program" 2>/dev/null | grep '^"' |
    sed "s|^|\"$(basename "$program")\",|" | { [ $first = 1 ] && cat || tail -n +3; }
  first=0
done
