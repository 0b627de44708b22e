#!/usr/bin/env bash
# sol audit as people use it: the ways in, the gate, what it writes, what goes wrong.
set -u
export COLUMNS=160 # whole tables; test_width has the narrow ones
sol=${SOL:-build/sol}
[ -e "$(dirname "$sol")/shim/libcudart.so.13" ] || { echo "the runtime on the emulator was not built" && exit 77; }
nvcc=$(scripts/cuda-env nvcc) || { echo "no CUDA 13 compiler" && exit 77; }
NVCC=$(cd "$(dirname "$nvcc")" && pwd)/$(basename "$nvcc")
export NVCC
bin=${B:-build}/audit-programs # kept: the sanitized run uses them too
mkdir -p "$bin"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# Under ASan the audited program's own start must already have it; nvcc and ptxas do not live with that.
preload=
if nm -D "$(dirname "$sol")/shim/libcudart.so.13" | grep -q ' U __asan_init'; then
  preload=$(${CC:-cc} -print-file-name=libasan.so)
  export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:verify_asan_link_order=0"
  for tool in nvcc ptxas; do
    printf '#!/bin/sh\nunset LD_PRELOAD\nexec "%s" "$@"\n' "$(dirname "$NVCC")/$tool" >"$scratch/$tool"
  done
  chmod +x "$scratch/nvcc" "$scratch/ptxas"
  NVCC=$scratch/nvcc
fi

ok() { passed=$((passed + 1)); }
bad() {
  failed=$((failed + 1))
  printf 'FAIL %s\n' "$1"
  cat "$scratch/out" "$scratch/err"
}
run() { # CODE ARGS...: sol audit; output and errors in files
  local want=$1 rc=0
  shift
  LD_PRELOAD=$preload timeout "${SUITE_SECONDS:-7200}" "$sol" audit "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || rc=$?
  if [ $rc = "$want" ]; then ok; else bad "sol audit $*: exit code $rc, not $want"; fi
}
says() { # FILE PATTERN...: each is in it
  local file=$1
  shift
  for pattern in "$@"; do
    if grep -qE -- "$pattern" "$scratch/$file"; then ok; else bad "no '$pattern' in $file"; fi
  done
}
json() { # PYTHON: an expression over d, the bill; k its first kernel
  if python3 -c "
import json, re, sys
d = json.load(open(sys.argv[1]))
k = (d[0] if isinstance(d, list) else d)['kernels'][0]
sys.exit(0 if ($1) else 1)" "$scratch/out" 2>>"$scratch/err"; then ok; else bad "not so: $1"; fi
}
build() { # NAME SOURCE FLAGS...
  local name=$1
  if [ "$bin/$name" -nt "$2" ]; then return; fi
  "$NVCC" -lineinfo -Wno-deprecated-gpu-targets "${@:2}" -o "$bin/$name" || bad "$name does not compile"
}

# ---- a source with a main: the demo ----
run 0 examples/column_scale.cu --json -- 2048 256
says err '2048 x 256: all right'
json "d['schema'] == 1 and d['device'] == 'h100-sxm'"
json "k['name'] == 'column_scale' and k['launches'] == 1 and k['instructions'] > 0"
json "k['global_store'] == {'requests': 16384, 'sectors': 16384 * 32, 'ideal_sectors': 16384 * 4}"
json "k['global_load']['requests'] == 2 * 16384 and k['shared_load']['wavefronts'] == 0"
json "all(x in k['local'] for x in ('requests', 'sectors', 'ideal_sectors'))"
json "k['floor_bytes'] == 2 * 2048 * 256 * 4 + 256 * 4"
# What the program copied in is still in L2.
json "k['dram_bytes'] + k['l2_reused_bytes'] + k['left_dirty_bytes'] >= k['floor_bytes'] and k['l2_left_by'][0]['kernel'] is None"
json "k['occupancy'] == 1 and k['registers_from'] == 'ptxas' and k['l2_bytes'] > 0"
json "abs(k['tax'] - k['time_us'] / k['light_us']) < 1e-9 and k['bound'] in k['terms']"
json "abs(k['kernel_us'] + k['gap_us'] - k['time_us']) < 1e-9 and k['gap_us'] > 0"
json "all(abs(s['kernel_us'] + s['gap_us'] - s['time_us']) < 1e-9 for s in k['shapes'])"
json "len(d['model']['constants']) == sum(d['model'][b] for b in ('published', 'measured', 'compiler', 'assumed'))"
json "any(l['file'].endswith('column_scale.cu') and l['line'] == 11 and l['worst_sectors_per_request'] == 32
          and 'scale[col]' in l['source'] for l in k['lines'])"
json "k['lines'] == sorted(k['lines'], key=lambda l: -l['cost_us'])"
json "all(set(f) >= {'rule', 'file', 'line', 'message', 'fix', 'gain'} for f in k['findings'])"
json "'column_walk' == k['findings'][0]['rule'] and k['findings'][0]['line'] == 11 and k['findings'][0]['gain'] > 1.02"
cp "$scratch/out" "$scratch/bad.json"
run 0 examples/column_scale_fixed.cu --json -- 2048 256
json "k['global_store']['sectors'] == k['global_store']['ideal_sectors']"
json "k['tax'] < json.load(open('$scratch/bad.json'))['kernels'][0]['tax']"
run 0 examples/column_scale.cu -- 512 256
says out 'column_scale.cu on NVIDIA H100' 'time .* us' 'tax .*x' 'bound by' 'limited by' '32\.0 \(4\.0\)' \
  'column_scale.cu:11 .*if \(row < rows\)' 'faster.*, saves .* us here: column_walk' 'Fix: ' '^exact: .*modelled: '

# ---- a program that was built elsewhere ----
build column examples/column_scale.cu -cudart shared -arch=sm_90
build static examples/column_scale.cu -arch=sm_90
build bare examples/column_scale.cu -cudart shared -gencode arch=compute_90,code=sm_90
build wrong tests/shim/wrong.cu -cudart shared -arch=sm_90
run 0 "$bin/column" -- 512 256
run 0 "$bin/static" -- 512 256 # as nvcc links by default; tests/test_redirect.sh has more of it
run 2 "$bin/bare"
says err 'holds machine code alone' 'arch=sm_90'
run 0 "$bin/column" --device h100,h200,b200 -- 512 256
says out 'Side by side' 'h200 .*us' 'b200 .*us'
run 0 "$bin/column" --device h100,h200 --json -- 512 256
json "[b['device'] for b in d] == ['h100-sxm', 'h200']"
run 0 "$bin/column" --json -- 512 256 # built with -lineinfo for sm_90
json "k['instructions_from'] == 'machine code' and 0 < k['issued'] < k['instructions']"
run 0 "$bin/column" --device b200 --json -- 512 256 # whose machine code it does not hold: ptxas makes it
json "k['instructions_from'] == 'machine code' and 0 < k['issued'] < k['instructions']"
run 0 "$bin/column" --by instruction -- 512 256
says out 'st\.global\.f32' '1024 B'
run 0 "$bin/column" --sample 1 --json -- 65536 64
json "k['sampled'] > 1 and k['global_store']['requests'] == 65536 * 64 / 32"
json "sum('--sample' in n for n in d['notes']) == 1"
json "d['basis']['kernels[].global_store.sectors'] == 'modelled' and d['basis']['kernels[].launches'] == 'exact'"

# ---- L2 from launch to launch ----
build kept tests/shim/kept.cu -cudart shared -arch=sm_90
of() { echo "next(x for x in d['kernels'] if x['name'] == '$1')"; }
run 0 "$bin/kept" --device h200 --json
json "$(of fill)['dram_bytes'] == 0 and $(of fill)['left_dirty_bytes'] == 1 << 20"
json "$(of use)['dram_bytes'] == 0 and $(of use)['l2_reused_bytes'] == 1 << 20"
json "$(of use)['l2_left_by'] == [{'kernel': 'fill', 'reused_bytes': 1 << 20, 'written_bytes': 0}]"
json "$(of use_zeros)['dram_read_bytes'] == 0 and $(of use_zeros)['l2_left_by'][0]['kernel'] is None"
# What was copied from the host is there too, as far as such copies may fill L2.
json "$(of use_input)['dram_read_bytes'] == 0 and $(of use_input)['l2_left_by'][0]['kernel'] is None"
json "$(of sweep)['earlier_write_bytes'] == 4 << 20 and $(of sweep)['dram_write_bytes'] > $(of sweep)['earlier_write_bytes']"
json "$(of use_kept)['dram_read_bytes'] == 0 and $(of use_reset)['dram_read_bytes'] == 1 << 20"
json "sum(x['written_bytes'] for x in $(of sweep)['l2_left_by']) == 4 << 20"
json "any(f['rule'] == 'round_trip' and '0 B of them out of DRAM' in f['message'] for f in $(of use)['findings'])"
cp "$scratch/out" "$scratch/kept.json"
run 0 "$bin/kept" --device h200 --json --workers 1
json "d['kernels'] == json.load(open('$scratch/kept.json'))['kernels']"
run 0 "$bin/kept" --device h200 --wide
says out 'found in L2 .*1\.049 MB of 1\.049 MB, left there by fill' '4\.194 MB of it' 'written back for earlier kernels' \
  'written and left in L2'
run 0 "$bin/kept" --device h200 --json --cold
json "$(of use)['dram_read_bytes'] == 1 << 20 and $(of use)['l2_reused_bytes'] == 0"
json "2.3e6 < $(of sweep)['earlier_write_bytes'] < 2.5e6" # what ncu's flush leaves

# ---- managed pages ----
build pages tests/shim/pages.cu -cudart shared -arch=sm_90
run 0 "$bin/pages" --device h200 --json
moved() { json "$(of "$1")['moved_page_bytes'] >> 16 in ($2)"; }
moved fresh 8,9 && moved again 0, && moved after_write 1, && moved after_read 2, && moved after_prefetch 0,
moved after_fill 0, && moved after_copy 0, && moved on_device 0,
run 0 "$bin/pages" --device h200 --json -- elsewhere
moved fresh 8,9 && moved after_write 1, && moved after_read 2,
json "$(of fresh)['kernel_us'] > 100 > $(of again)['kernel_us']"
run 0 "$bin/pages" --device h200
says out 'managed pages moved here by faults'
if tr -s '\n ' ' ' <"$scratch/out" | grep -q 'What lowers it: moving managed pages'; then ok; else bad 'no remedy for managed pages'; fi

run 2 "$bin/column" --device v100
says err 'does not compile programs for'

# ---- a single kernel ----
args=(--arg 'out:f32[2048*512]' --arg 'f32[2048*512]' --arg 'f32[512]' --arg 2048 --arg 512)
run 0 examples/scale.cu --kernel column_scale --grid 8,512 --block 256 "${args[@]}" --json
json "k['name'] == 'column_scale' and k['global_store']['sectors'] == 32 * k['global_store']['requests'] == 32 * 32768"
run 0 examples/scale.ptx --kernel column_scale "${args[@]}" --save "out=$scratch/saved"
says out 'guessed from what the kernel compares its indices with: --grid 8,512,1'
if [ "$(stat -c %s "$scratch/saved")" = $((2048 * 512 * 4)) ]; then ok; else bad 'saved file'; fi
run 0 examples/scale.ptx --kernel contiguous_scale --block 128 --arg 'out:f32[4096]' --arg 'f32[4096]' --arg 'f32[64]' \
  --arg 4000 --arg 64
says out 'The grid was guessed .*--grid 32,1,1'
run 0 examples/scale.ptx --kernel column_scale --device v100,b200 "${args[@]}"
says out 'Side by side' 'b200 .*us' '^b200: .* is left out, since a figure of the GPU is unknown'
# Machine code that is there already: no compiler is asked.
"$NVCC" -cubin -arch=sm_90a -lineinfo examples/scale.ptx -o "$scratch/scale.cubin" 2>/dev/null || bad "scale.ptx: no cubin"
run 0 examples/scale.ptx --kernel column_scale "${args[@]}" --json
json "k['instructions_from'] == 'machine code'"
cp "$scratch/out" "$scratch/by-nvcc"
printf '#!/bin/sh\ntouch "%s/called"\necho release 13.0\n' "$scratch" >"$scratch/watched"
chmod +x "$scratch/watched"
NVCC=$scratch/watched run 0 examples/scale.ptx --kernel column_scale "${args[@]}" --json --cubin "$scratch/scale.cubin"
if cmp -s "$scratch/out" "$scratch/by-nvcc"; then ok; else bad 'the bill by --cubin is another than by nvcc'; fi
if [ ! -e "$scratch/called" ]; then ok; else bad 'nvcc was called in spite of --cubin'; fi
run 2 examples/scale.ptx --kernel column_scale "${args[@]}" --cubin examples/scale.ptx
says err 'no machine code of column_scale'
run 2 examples/scale.ptx --kernel column_scale "${args[@]}" --cubin "$scratch/nix"
run 2 examples/scale.ptx --arg 1
says err 'name one with --kernel: column_scale, contiguous_scale'
run 2 examples/scale.ptx --kernel column_scale --arg 1
says err 'takes 5 arguments, 1 given'
run 2 examples/scale.ptx --kernel nix "${args[@]}"
run 4 examples/scale.ptx --kernel contiguous_scale --grid 2 --block 64 --arg 'out:f32[16]' --arg 'f32[16]' --arg 'f32[16]' \
  --arg 128 --arg 16
says out 'out of bounds' 'ended +fault'

# ---- the gate ----
run 3 "$bin/column" --max-tax 1.5 -- 8192 1024
says out 'Past the limits' 'column_scale.cu:11 .*more than --max-tax 1\.5'
run 3 "$bin/column" --max-sectors-per-request 16 -- 512 256
says out 'column_scale.cu:11 .*32\.00 sectors a request, more than --max-sectors-per-request 16'
run 0 "$bin/column" --max-sectors-per-request 32 --max-tax 100 -- 512 256
run 0 examples/column_scale_fixed.cu --json -- 512 256
cp "$scratch/out" "$scratch/baseline.json"
run 0 examples/column_scale_fixed.cu --baseline "$scratch/baseline.json" -- 512 256
sed -e 's/int col = blockIdx.x \* blockDim.x + threadIdx.x;/int row = blockIdx.x * blockDim.x + threadIdx.x;/' \
  -e 's/int row = blockIdx.y;/int col = blockIdx.y;/' -e 's/if (col < cols)/if (row < rows)/' \
  -e 's/dim3((cols + 255) \/ 256, rows)/dim3((rows + 255) \/ 256, cols)/' examples/column_scale_fixed.cu >"$scratch/column_scale_fixed.cu"
run 3 "$scratch/column_scale_fixed.cu" --baseline "$scratch/baseline.json" --sarif "$scratch/sarif" -- 512 256
says out 'sectors a request: .*in the baseline'
run 2 "$bin/column" --baseline "$scratch/nothing" -- 512 256
run 2 "$bin/column" --baseline examples/scale.cu -- 512 256
run 2 "$bin/column" --device h200 --baseline "$scratch/baseline.json" -- 512 256
says err 'another GPU'

# ---- SARIF ----
cp "$scratch/sarif" "$scratch/out"
if python3 - "$scratch/sarif" <<'PY'; then ok; else bad 'SARIF'; fi
import json, sys
d = json.load(open(sys.argv[1]))
run = d['runs'][0]
rules = {r['id'] for r in run['tool']['driver']['rules']}
assert d['version'] == '2.1.0' and '$schema' in d and len(rules) > 10
assert run['results'] and all(r['ruleId'] in rules and r['message']['text'] for r in run['results'])
assert any(r['level'] == 'error' and r['ruleId'] == 'gate' for r in run['results'])
places = [l['physicalLocation'] for r in run['results'] for l in r['locations']]
assert all(p['region']['startLine'] >= 1 and p['artifactLocation']['uri'] for p in places)
assert any(p['artifactLocation']['uri'].endswith('column_scale_fixed.cu') for p in places)
PY
run 1 "$bin/column" --sarif "$scratch/no/such/folder" -- 512 256

# ---- what goes wrong ----
for what in fault assert deadlock; do
  run 4 "$bin/wrong" -- $what
  says out 'Went wrong' 'ended +fault' '^add$'
done
# The limit may come before a slow machine has run its first kernel: then a longer one is tried.
for seconds in 1 4 16 64 256 1024; do
  rc=0
  LD_PRELOAD=$preload "$sol" audit "$bin/wrong" --seconds $seconds -- hang >"$scratch/out" 2>"$scratch/err" </dev/null || rc=$?
  grep -q '^add$' "$scratch/out" && break
done
if [ $rc = 4 ]; then ok; else bad "--seconds: exit code $rc, not 4"; fi
says out 'ended +time limit' '^add$'
if grep -q 'may tell' "$scratch/out"; then bad 'what the time limit ended is said to have failed of itself'; else ok; fi
# Whoever stops sol itself gets the bill so far, and neither program nor folder stays behind.
# The second kernel may not have begun on a slow machine: then it gets longer.
mkdir -p "$scratch/tmp"
for seconds in 0 1 4 16 64 256; do
  LD_PRELOAD=$preload TMPDIR=$scratch/tmp "$sol" audit "$bin/wrong" -- hang >"$scratch/out" 2>"$scratch/err" </dev/null &
  started=$!
  until grep -qs '"launch"\|add' "$scratch"/tmp/*/report-*; do
    kill -0 $started 2>/dev/null || break
    sleep 0.1
  done
  sleep $seconds
  kill -TERM $started
  rc=0
  wait $started || rc=$?
  grep -q '^hang$' "$scratch/out" && break
done
if [ $rc = 4 ]; then ok; else bad "stopped: exit code $rc, not 4"; fi
says out 'was interrupted' '^add$' '^hang$' 'ended +interrupted' 'incomplete +it is billed as far as it came'
if [ -z "$(ls "$scratch/tmp")" ]; then ok; else bad 'a folder stays behind'; fi
run 4 "$bin/wrong" -- crash
says out 'signal 11' '^add$'
run 4 "$bin/wrong" -- exit
says out 'exit code 7' '^add$' 'check race,init,sync may tell'
run 4 "$bin/wrong" -- none
says err 'no kernel was launched'
run 0 "$bin/wrong" --json -- fork
json "k['launches'] == 2"
run 0 "$bin/wrong" --json -- streams
json "k['launches'] == 17 and len(k['shapes']) == 3"
run 0 "$bin/wrong" --json -- graph
json "k['launches'] == 6 and k['terms']['launch'] < 0.8 * 6 * 2.43" # five of them in a graph
run 0 "$bin/wrong" --kernel 'a*' -- streams
run 2 "$bin/wrong" --kernel nix -- streams
# Event times are the model's: of ten launches ten times that of one.
run 0 "$bin/wrong" --json -- time
if python3 -c "
import json, re, sys
k = json.load(open('$scratch/out'))['kernels'][0]
us = float(re.search(r'10 launches: ([0-9.]+) us', open('$scratch/err').read()).group(1))
sys.exit(abs(us - k['time_us'] / k['launches'] * 10) > 0.01 * us)"; then ok; else bad 'event times'; fi

# ---- programs that repeat ----
build repeats tests/shim/repeats.cu -cudart shared -arch=sm_90
run 0 "$bin/repeats" --json -- same 1000
says err '1000 launches: all right'
json "k['launches'] == 1000 and 3 <= k['counted_launches'] < 60 and k['unlike_launches'] == 0"
json "k['global_load']['sectors'] == 1000 * 2 * 4 * 512 and d['basis']['kernels[].global_load.sectors'] == 'modelled'"
cp "$scratch/out" "$scratch/repeats.json"
run 0 "$bin/repeats" --all --json -- same 1000
json "k['counted_launches'] == 1000 and d['basis']['kernels[].global_load.sectors'] == 'exact'"
json "all(abs(k[x] - json.load(open('$scratch/repeats.json'))['kernels'][0][x]) <= 1e-9 * k[x]
          for x in ('time_us', 'light_us', 'dram_bytes', 'floor_bytes', 'left_dirty_bytes', 'l2_reused_bytes', 'issued'))"
# A launch with the counts of an earlier one is not described again, in a bill of all launches too.
LD_PRELOAD=$preload LD_LIBRARY_PATH=$(dirname "$sol")/shim SOL_SHIM_ALL=1 SOL_SHIM_AUDIT=$scratch/lines \
  "$bin/repeats" swap 100 >"$scratch/out" 2>"$scratch/err"
if [ "$(grep -c '^{"again":.*"counted":1' "$scratch/lines")" -ge 80 ]; then ok; else bad 'equal launches are described anew'; fi
run 0 "$bin/repeats" -- same 100
says out 'launches +100, .*of them counted, the others billed by these'
# From one launch on: those before it run, uncounted and in no bill.
run 0 "$bin/repeats" --from add --launch 91 --json -- same 100
json "k['launches'] == 10"
says err '100 launches: all right' 'counting from launch 91 of add on; 90 launches before it were not counted'
run 0 "$bin/repeats" --from 'ad*' -- same 5
says out 'Counted from launch 1 of ad\* on' 'launches +5'
run 2 "$bin/repeats" --from add --launch 9 -- same 5
says err 'launch 9 of add was not reached: it was launched 5 times' 'no kernel was counted'
run 2 "$bin/repeats" --launch 9 -- same 5
says err 'Add --from KERNEL'
# Each launch executes something else: all are counted.
run 0 "$bin/repeats" --json -- rounds 100
json "k['counted_launches'] == 100 and k['unlike_launches'] == 0"
# Another half way: one launch is billed by what went before, then they are counted again.
run 0 "$bin/repeats" --json -- late 200
json "k['unlike_launches'] == 1 and k['counted_launches'] < 60"
cp "$scratch/out" "$scratch/late.json"
run 0 "$bin/repeats" --all --json -- late 200
json "abs(json.load(open('$scratch/late.json'))['kernels'][0]['instructions'] / k['instructions'] - 1) < 0.01"
# The same instructions with other accesses: found when one is counted again.
run 0 "$bin/repeats" --json -- stride 400
says err 'all right'
json "k['counted_launches'] < 100 and k['global_load']['sectors'] / k['global_load']['requests'] > 8"
# Parameters that take turns.
run 0 "$bin/repeats" --json -- swap 400
says err 'all right'
json "k['counted_launches'] < 60"
# What finds the same memory as before leaves the same, and does not run; the bill is that of launches that do.
for what in still reset; do
  run 0 "$bin/repeats" --json -- $what 400
  says err 'all right'
  json "k['launches'] == 400 and k['counted_launches'] < 60 and k['unlike_launches'] == 0"
  ran=$(sed -n 's/ ran$//p' "$scratch/err")
  if [ "${ran:-400}" -lt 100 ]; then ok; else bad "of 400 launches $ran ran"; fi
  run 0 "$bin/repeats" --all --json -- $what 400
  says err '40[01] ran' 'all right'
done
run 0 "$bin/repeats" --json -- time 400 # what a clock says is not in memory
says err '40[01] ran'
# Whatever else changes memory between launches is seen.
build drawn tests/shim/drawn.cu -cudart shared -arch=sm_90
for seed in 4 5 7 8 15; do
  run 0 "$bin/drawn" --all --json -- $seed 500
  says err 'left .* no error'
  left=$(grep '^left' "$scratch/err")
  run 0 "$bin/drawn" --json -- $seed 500
  if grep -qxF "$left" "$scratch/err"; then ok; else bad "seed $seed: $left, where all launches run"; fi
done

# ---- checks: each error with its line, thread and allocation, and the program goes on ----
build checks tests/shim/checks.cu -cudart shared -arch=sm_90
checked() { # WHAT LINE KIND THREADS PATTERN: on the wrong program; nothing on the right one
  run 4 "$bin/checks" --check race,init,sync,mem --json -- "$1"
  json "any(f['kind'] == '$3' and f['line'] == $2 and f['threads'] == $4 and f['file'].endswith('checks.cu')
            for k in d['kernels'] for f in k['checks'])"
  json "any(re.search(r'$5', f['message']) for k in d['kernels'] for f in k['checks'])"
  json "d['kernels'][-1]['name'] == 'unwritten' or d['kernels'][0]['name'] == 'unwritten'"
  run 0 "$bin/checks" --check race,init,sync,mem --json -- "$1" right
  json "not any(k['checks'] for k in d['kernels']) and 'Checks (mem,race,init,sync): nothing found.' in d['notes']"
}
checked block_race 14 race 31 'shared memory .part., which thread \(1,0,0\) wrote at checks.cu:9 .*thread \(0,0,0\)'
checked warp_race 22 race 32 'which thread \(31,0,0\) wrote at checks.cu:20'
checked overwrite 30 race 32 'write of 4 bytes.*which thread .* read at checks.cu:28'
checked values 35 race 31 'lanes 0 and 1 of the warp write different values to the same 4 bytes'
checked unwritten 38 uninitialised 280 '16 bytes into the allocation of 4096 bytes at 0x[0-9a-f]+, never written.*thread \(4,0,0\)'
checked divergent 41 'divergent barrier' 16 'only lanes 0x0000ffff of the warp'
checked mask 45 'out of step' 1 'the mask 0x0000ffff leaves out the calling lanes 0x00010000.*thread \(16,0,0\)'
checked mask 46 'out of step' 1 'leaves out'
checked memory 50 misaligned 32 'no multiple of 4'
checked memory 51 'out of bounds' 32 '0 bytes past the end of the allocation of 4096 bytes'
run 4 "$bin/checks" --check sync -- mask
says out 'checks.cu:45$' '^Checks \(sync\): 2 findings \(2 threads\)'
run 0 "$bin/checks" --check sync -- warp_race
run 4 "$bin/checks" -- memory # without a check the first error ends it
says out 'ended +fault'
if grep -q _Z6memory "$scratch/out"; then bad 'a fault names its kernel as the linker does'; else ok; fi
run 2 "$bin/checks" --check rase -- memory
says err "'rase' is none of race, init, sync, mem"
# ---- what did not run, and what changed ----

cat >"$scratch/blas.cu" <<'C'
extern "C" int cublasStbmv_v2(void *);
extern "C" int cublasDtbmv_v2(void *);
__global__ void one(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
int main(int argc, char **) {
  float *x;
  if (cudaMalloc(&x, 65536 * 4)) return 1;
  one<<<256, 256>>>(x);
  if (argc > 1) cublasStbmv_v2(0), cublasStbmv_v2(0), cublasDtbmv_v2(0);
  return cudaDeviceSynchronize();
}
C
shim=$(cd "$(dirname "$sol")/shim" && pwd)
"$NVCC" -lineinfo -arch=sm_90 -cudart shared "$scratch/blas.cu" -Xlinker "$shim/libcublas.so.13,--unresolved-symbols=ignore-in-shared-libs" -o "$scratch/blas" ||
  bad 'blas.cu does not compile'
run 5 "$scratch/blas" --json -- call
json "d['incomplete'] and d['missing'] == ['cublasStbmv_v2', 'cublasDtbmv_v2'] and k['name'] == 'one'"
run 5 "$scratch/blas" -- call
says out 'Incomplete: .*cublasStbmv_v2, cublasDtbmv_v2'
run 3 "$scratch/blas" --max-tax 0.01 -- call # a gate comes first
run 0 "$scratch/blas" --json
json "not d['incomplete'] and d['missing'] == []"
cp "$scratch/out" "$scratch/old.json"
run 0 "$scratch/blas" --against "$scratch/old.json"
says out 'Nothing changed' 'unchanged kernels +1'
sed 's/= 1;/= 1 + x[threadIdx.x * 16];/' "$scratch/blas.cu" >"$scratch/blas2.cu"
run 0 "$scratch/blas2.cu" --against "$scratch/old.json" --device h100 --nvcc "-Xlinker $shim/libcublas.so.13,--unresolved-symbols=ignore-in-shared-libs" --markdown
# shellcheck disable=SC2016 # Markdown's own backticks
says out '^\| `one` \| \+[0-9.]+% \|' '^#### `one`'
run 2 "$scratch/blas" --markdown
run 2 "$scratch/blas" --against "$scratch/blas.cu"
run 0 "$scratch/blas" --sort tax --top 1 --file '*.cu'
says out 'By resource' '#' ' launch$'
run 2 "$scratch/blas" --file 'nix*'
says err '--file: no kernel'

echo 'int main() { int x = ; }' >"$scratch/error.cu"
run 2 "$scratch/error.cu"
says err 'error: expected an expression' 'nvcc could not compile'
run 2 "$scratch/none.cu"
run 2 "$scratch/none"
run 2 "$scratch"
run 2 examples/scale.ptx --device nix
run 2
echo "$passed passed, $failed failed"
[ $failed = 0 ]
