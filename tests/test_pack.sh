#!/usr/bin/env bash
# scripts/pack-fatbin.c, which packs the embedded kernels: smaller, the same contents (it compares them itself), and an error
# for what is no fat binary. That the images run is every kernel test's to say.
set -u
B=${B:-build}
kernels=${KERNELS:-build/kernels} tool=$B/pack-fatbin.$(uname -m) from=$kernels/copy.fatbin
[ -x "$tool" ] || tool=build/pack-fatbin.$(uname -m)
{ [ -x "$tool" ] && [ -e "$from" ]; } || { echo "no kernels: built without nvcc"; exit 77; }
passed=0 failed=0
check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@"; then passed=$((passed + 1)); else echo "FAIL $name" && failed=$((failed + 1)); fi
}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
size() { wc -c <"$1"; }

smaller() { "$tool" "$from" "$folder/once" && [ $(($(size "$folder/once") * 2)) -lt "$(size "$from")" ]; }
again() { "$tool" "$folder/once" "$folder/twice" && cmp -s "$folder/once" "$folder/twice"; } # unpacked and packed again
cut_short() { head -c 5000 "$from" >"$folder/cut" && ! "$tool" "$folder/cut" "$folder/out" 2>"$folder/said" && grep -q 'cut short' "$folder/said"; }
no_fatbin() { echo 'no fat binary at all' >"$folder/text" && ! "$tool" "$folder/text" "$folder/out" 2>/dev/null; }

check "to less than half" smaller
check "packed again" again
check "cut short" cut_short
check "another file" no_fatbin
echo "$passed passed, $failed failed"
[ $failed = 0 ]
