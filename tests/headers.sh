#!/usr/bin/env bash
# Every public header compiles alone and twice, as C17 and as C++17; every private one in the folders DIRS alone, as C17.
set -u
passed=0 failed=0 skipped=0
strict='-Wall -Wextra -Werror -pedantic -fsyntax-only'

alone() { # HEADER COMPILER FLAG...
  if printf '#include "%s"\n#include "%s"\nint sol_alone;\n' "$1" "$1" | "${@:2}" -Iinclude -Isrc -; then
    passed=$((passed + 1))
  else
    echo "not alone: $1 with ${*:2}"
    failed=$((failed + 1))
  fi
}
works() { echo 'int main() { return 0; }' | "$@" -fsyntax-only - 2>/dev/null; }

for header in include/sol/*.h; do
  for cc in "$CC" "$CLANG"; do
    if works $cc -xc; then alone "${header#include/}" $cc -xc -std=c17 $strict
    else skipped=$((skipped + 1)); fi
  done
  for cxx in "$CXX" "$CLANG"; do
    if works $cxx -xc++; then alone "${header#include/}" $cxx -xc++ -std=c++17 $strict
    else skipped=$((skipped + 1)); fi
  done
done
for dir in $DIRS; do
  for header in src/"$dir"/*.h; do alone "${header#src/}" $CC -xc -std=c17 -I. ${strict/-pedantic/}; done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
