#!/usr/bin/env bash
# clang-format, clang-tidy, cppcheck and shellcheck. usage: scripts/lint.sh [changed | files]
#   (nothing)  every C file and shell script, clang's static analyzer included
#   changed    those that differ from the release point, without the analyzer: it takes most of the time
#   files      prints the names of the C files
# The release point is the newest tag v* behind HEAD; without a tag, the commit that last changed a version's heading in
# CHANGELOG.md. Without git, or in a shallow clone, everything counts as changed.
# B/lint keeps, for each tool and file found clean, the checksums of the file, the headers that it includes and the tool's
# version and settings: while they hold, the tool does not look at that file again.
# The last line counts: "N passed, N failed", and ", N skipped" where a tool is missing or of another version.
set -u
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C B=${B:-build} CC=${CC:-cc} CUDA_INC=${CUDA_INC-$(scripts/cuda-env include 2>/dev/null)}
export MPI_INC=${MPI_INC-$(pkg-config --variable=includedir ompi-c 2>/dev/null)}
lint=$B/lint

# The two headers left out are CUDA C++; nvcc compiles them with the programs that include them.
c_files() {
  find include src tests bench examples scripts -name '*.[ch]' ! -path examples/rules/check.h ! -path tests/shim/check.h 2>/dev/null
}
shell_scripts() {
  find .ci scripts tests bench -type f \( -name '*.sh' -o -perm -u+x \) 2>/dev/null | while read -r file; do
    case $(head -n 1 "$file") in '#!'*sh) echo "$file" ;; esac
  done
}

flags() { # FILE: what decides how the Makefile's compiler reads it
  local flags='-std=c17 -I. -Iinclude -Isrc -Itests'
  case $1 in
  *_wasm.c) echo "-ffreestanding $flags" ;;
  *) echo "$flags -D_GNU_SOURCE ${CUDA_INC:+-isystem $CUDA_INC} ${MPI_INC:+-isystem $MPI_INC}" ;;
  esac
}
# shellcheck disable=SC2046 # flags are a list
tidy() { # FILE CHECKS: with the checks of .clang-tidy but for those given
  # A tenth of the analyzer's usual steps a function: an instruction handler stamped out by macros takes minutes otherwise.
  local target=() steps=(-Xclang -analyzer-config -Xclang max-nodes=20000)
  if [[ $1 == *_wasm.c ]]; then target=(--target=wasm32 -nostdlibinc); fi
  clang-tidy --quiet --checks="$2" "$1" -- -xc "${steps[@]}" "${target[@]}" $(flags "$1")
}
# cppcheck 2.10 reads 0x1p31 as 0, takes sizeof *p for sizeof p, a member for a leak, and i + 1 < count for a sign that i
# may be -1; signed shifts are meant. It does not see that after `if (!CHECK(file)) return;` there is nothing to close.
look() { # TOOL FILE
  case $1 in
  clang-format) clang-format --dry-run -Werror "$2" ;;
  clang-tidy) tidy "$2" '-clang-analyzer-*' ;;
  analyzer) tidy "$2" '-bugprone-*,-misc-*,-performance-*,-portability-*,-readability-*' ;;
  cppcheck)
    cppcheck --quiet --language=c --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
      --suppress=missingIncludeSystem --suppress=zerodivcond --suppress='incorrectLogicOperator:src/emu/isa/num_*' \
      --suppress=incorrectLogicOperator:tests/fuzz/fuzz_text.c --suppress='resourceLeak:tests/*' \
      --suppress=pointerSize --suppress=memleak:src/shim/library.c --suppress=negativeIndex:src/ops/spans.h \
      --suppress=shiftTooManyBitsSigned:src/emu/isa/num_int.h -Iinclude -Isrc -I. -Itests "$2" ;;
  shellcheck) shellcheck -S warning "$2" ;;
  esac
}

# The repository's files that a verdict on FILE depends on, FILE first.
# shellcheck disable=SC2046 # flags are a list
reads() {
  local rule
  case $1 in
  *.[ch]) rule=$("$CC" -MM -MT made -xc $(flags "$1") "$1") && sed 's/^made://; s/\\$//' <<<"$rule" ;;
  *) echo "$1" ;;
  esac
}
one() { # FILE TOOL...: keeps the checksums for each tool that finds nothing, and shows what the others found
  local file=$1 tool read out
  shift
  read=$(reads "$file") || return
  for tool in "$@"; do
    mkdir -p "$(dirname "$lint/$tool/$file")"
    # shellcheck disable=SC2086 # a list of names
    sha256sum "$lint/settings.$tool" $read >"$lint/now.$$" # before it looks: the file may be edited meanwhile
    if out=$(look "$tool" "$file" 2>&1); then
      mv "$lint/now.$$" "$lint/$tool/$file"
    else
      printf '== %s: %s\n%s\n' "$tool" "$file" "$out"
      rm -f "$lint/now.$$"
    fi
  done
}
if [ "${1-}" = one ]; then # this script calls itself, so that several files are looked at at once
  one "${@:2}"
  exit 0
fi

program() { if [ "$1" = analyzer ]; then echo clang-tidy; else echo "$1"; fi; }
# `make test` asks the versions whose findings the tree is kept free of: others format differently and find other things.
version() {
  case $1 in
  clang-*) echo 'version 14\.' ;;
  cppcheck) echo 'Cppcheck 2\.10' ;;
  *) echo . ;;
  esac
}
unusable() { # TOOL: why it cannot be asked, or nothing
  local name
  name=$(program "$1")
  if ! command -v "$name" >/dev/null; then
    echo "$name is not installed"
  elif [ "$mode" = changed ] && ! "$name" --version | grep -q "$(version "$name")"; then
    echo "$name is of another version; make lint asks it all the same"
  fi
}
settings() { # TOOL: what its verdicts depend on beside the sources
  "$(program "$1")" --version | grep -v 'Host CPU'
  cat .clang-format .clang-tidy 2>/dev/null
  declare -f look tidy flags
  echo "$CUDA_INC $MPI_INC"
}
# Removes the checksums kept for a tool and file when one of them no longer holds.
forget() {
  find "$lint" -mindepth 2 -type f >"$lint/kept"
  [ -s "$lint/kept" ] || return
  xargs cut -c 67- <"$lint/kept" | sort -u | xargs sha256sum >"$lint/now" 2>/dev/null
  xargs awk -v now="$lint/now" 'BEGIN { while ((getline line <now) > 0) holds[line] = 1 }
    !($0 in holds) { print FILENAME; nextfile }' <"$lint/kept" | xargs -r rm -f
}

release_point() {
  # The repository around a scratch copy of the tree is not the tree's.
  [ "$(git rev-parse --is-shallow-repository --show-prefix 2>/dev/null)" = false ] || return
  git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || git log -1 --format=%h -G'^## [0-9]' -- CHANGELOG.md
}
everything() { { c_files; shell_scripts; } | sort; }
changed() {
  local point
  point=$(release_point)
  if [ -z "$point" ]; then
    echo "everything counts as changed: there is no history that tells the last release point" >&2
    everything
    return
  fi
  echo "what changed since $point:" >&2
  everything | grep -xFf <(git diff --name-only "$point" -- && git ls-files --others --exclude-standard)
}

tools_for() { # FILE
  case $1 in
  *.[ch]) echo "clang-format clang-tidy cppcheck $([ "$mode" = changed ] || echo analyzer)" ;;
  *) echo shellcheck ;;
  esac
}
# What takes headers of CUDA's or MPI's that are not there: only its format can be looked at.
out_of_reach() {
  local header
  # The compiler says which headers a file takes, also those behind others.
  if [ -z "$CUDA_INC" ]; then
    header=$("${CC:-cc}" -x c -E -D_GNU_SOURCE -Isrc -Iinclude -Itests ${MPI_INC:+-I"$MPI_INC"} "$1" 2>&1 >/dev/null || true)
    if grep -qE 'fatal error: (cu|nv)[a-z_]*\.h' <<<"$header"; then return 0; fi
  fi
  if [ ! -e "$MPI_INC/mpi.h" ] && grep -q '^#include <mpi.h>' "$1"; then return 0; fi
  for header in $(sed -nE 's/^#include <((cu|nv)[a-z_]*\.h)>.*/\1/p' "$1"); do
    [ -e "$CUDA_INC/$header" ] || return 0
  done
  return 1
}

mode=${1:-everything}
case $mode in
everything | changed) ;;
files) c_files | sort && exit ;;
*) echo "usage: scripts/lint.sh [changed | files]" >&2 && exit 2 ;;
esac
mkdir -p "$lint"
declare -A unasked reasons
for tool in clang-format clang-tidy cppcheck analyzer shellcheck; do
  unasked[$tool]=$(unusable "$tool")
  [ -n "${unasked[$tool]}" ] || settings "$tool" >"$lint/settings.$tool"
done
forget
asked=() skipped=0 passed=0 failed=0
while read -r file; do
  todo=
  for tool in $(tools_for "$file"); do
    reason=${unasked[$tool]}
    if [ -z "$reason" ] && [[ $file == *.[ch] && $tool != clang-format ]] && out_of_reach "$file"; then
      reason="CUDA's or MPI's headers are not there"
    fi
    if [ -n "$reason" ]; then
      reasons[$reason]=1 skipped=$((skipped + 1))
    else
      asked+=("$lint/$tool/$file")
      [ -e "$lint/$tool/$file" ] || todo+=" $tool"
    fi
  done
  [ -z "$todo" ] || echo "$file$todo" >&3
done < <("$mode") 3>"$lint/todo"
xargs -r -L 1 -P "${JOBS:-$(nproc)}" scripts/lint.sh one <"$lint/todo"
for check in "${asked[@]}"; do
  if [ -e "$check" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
for reason in "${!reasons[@]}"; do echo "skipped: $reason"; done
if [ $((passed + failed + skipped)) = 0 ]; then # one test for tests/run.sh: that there is nothing
  echo "nothing changed"
  exit 0
fi
echo "$passed passed, $failed failed$([ $skipped = 0 ] || echo ", $skipped skipped")"
[ $failed = 0 ]
