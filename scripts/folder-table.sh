#!/bin/sh
# Prints the table of folders in docs/architecture.md: the ABOUT line of each folder, those of src/ in the order in
# which scripts/check-layers names them. Fails where a folder of src/ has no ABOUT.
# usage: scripts/folder-table.sh [--write]    --write: puts it into docs/architecture.md
cd "$(dirname "$0")/.." || exit 2
order=$(sed -n 's/^ *arrow(".* -> \([a-z0-9/]*\)")$/src\/\1/p' scripts/check-layers)
table() {
  printf '| place | holds |\n|---|---|\n'
  for folder in include/sol src/base $order kernels tests bench; do
    # shellcheck disable=SC2016 # backquotes of Markdown
    [ ! -f "$folder/ABOUT" ] || printf '| `%s/` | %s |\n' "$folder" "$(cat "$folder/ABOUT")"
  done
}
for folder in src/*/ src/*/*/; do
  [ -f "$folder/ABOUT" ] || { echo "folder-table: $folder has no ABOUT: a line that says what it holds" >&2 && exit 1; }
done
[ "${1:-}" = --write ] || { table && exit 0; }
table >docs/table.new
awk '/^\| place \| holds \|$/ { while ((getline line <"docs/table.new") > 0) print line; skip = 1 }
     !/^\|/ { skip = 0 }
     !skip' docs/architecture.md >docs/architecture.new && mv docs/architecture.new docs/architecture.md
rm docs/table.new
