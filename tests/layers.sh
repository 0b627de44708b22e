#!/usr/bin/env bash
# The dependency order holds, and scripts/check-layers sees what goes against it.
set -u
passed=0 failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

expect() { # CODE WORDS ROOT
  local out rc=0
  out=$(scripts/check-layers "$3" 2>&1) || rc=$?
  if [ $rc = "$1" ] && [[ $out == *"$2"* ]]; then
    passed=$((passed + 1))
  else
    printf 'expected exit code %s and "%s", got %s:\n%s\n' "$1" "$2" "$rc" "$out"
    failed=$((failed + 1))
  fi
}
# plant FILE LINE CODE WORDS: a tree with one sound file and one with the line given.
plant() {
  rm -rf "$scratch/tree"
  mkdir -p "$scratch/tree/include/sol" "$scratch/tree/src/base" "$(dirname "$scratch/tree/$1")"
  printf '#include <stdint.h>\n' >"$scratch/tree/include/sol/status.h"
  printf '#include "base/error.h"\n#include "sol/status.h"\n' >"$scratch/tree/src/base/error.c"
  printf 'int x;\n%s\n' "$2" >>"$scratch/tree/$1"
  expect "$3" "$4" "$scratch/tree"
}

expect 0 '' .
plant src/base/a.c '#include "base/b.h"' 0 ''
plant src/base/a.c '#include "device/b.h"' 1 'src/base/a.c:2: base may not include "device/b.h"'
plant src/device/a.c '#include "roofline/b.h"' 1 'device may not include'
plant src/device/a.h '  #  include "cli/b.h" // why' 1 'src/device/a.h:2: device may not include "cli/b.h"'
plant src/device/devices.def '#include "report/b.h"' 1 'device may not include'
plant src/roofline/a.c '#include "device/b.h"' 0 ''
plant src/ptx/a.c '#include "device/b.h"' 1 'ptx may not include'
plant src/mem/a.c '#include "ptx/b.h"' 1 'mem may not include'
plant src/emu/a.c '#include "mem/b.h"' 0 ''
plant src/emu/a.c '#include "device/b.h"' 1 'emu may not include'
plant src/emu/core/a.c '#include "emu/emu.h"' 0 ''
plant src/emu/a.h '#include "emu/core/b.h"' 1 'emu may not include "emu/core/b.h"'
plant src/emu/core/a.c '#include "emu/watch/b.h"' 1 'emu/core may not include'
plant src/emu/core/a.c '#include "emu/isa/b.h"' 1 'emu/core may not include'
plant src/emu/watch/a.c '#include "emu/core/b.h"' 0 ''
plant src/emu/watch/a.c '#include "emu/isa/b.h"' 1 'emu/watch may not include'
plant src/emu/watch/a.c '#include "device/b.h"' 1 'emu/watch may not include'
plant src/emu/isa/a.c '#include "emu/core/b.h"' 0 ''
plant src/emu/isa/a.c '#include "emu/isa/num_b.h"' 0 ''
plant src/emu/isa/a.c '#include "emu/watch/b.h"' 1 'emu/isa may not include'
plant src/emu/isa/num_a.h '#include "emu/core/b.h"' 1 'emu/num may not include'
plant src/emu/other/a.c 'int y;' 1 '"emu/other" has no place'
plant src/base/other/a.c 'int y;' 1 '"base/other" has no place'
plant src/audit/a.c '#include "emu/core/b.h"' 1 'audit may not include'
plant src/driver/a.c '#include "emu/isa/num_b.h"' 0 ''
plant src/driver/a.c '#include "ptx/b.h"' 0 ''
plant src/driver/a.c '#include "audit/b.h"' 1 'driver may not include'
plant src/audit/a.c '#include "measure/b.h"' 1 'audit may not include'
plant src/shim/a.c '#include "ops/b.h"' 1 'shim may not include'
plant src/report/a.c '#include "base/b.h"' 0 ''
plant src/report/a.c '#include "cli/b.h"' 1 'report may not include'
plant src/cli/a.c '#include "device/b.h"' 0 ''
plant src/cli/a.c '#include "shim/b.h"' 1 'cli may not include'
plant src/cli/a.c '#include "image/b.h"' 0 ''
plant src/shim/a.c '#include "image/b.h"' 0 ''
plant src/image/a.c '#include "ptx/b.h"' 1 'image may not include'
plant src/driver/a.c '#include "image/b.h"' 1 'driver may not include'
plant src/shim/a.c '#include "audit/b.h"' 0 ''
plant src/base/a.c '#include "sol/model.h"' 1 'base may not include "sol/model.h" (roofline)'
plant src/base/a.c '#include "sol/sol.h"' 1 'base may not include "sol/sol.h"'
plant src/base/a.c '#include "sol/none.h"' 1 'no place'
plant src/base/a.c '#include "../device/b.h"' 1 'folder/file'
plant src/base/a.c '#include "b.h"' 1 'folder/file'
plant src/base/a.c '#include FILE' 1 'must name its file'
plant src/base/a.c '#include <stdio.h>' 0 ''
plant src/misc/a.c 'int y;' 1 '"misc" has no place'
plant include/sol/device.h '#include "sol/dtype.h"' 0 ''
plant include/sol/device.h '#include "sol/model.h"' 1 'device may not include'
plant include/sol/device.h '#include "base/error.h"' 1 'only public ones'
plant include/sol/extra.h 'int y;' 1 '"extra" has no place'
plant src/device/error.c 'int y;' 1 'src/device/error.c: another file has that name: src/base/error.c'
# The table of folders in docs/architecture.md is what scripts/folder-table.sh prints.
scripts/folder-table.sh >"$scratch/table" 2>&1 || { cat "$scratch/table" && failed=$((failed + 1)); }
if grep '^|' docs/architecture.md | diff "$scratch/table" -; then
  passed=$((passed + 1))
else
  echo 'docs/architecture.md: the table of folders is not the tree: run scripts/folder-table.sh --write'
  failed=$((failed + 1))
fi
mkdir "$scratch/empty"
expect 2 'no sources' "$scratch/empty"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
