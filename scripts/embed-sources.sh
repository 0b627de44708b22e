#!/usr/bin/env bash
# Prints assembly that holds source files as text, and their table: ladder_sources and ladder_source_count,
# LadderText of src/ladder/source.h each.
# usage: scripts/embed-sources.sh FILE...
set -eu
echo '.section .note.GNU-stack,"",%progbits'
echo '.section .rodata'
number=0
for file in "$@"; do
  printf 'path_%d: .asciz "%s"\ntext_%d:\n.incbin "%s"\n.byte 0\n' $number "$file" $number "$file"
  number=$((number + 1))
done
echo '.balign 4'
echo '.globl ladder_source_count'
echo '.hidden ladder_source_count'
echo "ladder_source_count: .long $#"
echo '.section .data.rel.ro,"aw"' # addresses: the linker fills them in
echo '.balign 8'
echo '.globl ladder_sources'
echo '.hidden ladder_sources'
echo 'ladder_sources:'
for number in $(seq 0 $(($# - 1))); do echo ".quad path_$number, text_$number"; done
