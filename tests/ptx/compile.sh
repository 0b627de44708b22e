#!/usr/bin/env bash
# Compiles the corpus with nvcc: tests/ptx/compile.sh OUT [-c] ARCH... [-- FILE.cu...]
#   OUT/ARCH/NAME.ptx for each file and each architecture (75 80 90 100) that is at least the file's own.
#   -c: also OUT/ARCH/NAME.cubin, assembled from that PTX for CUBIN_ARCH (default: the same architecture), so
#       that code generated for an old architecture can be tried on a newer GPU.
# JOBS compilers at a time (default 2); a warning is a failure. The last line is "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
nvcc=$(scripts/cuda-env nvcc) || { echo "no CUDA 13 compiler" && exit 77; }
[ $# -ge 2 ] || { sed -n '2,6s/^# //p' "$0" && exit 2; }
out=$1 cubin=0 archs=()
shift
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  if [ "$1" = -c ]; then cubin=1; else archs+=("$1"); fi
  shift
done
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- tests/ptx/*.cu

compile() { # FILE.cu ARCH OUT CUBIN NVCC
  local file=$1 arch=$2 name least log
  name=$(basename "$file" .cu)
  least=$(sed -n 's/^\/\/! arch sm_//p' "$file")
  [ "$arch" -ge "${least:-75}" ] || return 0
  mkdir -p "$3/$arch"
  log=$("$5" -ptx -arch="compute_$arch" -lineinfo "$file" -o "$3/$arch/$name.ptx" 2>&1) || log="nvcc failed: $log"
  # A stack whose depth depends on recursion is what such files are for.
  if [ -z "$log" ] && [ "$4" = 1 ]; then
    log=$("$(dirname "$5")/ptxas" -arch="sm_${CUBIN_ARCH:-$arch}" -suppress-stack-size-warning \
      "$3/$arch/$name.ptx" -o "$3/$arch/$name.cubin" 2>&1) || log="ptxas failed: $log"
  fi
  if [ -z "$log" ]; then echo "ok $name sm_$arch"; else printf 'FAIL %s sm_%s\n%s\n' "$name" "$arch" "$log"; fi
}
export -f compile

lines=$(for arch in "${archs[@]}"; do for file in "$@"; do printf '%s\0%s\0' "$file" "$arch"; done; done |
  xargs -0 -n 2 -P "${JOBS:-2}" bash -c 'compile "$4" "$5" "$1" "$2" "$3"' - "$out" "$cubin" "$nvcc" | tr -d '\0')
grep -v '^ok ' <<<"$lines"
failed=$(grep -c '^FAIL ' <<<"$lines")
echo "$(grep -c '^ok ' <<<"$lines") passed, $failed failed"
[ "$failed" = 0 ]
