#!/usr/bin/env bash
# The page and the site (make page site) in a real browser, against the command line and the native build: tests/page.py.
set -u
if ! echo 'int f(void) { return 0; }' | $CLANG --target=wasm32 -nostdlib -Wl,--no-entry -xc - -o "$B/has-wasm" 2>/dev/null; then
  echo "no clang with wasm-ld"
  exit 77
fi
command -v python3 >/dev/null || { echo "no python3" && exit 77; }
${MAKE:-make} -j"$(nproc)" --no-print-directory page site "$B/tests/page_probe" || exit 1
exec python3 tests/page.py "$B"
