#!/usr/bin/env bash
# Prints assembly that holds kernels' images and their table: TABLE_images and TABLE_image_count, OpsImage of
# src/ops/operation.h each.
# usage: scripts/embed-kernels.sh TABLE FOLDER MODULE...   FOLDER/MODULE.packed is scripts/pack-kernels.sh's
set -eu
table=$1 folder=$2
shift 2
echo '.section .note.GNU-stack,"",%progbits'
echo '.section .rodata'
for module in "$@"; do
  printf '.balign 64\nfat_%s:\n.incbin "%s"\nfat_%s_end:\n' "$module" "$folder/$module.packed" "$module"
  printf 'name_%s: .asciz "%s"\n' "$module" "$module"
done
echo '.balign 4'
echo ".globl ${table}_image_count"
echo ".hidden ${table}_image_count"
echo "${table}_image_count: .long $#"
echo '.section .data.rel.ro,"aw"' # addresses: the linker fills them in
echo '.balign 8'
echo ".globl ${table}_images"
echo ".hidden ${table}_images"
echo "${table}_images:"
for module in "$@"; do
  printf '.quad name_%s, fat_%s, fat_%s_end\n' "$module" "$module" "$module"
done
