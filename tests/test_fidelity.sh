#!/usr/bin/env bash
# The corpus of public programs, as far as it goes without a GPU and without their sources: its list, ncu's answers, the table that
# is made of them, and the comparison with a bill.
set -u
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bench
passed=0 failed=0
check() { # NAME: the Python program on standard input says nothing wrong
  if python3 -; then passed=$((passed + 1)); else echo "FAIL $1" && failed=$((failed + 1)); fi
}
check "the list names each run once, of a known collection" <<'PY'
import csv, corpus
rows = list(csv.DictReader(open(corpus.list_of())))
keys = [corpus.key(r) for r in rows]
assert len(rows) >= 80 and len(set(keys)) == len(keys), [k for k in keys if keys.count(k) > 1]
assert {r["collection"] for r in rows} == set(corpus.COMMITS)
assert not [r for r in rows if r["folder"].startswith("/") or " /" in r["flags"] + r["sources"]]
PY
check "the further programs are in neither half, and each measured one is in their list" <<'PY'
import csv, corpus, fidelity
rows, first = ([*csv.DictReader(open(path))] for path in map(corpus.list_of, ("more", "")))
assert len(rows) >= 25 and not {corpus.title(r) for r in rows} & {corpus.title(r) for r in first}
table = fidelity.measured("more")
assert set(table) == {(r["collection"], r["program"], r["arguments"]) for r in rows}
one = next(iter(table.values()))[0]
bill = {"kernels": [{"symbol": one["kernel"], "bound": "dram", "shapes": [{"grid": one["grid"], "block": one["block"], "launches": 1, "time_us": 2 * float(one["time_us"])}]}]}
result, = fidelity.compare([one], bill, bill, "more")
assert not result["scored"] and abs(result["time"] - 1) < 1e-9 and "counts" not in result
PY
check "the kernels of bench/kinds are split by the hash, and each program of their list was measured" <<'PY'
import csv, corpus, fidelity
rows, table = [*csv.DictReader(open(corpus.list_of("kinds")))], fidelity.measured("kinds")
assert set(table) == {(r["collection"], r["program"], r["arguments"]) for r in rows} and not [r for r in rows if not corpus.sources(".", r)[0].endswith(".cu")]
found = [corpus.scored(r["program"], r["kernel"], "kinds") for rows in table.values() for r in rows]
assert len(found) >= 90 and 30 <= sum(found) <= len(found) - 30, (len(found), sum(found))
PY
check "the programs predicted before they were measured are in no other list, and a list without a table is said" <<'PY'
import csv, corpus, fidelity
names = {name: [corpus.title(r) for r in csv.DictReader(open(corpus.list_of(name)))] for name in corpus.LISTS}
for mine in ("next", "blind"):
    assert len(set(names[mine])) >= 20
    for name, titles in names.items():
        assert name == mine or not set(titles) & set(names[mine]), (mine, name)
try:
    fidelity.measured("nowhere")
except SystemExit as said:
    assert "was measured yet" in str(said) and "corpus_gpu.py" in str(said), said
else:
    raise AssertionError("a table that is not there")
PY
check "what was predicted is kept, and held to what was measured later" <<'PY'
import os, tempfile, corpus, fidelity as f
class Sol:
    def audit(self, source, row, options):
        return {"ended": "the program ended with exit code 0", "kernels": [{"symbol": "k", "end": "done", "bound": "dram", "global_load": {"requests": 1},
                "shapes": [{"grid": "8,1,1", "block": "32,1,1", "launches": 3, "time_us": 70, "kernel_us": 60}]}]}
row = {"collection": "HeCBench", "program": "p", "arguments": "1"}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "predicted.json")
    f.predict(Sol(), "", [row], "true", path)
    kept = f.Predicted(path)
bill = kept.audit("", row, [])
result, = f.compare([{"program": "p", "kernel": "k", "grid": "8,1,1", "block": "32,1,1", "time_us": "25"}], bill, bill)
assert result["matched"] and result["said"] == 20 and abs(result["time"] - 0.25) < 1e-9, result
assert set(bill["kernels"][0]) == {"symbol", "end", "bound", "shapes"} and "failed" in kept.audit("", {**row, "arguments": "2"}, [])
PY
check "of the blind list everything is only scored, of the corpus nothing" <<'PY'
import corpus
for i in range(20):
    assert corpus.scored("p", f"k{i}", "blind") and not corpus.scored("p", f"k{i}", "") and not corpus.scored("p", f"k{i}", "more")
assert {corpus.scored("p", f"k{i}", "fresh") for i in range(20)} == {False, True}
PY
check "names of kernels do not depend on where their source lay" <<'PY'
import corpus
for name, want in (("_ZN32_GLOBAL__N__1a2e256c_4_s_cu_main4anonEPf", "_ZN_GLOBAL_4anonEPf"),
                   ("__nv_static_21__1a2e256c_4_s_cu_main__ZN32_GLOBAL__N__1a2e256c_4_s_cu_main4anonEPf", "_ZN_GLOBAL_4anonEPf"),
                   ("__nv_static_21__1a2e256c_4_s_cu_main__Z4statPf", "_Z4statPf"), ("_Z3addILi1EEvPfi", "_Z3addILi1EEvPfi")):
    assert corpus.symbol(name) == want, (name, corpus.symbol(name))
PY
check "ncu's raw page is read in base units" <<'PY'
from corpus_gpu import launches
one, = launches(open("tests/data/ncu/h200-full-raw.csv").read())
want = {"grid": "64,64,1", "block": "32,8,1", "time_ns": 28960, "dram_read": 16780544, "gld_requests": 131072, "gst_sectors": 524288, "registers": 24}
assert {k: one[k] for k in want} == want, one
assert launches("==ERROR== nothing\n") == []
PY
check "the table has the kernels of 10 us to 10 ms, a launch's means, and what varies is not steady" <<'PY'
import corpus_table as t
def launch(kernel, ns, sectors):
    return {"kernel": kernel, "grid": "8,1,1", "block": "32,1,1", "time_ns": ns, "gld_sectors": sectors, **{c: 1 for c in t.SAME if c != "gld_sectors"}}
def timed(symbol, us):
    return {"symbol": symbol, "grid": "8,1,1", "block": "32,1,1", "launches": 4, "time_us": 4 * us, "least_us": us, "most_us": us}
run = {"collection": "SHOC", "program": "p", "kind": "k", "arguments": "", "times": {"check": "pass", "kernels": [timed("a", 20), timed("b", 9), timed("c", 30)]},
       "ncu": {"launches": [launch("a", 21000, 5), launch("a", 23000, 5), launch("b", 9000, 1), launch("c", 1, 4), launch("c", 1, 7)]}}
rows = {r["kernel"]: r for r in t.chosen(t.table(run, {"SHOC": ("r", "0123456789abcdef")}))}
assert set(rows) == {"a", "c"}, rows
assert (rows["a"]["time_us"], rows["a"]["cold_us"], rows["a"]["steady"], rows["a"]["version"]) == (20, 22, 1, "0123456789ab")
assert (rows["c"]["steady"], rows["c"]["gld_sectors"]) == (0, 5.5)
PY
check "a bill is held to the table; what is only scored is not listed" <<'PY'
import contextlib, corpus, fidelity as f, io
learn, score = (next(f"k{i}" for i in range(99) if corpus.scored("p", f"k{i}") == half) for half in (False, True))
zero = {c: "0" for c in ("gst_requests", "gst_sectors", "sld_wavefronts", "sst_wavefronts", "sld_wavefronts_by_instruction", "sst_wavefronts_by_instruction")}
def row(kernel):
    return {"program": "p", "kind": "stream", "kernel": kernel, "grid": "8,1,1", "block": "32,1,1", "time_us": "20", "counted": "2", "steady": "1", "shapes": "1",
            "gld_requests": "8", "gld_sectors": "32", "dram_read": "2e6", "dram_written": "0", **zero}
def kernel(symbol, us, sectors):
    none = {"requests": 0, "sectors": 0, "wavefronts": 0}
    return {"symbol": symbol, "bound": "dram", "shapes": [{"grid": "8,1,1", "block": "32,1,1", "launches": 3, "time_us": 3 * us}],
            "global_load": {"requests": 24, "sectors": sectors}, "global_store": none, "shared_load": none, "shared_store": none,
            "dram_read_bytes": 6.6e6, "dram_write_bytes": 0}
bill = {"kernels": [kernel(learn, 10, 96), kernel(score, 22, 97)]}
results = f.compare([row(learn), row(score)], bill, bill)
first, second = f.summary(results, False), f.summary(results, True)
assert first[1:6] == [1, 1, "100.0%", "100.0%", "100.0%"] and first[6] == "10.0%", first
assert second[3] == "10.0%" and second[-3:] == ["1/1", "0/1", "1/1"] and first[-3:] == ["1/1"] * 3, second
bill["kernels"][0]["end"] = "fault" # it did not run to its end
assert [r["matched"] for r in f.compare([row(learn), row(score)], bill, bill)] == [False, True]
for cold, counted, same in (("21", "3", True), ("14", "3", True), ("12", "3", False), ("12", "1", True)): # 12: another launch of that shape
    one, = f.compare([{**row(score), "launches": "3", "cold_us": cold, "counted": counted}], bill, bill)
    assert one["matched"] == same, (cold, counted)
with contextlib.redirect_stdout(io.StringIO()) as out:
    f.learn(results)
assert learn in out.getvalue() and score not in out.getvalue().replace(learn, ""), out.getvalue()
PY
echo "$passed passed, $failed failed"
[ $failed = 0 ]
