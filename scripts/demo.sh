#!/usr/bin/env bash
# A guided tour: each command is shown, then run. SOL_DEMO_PAUSE=1 waits for Enter between them.
set -eu
cd "$(dirname "$0")/.."
sol=${B:-build}/sol
bold='' plain=''
if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; fi

tell() { printf '\n%s\n' "$(tr '\n' ' ' <<<"$*" | fold -s -w "${COLUMNS:-80}" | sed 's/ *$//')"; }
try() {
  printf '\n%s$ sol %s%s\n' "$bold" "$*" "$plain"
  "$sol" "$@"
  if [ "${SOL_DEMO_PAUSE:-0}" = 1 ]; then read -r -p '[Enter] ' _; fi
}

tax_of() { "$sol" audit "$1" --json -- 8192 1024 2>/dev/null | awk '/^  "tax":/ { printf "%.2f", $2 }'; }

tell "How fast could a kernel be? Count the bytes and the FLOPs, and place them under a GPU's roof. RMSNorm moves many
bytes for little arithmetic: memory is its roof."
try roofline rmsnorm 8192x4096 --dtype bf16 --device h100

tell "Why is mine slower? Here is a kernel that multiplies each column of a matrix by a factor. It is short, and right:"
sed -n '/^__global__/,/^}/p' examples/column_scale.cu
if scripts/cuda-env nvcc >/dev/null && [ -e "$(dirname "$sol")/shim/libcudart.so.13" ]; then
  tell "sol audit compiles the program, runs all of it on an emulated GPU (there is none here), and prints what it pays
for memory, line by line:"
  try audit examples/column_scale.cu -- 8192 1024
  tell "32 sectors a request where 4 would do. The advice in words of code: let threadIdx.x run along the row."
  diff -U0 examples/column_scale.cu examples/column_scale_fixed.cu | grep -E '^[-+] ' || true
  try audit examples/column_scale_fixed.cu -- 8192 1024
  left=$(tax_of examples/column_scale_fixed.cu)
  if awk "BEGIN { exit !($left < 1.1) }"; then after="The tax is gone."; else
    after="The tax fell from $(tax_of examples/column_scale.cu)x to ${left}x, and no sector is wasted now."; fi
  tell "$after The bill is the same on every machine, so it can guard a repository:
exit code 3 where a change brings the tax back."
  printf '\n%s$ sol audit examples/column_scale.cu --max-tax 1.5%s\n' "$bold" "$plain"
  rc=0
  bill=$("$sol" audit examples/column_scale.cu --max-tax 1.5 -- 8192 1024 2>/dev/null) || rc=$?
  sed -n '/^Past/,/^$/p' <<<"$bill"
  echo "exit code $rc"
else
  tell "There is no CUDA compiler here, so its PTX (examples/scale.ptx) stands in for the program:"
  args=(--arg 'out:f32[8192*1024]' --arg 'f32[8192*1024]' --arg 'f32[1024]')
  try audit examples/scale.ptx --kernel column_scale "${args[@]}" --arg 8192 --arg 1024
  tell "32 sectors a request where 4 would do. With adjacent threads on adjacent elements:"
  try audit examples/scale.ptx --kernel contiguous_scale "${args[@]}" --arg 8388608 --arg 1024
fi

cat <<'END'

Next, with your own code:
  sol audit yours.cu                 a program with a main
  sol audit ./yours -- ARGUMENTS     built with nvcc -cudart shared -lineinfo
  sol audit yours.cu --kernel k --arg ...   a single kernel (sol audit --help)
and beyond: sol roofline --list, sol model llama-3-8b --phase decode,
sol devices; sol --help lists all. docs/audit.md says how the bill is made;
examples/ci has it as a gate in a GitHub workflow.
END
