#!/usr/bin/env bash
# Programs compiled against the last release go on working: its functions, layouts and values are still there
# (scripts/abi.py), but for what tests/data/abi-changed.txt names; a release with such changes has another SONAME. The
# library exports its functions with a version, and nothing else.
set -u
cd "$(dirname "$0")/.." || exit 1
B=${B:-build} CC=${CC:-cc}
export LC_ALL=C CC
passed=0 failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
check() { if "$@"; then passed=$((passed + 1)); else echo "failed: $*" && failed=$((failed + 1)); fi; }
command -v python3 >/dev/null || { echo "python3 is not installed" && exit 77; }

release=$(find tests/data -name 'abi-[0-9]*.txt' | sort -V | tail -n 1)
version=$(basename "$release" .txt) version=${version#abi-}
scripts/abi.py >"$scratch/now" || exit 1
# The second word of a line of the list is a structure, a function or an enumerator.
changes() { comm -23 "$1" "$2" | awk '{ print $2 }' | sort -u; }
changes "$release" "$scratch/now" >"$scratch/changed"
sed -n 's/^\(\w\+\) .*/\1/p' tests/data/abi-changed.txt | sort -u >"$scratch/named"
check diff "$scratch/named" "$scratch/changed"

soname() { readelf -d "$1" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p'; }
interface() { case $1 in 0.*) echo "${1%.*}" ;; *) echo "${1%%.*}" ;; esac; } # VERSION: before 1.0 two numbers
may_keep_name() { # VERSION SONAME NUMBER-OF-CHANGES: of this tree
  [ "$3" = 0 ] || [ "$1" = "$version" ] || [ "$2" != "libsol.so.$(interface "$version")" ]
}
here=$(sed -n 's/^.define SOL_VERSION "\(.*\)"/\1/p' include/sol/version.h)
check may_keep_name "$here" "$(soname "$B/libsol.so")" "$(wc -l <"$scratch/changed")"
if may_keep_name "$version.1" "libsol.so.$(interface "$version")" 1; then check false a release with changes may keep its name; else passed=$((passed + 1)); fi

# A member that moves, a value that changes and a function that takes another type are all seen.
mkdir "$scratch/tree" && cp -r include "$scratch/tree"
sed -i 's/^  SolBackend backend;$/  int added;\n&/; s/SOL_BACKEND_EMU,/SOL_BACKEND_EMU = 7,/' "$scratch/tree/include/sol/context.h"
sed -i 's/sol_op_info(int op)/sol_op_info(long op)/' "$scratch/tree/include/sol/op.h"
scripts/abi.py "$scratch/tree" >"$scratch/other" || exit 1
check test "$(changes "$scratch/now" "$scratch/other" | xargs)" = "SOL_BACKEND_CUDA SOL_BACKEND_EMU SolContextOptions sol_op_info"

sed -n 's/^function \(\w*\) .*/\1/p' "$scratch/now" >"$scratch/declared"
nm -D --defined-only "$B/libsol.so" | awk '$2 != "A" { print $3 }' | sort >"$scratch/exported"
check diff <(sed 's/$/@@SOL_0/' "$scratch/declared" | sort) "$scratch/exported"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
