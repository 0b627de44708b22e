#!/usr/bin/env bash
# The Python package, installed as users do into a folder of its own, and its tests (python/tests). NumPy, Triton, pandas
# and pytest are taken where they are already; SOL_TEST_TRITON=1 installs Triton into build/venv (260 MB) and keeps it.
# Tests of what is missing are skipped and counted.
set -u
cd "$(dirname "$0")/.." || exit 1
sol=${SOL:-build/sol} B=${B:-build}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PYTHONDONTWRITEBYTECODE=1 TRITON_CACHE_DIR=$PWD/$B/triton-cache # kept: Triton compiles each kernel once

imports() { "$1" -c "import $2" 2>/dev/null; }
if [ -n "${SOL_TEST_TRITON:-}" ] && ! imports build/venv/bin/python triton; then
  python3 -m venv build/venv && build/venv/bin/python -m pip -q install numpy triton
fi
# The interpreter that has most of what the tests want.
python=
for module in 'triton, numpy' numpy sys; do
  for candidate in ${PYTHON:+"$PYTHON"} "$B/venv/bin/python" build/venv/bin/python python3 /usr/bin/python3; do
    if [ -z "$python" ] && imports "$candidate" "$module"; then python=$candidate; fi
  done
done
[ -n "$python" ] || { echo "there is no Python" && exit 77; }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python is older than 3.10" && exit 77; }

# By pip where there is one; a wheel is a zip file all the same.
if imports "$python" pip; then
  "$python" -m pip -q --disable-pip-version-check install --no-index --no-deps --no-compile --target "$scratch/site" ./python || exit 1
else
  mkdir "$scratch/wheel" && "$python" python/backend.py "$scratch/wheel" >/dev/null || exit 1
  "$python" -m zipfile -e "$scratch"/wheel/*.whl "$scratch/site" || exit 1
fi

SOL=$(cd "$(dirname "$sol")" && pwd)/$(basename "$sol")
export SOL
# A sanitized library cannot be loaded into a Python that is not: the tool is sanitized, the library is the plain one.
if [[ $sol == */asan/* ]]; then
  SOL_LIBRARY=$(cd "$B" && pwd)/libsol.so.0.2
  export SOL_LIBRARY
  # What the tool is asked to emulate is the same: the kernels of Triton run in the plain suite.
  PYTHONPATH=$scratch/site "$python" -s python/tests/run.py test_accountant test_audit
else
  PYTHONPATH=$scratch/site "$python" -s python/tests/run.py
fi
