#!/usr/bin/env bash
# Prints the page as one file: web/page.html, each line {{NAME}} replaced by web/NAME, {{wasm}} by the module as base64
# and {{examples}} by the kernels of examples/, as JSON.
# usage: scripts/make-page.sh PAGE.wasm
set -eu
cd "$(dirname "$0")/.."
# {"scale": "...", ...}
examples() {
  local file comma='{'
  for file in examples/*.ptx; do
    printf '%s"%s":"' "$comma" "$(basename "$file" .ptx)"
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/\t/\\t/g' -e 's/</\\u003c/g' -e 's/$/\\n/' "$file" | tr -d '\r\n'
    printf '"'
    comma=,
  done
  echo '}'
}

while IFS= read -r line; do
  case $line in
  '{{wasm}}') base64 "$1" | tr -d '\n' ;;
  '{{examples}}') examples ;;
  '{{'*'}}') cat "web/$(basename "${line:2:-2}")" ;;
  *) printf '%s\n' "$line" ;;
  esac
done <web/page.html
