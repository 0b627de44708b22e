#!/usr/bin/env bash
# scripts/lint.sh fails where a linter finds something or cannot read a file, looks again only at what changed, counts a
# tool that is not there as skipped, and knows what changed since the release point. Each case is a small tree of its own.
set -u
for tool in clang-format clang-tidy cppcheck shellcheck; do
  command -v $tool >/dev/null || { echo "$tool is not installed" && exit 77; }
done
passed=0 failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
export CUDA_INC='' B=build
unset GIT_DIR GIT_WORK_TREE

plant() { # FILE TEXT
  mkdir -p "$(dirname "$tree/$1")"
  printf '%s\n' "$2" >"$tree/$1"
}
sound() { # a tree in which there is nothing to find
  rm -rf "$tree"
  mkdir -p "$tree/scripts"
  cp scripts/lint.sh scripts/cuda-env "$tree/scripts"
  cp .clang-format .clang-tidy "$tree"
  plant src/base/one.h 'int one(int x);'
  plant src/base/one.c $'#include "base/one.h"\n\nint one(int x) { return x + 1; }'
  clang-format -i "$tree"/src/base/one.[ch]
  plant tests/run.sh $'#!/usr/bin/env bash\ncd "$1" || exit 1'
}
expect() { # CODE LAST WORDS [ARGUMENT]: of the tree as it is
  local out rc=0
  out=$("$tree/scripts/lint.sh" ${4:+"$4"} 2>&1) || rc=$?
  # shellcheck disable=SC2053 # the last line is compared with a pattern
  if [ $rc = "$1" ] && [[ $(tail -n 1 <<<"$out") == $2 ]] && [[ $out == *"$3"* ]]; then
    passed=$((passed + 1))
  else
    printf 'expected exit code %s, "%s" and "%s", got %s:\n%s\n' "$1" "$2" "$3" "$rc" "$out"
    failed=$((failed + 1))
  fi
}
found() { # WORDS FILE TEXT: a sound tree with one more file in which something is found
  sound
  plant "$2" "$3"
  expect 1 '* passed, [1-9]* failed' "$1: $2"
}
# stand_in TOOL VERSION: a tool that finds something in whatever it is shown.
stand_in() {
  mkdir -p "$scratch/bin"
  printf '#!/bin/sh\n[ "$1" = --version ] && cat <<"END" && exit\n%s\nEND\necho "looked"\nexit 1\n' "$2" >"$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
}

sound
expect 0 '11 passed, 0 failed' '' # two C files by four tools, three scripts by shellcheck
for tool in clang-format clang-tidy cppcheck shellcheck; do stand_in $tool "$($tool --version)"; done
PATH=$scratch/bin:$PATH expect 0 '11 passed, 0 failed' '' # nothing changed: nobody looks
plant src/base/one.h $'int one(int x);\nint two(int x);'
PATH=$scratch/bin:$PATH expect 1 '3 passed, 8 failed' 'src/base/one.c' # the header is in what one.c includes
expect 0 '11 passed, 0 failed' ''
echo 'ColumnLimit: 90' >>"$tree/.clang-format"
PATH=$scratch/bin:$PATH expect 1 '* passed, [1-9]* failed' 'clang-format: src/base/one.c'

found clang-format src/base/bad.c 'int  bad ;'
found clang-tidy src/base/bad.c 'int bad(int x) { return x == x; }'
found clang-tidy src/base/bad.c $'int bad(void);\nint bad(void) { return unknown; }' # does not compile
found clang-tidy src/emu/core/bad_wasm.c 'int bad(int x) { return x == x; }'
found analyzer src/base/bad.c $'int bad(int x) {\n  int *p = 0;\n  if (x > 3) p = &x;\n  return *p;\n}'
found cppcheck tests/fuzz/bad.h $'static inline int bad(void) {\n  int a[2] = {0};\n  return a[2];\n}'
found shellcheck scripts/bad.sh $'#!/bin/sh\ncd "$1"'
sound
plant src/base/bad.c '#include "base/missing.h"'
expect 1 '* passed, 4 failed' 'missing.h'

sound
stand_in cppcheck 'Cppcheck 99.1'
rm "$scratch/bin"/{clang-format,clang-tidy,shellcheck}
PATH=$scratch/bin:$PATH expect 0 '* passed, 0 failed, 2 skipped' 'skipped: cppcheck is of another version' changed
PATH=$scratch/bin:$PATH expect 1 '* passed, 2 failed' 'cppcheck: src/base/one.c'
mkdir "$scratch/few"
ln -s /usr/local/bin/* /usr/bin/* /bin/* "$scratch/few" 2>/dev/null
rm -f "$scratch/few"/{cppcheck,clang-tidy}
PATH=$scratch/few expect 0 '* passed, 0 failed, 6 skipped' 'skipped: clang-tidy is not installed'

history() { # COMMAND...
  git -C "$tree" -c user.name=a -c user.email=a@b -c init.defaultBranch=m -c commit.gpgsign=false -c tag.gpgsign=false "$@" >/dev/null
}
commit() { history add -A && history commit -m "$1"; }
if command -v git >/dev/null; then
  sound
  plant .gitignore build
  plant src/base/old.c 'int  old ;'
  expect 1 '* passed, [1-9]* failed' 'everything counts as changed' changed # no history
  history init && plant CHANGELOG.md '## 0.1.0' && commit 'the release'
  expect 0 'nothing changed' 'what changed since' changed
  plant src/base/committed.c 'int  committed ;' && commit 'later'
  expect 1 '* passed, 1 failed' 'clang-format: src/base/committed.c' changed
  plant src/base/committed.c 'int committed;'
  expect 0 '3 passed, 0 failed' '' changed
  plant src/base/untracked.c 'int  untracked ;'
  expect 1 '* passed, 1 failed' 'clang-format: src/base/untracked.c' changed
  commit 'all' && history tag v0.1.1
  expect 0 'nothing changed' 'what changed since v0.1.1' changed
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
