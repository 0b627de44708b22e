#!/usr/bin/env bash
# The operations between ranks on cpu, over MPI: one, three and four processes of this machine.
set -u
build=$(dirname "${SOL:-build/sol}") passed=0 failed=0
command -v mpirun >/dev/null || { echo 'no mpirun' && exit 77; }
SOL_FLEET=$(realpath "$build/fleet/libsolfleet.so" 2>/dev/null)
[ -e "$SOL_FLEET" ] || { echo 'built without MPI' && exit 77; }
export SOL_FLEET ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 # MPI's own allocations are not this test's
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if ! mpirun --oversubscribe -n 2 true >/dev/null 2>&1; then echo 'mpirun does not start here' && exit 77; fi
for n in 1 3 4; do
  out=$(timeout 120 mpirun --oversubscribe -n $n "$build/tests/test_collective" ranks 2>&1)
  if [ "$(grep -c '^1 passed, 0 failed' <<<"$out")" = $n ]; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "$n ranks:" && tail -n 20 <<<"$out"
  fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
