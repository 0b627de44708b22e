#!/bin/sh
# Prints assembler source: the entry points of Sol's libcudart.so.13 that libcudart.so.12 has alike, each forwarded.
# usage: scripts/forward12.sh LIBCUDART13 OBJECTS...    what the objects define is not forwarded
library=$1
shift
own=$(nm --defined-only "$@" | awk '$2 == "T" { print $3 }')
echo '#include "shim12/shim12_forward.S"'
nm -D --defined-only "$library" | awk -v own="$own" '
  BEGIN { n = split(own, names, "\n"); for (i = 1; i <= n; i++) skip[names[i]] = 1 }
  $2 == "T" { sub(/@.*/, "", $3); if ($3 ~ /cuda/ && $3 !~ /^__cudaSol/ && !($3 in skip)) print "FORWARD(" $3 ")" }'
