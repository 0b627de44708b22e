#!/usr/bin/env bash
# The examples of the kernel library: the one without a GPU runs on cpu and emu and says what its comment promises; the
# one with plain CUDA compiles and links, and runs where there is a GPU.
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0
check() { if "$@"; then passed=$((passed + 1)); else echo "failed: $*" && failed=$((failed + 1)); fi; }
skip() { echo "skipped: $*" && skipped=$((skipped + 1)); }
[ -f "$B/libsol.a" ] || { echo "no $B/libsol.a: make all" && exit 77; }

check $CC -std=c17 -Wall -Wextra -Werror -Iinclude examples/library.c "$B/libsol.a" -lm -ldl -lpthread -o "$scratch/library"
run() { # BACKEND
  check "$scratch/library" "$1" >"$scratch/out"
  check grep -qx "running on $1" "$scratch/out"
  check grep -q 'row 3: mean square .* before, 1\.0000.. after' "$scratch/out"
  check grep -q 'softmax: rows sum to 1 within' "$scratch/out"
  check grep -qE 'rmsnorm moves 36000 bytes: at least [0-9.]+ us on an ' "$scratch/out"
  check grep -q 'refused: rmsnorm: y overlaps x (argument)' "$scratch/out"
}
run cpu
if scripts/cuda-env nvcc >/dev/null; then run emu; else skip "built without kernels: no nvcc"; fi
check test "$("$scratch/library" abacus 2>&1)" != ""
check eval '! "$scratch/library" abacus 2>/dev/null'

if nvcc=$(scripts/cuda-env nvcc); then
  check "$nvcc" -std=c++17 -Xcompiler -Wall -Iinclude examples/library_cuda.cu "$B/libsol.a" -ldl -lpthread -o "$scratch/library_cuda"
  rc=0
  "$scratch/library_cuda" >"$scratch/out" 2>&1 || rc=$?
  cat "$scratch/out"
  if [ $rc = 77 ]; then skip "no GPU"; else check test $rc = 0; fi
else
  skip "no nvcc"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
