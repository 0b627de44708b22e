#!/usr/bin/env bash
# Prints the page as one file: web/page.html, each line {{NAME}} replaced by web/NAME, {{wasm}} by the module as base64
# and {{example}} by a kernel to begin with, as JSON.
# usage: scripts/make-page.sh PAGE.wasm
set -eu
cd "$(dirname "$0")/.."
while IFS= read -r line; do
  case $line in
  '{{wasm}}') base64 "$1" | tr -d '\n' ;;
  '{{example}}') sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/\t/\\t/g' -e 's/</\\u003c/g' -e 's/$/\\n/' examples/scale.ptx | tr -d '\r\n' ;;
  '{{'*'}}') cat "web/$(basename "${line:2:-2}")" ;;
  *) printf '%s\n' "$line" ;;
  esac
done <web/page.html
