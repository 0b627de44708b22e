#!/usr/bin/env bash
# sol model for choosing: several GPUs, sweeps, targets, prices, and what is refused.
set -u
sol=${SOL:-build/sol}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() {
  failed=$((failed + 1))
  printf 'FAIL %s\n' "$1"
  cat "$scratch/out" "$scratch/err"
}
run() { # CODE ARGS...
  local want=$1 rc=0
  shift
  "$sol" model "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || rc=$?
  if [ $rc = "$want" ]; then ok; else bad "sol model $*: exit code $rc, not $want"; fi
}
refused() { # PATTERN ARGS...
  local pattern=$1
  shift
  run 2 "$@"
  if grep -qE -- "$pattern" "$scratch/err"; then ok; else bad "no '$pattern' for: $*"; fi
}

run 0 llama-3-70b --device h100,h200,t4 --tp 2 --sweep batch=1..33 --sweep context=2048,8192 --price h100=2 --watts h200=700 --json
cp "$scratch/out" "$scratch/table.json"
run 0 llama-3-70b --device h200 --tp 2 --batch 16 --context 8192 --phase decode --json
cp "$scratch/out" "$scratch/decode.json"
run 0 llama-3-70b --device h200 --tp 2 --context 8192 --json
cp "$scratch/out" "$scratch/prefill.json"
# With targets: the largest batch that meets them, so that one more does not.
run 0 llama-3-70b --device h100 --ttft 2s --tpot 40ms --context 4096 --json
cp "$scratch/out" "$scratch/target.json"
if python3 - "$scratch" "$sol" >"$scratch/out" 2>"$scratch/err" <<'PY'; then ok; else bad "the table does not agree with single runs"; fi
import json, subprocess, sys
folder, sol = sys.argv[1:]
def load(name):
    return json.load(open(f'{folder}/{name}.json'))
rows = load('table')['rows']
assert [r['batch'] for r in rows[:7]] == [1, 2, 4, 8, 16, 32, 33] and len(rows) == 3 * 2 * 7, rows
at = lambda gpu, batch, context: next(r for r in rows if (r['device'], r['batch'], r['context']) == (gpu, batch, context))
one = at('h200', 16, 8192)
assert one['tpot_us'] == load('decode')['total_us'] and one['ttft_us'] == load('prefill')['total_us'], one
assert one['weight_bytes'] == load('decode')['memory']['weight_bytes']
assert abs(one['joules_per_token'] - 1400 / one['tokens_per_s']) < 1e-9 and 'price_per_million_tokens' not in one
cheap = at('h100-sxm', 1, 2048)
assert abs(cheap['price_per_million_tokens'] - 4 / (cheap['tokens_per_s'] * 3600) * 1e6) < 1e-9, cheap
assert not at('t4', 1, 2048)['possible'] and 'bf16' in at('t4', 1, 2048)['why']
assert not at('h100-sxm', 33, 8192)['possible'] and 'does not fit' in at('h100-sxm', 33, 8192)['why']
best = load('target')['rows']
assert len(best) == 1 and best[0]['possible'] and best[0]['tpot_us'] <= 40e3 and best[0]['ttft_us'] <= 2e6, best
def case(batch, tp):
    out = subprocess.run([sol, 'model', 'llama-3-70b', '--device', 'h100', '--context', '4096', '--json', '--tp', str(tp),
                          '--sweep', f'batch={batch}'], capture_output=True, check=True).stdout
    return json.loads(out)['rows'][0]
more = case(best[0]['batch'] + 1, best[0]['tp'])
assert not more['possible'] or more['tpot_us'] > 40e3, more
assert best[0]['tp'] == 2 and not case(1, 1)['possible'], best # 141 GB of weights are too many for one
PY
# A sweep is drawn: a line for each case that is possible.
run 0 llama-3-8b --device h100 --sweep batch=1..64
if [ "$(grep -c '^ *h100-sxm batch [0-9]' "$scratch/out")" = 7 ]; then ok; else bad 'the sweep is not drawn'; fi
run 0 gpt-oss-120b --device all --ttft 1us --json
if python3 -c "
import json, sys
rows = json.load(open('$scratch/out'))['rows']
sys.exit(not (len(rows) > 10 and all(not r['possible'] and r['why'] for r in rows)))"; then ok; else bad 'an impossible target is met'; fi

# ---- devices of other makers, and of a file ----
run 0 llama-3-8b --device mi300x,tpu-v6e,m4-max --json
if python3 -c "
import json, sys
a, b, c = json.load(open('$scratch/out'))['rows']
sys.exit(not (a['possible'] and b['possible'] and 'vector' in b['why'] and not c['possible'] and 'bf16' in c['why']))"; then ok; else bad 'other makers'; fi
echo '{"id": "mine", "base": "h100", "mem_bandwidth": {"value": 6.7e12, "source": "a dream"}}' >"$scratch/mine.json"
run 0 llama-3-8b --phase decode --device "$scratch/mine.json" --json
cp "$scratch/out" "$scratch/mine"
run 0 llama-3-8b --phase decode --device h100 --json
if python3 -c "
import json, sys
fast, slow = json.load(open('$scratch/mine')), json.load(open('$scratch/out'))
ratio = (slow['total_us'] - slow['launch_us']) / (fast['total_us'] - fast['launch_us'])
sys.exit(not (fast['device'] == 'mine' and abs(ratio - 6.7e12 / 3.352e12) < 0.01))"; then ok; else bad 'a device of a file'; fi
run 0 llama-3-8b --device "$scratch/mine.json" --price mine=2.5 --json
if python3 -c "
import json, sys
sys.exit(json.load(open('$scratch/out'))['rows'][0]['price_per_hour'] != 2.5)"; then ok; else bad 'the price of a device of a file'; fi
for text in '[1]' '{"warp_speed": 9}' '{"base": "h1000000"}' '{"mem_bandwidth": -1}' '{"mem_bandwidth": "fast"}' '{"id": 7}' '{'; do
  echo "$text" >"$scratch/mine.json"
  refused . llama-3-8b --device "$scratch/mine.json"
done
refused . llama-3-8b --device "$scratch/none.json"

refused 'can be given: --peak' llama-3-8b --device epyc-9755
run 0 llama-3-8b --device epyc-9755 --peak bf16=10e12 --phase decode
refused 'takes a time above 0' llama-3-8b --ttft 20parsec
refused 'takes a time above 0' llama-3-8b --tpot -3ms
refused 'batch=, context= or tp=' llama-3-8b --sweep layers=1..3
refused 'batch=, context= or tp=' llama-3-8b --sweep batch
refused '' llama-3-8b --sweep batch=0..8
refused '' llama-3-8b --sweep batch=8..1
refused '' llama-3-8b --sweep batch=1,,2
refused 'at most 64' llama-3-8b --sweep batch="$(seq -s, 65)"
refused 'GPU=NUMBER' llama-3-8b --price h100=-2
refused 'GPU=NUMBER' llama-3-8b --price 2.5
refused 'not among' llama-3-8b --device h200 --price h100=2
refused 'GPU=NUMBER' llama-3-8b --price =2
refused 'twice' llama-3-8b --device h100 --price h100=2 --price h100=3
refused 'unknown|no device|h100x' llama-3-8b --price h100xyz=2
refused 'exclude each other' llama-3-8b --tpot 20ms --sweep batch=1..8
refused 'the table shows both' llama-3-8b --device h100,h200 --phase decode
echo "$passed passed, $failed failed"
[ $failed = 0 ]
