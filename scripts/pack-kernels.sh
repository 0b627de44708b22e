#!/usr/bin/env bash
# Packs nvcc's fat binary anew, its PTX so that it takes half the bytes (scripts/pack-kernels.c).
# usage: scripts/pack-kernels.sh PACK FATBINARY FROM TO   PACK: pack-kernels.c, compiled
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$3" "$folder" >"$folder/images"
mapfile -t images <"$folder/images"
"$2" -64 --create="$4" --compress-all --compress-mode=size "${images[@]}"
