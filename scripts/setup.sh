#!/usr/bin/env bash
# Installs what is missing, and only that: Debian or Ubuntu packages with apt-get, NVIDIA's compiler from PyPI.
# usage: scripts/setup.sh [build|cuda|test|lint|fuzz]...    (default: build)
# Where something cannot be installed, says what will be skipped without it; fails only without a C compiler.
set -u
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C
levels=" ${*:-build} "
log=build/setup.log

say() { echo "set-up: $*"; }
at() { [[ $levels == *" $1 "* ]]; }

# Each of these tries the tool rather than asking for a version: a compiler without headers is no compiler.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
has_c() { printf '#include <stdio.h>\nint main(void) { return 0; }\n' | ${CC:-cc} -xc - -o "$scratch/c"; }
has_cxx() { printf '#include <vector>\nint main() { return 0; }\n' | ${CXX:-g++} -xc++ - -o "$scratch/c++"; }
has_wasm() { echo 'int f(void) { return 0; }' | ${CLANG:-clang} --target=wasm32 -nostdlib -Wl,--no-entry -xc - -o "$scratch/wasm"; }
has_fuzzer() {
  echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n ? 0 : 0; }' |
    ${CLANG:-clang} -fsanitize=fuzzer,address -xc - -o "$scratch/fuzzer"
}
has_cuda() { scripts/cuda-env nvcc; }
has_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
has_numpy() {
  for python in python3 build/venv/bin/python /usr/bin/python3; do $python -c 'import numpy' && return; done
  return 1
}
has_mpi() { command -v mpirun && { pkg-config --exists ompi-c || command -v mpicc; }; }
has_venv() { python3 -c 'import venv, ensurepip'; }
fuzzer_package() { # libFuzzer's package carries clang's version in its name
  local major
  major=$(${CLANG:-clang} -dumpversion 2>/dev/null | cut -d. -f1)
  echo "clang ${major:+libclang-rt-$major-dev}"
}

# want PACKAGES LOSS CHECK...: where the check fails, notes the packages and what is skipped without them.
packages=()
losses=()
want() {
  "${@:3}" >/dev/null 2>&1 && return
  # shellcheck disable=SC2206 # a list of names
  packages+=($1)
  losses+=("$1: $2")
}

survey() {
  packages=() losses=()
  want 'gcc libc6-dev' 'everything' has_c
  if at cuda || at test; then
    want g++ 'compiling CUDA programs, and the C++ checks' has_cxx
    has_cuda >/dev/null || want 'python3 python3-venv' "NVIDIA's compiler" has_venv
  fi
  if at test; then
    want 'clang lld' 'the wasm build and what clang alone finds' has_wasm
    want nodejs 'running the wasm build' command -v node
    want chromium 'opening reports and the page in a browser' has_browser
    want pkg-config 'the test of an installed copy' command -v pkg-config
    want 'libopenmpi-dev openmpi-bin' 'the fleet over MPI' has_mpi
    want python3-numpy 'the operators of the Python package' has_numpy
  fi
  if at lint || at test; then
    for tool in clang-format clang-tidy cppcheck shellcheck; do want $tool "$tool's findings" command -v $tool; done
  fi
  if at fuzz; then want "$(fuzzer_package)" 'fuzzing' has_fuzzer; fi
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif [ -t 0 ]; then sudo "$@"
  else sudo -n "$@"; fi
}
apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 \
    -o Acquire::Retries=1 "$@" </dev/null >>"$log" 2>&1
}

install_packages() {
  if ! command -v apt-get >/dev/null; then
    say "missing, and there is no apt-get to install it: ${packages[*]}"
  elif [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    say "missing, and neither root nor sudo to install it: ${packages[*]}"
  else
    say "installing ${packages[*]} (apt-get; log in $log)"
    apt update || say "apt-get update failed: $(grep -m1 -E '^[EW]:' "$log" || tail -n 1 "$log")"
    apt install --no-install-recommends "${packages[@]}" && return
    # One package that cannot be had must not keep the others away.
    local package
    for package in "${packages[@]}"; do apt install --no-install-recommends "$package"; done
  fi
}

install_cuda() {
  case $(uname -m) in
  x86_64 | aarch64) ;;
  *) say "NVIDIA has no compiler for $(uname -m)" && return ;;
  esac
  has_venv >/dev/null 2>&1 || return
  say "installing NVIDIA's compiler into build/cuda (PyPI, about 100 MB; log in $log)"
  if ! python3 -m venv build/venv >>"$log" 2>&1 ||
    ! build/venv/bin/python -m pip install --disable-pip-version-check --no-input --no-compile --retries 1 \
      -r scripts/cuda-requirements.txt >>"$log" 2>&1; then
    say "could not: $(tail -n 1 "$log")"
    return
  fi
  local tree
  tree=$(cd build && echo venv/lib/python3*/site-packages/nvidia/cu13)
  ln -sfn "$tree" build/cuda
  # The packages lack two names that nvcc's linking step asks for.
  ln -sfn lib build/cuda/lib64
  ln -sf libcudart.so.13 build/cuda/lib/libcudart.so
}

survey
if [ ${#packages[@]} -gt 0 ]; then
  mkdir -p build
  install_packages
  survey
fi
# libFuzzer's package is known only once clang is there.
if at fuzz && [ ${#packages[@]} -gt 0 ] && [[ " ${packages[*]} " == *" libclang-rt-"* ]]; then
  install_packages
  survey
fi
if { at cuda || at test; } && ! has_cuda >/dev/null; then
  mkdir -p build
  install_cuda
  has_cuda >/dev/null || losses+=("NVIDIA's compiler: auditing .cu files, comparing with CUDA's own headers")
fi

for loss in "${losses[@]}"; do say "skipped for want of $loss"; done
if ! has_c >/dev/null 2>&1; then
  say "cannot go on without a C compiler; install gcc and the C library's headers"
  exit 1
fi
[ ${#losses[@]} -gt 0 ] || say "nothing missing"
