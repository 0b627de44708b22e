#!/usr/bin/env bash
# Runs libFuzzer targets one after another: scripts/fuzz.sh FUZZER...
#   FUZZ_SECONDS      seconds by the clock for each (default 60)
#   FUZZ_CPU_SECONDS  seconds of processor time for each instead: it counts the same on a busy machine
# scripts/fuzz.sh --merge FUZZER... adds to tests/fuzz/corpus what the targets found and no seed reaches, small ones.
# Seeds come from tests/fuzz/corpus/NAME; what the fuzzer finds goes to corpus-NAME beside the target, so that
# the next run goes on from there. An input that fails is kept as crash-NAME-...; replay it by `make asan` after
# copying it into the corpus.
set -u
cd "$(dirname "$0")/.." || exit 1
merge=0
if [ "${1-}" = --merge ]; then merge=1 && shift; fi
largest=4096 # bytes of an input that is taken into the tree
most=24      # inputs taken into the tree at a time

# Sets cpu: hundredths of a second that the programs this shell has waited for took of the processors. Not in a
# subshell, which has waited for none.
clock=$(mktemp)
trap 'rm -f "$clock"' EXIT
read_cpu() {
  times >"$clock"
  cpu=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); s += t[1] * 60 + t[2] } print int(s * 100) }' "$clock")
}

fuzz() { # FUZZER NAME FOUND SEEDS SECONDS
  local words=() more=()
  case $2 in
  emu) words=(-dict=tests/fuzz/ptx.dict) more=(tests/ptx_hostile) ;;
  ptx) words=(-dict=tests/fuzz/ptx.dict) more=(tests/fuzz/corpus/emu tests/ptx_hostile) ;;
  esac
  # Looking for leaks takes seconds on aarch64, after every input that keeps memory; replays look for them.
  if [ "$(uname -m)" = aarch64 ]; then words+=(-detect_leaks=0); fi
  "$1" -max_total_time="$5" -timeout=20 -rss_limit_mb=4096 -max_len=8192 -verbosity=0 -print_final_stats=1 \
    "${words[@]}" \
    -artifact_prefix="$(dirname "$1")/crash-$2-" "$3" "$4" "${more[@]}"
}

fuzz_by_cpu() { # FUZZER NAME FOUND SEEDS
  local from left
  read_cpu
  from=$cpu
  while left=$((FUZZ_CPU_SECONDS - (cpu - from) / 100)) && [ $left -gt 0 ]; do
    fuzz "$@" $((left < 120 ? left : 120)) || return 1
    read_cpu
  done
  echo "$2: $(((cpu - from) / 100)) s of processor time used"
}

# The seeds stay; of the rest those that reach something new, the smallest first.
merge() { # FUZZER NAME FOUND SEEDS
  local work file taken=0
  work=$(mktemp -d) || return 1
  mkdir "$work/new" "$work/small"
  find "$3" -type f -size -"$largest"c -exec cp {} "$work/small" ';'
  cp "$4"/* "$work/new"
  "$1" -merge=1 -verbosity=0 -timeout=20 -max_len=8192 "$work/new" "$work/small" >"$work/log" 2>&1 || cat "$work/log"
  while read -r file; do
    [ -e "$4/$file" ] && continue
    [ $taken -lt $most ] && cp "$work/new/$file" "$4/found-${file:0:12}" && taken=$((taken + 1))
  done < <(find "$work/new" -type f -printf '%s %f\n' | sort -n | cut -d' ' -f2-)
  rm -rf "$work"
  echo "$2: $taken taken into $4"
}

failed=0
for fuzzer in "$@"; do
  name=${fuzzer##*/fuzz_}
  found=$(dirname "$fuzzer")/corpus-$name
  seeds=tests/fuzz/corpus/$name
  mkdir -p "$found" "$seeds"
  if [ $merge = 1 ]; then
    merge "$fuzzer" "$name" "$found" "$seeds"
  elif [ -n "${FUZZ_CPU_SECONDS-}" ]; then
    echo "== $name, $FUZZ_CPU_SECONDS s of processor time"
    fuzz_by_cpu "$fuzzer" "$name" "$found" "$seeds"
  else
    echo "== $name, ${FUZZ_SECONDS:-60} s"
    fuzz "$fuzzer" "$name" "$found" "$seeds" "${FUZZ_SECONDS:-60}"
  fi || failed=$((failed + 1))
done
[ $failed = 0 ] || echo "$failed of $# fuzz targets failed"
exit $((failed > 0))
