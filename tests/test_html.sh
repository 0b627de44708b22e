#!/usr/bin/env bash
# Reports in a real browser: tests/reports.py. Without one, what needs none is tested all the same.
set -u
command -v python3 >/dev/null || { echo "no python3" && exit 77; }
exec python3 tests/reports.py "${SOL:-$B/sol}"
