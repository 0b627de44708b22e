#!/usr/bin/env bash
# Programs as nvcc links them by default, with the CUDA runtime inside: src/redirect leads it to the emulator.
set -u
sol=${SOL:-build/sol}
here=$(cd "$(dirname "$sol")" && pwd)/shim
[ -e "$here/libsolredirect.so" ] || { echo "the runtime on the emulator was not built" && exit 77; }
bin=${B:-build}/shim-programs # kept: the sanitized run uses them too
mkdir -p "$bin"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

ok() { passed=$((passed + 1)); }
bad() {
  failed=$((failed + 1))
  printf 'FAIL %s\n' "$1"
  head -n 20 "$scratch/out" "$scratch/err" 2>/dev/null
}
says() { # FILE PATTERN...: each is in it
  local file=$1
  shift
  for pattern in "$@"; do
    if grep -qE -- "$pattern" "$scratch/$file"; then ok; else bad "no '$pattern' in $file"; fi
  done
}

preload=
if nm -D "$here/libcudart.so.13" | grep -q ' U __asan_init'; then # the program's own start must already have it
  preload=$(${CC:-cc} -print-file-name=libasan.so)
  export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:verify_asan_link_order=0"
fi
run() { # CODE PROGRAM ARGS...: on the emulator
  local want=$1 rc=0
  shift
  env LD_AUDIT="$here/libsolredirect.so" LD_PRELOAD="$preload:$here/libcudart.so.13:$here/libcudart.so.12" \
    timeout "${SUITE_SECONDS:-7200}" "$@" >"$scratch/out" 2>"$scratch/err" || rc=$?
  if [ $rc = "$want" ]; then ok; else bad "$*: exit code $rc, not $want"; fi
}
audit() { # CODE ARGS...
  local want=$1 rc=0
  shift
  LD_PRELOAD=$preload timeout "${SUITE_SECONDS:-7200}" "$sol" audit "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || rc=$?
  if [ $rc = "$want" ]; then ok; else bad "sol audit $*: exit code $rc, not $want"; fi
}

# ---- what a C compiler alone can build ----
for name in own_runtime hardened plugin_main driver_missing; do
  [ "$bin/$name" -nt tests/shim/$name.c ] || ${CC:-cc} -O1 tests/shim/$name.c -ldl -o "$bin/$name" || bad "$name does not compile"
done
[ "$bin/own_fixed" -nt tests/shim/own_runtime.c ] || ${CC:-cc} -O1 -no-pie -fno-pie tests/shim/own_runtime.c -o "$bin/own_fixed"
run 0 "$bin/own_runtime"
says err 'this program calls cudaSomethingNewer, which the emulator does not support'
run 0 "$bin/own_fixed" # at a fixed address
cp "$bin/own_runtime" "$scratch/stripped" && strip "$scratch/stripped"
run 1 "$scratch/stripped" # nothing is known of it, and nothing is changed

# ---- a bill that lacks what did not run says so ----
audit 5 "$bin/own_runtime"
says err 'it called what does not run here: cudaSomethingNewer'
audit 5 "$bin/driver_missing"
says err 'it called what does not run here: cuMulticastCreate'
audit 5 "$bin/driver_missing" -- libcuda.so # the name without a version
says err 'it called what does not run here: cuMulticastCreate'

# ---- systems that let no code be written ----
if "$bin/hardened" 1 /bin/true; then
  run 0 "$bin/hardened" 1 "$bin/own_runtime"
  run 1 "$bin/hardened" 2 "$bin/own_runtime"
  says err "the program' has the CUDA runtime linked into it, and this system lets no library change code" \
    'nvcc -cudart shared, or in CMake set\(CMAKE_CUDA_RUNTIME_LIBRARY Shared\)'
else
  echo "skipped: no seccomp here" && skipped=$((skipped + 1))
fi

# ---- what nvcc builds ----
nvcc=$(scripts/cuda-env nvcc) || { echo "no CUDA 13 compiler" && echo "$passed passed, $failed failed" && [ $failed = 0 ] && exit 77; }
build() { # NAME SOURCES AND FLAGS...
  local name=$1
  [ "$bin/$name" -nt "$2" ] && return
  "$nvcc" -std=c++17 -lineinfo -Wno-deprecated-gpu-targets "${@:2}" -o "$bin/$name" >"$scratch/err" 2>&1 || bad "$name does not compile"
}
build shared tests/shim/vector_add.cu -cudart shared -arch=sm_90
build static tests/shim/vector_add.cu -arch=sm_90
build static_fixed tests/shim/vector_add.cu -arch=sm_90 -Xcompiler -no-pie,-fno-pie
build static_rdc tests/shim/rdc_main.cu tests/shim/rdc_other.cu -arch=sm_90 -rdc=true
build children tests/shim/children.cu -arch=sm_90 -rdc=true
build conditional tests/shim/conditional.cu -arch=sm_90 -rdc=true
build plugin.so tests/shim/plugin.cu -arch=sm_90 -shared -Xcompiler -fPIC
build no_kernel tests/shim/no_kernel.cu -gencode arch=compute_90,code=sm_90

# The same source gives the same bill, however it was linked.
audit 0 "$bin/shared" --json
sed '/^  "input"/d' "$scratch/out" >"$scratch/shared.json"
for name in static static_fixed; do
  audit 0 "$bin/$name" --json
  says out '"name": "add"'
  if sed '/^  "input"/d' "$scratch/out" | cmp -s - "$scratch/shared.json"; then ok; else bad "$name: another bill than with the shared runtime"; fi
done
audit 0 "$bin/static_rdc"
audit 0 "$bin/children" --json # kernels that launch kernels
says out '"name": "parent"' '"name": "tree"' '"launches": 63'
audit 0 "$bin/conditional"
audit 0 "$bin/plugin_main" --json -- "$bin/plugin.so"
says out '"name": "twice"'
audit 0 /bin/sh --json -- -c "'$bin/static' && '$bin/static'" # each process adds its own
says out '"launches": 4' # two of pack in each

# ---- kernels that the program compiles by itself ----
home=$(scripts/cuda-env home)
nvrtc=$(find -L "$home/lib64" "$home/lib" -name 'libnvrtc.so*' 2>/dev/null | head -n 1)
if [ -n "$nvrtc" ]; then
  [ "$bin/nvrtc" -nt tests/shim/nvrtc.c ] ||
    ${CC:-cc} -O1 -isystem "$home/include" tests/shim/nvrtc.c -Wl,--no-as-needed "$here/libcuda.so.1" "$here/libcudart.so.13" \
      "$nvrtc" "-Wl,-rpath,$(dirname "$nvrtc")" -o "$bin/nvrtc" || bad 'nvrtc does not compile'
  audit 0 "$bin/nvrtc" --json
  says out '"name": "saxpy"'
  audit 0 "$bin/nvrtc" --json -- machine # what NVRTC calls a cubin is PTX then
  says out '"name": "saxpy"'
else
  echo "skipped: no NVRTC here" && skipped=$((skipped + 1))
fi

# ---- where it cannot be ----
cp "$bin/static" "$scratch/stripped" && strip "$scratch/stripped"
audit 2 "$scratch/stripped"
says err 'has the CUDA runtime linked into it, and is stripped' 'do not strip it' 'nvcc -cudart shared -lineinfo -arch=sm_90 SOURCES' \
  'CMAKE_CUDA_RUNTIME_LIBRARY Shared'
audit 4 "$bin/no_kernel"
says err 'no kernel was launched: the program ended with exit code 0'
if grep -q PTX "$scratch/err"; then bad 'a program without kernels is told about PTX'; else ok; fi

echo "$passed passed, $failed failed$([ $skipped = 0 ] || echo ", $skipped skipped")"
[ $failed = 0 ]
