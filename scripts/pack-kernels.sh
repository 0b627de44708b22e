#!/usr/bin/env bash
# Packs nvcc's fat binary anew, its PTX so that it takes half the bytes (scripts/pack-kernels.c).
# usage: scripts/pack-kernels.sh PACK FATBINARY MODE FROM TO
#   PACK: pack-kernels.c, compiled; MODE: fatbinary's --compress-mode. FROM.old, where it is, goes in too.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
from=("$4")
[ ! -e "$4.old" ] || from+=("$4.old")
"$1" "$folder" "${from[@]}" >"$folder/images"
mapfile -t images <"$folder/images"
"$2" -64 --create="$5" --compress-all --compress-mode="$3" "${images[@]}"
