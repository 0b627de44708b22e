#!/usr/bin/env bash
# The Python side of the benchmarks, as far as it goes without a GPU: structures as the C compiler lays them out, calls
# through libsol.so, tables and comparisons of results.
set -u
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
B=${B:-build} CC=${CC:-cc} SOL=${SOL:-$B/sol}
passed=0 failed=0
check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@"; then passed=$((passed + 1)); else echo "FAIL $name" && failed=$((failed + 1)); fi
}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

layout() {
  python3 bench/sol_c.py >"$folder/layout.c" && [ "$(grep -c 'sizeof(Sol' "$folder/layout.c")" -ge 20 ] &&
    $CC -std=c17 -Iinclude "$folder/layout.c" -o "$folder/layout" && "$folder/layout"
}
wrong_layout() { # a header that the compiler reads differently is noticed
  mkdir -p "$folder/include/sol" && cp include/sol/*.h "$folder/include/sol/" &&
    sed -i 's/  void \*y;       \/\/ (M, N)/  int added; void *y;/' "$folder/include/sol/ops.h" &&
    ! cmp -s include/sol/ops.h "$folder/include/sol/ops.h" &&
    ! $CC -std=c17 -I"$folder/include" "$folder/layout.c" -o "$folder/layout" 2>/dev/null
}
every_structure() { # none of ops.h is left out
  local name
  for name in $(sed -n 's/^typedef struct \(Sol[A-Za-z]*\) {$/\1/p' include/sol/ops.h); do
    grep -q "sizeof($name)" "$folder/layout.c" || { echo "sol_c.py does not read $name" && return 1; }
  done
}
calls() {
  [ -e "$B/libsol.so" ] || { echo "no $B/libsol.so" && return 1; }
  python3 - "$B/libsol.so" <<'PY'
import ctypes, os, sys
sys.path.insert(0, "bench")
from sol_c import Sol, SolFailure
sol = Sol(os.path.abspath(sys.argv[1]), "cpu")
x, y = (ctypes.c_float * 6)(*range(6)), (ctypes.c_float * 6)()
sol.call("sol_copy", sol.struct("SolCopy", y=ctypes.addressof(y), x=ctypes.addressof(x), m=2, n=3, dtype=sol.SOL_FP32))
assert list(y) == list(x), list(y)
try:
    sol.call("sol_copy", sol.struct("SolCopy", y=ctypes.addressof(y), m=2, n=3, dtype=sol.SOL_FP32))
    sys.exit("a NULL was taken")
except SolFailure as e:
    assert "x is NULL" in str(e), e
try:
    sol.struct("SolCopy", z=1)
    sys.exit("an unknown field was taken")
except TypeError:
    pass
sol.close()
PY
}
cases() { # every case names an operation that peers.py has, in a shape it can read
  python3 - <<'PY'
import ast, csv, re
tree = ast.parse(open("bench/peers.py", encoding="utf-8").read())
ops = next(n.value for n in tree.body if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "OPS")
names = {key.value for key in ops.keys}
rows = list(csv.DictReader(open("bench/peers.csv", encoding="utf-8")))
assert len(rows) > 100 and {r["op"] for r in rows} <= names
assert all(r["dtype"] in ("bf16", "fp32") and re.fullmatch(r"[1-9]\d*x[1-9]\d*", r["shape"]) for r in rows)
PY
}
compare() {
  "$SOL" bench copy --backend cpu --shape 64x65 --shape 32x64 --dtype fp32 --json >"$folder/a.json" &&
    sed 's/"time_us": /"time_us": 9/' "$folder/a.json" >"$folder/b.json" &&
    python3 bench/compare.py "$folder/a.json" | grep -q 'copy fp32 64x65' &&
    python3 bench/compare.py --short "$folder/a.json" | grep -q '2 of 2 cases timed' &&
    python3 bench/compare.py "$folder/b.json" "$folder/a.json" | grep -q 'slower$' &&
    python3 bench/compare.py "$folder/a.json" "$folder/a.json" | grep -q 'now / before: 1.000' &&
    ! python3 bench/compare.py "$folder/layout.c" 2>/dev/null
}
steps() { ! bench/gpu.sh no-such-step 2>/dev/null; }

check layout layout
check "a wrong layout" wrong_layout
check "every structure" every_structure
check calls calls
check cases cases
check compare compare
check "unknown steps of gpu.sh" steps
echo "$passed passed, $failed failed"
[ $failed = 0 ]
