#!/usr/bin/env bash
# sol model over several GPUs and machines, with figures given, measured or from a file, and what is refused.
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
holds() { # WHAT: a Python expression of d, the answer
  if python3 -c "
import json, sys
d = json.load(open('$scratch/out'))
sys.exit(not ($1))"; then ok; else bad "not so: $1"; fi
}

run 0 deepseek-v3 --device h200 --tp 8 --dp 4 --ep 32 --fabric nvlink4,ib400 --phase decode --batch 512 --json
holds "d['gpus'] == 32 and d['fabric'] == 'nvlink4,ib400' and d['imbalance'] > 1"
holds "all(k['bound'] == 'link' and k['by'] for k in d['kernels'] if k['part'] == 'link')"
run 0 llama-3-70b --device h100 --tp 4 --pp 2 --cp 2 --batch 8 --json
holds "d['gpus'] == 16 and d['bubble_us'] > 0 and any(k.get('hidden_us', 0) > 0 for k in d['kernels'])"
run 0 llama-3-70b --device h100,h200 --tp 4 --pp 2 --price h100=2 --json
holds "all(r['gpus'] == 8 for r in d['rows']) and d['rows'][0]['price_per_hour'] == 16"
run 0 llama-3.1-70b --draft llama-3.2-1b --draft-tokens 4 --acceptance 0.8 --phase decode --tp 4
if grep -q 'accepted with probability 0.8' "$scratch/out"; then ok; else bad 'the assumption is not said'; fi
echo '{"inside": {"bandwidth": 100e9, "gpus": 4}, "between": {"bandwidth": 12.5e9, "latency_us": 10}}' >"$scratch/fabric.json"
run 0 llama-3-70b --tp 8 --fabric "$scratch/fabric.json" --json
holds "d['link_us'] > 0"
echo '{"inside": {"bandwidth": -1}}' >"$scratch/fabric.json"
refused 'inside.bandwidth must be' llama-3-8b --tp 2 --fabric "$scratch/fabric.json"
refused 'unknown fabric' llama-3-8b --tp 2 --fabric nvlinkx
refused 'pp: 64 stages' llama-3-8b --pp 64
refused 'tp: 32 attention heads' llama-3-8b --tp 3
refused 'ep: 8 experts' mixtral-8x7b --dp 16 --ep 16
refused 'need --draft-tokens' llama-3-8b --phase decode --draft llama-3.2-1b
refused 'above 0 and at most 1' llama-3-8b --phase decode --draft-tokens 3 --acceptance 2

refused 'cp: 2 new tokens are too few for 3 GPUs' llama-3-8b --cp 3 --context 2
refused 'dp: 4 sequences' llama-3-8b --dp 8 --batch 4
refused 'microbatches: 3 are more than the 2' llama-3-8b --pp 4 --batch 2 --microbatches 3
refused 'needs the stages' llama-3-8b --microbatches 4 --batch 8
refused 'chunk is of prompts' llama-3-8b --phase decode --chunk 512
refused 'prefix is of prompts' llama-3-8b --phase decode --prefix 512
refused 'add --phase decode' llama-3-8b --draft-tokens 4
refused 'joins no machines' llama-3-70b --tp 8 --fabric nvlink4,nvlink4
echo '{"inside": {"bandwidth": 450e9, "bandwidth": 1}}' >"$scratch/fabric.json"
refused 'inside.bandwidth is there twice' llama-3-8b --tp 2 --fabric "$scratch/fabric.json"
echo '{"inside": {"bandwidth": 450e9}, "overlap": 0, "inside": {"bandwidth": 1}}' >"$scratch/fabric.json"
refused 'inside is there twice' llama-3-8b --tp 2 --fabric "$scratch/fabric.json"
refused "takes bytes a second, .*not '0%'" llama-3-8b --bandwidth 0%

# ---- figures ----
run 0 llama-3-8b --phase decode --device h100 --bandwidth 50% --json
cp "$scratch/out" "$scratch/half"
run 0 llama-3-8b --phase decode --device h100 --json
holds "abs((lambda h: (h['total_us'] - h['launch_us']) / (d['total_us'] - d['launch_us']))(json.load(open('$scratch/half'))) - 2) < 1e-6"
run 0 llama-3-8b --device h100 --peak bf16=2e15 --set mem_size=96e9 --set graph_launch_us=0.5 --json
holds "d['roofs']['tensor_bf16'] == 2e15 and d['memory']['device_bytes'] == 96e9 and 'given' in d['figures']"
run 0 llama-3-8b --device h100,h200 --peak 50% --price h100=2
if grep -q 'Not the published roofs alone' "$scratch/out"; then ok; else bad 'shares of peaks are not said'; fi
run 0 llama-3-8b --phase decode --device h100 --host 4ms --json
holds "d['host_us'] == 4000 and d['total_us'] > 4000 and d['kernels'][-1]['part'] == 'host'"
refused 'takes a time above 0' llama-3-8b --host -4ms
refused "'warp' is no dtype" llama-3-8b --peak warp=3
refused "'speed' is no figure" llama-3-8b --set speed=3
refused 'with a number above 0' llama-3-8b --bandwidth -3
refused 'with a number above 0' llama-3-8b --peak 9e14
echo '{"id": "mine", "base": "h100", "mem_bandwidth": 6.7e12}' >"$scratch/mine.json"
run 0 llama-3-8b --device-file "$scratch/mine.json" --json
holds "d['device'] == 'mine' and d['roofs']['hbm'] == 6.7e12"
run 0 llama-3-8b --device h100 --device-file "$scratch/mine.json" --json
holds "[r['device'] for r in d['rows']] == ['h100-sxm', 'mine']"

roofline() { "$sol" roofline rmsnorm 8192x4096 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || bad "sol roofline $*"; }
roofline --device h100 --bandwidth 1e12 --json
holds "d['bandwidth'] == 1e12 and 'given' in d['figures']"
roofline --device h100,h200 --bandwidth 1e12 --json
holds "len(d) == 2 and all(abs(r['terms']['memory_us'] - r['bytes'] / 1e12 * 1e6) < 1e-9 for r in d)"
roofline --device h100,h200 --bandwidth 1e12
if grep -q 'Not the published roofs alone' "$scratch/out"; then ok; else bad 'a table does not say what was given'; fi
roofline --device-file "$scratch/mine.json" --json
holds "d['device'] == 'mine'"

# ---- measured ----
measured=bench/results/2026-11-15-h200-measure.json bench=bench/results/2026-11-15-h200-bench.json
run 0 llama-3-8b --phase decode --device h200 --measured $measured --measured $bench --json
holds "d['roofs']['hbm'] == json.load(open('$measured'))['measured']['dram_read'] and 'measured' in d['figures']"
holds "any(k.get('by') == 'measured rate' for k in d['kernels'] if k['op'] == 'silu_mul')"
run 0 llama-3-8b --phase decode --device h200 --measured $measured
if grep -q 'measured 2026-11-15' "$scratch/out"; then ok; else bad 'it is not said what was measured'; fi
refused 'not among' llama-3-8b --device h100 --measured $measured
refused 'neither of' llama-3-8b --device h200 --measured "$scratch/mine.json"
refused 'none.json' llama-3-8b --device h200 --measured "$scratch/none.json"

# ---- what is no decoder-only transformer is refused by its name ----
for type in mamba mamba2 rwkv clip_vision_model siglip_vision_model vit whisper t5 bert; do
  echo "{\"model_type\": \"$type\", \"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"vocab_size\": 99, \"intermediate_size\": 128}" >"$scratch/config.json"
  refused "$type" "$scratch/config.json"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
