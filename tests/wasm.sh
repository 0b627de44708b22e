#!/usr/bin/env bash
# base, device and roofline build and link freestanding for wasm32, and answer as the native build does.
set -u
if ! echo 'int f(void) { return 0; }' | $CLANG --target=wasm32 -nostdlib -Wl,--no-entry -xc - -o "$B/has-wasm" 2>/dev/null; then
  echo "no clang with wasm-ld"
  exit 77
fi
passed=0 failed=0 skipped=0
check() { if "$@"; then passed=$((passed + 1)); else echo "failed: $*" && failed=$((failed + 1)); fi; }

check ${MAKE:-make} -j"$(nproc)" --no-print-directory wasm "$B/probe.wasm" "$B/tests/wasm_probe"
check "$B/tests/wasm_probe" >"$B/probe.txt"
if command -v node >/dev/null; then check node tests/wasm.js "$B/sol.wasm" "$B/probe.wasm" "$B/probe.txt"
else skipped=1; fi
[ $skipped = 0 ] && echo "$passed passed, $failed failed" || echo "skipped: no node to run it
$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
