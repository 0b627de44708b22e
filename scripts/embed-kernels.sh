#!/usr/bin/env bash
# Prints assembly that holds kernels' images and their table: TABLE_images and TABLE_image_count, OpsImage of
# src/ops/operation.h each.
# usage: scripts/embed-kernels.sh TABLE FOLDER MODULE...   FOLDER/MODULE.fatbin and FOLDER/MODULE.keep/ are nvcc's
set -eu
table=$1 folder=$2
shift 2
echo '.section .note.GNU-stack,"",%progbits'
echo '.section .rodata'
blob() { # LABEL FILE: the file, then a NUL
  printf '.balign 64\n%s:\n.incbin "%s"\n%s_end:\n.byte 0\n' "$1" "$2" "$1"
}
for module in "$@"; do
  # The source's own name: MODULE, or rungs.
  keep=$(printf '%s\n' "$folder/$module.keep"/*.compute_90a.ptx)
  keep=${keep%.compute_90a.ptx}
  blob "fat_$module" "$folder/$module.fatbin"
  blob "ptx75_$module" "$keep.compute_75.ptx"
  blob "ptx90_$module" "$keep.compute_90a.ptx"
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
  for field in name fat fat_end ptx75 ptx75_end ptx90 ptx90_end; do
    case $field in
      *_end) echo ".quad ${field%_end}_${module}_end" ;;
      *) echo ".quad ${field}_$module" ;;
    esac
  done
done
