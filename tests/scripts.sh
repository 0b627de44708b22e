#!/usr/bin/env bash
# Every shell script parses and, where shellcheck is there, passes it.
set -u
passed=0 failed=0 skipped=0
check() { if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }
for script in scripts/*.sh scripts/check-layers scripts/cuda-env tests/*.sh .ci/run; do
  case $(head -n 1 "$script") in
  *bash) check bash -n "$script" ;;
  *) check sh -n "$script" ;;
  esac
  if command -v shellcheck >/dev/null; then check shellcheck -S warning "$script"
  else skipped=$((skipped + 1)); fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
