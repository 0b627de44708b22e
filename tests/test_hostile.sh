#!/usr/bin/env bash
# Kernels that tried to get out of the emulator, each in a file of tests/ptx_hostile: `sol run-ptx` ends with the exit code
# of the table there. A signal and a sanitizer's report have others.
set -u
sol=${SOL:-build/sol}
folder=tests/ptx_hostile
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:exitcode=99" UBSAN_OPTIONS="${UBSAN_OPTIONS:-}:exitcode=99"

ok() { passed=$((passed + 1)); }
bad() {
  failed=$((failed + 1))
  printf 'FAIL %s\n' "$1"
  tail -n 30 "$scratch/out"
}
try() { # NAME CODES OPTIONS...
  local name=$1 codes=$2 rc=0
  shift 2
  # Processor time bounds what no count of instructions does; a run takes a hundredth of it, sanitized.
  (ulimit -t 60 && exec "$sol" run-ptx "$folder/$name.ptx" --kernel k "$@") >"$scratch/out" 2>&1 </dev/null || rc=$?
  if [[ $rc =~ ^($codes)$ ]]; then ok; else bad "$name: exit code $rc, not $codes: $sol run-ptx $folder/$name.ptx --kernel k $*"; fi
}

while read -r name codes; do
  arguments=()
  if grep -q 'entry k(.param .u64' "$folder/$name.ptx"; then arguments=(--arg 'out:u64[1024]'); fi
  for json in '' --json; do
    try "$name" "$codes" --grid 1 --block 1 --smem 66064 "${arguments[@]}" $json
  done
done < <(grep -v '^#' "$folder/expected")
for file in "$folder"/*.ptx; do # none is left out
  if grep -q "^$(basename "$file" .ptx) " "$folder/expected"; then ok; else bad "$file is not in $folder/expected"; fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
