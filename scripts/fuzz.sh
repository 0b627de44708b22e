#!/usr/bin/env bash
# Runs libFuzzer targets one after another: scripts/fuzz.sh FUZZER... with FUZZ_SECONDS for each.
# Seeds come from tests/fuzz/corpus/NAME; what the fuzzer finds goes to corpus-NAME beside the target, so that
# the next run goes on from there. An input that fails is kept as crash-NAME-...; replay it by
# `make asan` after copying it into the corpus.
set -u
cd "$(dirname "$0")/.." || exit 1
failed=0
for fuzzer in "$@"; do
  name=${fuzzer##*/fuzz_}
  found=$(dirname "$fuzzer")/corpus-$name
  seeds=tests/fuzz/corpus/$name
  mkdir -p "$found"
  echo "== $name, ${FUZZ_SECONDS:-60} s"
  "$fuzzer" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -max_len=8192 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$(dirname "$fuzzer")/crash-$name-" "$found" ${seeds:+"$seeds"} || failed=$((failed + 1))
done
[ $failed = 0 ] || echo "$failed of $# fuzz targets failed"
exit $((failed > 0))
