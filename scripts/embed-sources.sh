#!/usr/bin/env bash
# Prints assembly that holds files as text, and their table, NAME_sources and NAME_source_count: LadderText of
# src/ladder/source.h, or WebText of src/report/html.h, each.
# usage: scripts/embed-sources.sh NAME FILE...
set -eu
name=$1
shift
echo '.section .note.GNU-stack,"",%progbits'
echo '.section .rodata'
number=0
for file in "$@"; do
  printf 'path_%d: .asciz "%s"\ntext_%d:\n.incbin "%s"\n.byte 0\n' $number "$file" $number "$file"
  number=$((number + 1))
done
echo '.balign 4'
echo ".globl ${name}_source_count"
echo ".hidden ${name}_source_count"
echo "${name}_source_count: .long $#"
echo '.section .data.rel.ro,"aw"' # addresses: the linker fills them in
echo '.balign 8'
echo ".globl ${name}_sources"
echo ".hidden ${name}_sources"
echo "${name}_sources:"
for number in $(seq 0 $(($# - 1))); do echo ".quad path_$number, text_$number"; done
