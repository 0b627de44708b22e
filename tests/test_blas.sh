#!/usr/bin/env bash
# The stand-in for cuBLAS: handles work, what is not computed says its name, and it exports what the
# toolkit's library does.
set -u
sol=${SOL:-build/sol}
shim=$(dirname "$sol")/shim
[ -e "$shim/libcublas.so.13" ] || { echo "the runtime on the emulator was not built"; exit 77; }
passed=0 failed=0 skipped=0
scratch=$(mktemp -d) && trap 'rm -rf "$scratch"' EXIT
check() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "failed: $what"; fi
}
preload= # under ASan the program's own start must already have it
flags=()
if nm -D "$shim/libcublas.so.13" | grep -q ' U __asan_init'; then
  preload=$(${CC:-cc} -print-file-name=libasan.so)
  flags=('-Wl,--unresolved-symbols=ignore-in-shared-libs')
  export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:verify_asan_link_order=0"
fi
run() { LD_LIBRARY_PATH=$shim LD_PRELOAD=$preload "$scratch/use" >"$scratch/out" 2>"$scratch/err"; }

cat >"$scratch/use.c" <<'C'
#include <stddef.h>
#include <stdio.h>
int cublasCreate_v2(void **), cublasDestroy_v2(void *), cublasSetStream_v2(void *, void *);
int cublasGetStream_v2(void *, void **), cublasSetMathMode(void *, int), cublasGetMathMode(void *, int *);
int cublasStbmv_v2(void *), cublasGetVersion_v2(void *, int *), cublasLtCreate(void **), cublasLtDestroy(void *);
int cublasLtMatrixTransform(void *), cublasSetWorkspace_v2(void *, void *, size_t);
const char *cublasGetStatusName(int);
int main(void) {
  void *blas = NULL, *lt = NULL, *stream = NULL;
  int math = 0, version = 0, wrong = 0;
  wrong += cublasCreate_v2(NULL) != 1;
  wrong += cublasCreate_v2(&blas) || !blas || cublasLtCreate(&lt) || !lt;
  wrong += cublasSetStream_v2(blas, &math) || cublasGetStream_v2(blas, &stream) || stream != &math;
  wrong += cublasSetMathMode(blas, 3) || cublasGetMathMode(blas, &math) || math != 3;
  wrong += cublasSetMathMode(NULL, 3) != 1 || cublasGetMathMode(blas, NULL) != 7;
  wrong += cublasSetWorkspace_v2(blas, NULL, 0) || cublasGetVersion_v2(blas, &version) || version < 130000;
  wrong += cublasStbmv_v2(blas) != 15 || cublasStbmv_v2(blas) != 15 || cublasLtMatrixTransform(lt) != 15;
  puts(cublasGetStatusName(15));
  wrong += cublasDestroy_v2(blas) || cublasLtDestroy(lt) || cublasDestroy_v2(NULL) != 1;
  return wrong;
}
C
check "the program links" "${CC:-cc}" "${flags[@]}" "$scratch/use.c" "$shim/libcublas.so.13" "$shim/libcublasLt.so.13" -o "$scratch/use"
check "handles and their settings" run
check "a status has its name" grep -q CUBLAS_STATUS_NOT_SUPPORTED "$scratch/out"
check "what is missing is named once" test "$(grep -c cublasStbmv_v2 "$scratch/err")" = 1
check "of cuBLASLt, too" grep -q cublasLtMatrixTransform "$scratch/err"

home=$(scripts/cuda-env home 2>/dev/null)
theirs=()
for lib in "$home"/lib64/libcublas.so.13 "$home"/lib64/libcublasLt.so.13; do [ -e "$lib" ] && theirs+=("$lib"); done
if [ ${#theirs[@]} = 2 ] && command -v nm >/dev/null; then
  for lib in "${theirs[@]}"; do nm -D --defined-only "$lib"; done | awk '$2 ~ /[TW]/ { print $3 }' | sort >"$scratch/theirs"
  nm -D --defined-only "$shim/libcublas.so.13" | awk '$2 == "T" { print $3 }' | sort >"$scratch/ours"
  check "all that the toolkit's library exports, by name and version" diff "$scratch/ours" "$scratch/theirs"
else
  echo "skipped: no libcublas.so.13 of the toolkit to compare with" && skipped=$((skipped + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
