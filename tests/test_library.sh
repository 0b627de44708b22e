#!/usr/bin/env bash
# Libraries that compute (cuBLAS and others): programs with NVIDIA's headers check their results against plain loops, and
# `sol audit` bills each call.
set -u
sol=${SOL:-build/sol}
shim=$(cd "$(dirname "$sol")" && pwd)/shim
include=$(scripts/cuda-env include 2>/dev/null)
[ -e "$shim/libcublas.so.13" ] || { echo "the runtime on the emulator was not built"; exit 77; }
[ -e "$include/cublas_v2.h" ] || { echo "no cuBLAS headers"; exit 77; }
command -v "${CXX:-g++}" >/dev/null || { echo "no C++ compiler"; exit 77; }
bin=${B:-build}/shim-programs # kept: the sanitized run uses them too
mkdir -p "$bin"
scratch=$(mktemp -d) && trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() {
  failed=$((failed + 1))
  printf 'FAIL %s\n' "$1"
  head -n 20 "$scratch/out" "$scratch/err" 2>/dev/null
}
preload= # under ASan the program's own start must already have it
if nm -D "$shim/libcublas.so.13" | grep -q ' U __asan_init'; then
  preload=$(${CC:-cc} -print-file-name=libasan.so)
  export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:verify_asan_link_order=0"
fi
build() { # NAME LIBRARIES...
  local name=$1 libs=() lib
  shift
  for lib in "$@" libcudart.so.13; do libs+=("$shim/$lib"); done
  [ "$bin/library_$name" -nt "tests/library/$name.cpp" ] && [ "$bin/library_$name" -nt tests/library/blas_check.hpp ] ||
    "${CXX:-g++}" -std=c++17 -O1 -isystem "$include" "tests/library/$name.cpp" -Wl,--unresolved-symbols=ignore-in-shared-libs \
      "${libs[@]}" -o "$bin/library_$name" 2>"$scratch/err" || bad "$name does not compile"
}
run() { # CODE PROGRAM...
  local want=$1 rc=0
  shift
  LD_PRELOAD=$preload LD_LIBRARY_PATH=$shim timeout "${SUITE_SECONDS:-7200}" "$@" >"$scratch/out" 2>"$scratch/err" || rc=$?
  if [ $rc = "$want" ]; then ok; else bad "$*: exit code $rc, not $want"; fi
}
audit() { # CODE ARGS...
  local want=$1 rc=0
  shift
  LD_PRELOAD=$preload timeout "${SUITE_SECONDS:-7200}" "$sol" audit "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || rc=$?
  if [ $rc = "$want" ]; then ok; else bad "sol audit $*: exit code $rc, not $want"; fi
}
says() { # FILE PATTERN...
  local file=$1
  shift
  for pattern in "$@"; do
    if grep -qE -- "$pattern" "$scratch/$file"; then ok; else bad "no '$pattern' in $file"; fi
  done
}

build blas libcublas.so.13 libcublasLt.so.13
run 0 "$bin/library_blas"
says out '[0-9]+ checks, 0 wrong'
# A program with such calls alone is complete, and each function has a row.
audit 0 "$bin/library_blas" -- one
says out 'Library calls' 'cublasSgemm +3 +147.5 kB +1.573 MFLOP +fp32'
audit 0 "$bin/library_blas" --json -- one
says out '"name": "cublasSgemm"' '"calls": 3' '"bytes_read": 98304' '"bytes_written": 49152' '"flops": 1572864' '"incomplete": false'
audit 2 "$bin/library_blas" --kernel nix -- one
audit 0 "$bin/library_blas"
says out 'cublasXtDgemm +1 '

build blas_more libcublas.so.13 libcublasLt.so.13
run 0 "$bin/library_blas_more"
says out '[0-9]+ checks, 0 wrong'
audit 0 "$bin/library_blas_more" --json
says out '"name": "cublasZgelsBatched"' '"incomplete": false'

build sparse libcusparse.so.12
run 0 "$bin/library_sparse"
says out '[0-9]+ checks, 0 wrong'
audit 0 "$bin/library_sparse" --json
says out '"name": "cusparseSpMM"' '"name": "cusparseXcsrsort"'

build fft libcufft.so.12
run 0 "$bin/library_fft"
says out '[0-9]+ checks, 0 wrong'

# cuRAND's generators on the host, in their order, are NVIDIA's: tests/data/curand.txt is what its library printed.
if [ -e "$include/curand_mtgp32dc_p_11213.h" ]; then
  "${CC:-cc}" -O1 -isystem "$include" tests/library/rand_values.c -Wl,--unresolved-symbols=ignore-in-shared-libs \
    "$shim/libcurand.so.10" "$shim/libcudart.so.13" -o "$bin/library_rand_values" 2>"$scratch/err" || bad 'rand_values does not compile'
  if [ -n "$preload" ]; then export BRIEF=1; fi # without MT19937
  run 0 "$bin/library_rand_values"
  which=. # Sobol's sequences need NVIDIA's library, for its direction vectors
  if grep -q '^type 201 .* bits .*status' "$scratch/out"; then
    which='^type 1'
    echo "skipped: Sobol's sequences: NVIDIA's libcurand.so.10 is not here"
  fi
  not='^$'
  if [ -n "${BRIEF:-}" ]; then not='^type 142'; fi
  if cmp -s <(grep "$which" "$scratch/out") <(grep "$which" tests/data/curand.txt | grep -v "$not"); then ok; else bad "other numbers than NVIDIA's"; fi
fi

# cuRAND's host generators are those of curand_kernel.h, bit for bit: kernels on the emulator draw the same numbers.
if nvcc=$(scripts/cuda-env nvcc) && [ -e "$include/curand_kernel.h" ]; then
  [ "$bin/library_rand" -nt tests/library/rand.cu ] ||
    "$nvcc" -std=c++17 -arch=sm_90 -cudart shared tests/library/rand.cu -o "$bin/library_rand" \
      -Xlinker "$shim/libcurand.so.10,--unresolved-symbols=ignore-in-shared-libs" >"$scratch/out" 2>"$scratch/err" || bad 'rand does not compile'
  run 0 "$bin/library_rand"
  says out '[0-9]+ checks, 0 wrong'
  audit 0 "$bin/library_rand" --json
  says out 'curandGenerateUniformDouble'
else
  echo "skipped: no CUDA 13 compiler, or no cuRAND headers"
fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
