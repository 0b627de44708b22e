#!/usr/bin/env bash
# Ordinary CUDA programs (tests/shim/*.cu), built by nvcc with the shared runtime, run on ours.
set -u
here=$(dirname "${SOL:-build/sol}")/shim
[ -e "$here/libcudart.so.13" ] || { echo "the runtime on the emulator was not built" && exit 77; }
nvcc=$(scripts/cuda-env nvcc) || { echo "no CUDA 13 compiler" && exit 77; }
home=$(scripts/cuda-env home)
bin=${B:-build}/shim-programs # kept: compiling takes longer than running, and the sanitized run uses them too
mkdir -p "$bin"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

ok() { passed=$((passed + 1)); }
bad() {
  failed=$((failed + 1))
  printf 'FAIL %s\n' "$1"
  shift
  [ $# = 0 ] || cat "$@"
}

# build NAME SOURCES AND FLAGS...: the program, where a source (or one of headers) is newer than it.
headers=()
build() {
  local name=$1 newest
  shift
  # shellcheck disable=SC2012 # names of ours
  newest=$(ls -t "$bin/$name" tests/shim/check.h tests/shim/*.cu "${headers[@]}" 2>/dev/null | head -n 1)
  [ "$newest" = "$bin/$name" ] && return
  "$nvcc" -std=c++17 -cudart shared -lineinfo -Wno-deprecated-gpu-targets "$@" -o "$bin/$name" \
    >"$scratch/build.log" 2>&1 || { bad "$name does not compile" "$scratch/build.log" && return 1; }
}

# Under ASan the program's own start must already have it.
preload=
if nm -D "$here/libcudart.so.13" | grep -q ' U __asan_init'; then
  preload=$(${CC:-cc} -print-file-name=libasan.so)
  export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:verify_asan_link_order=0"
fi

# run NAME ARGS...: runs it on the emulator; output and errors in files, the exit code in rc.
run() {
  local name=$1
  shift
  rc=0
  LD_LIBRARY_PATH=$here LD_PRELOAD=$preload timeout "${SUITE_SECONDS:-7200}" "$bin/$name" "$@" >"$scratch/out" 2>"$scratch/err" || rc=$?
}

passes() { # NAME ARGS...: it checks itself
  run "$@"
  if [ $rc = 0 ]; then ok; else bad "$* (exit code $rc)" "$scratch/out" "$scratch/err"; fi
}

says() { # FILE PATTERN WHAT
  if grep -qE -- "$2" "$scratch/$1"; then ok; else bad "$3: no '$2'" "$scratch/out" "$scratch/err"; fi
}

for name in vector_add streams managed symbols copies textures cooperative graphs pools device print threads faults answers library cubes anisotropy; do
  build $name "tests/shim/$name.cu" -arch=sm_90
done
build rdc -arch=sm_90 -rdc=true tests/shim/rdc_main.cu tests/shim/rdc_other.cu
build hopper_gemm -gencode 'arch=compute_90a,code=[compute_90a,sm_90a]' tests/shim/hopper_gemm.cu
headers=(kernels/gemm/*.cuh kernels/gemm/gemm.h kernels/hopper.cuh)
build gemm_twins -gencode 'arch=compute_90a,code=[compute_90a,sm_90a]' -Ikernels tests/shim/gemm_twins.cu
headers=(kernels/attention/*.cuh kernels/attention/attention.h kernels/hopper.cuh kernels/mma.cuh)
build attention_twins -gencode 'arch=compute_90a,code=[compute_90a,sm_90a]' -Ikernels tests/shim/attention_twins.cu
headers=()
build sort --extended-lambda -arch=sm_90 tests/shim/sort.cu

for name in vector_add streams managed symbols copies textures cooperative graphs pools device threads rdc library sort; do
  [ -x "$bin/$name" ] && passes $name
done

# Tensor copies and wgmma: right in every order of completion; with a missing wait, a wrong phase or a wrong descriptor
# wrong in every order. At once is one of the orders (0): then what was issued in time is not missed.
twins() { # PROGRAM UNNOTICED: which of its four faults order 0 does not show
  [ -x "$bin/$1" ] || return
  for order in 0 1 2 3; do
    export SOL_ASYNC_ORDER=$order
    passes "$1"
    for broken in 1 2 3 4; do
      run "$1" $broken
      if [ $rc != 0 ] || [[ $order = 0 && $2 = *$broken* ]]; then ok; else bad "$1 $broken, order $order: not noticed"; fi
    done
  done
  unset SOL_ASYNC_ORDER
}
twins hopper_gemm 1
twins gemm_twins 4
twins attention_twins 14

# The emulator as an H200 answers as CUDA on an H200 did.
for part in device memory launches kernels streams; do
  SOL_DEVICE=h200 run answers $part
  cat "$scratch/out"
done >"$scratch/answers"
if diff tests/shim/answers_h200.txt "$scratch/answers" >"$scratch/diff"; then ok; else bad answers "$scratch/diff"; fi

# Cube maps, mipmaps and three dimensions read what an H200 read: to the bit, but where eight texels are weighed at once.
SOL_DEVICE=h200 run cubes
if awk -F, 'NR == FNR { bits[$1 $2] = $3; value[$1 $2] = $4; next }
  $3 == bits[$1 $2] { same++; next }
  { d = $4 - value[$1 $2]; d = d < 0 ? -d : d; size = value[$1 $2] < 0 ? -value[$1 $2] : value[$1 $2] }
  $1 !~ /^(box|levels|first level|cube levels)/ || d > 0.002 * (size > 1 ? size : 1) { print; wrong++ }
  END { exit wrong || same < 3300 }' tests/data/h200-cubes.csv "$scratch/out" >"$scratch/diff"; then ok; else bad cubes "$scratch/diff" "$scratch/err"; fi

# Anisotropic filters are not modelled, which is said, once, where a texture has one.
passes anisotropy
says err 'maxAnisotropy of 4' 'anisotropic filters'
passes anisotropy none
if grep -q maxAnisotropy "$scratch/err"; then bad 'anisotropy: none was asked for' "$scratch/err"; else ok; fi

# The driver's interface, likewise.
for name in driver_answers driver_images; do
  "${CC:-cc}" -std=gnu17 -I"$home/include" tests/shim/$name.c -ldl -o "$scratch/$name" 2>"$scratch/err" || bad "$name does not compile" "$scratch/err"
done
answer() { # PROGRAM PARTS...
  local name=$1
  shift
  for part; do
    echo "== $part"
    SOL_DEVICE=h200 LD_LIBRARY_PATH=$here LD_PRELOAD=$preload timeout 600 "$scratch/$name" "$part" 2>>"$scratch/err"
  done
}
{
  answer driver_answers start contexts modules memory streams stale fault nodes
  answer driver_images arrays textures mapping
} >"$scratch/answers"
if diff tests/shim/driver_answers_h200.txt "$scratch/answers" >"$scratch/diff"; then ok; else bad 'driver answers' "$scratch/diff"; fi

run print
printf '%s\n' 'host first' 'host second' 'kernel 1 thread 0: text 0.00 x     0|7   |abcdef' \
  'kernel 1 thread 1: text 1.50 x    -1|7   |abcdef' 'host third' 'kernel 2 thread 0: text 0.00 x     0|7   |abcdef' >"$scratch/want"
if cmp -s "$scratch/out" "$scratch/want"; then ok; else bad print "$scratch/out"; fi

# Faults: the error, that it stays, and where it was.
fault() { # KIND ERROR MESSAGE LINE: the text of the line to be named
  local line
  line=$(grep -nF -- "$4" tests/shim/faults.cu | cut -d: -f1)
  run faults "$1"
  printf '%s\n' 'launch cudaSuccess' "synchronize $2" "malloc $2" "last $2" "copy $2" >"$scratch/want"
  if cmp -s "$scratch/out" "$scratch/want"; then ok; else bad "faults $1" "$scratch/out" "$scratch/err"; fi
  says err "$3.*faults.cu:$line\b" "faults $1"
}
fault bounds cudaErrorIllegalAddress 'out of bounds: write of 4 bytes at .*400 bytes' 'x[threadIdx.x + n] = 1'
fault null cudaErrorIllegalAddress 'null pointer' 'x[threadIdx.x] = 1'
fault align cudaErrorMisalignedAddress 'misaligned' '*(int *)(x + 1) = 5'
fault assert cudaErrorAssert 'assertion.*never so' 'assert(n < 0'
fault trap cudaErrorLaunchFailure 'trap' '__trap()'
fault spin cudaErrorLaunchTimeout 'deadlock' 'while (*x == 0)'
fault free cudaErrorIllegalAddress 'use after free' '*x = 1;'

# The report: a line per launch, with counts that are exact.
report=$scratch/report.jsonl
SOL_SHIM_REPORT=$report SOL_WORKERS=1 run vector_add
cp "$report" "$scratch/err"
says err '^\{"name": "_Z3addPKfS0_Pfi","device": "h100-sxm","grid": \[196,1,1\],"block": \[256,1,1\]' 'report'
says err '"global_load": \{"requests": 3126,"sectors": 12500,"ideal_sectors": 12500\},"global_store": \{"requests": 1563,"sectors": 6250' 'report'
if [ "$(wc -l <"$report")" = 3 ]; then ok; else bad 'report: not one line per launch' "$report"; fi
if command -v python3 >/dev/null; then
  if python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$report"; then ok; else bad 'report: no JSON' "$report"; fi
fi
SOL_SHIM_REPORT=$report run faults bounds
tail -n 1 "$report" >"$scratch/err"
says err '"done": false.*"findings": \[\{"kind": "out of bounds"' 'report of a fault'
SOL_SHIM_REPORT=/nonexistent/x run vector_add
says err 'SOL_SHIM_REPORT: cannot write' 'report'

# Settings.
SOL_DEVICE=a100 run device
says out 'A100.*sm_80, 108 SMs' 'SOL_DEVICE' # its kernels are for sm_90: the rest of it fails
says err 'its PTX is for sm_90; the emulated GPU is sm_80; build it with nvcc -gencode arch=compute_80' 'SOL_DEVICE'
SOL_DEVICE=h1000 run vector_add
says err "SOL_DEVICE: unknown device 'h1000'" 'SOL_DEVICE'
SOL_WORKERS=many run vector_add
says err "SOL_WORKERS: 'many' is no number" 'SOL_WORKERS'

# How PTX is packed: zstd by default; LZ4, plain; several architectures; none at all.
build packed_lz4 tests/shim/vector_add.cu -arch=sm_90 --compress-mode=speed && passes packed_lz4
build packed_none tests/shim/vector_add.cu -arch=sm_90 --compress-mode=none && passes packed_none
build packed_size tests/shim/vector_add.cu -arch=sm_90 --compress-mode=size && passes packed_size
build several tests/shim/vector_add.cu -gencode arch=compute_75,code=compute_75 -gencode arch=compute_90a,code=compute_90a \
  -gencode arch=compute_100,code=compute_100 && passes several
SOL_DEVICE=a100 passes several
build no_ptx tests/shim/vector_add.cu -gencode arch=compute_90,code=sm_90 && run no_ptx
says err 'machine code alone and no PTX; build it with nvcc -gencode arch=compute_90,code=\[sm_90,compute_90\]' 'no PTX'
build per_thread tests/shim/streams.cu -arch=sm_90 --default-stream per-thread && passes per_thread

# Everything that the toolkit's own library exports is exported, in the same version.
real=$(find "$home/" -name libcudart.so.13 2>/dev/null | head -n 1)
if [ -n "$real" ]; then
  for file in "$real" "$here/libcudart.so.13"; do nm -D --defined-only "$file" | awk '{ sub(/@+/, "@", $3); print $3 }' | grep '^_*cuda' | sort -u >"$scratch/$(dirname "$file" | tr / _)"; done
  comm -23 "$scratch/$(dirname "$real" | tr / _)" "$scratch/$(echo "$here" | tr / _)" >"$scratch/lacking"
  if [ -s "$scratch/lacking" ]; then bad 'symbols that are lacking' "$scratch/lacking"; else ok; fi
else
  echo "skipped: no libcudart.so.13 of the toolkit to compare with" && skipped=$((skipped + 1))
fi
echo "$passed passed, $failed failed$([ $skipped = 0 ] || echo ", $skipped skipped")"
[ $failed = 0 ]
