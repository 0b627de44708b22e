#!/usr/bin/env bash
# Prints assembly that holds the kernels' images and their table, ops_images of src/ops/ops.h.
# usage: scripts/embed-kernels.sh FOLDER MODULE...   FOLDER/MODULE.fatbin and FOLDER/MODULE.keep/ are nvcc's
set -eu
folder=$1
shift
echo '.section .note.GNU-stack,"",%progbits'
echo '.section .rodata'
blob() { # LABEL FILE: the file, then a NUL
  printf '.balign 64\n%s:\n.incbin "%s"\n%s_end:\n.byte 0\n' "$1" "$2" "$1"
}
for module in "$@"; do
  keep=$folder/$module.keep/$module
  blob "fat_$module" "$folder/$module.fatbin"
  blob "ptx75_$module" "$keep.compute_75.ptx"
  blob "ptx90_$module" "$keep.compute_90a.ptx"
  printf 'name_%s: .asciz "%s"\n' "$module" "$module"
done
echo '.balign 4'
echo '.globl ops_image_count'
echo '.hidden ops_image_count'
echo "ops_image_count: .long $#"
echo '.section .data.rel.ro,"aw"' # addresses: the linker fills them in
echo '.balign 8'
echo '.globl ops_images'
echo '.hidden ops_images'
echo 'ops_images:'
for module in "$@"; do
  for field in name fat fat_end ptx75 ptx75_end ptx90 ptx90_end; do
    case $field in
      *_end) echo ".quad ${field%_end}_${module}_end" ;;
      *) echo ".quad ${field}_$module" ;;
    esac
  done
done
