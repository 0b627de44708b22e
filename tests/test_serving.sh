#!/usr/bin/env bash
# The table of published serving results in docs/model.md is what the model predicts now.
set -u
command -v python3 >/dev/null || { echo 'no python3' && exit 77; }
export SOL=${SOL:-build/sol}
if python3 bench/serving.py --check; then echo '1 passed, 0 failed'; else echo '0 passed, 1 failed' && exit 1; fi
