#!/usr/bin/env bash
# Every linter there is, over the C files given and the shell scripts: scripts/lint.sh FILE...
set -u
cd "$(dirname "$0")/.." || exit 1
failed=()
lint() { # TOOL ARGUMENT...: runs it where it is installed
  command -v "$1" >/dev/null || { echo "== $1: not installed, skipped" && return; }
  echo "== $1"
  "$@" || failed+=("$1")
}
tidy() {
  local sources=() file
  # What builds only as wasm, with clang's wasm builtins, is left to that build's warnings; what takes CUDA's headers
  # waits for them.
  for file in "$@"; do
    [[ $file == src/shim/* && -z ${CUDA_INC:-} ]] && continue
    [[ $file == *.c && $file != *wasm.c ]] && sources+=("$file")
  done
  printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" sh -c \
    'clang-tidy --quiet "$0" -- -std=c17 -D_GNU_SOURCE -I. -Iinclude -Isrc -Itests ${CUDA_INC:+-isystem "$CUDA_INC"} 2>/dev/null'
}
lint clang-format --dry-run -Werror "$@"
if command -v clang-tidy >/dev/null; then
  echo "== clang-tidy"
  tidy "$@" || failed+=(clang-tidy)
fi
# cppcheck 2.10 reads 0x1p31 as 0, takes sizeof *p for sizeof p, a member for a leak, and i + 1 < count for a sign that i may be -1; signed
# shifts are meant.
lint cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
  --suppress=missingIncludeSystem --suppress=zerodivcond --suppress='incorrectLogicOperator:src/emu/isa/num_*' \
  --suppress=pointerSize --suppress=memleak:src/shim/library.c --suppress=negativeIndex:src/ops/spans.h \
  --suppress=shiftTooManyBitsSigned:src/emu/isa/num_int.h -Iinclude -Isrc src include
lint shellcheck -S warning scripts/setup.sh scripts/*.sh scripts/cuda-env scripts/check-layers tests/*.sh .ci/run
[ ${#failed[@]} = 0 ] || { echo "lint: ${failed[*]} found something" && exit 1; }
