#!/usr/bin/env bash
# All that needs a GPU, in one call: builds, checks and times, and prints a short table last.
# usage: bench/gpu.sh [STEP...]    steps, in the order given; those up to peers where none is named:
#   build     the tool, the library, the tests of the operations
#   check     every operation on the GPU against its double-precision reference
#   big       tensors of more than 2^31 elements
#   sanitize  the same, a part of it, under compute-sanitizer: memcheck, racecheck, initcheck, synccheck
#   bench     sol bench: every operation's times                      -> bench.json
#   peers     against torch and torch.compile, where there is torch   -> peers.json
#   ladders   sol ladder all: times and counters of every rung         -> ladders.json, ladders-small.json
#   measure   sol devices --measure                                   -> measure.json
#   profile   sol profile against ncu and events (bench/profile_gpu.py) -> profile.json
#   ceilings  what the GPU itself gives                               -> ceilings.json
# Results go to $OUT (default build/gpu), with all logs in one gpu.log; the *.json are to be kept under bench/results/.
# BENCH (default: --check none) and PEERS hold arguments for these two steps: PEERS='--ops rmsnorm' bench/gpu.sh peers
# Needs nvcc and a C compiler; installs nothing. The exit code is 0 when no step failed.
set -u
cd "$(dirname "$0")/.." || exit 1
export B=${B:-build}
out=${OUT:-build/gpu} logs=$B/gpu-logs
mkdir -p "$out" "$logs"
nvcc=$(scripts/cuda-env nvcc) || { echo "no nvcc" >&2; exit 1; }
home=$(scripts/cuda-env home)
export NVCC_APPEND_FLAGS="${NVCC_APPEND_FLAGS:---threads 4}" # the architectures of a module side by side
mapfile -t ops < <(sed -n 's/^OP(\([a-z0-9_]*\),.*/\1/p' src/ops/operations.def)
failed=0
rows=()
step() { # NAME COMMAND...: runs it, keeps its output, notes the verdict
  local name=$1 start=$SECONDS verdict=ok last
  shift
  "$@" >"$logs/$name.log" 2>&1 || { verdict=FAIL failed=1; tail -n 30 "$logs/$name.log"; }
  { echo "==== $name" && cat "$logs/$name.log"; } >>"$out/gpu.log"
  last=$(tail -n 1 "$logs/$name.log" | cut -c1-90)
  rows+=("$(printf '%-9s %-4s %4d s  %s' "$name" "$verdict" $((SECONDS - start)) "$last")")
  echo "${rows[-1]}"
}

build() { make -j"$(nproc)" all "$B/tests/test_ops" "$B/tests/test_ops_big" && echo "built"; }

# One process an operation, side by side: most of the time goes into the reference, on the host.
check() {
  local folder=$logs/check op bad=()
  rm -rf "$folder" && mkdir -p "$folder"
  printf '%s\n' "${ops[@]}" | xargs -P "$(nproc)" -I{} sh -c "'$B/tests/test_ops' --backend cuda {} >'$folder/{}' 2>&1"
  for op in "${ops[@]}"; do
    grep -v ' passed, ' "$folder/$op"
    tail -n 1 "$folder/$op" | grep -q '^1 passed, 0 failed$' || bad+=("$op")
  done
  [ ${#bad[@]} = 0 ] || { echo "failed: ${bad[*]}"; return 1; }
  echo "${#ops[@]} operations right, $(cat "$folder"/* | awk '/ cases  ok/ { n += $3 } END { print n }') cases"
}

big() { "$B/tests/test_ops_big" --quick; }

# Every tool on every operation, as many side by side as there are cores: they mostly wait for the host. A library that
# looks up kernels which a GPU does not have gets errors from the driver: those are no findings.
sanitize() {
  local tool=$home/bin/compute-sanitizer folder=$logs/sanitize op kind bad=() jobs=()
  [ -x "$tool" ] || tool=$(command -v compute-sanitizer) || { echo "no compute-sanitizer"; return 1; }
  rm -rf "$folder" && mkdir -p "$folder"
  for kind in racecheck initcheck memcheck synccheck; do for op in "${ops[@]}"; do jobs+=("$kind $op"); done; done
  printf '%s\n' "${jobs[@]}" | xargs -P "$(nproc)" -L 1 sh -c "timeout 300 '$tool' --tool \$0 --report-api-errors no \
    --error-exitcode 9 '$B/tests/test_ops' --backend cuda --small \$1 >'$folder/'\$0.\$1 2>&1"
  for kind in "${jobs[@]}"; do
    op=$folder/${kind/ /.}
    grep -q '^1 passed, 0 failed$' "$op" && grep -q 'SUMMARY: 0 ' "$op" && continue
    bad+=("$kind")
    grep -v '^cuda .* ok$' "$op" | tail -n 20
  done
  [ ${#bad[@]} = 0 ] || { printf 'failed: %s\n' "${bad[@]}"; return 1; }
  echo "memcheck, racecheck, initcheck and synccheck find nothing in ${#ops[@]} operations"
}

# shellcheck disable=SC2086 # several arguments in one variable
bench() {
  "$B/sol" bench --backend cuda --json ${BENCH:---check none} >"$out/bench.json"
  local code=$?
  python3 bench/compare.py "$out/bench.json"
  return $code
}

# shellcheck disable=SC2086
peers() {
  python3 -c 'import torch' || { echo "no torch here: skipped"; return 0; }
  PYTHONUNBUFFERED=1 python3 bench/peers.py --lib "$B/libsol.so" --json "$out/peers.json" ${PEERS:-}
}

ladders() {
  "$B/sol" ladder all --backend cuda --json >"$out/ladders.json" &&
    "$B/sol" ladder all --small --quick --backend cuda --json >"$out/ladders-small.json" && echo "written"
}

measure() { "$B/sol" devices --measure --json >"$out/measure.json" && echo "written"; }

profile() { SOL=$B/sol bench/profile_gpu.py "$out/profile.json"; }

ceilings() {
  local driver
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)
  "$nvcc" -O3 -arch=native bench/ceilings.cu -o "$B/ceilings" && "$B/ceilings" "$driver" >"$out/ceilings.json" && echo "written"
}

: >"$out/gpu.log"
steps=("$@")
[ $# -gt 0 ] || steps=(build check big sanitize bench peers)
for name in "${steps[@]}"; do
  case $name in
  build | check | big | sanitize | bench | peers | ladders | measure | profile | ceilings) ;;
  *) echo "bench/gpu.sh: no step '$name': build check big sanitize bench peers ladders measure profile ceilings" >&2; exit 2 ;;
  esac
done
for name in "${steps[@]}"; do
  step "$name" "$name"
  [ "$name" = build ] && [ $failed = 1 ] && break
done
for name in bench peers; do
  if [ -s "$out/$name.json" ] && [[ " ${steps[*]} " == *" $name "* ]]; then
    echo && python3 bench/compare.py --short "$out/$name.json"
  fi
done
echo
printf '%s\n' "${rows[@]}"
exit $failed
