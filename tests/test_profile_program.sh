#!/usr/bin/env bash
# sol profile over programs, without a GPU: a driver and a CUPTI that play launches (tests/fake_gpu.c) to the library
# that the driver loads into a program, and all that can go wrong.
set -u
sol=${SOL:-build/sol}
home=$(cd "$(dirname "$sol")" && pwd)
sol=$home/sol
gpu=$home/tests/gpu
program=$gpu/program
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch
passed=0 failed=0 skipped=0
net=${SUITE_SECONDS:-7200} # against a hang alone: no verdict depends on it
unset SOL_CUPTI SOL_PROFILE_LIB CUDA_INJECTION64_PATH FAKE_GPU CUDA_HOME CUDA_PATH NO_COLOR
# The injected library is dlopened: its leak checker would see the fake driver's state as the program's.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"

ok() { passed=$((passed + 1)); }
skip() { echo "skipped: $1" && skipped=$((skipped + 1)); }
bad() {
  failed=$((failed + 1))
  printf 'FAIL %s\n' "$1"
  cat "$scratch/out" "$scratch/err"
}
run() { # CODE ARGS...: sol profile on the fake GPU; FAKE_GPU may be set before it
  local want=$1 rc=0
  shift
  LD_LIBRARY_PATH=$gpu timeout "$net" "$sol" profile "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || rc=$?
  if [ $rc = "$want" ]; then ok; else bad "sol profile $*: exit code $rc, not $want"; fi
  if ls -d "$scratch"/sol-profile-* >/dev/null 2>&1; then bad "sol profile $*: it left a folder behind"; fi
}
says() { # FILE PATTERN...: each is in it, wherever its lines end
  local file=$1
  shift
  for pattern in "$@"; do
    if tr -s ' \n' ' ' <"$scratch/$file" | grep -qE -- "$pattern"; then ok; else bad "no '$pattern' in $file"; fi
  done
}
json() { # PYTHON: an expression over d, the bill; k: its kernels by name and grid
  if python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
k = {x['name'] + ' ' + x['grid']: x for x in d['kernels']}
sys.exit(0 if ($1) else 1)" "$scratch/out" 2>>"$scratch/err"; then ok; else bad "not so: $1"; fi
}
waits=l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum # 47 characters: what the fake counts of it

# ---- counters ----
run 0 --json "$program" -- cuda print copy copy wide sum capture fork
says err "the program's own words"
json "d['launches'] == 4 and d['ended'] == 'the program ended with exit code 0' and d['notes'] == []"
json "set(k) == {'my::copy 64,1,1', 'my::copy 128,1,1', 'sum 1,1,1'}"
json "k['my::copy 64,1,1']['launches'] == 2 and k['my::copy 64,1,1']['time_us'] == 10"
json "k['my::copy 64,1,1']['counters']['$waits'] == 94 and k['sum 1,1,1']['counters']['$waits'] == 47"
json "k['sum 1,1,1']['counters']['sm__maximum_warps_per_active_cycle_pct'] is None"
json "k['sum 1,1,1']['registers'] == 40"

# Of many launches alike some are counted and the rest timed.
run 0 --json "$program" -- cuda many graph
json "k['sum 1,1,1']['launches'] == 101 and abs(k['sum 1,1,1']['time_us'] - (8 * 5 + 93 * 7)) < 1e-6 and d['notes'] == []"

# Cooperative launches, plain and in a graph.
run 0 --json "$program" -- cuda together graph:tk ran
says err 'ran tk\.'
json "k['together 1,1,1']['launches'] == 2 and k['together 1,1,1']['counters']['$waits'] == 2 * 47 and d['notes'] == []"

# ---- graphs ----
# Their nodes are launched one by one, in the order of their edges, each as often as the program wants it.
run 0 --json "$program" -- cuda graph:kcmshrwegk ran
says err 'ran kcmshrwkk\.'
json "d['launches'] == 4 and d['notes'] == [] and k['sum 1,1,1']['counters']['$waits'] == 3 * 47"
json "k['sum 1,1,1']['graph_launches'] == 3 and k['my::copy 64,1,1']['counters']['$waits'] == 47"
# After 8 launches of each kernel the graph runs whole. Those of the last one taken apart that were enough are timed.
run 0 --json "$program" -- cuda graphs:kkkc ran
says err 'ran (kkkc){10}\.'
json "k['sum 1,1,1']['launches'] == 30 and k['sum 1,1,1']['graph_launches'] == 30"
json "abs(k['sum 1,1,1']['time_us'] - (8 * 5 + 22 * 7)) < 1e-6 and abs(k['my::copy 64,1,1']['time_us'] - (8 * 5 + 2 * 7)) < 1e-6"
# A node that was changed after the graph was made ready.
run 0 --json "$program" -- cuda 'graphs:kh>c' ran
says err 'ran (kh){10}(ch){10}\.'
json "d['notes'] == [] and k['sum 1,1,1']['launches'] == 10 and k['my::copy 64,1,1']['launches'] == 10"
run 0 --json "$program" -- cuda 'graph:kc>-' ran # switched off: not followed
says err 'ran kcc\.'
json "k['my::copy 64,1,1']['launches'] == 2 and k['my::copy 64,1,1']['counters']['$waits'] == 2 * 47"
says out 'CUDA graphs that have nodes that were changed later on are timed, not counted \(1 graphs'
# What cannot be launched by itself.
run 0 --json "$program" -- cuda graph:ka ran graph:ki ran
says err 'ran kaki\.'
json "k['sum 1,1,1']['launches'] == 2 and k['sum 1,1,1']['counters']['$waits'] is None"
says out 'CUDA graphs that have nodes that cannot be copied are timed, not counted \(2 graphs'
FAKE_GPU=stubborn run 0 --json "$program" -- cuda graphs:kc ran
says err 'ran (kc){10}\.'
json "k['sum 1,1,1']['launches'] == 10 and k['sum 1,1,1']['counters']['$waits'] is None"
says out 'CUDA graphs that have a driver'
FAKE_GPU=copyless run 0 --json "$program" -- cuda graph:kmk ran # a node that fails: the program hears of it
says err 'ran km!\.'
says out 'a node of a CUDA graph failed when it was launched by itself: CUDA error 1'
# Chosen launches of graphs.
run 0 --json --launch-skip 3 --launch-count 2 "$program" -- cuda graphs:kkc ran graph:ka
says err 'ran (kkc){10}\.'
json "d['launches'] == 2 and k['sum 1,1,1']['counters']['$waits'] == 2 * 47"
run 0 --json --kernel copy "$program" -- cuda graphs:kc
json "list(k) == ['my::copy 64,1,1'] and d['launches'] == 10"

# ---- times ----
run 0 --json --times "$program" -- cuda copy many graph
json "d['launches'] == 102 and abs(k['sum 1,1,1']['time_us'] - 101 * 7) < 1e-6 and d['notes'] == []"
json "k['my::copy 64,1,1']['counters']['$waits'] is None"

# ---- bytes of DRAM alone ----
run 0 --json --dram "$program" -- cuda copy sum
json "k['sum 1,1,1']['counters']['dram__bytes_write.sum'] == 21 and k['sum 1,1,1']['counters']['$waits'] is None and k['sum 1,1,1']['time_us'] == 5"
run 2 --dram --times "$program" -- cuda copy
says err '--dram and --times'

# ---- which launches ----
run 0 --json --kernel sum "$program" -- cuda copy sum copy sum
json "list(k) == ['sum 1,1,1'] and d['launches'] == 2"
run 0 --json --launch-skip 1 --launch-count 2 "$program" -- cuda copy sum copy sum sum
json "d['launches'] == 2 and set(k) == {'my::copy 64,1,1', 'sum 1,1,1'}"
run 0 --json --launch-count 20 "$program" -- cuda many # more than 8: all are counted
json "d['launches'] == 20 and k['sum 1,1,1']['counters']['$waits'] == 20 * 47"
run 0 --json --each 2 "$program" -- cuda many wide # two counted, the rest timed
json "abs(k['sum 1,1,1']['time_us'] - (2 * 5 + 98 * 7)) < 1e-6 and k['my::copy 128,1,1']['time_us'] == 5"
run 2 --each 0 "$program" -- cuda copy
run 0 --json --times --kernel 'my::*' --launch-skip 1 "$program" -- cuda copy sum wide
json "d['launches'] == 1 and list(k) == ['my::copy 128,1,1']"
run 0 --json --kernel copy "$program" -- cuda copy sum wide # its namespace may be left out
json "d['launches'] == 2 and set(k) == {'my::copy 64,1,1', 'my::copy 128,1,1'}"
run 4 --kernel nosuch "$program" -- cuda copy abort
says err 'no kernel that was selected was launched: .* signal 6'
run 2 --kernel nosuch "$program" -- cuda copy sum
says err "none of the program's 2 launches was selected"

# ---- processes ----
run 0 --json "$program" -- cuda copy spawn
json "d['launches'] == 2 and set(k) == {'my::copy 64,1,1', 'sum 1,1,1'}"
run 0 --json "$program" -- spawn # the shell of a CUDA program has no CUDA itself
json "d['launches'] == 1"

# ---- programs that go wrong: what they did is kept ----
run 4 --json "$program" -- cuda copy sum abort
json "d['launches'] == 2 and 'signal 6' in d['ended']"
run 4 --json "$program" -- cuda copy fail
json "d['launches'] == 1 and 'exit code 3' in d['ended']"
run 4 --json "$program" -- cuda copy sum killed # no handler of ours has a say
json "d['launches'] == 2 and 'signal 9' in d['ended'] and k['sum 1,1,1']['counters']['$waits'] == 47"
FAKE_GPU=prompt run 4 --json --times "$program" -- cuda copy delivered killed # times are kept but for what CUPTI had not handed over
json "d['launches'] == 1 and k['my::copy 64,1,1']['time_us'] == 7"
run 4 "$program" -- cuda abort
says err 'no kernel was launched: the program was ended by signal 6'
# The time limit may come before a slow machine has launched anything: then a longer one is tried.
for seconds in 1 4 16 64 256 1024; do
  rc=0
  LD_LIBRARY_PATH=$gpu "$sol" profile --json --seconds $seconds "$program" -- cuda copy wait >"$scratch/out" 2>"$scratch/err" || rc=$?
  grep -q '"launches": 1' "$scratch/out" && break
done
if [ $rc = 4 ]; then ok; else bad "--seconds: exit code $rc, not 4"; fi
json "d['launches'] == 1 and 'stopped after $seconds s' in d['ended']"
for signal in INT TERM; do # to sol alone: the program has to be ended by it
  LD_LIBRARY_PATH=$gpu "$sol" profile --json "$program" -- cuda copy wait >"$scratch/out" 2>"$scratch/err" &
  pid=$!
  until grep -qs launch "$scratch"/sol-profile-*/report.*; do
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
  done
  kill -$signal $pid
  if wait $pid; then bad "SIG$signal: exit code 0"; elif [ $? = 4 ]; then ok; else bad "SIG$signal: exit code"; fi
  json "d['launches'] == 1 and 'interrupted' in d['ended']"
done
run 2 true
says err 'the program did not start CUDA: the program ended with exit code 0'
run 2 "$scratch/nosuch"
says err "cannot run '.*nosuch': No such file"
printf 'print(1)\n' >"$scratch/a.py"
run 1 "$scratch/a.py"
says err 'sol profile python3 -- .*a.py'
run 4 nosuch-program-anywhere
says err 'cannot run nosuch-program-anywhere' 'did not start CUDA: the program ended with exit code 127'

# ---- files as an H200 wrote them, cut and broken ones: played back in the library's place ----
corpus=$PWD/tests/fuzz/corpus/profile_wire
play() { # CODE FILE...
  local code=$1 list=''
  shift
  for file in "$@"; do list+=" cat '$file' >\"\$SOL_PROFILE_OUT.\$((n = n + 1))\";"; done
  run "$code" --json sh -- -c "n=0;$list true"
}
play 0 "$corpus/counters"
json "d['launches'] == 3 and k['mix::stream 1056,1,1']['global_load'] == {'requests': 3 * 524288, 'sectors': 3 * 8388608}"
json "d['gpu']['name'] == 'NVIDIA H200' and d['notes'] == []"
play 0 "$corpus/cut"
json "d['launches'] == 2 and d['notes'] == ['1 lines of the program\\'s report could not be read.']"
play 0 "$corpus/graph"
json "d['launches'] == 6 and k['mix::stream 1056,1,1']['graph_launches'] == 2"
play 2 "$corpus/trouble"
says err 'reading the counters: CUPTI_ERROR_UNKNOWN'
play 0 "$corpus/bad" "$corpus/counters" /dev/null
json "d['launches'] == 4 and 'could not be read' in d['notes'][0]"
python3 -c "import random, sys; sys.stdout.buffer.write(random.Random(1).randbytes(100000))" >"$scratch/noise"
play 2 "$scratch/noise"
says err 'the program did not start CUDA'

# ---- machines that will not ----
export FAKE_GPU
FAKE_GPU=forbidden run 0 --json "$program" -- cuda copy sum sum
json "d['launches'] == 3 and k['sum 1,1,1']['time_us'] == 14 and k['sum 1,1,1']['counters']['$waits'] is None"
says out 'counters are forbidden here' 'INSUFFICIENT_PRIVILEGES' 'NVreg_RestrictProfilingToAdminUsers=0' 'SYS_ADMIN'
FAKE_GPU=refused run 2 "$program" -- cuda copy
says err 'another profiler is active in this process'
FAKE_GPU=old run 2 "$program" -- cuda copy
says err 'is not for this driver: update the driver'
FAKE_GPU=failing run 2 "$program" -- cuda copy
says err 'reading the counters'
FAKE_GPU=none run 2 "$program" -- cuda copy
says err 'no GPU on this machine' "'sol audit' bills"
FAKE_GPU=broken run 2 "$program" -- cuda copy
says err 'the CUDA driver does not start \(error 999\)'
unset FAKE_GPU

# The same, of a program that the emulator can run: times of the one, counts of the other. Its kernel is played to the
# fake driver, and launched through our runtime.
nvcc=$(scripts/cuda-env nvcc)
if [ -n "$nvcc" ] && [ -e "$home/shim/libcudart.so.13" ] && ! nm -D "$home/shim/libcudart.so.13" | grep -q __asan_init; then
  cat >"$scratch/both.cu" <<'CU'
extern "C" int cuInit(unsigned);
extern "C" __attribute__((weak)) void fake_launch(const char *, unsigned, unsigned, int); // not in the emulator's driver
__global__ void scale(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }
int main() {
  float *x;
  cuInit(0);
  if (fake_launch) fake_launch("_Z5scalePf", 4, 256, 0);
  if (cudaMalloc(&x, 4096)) return 1;
  scale<<<4, 256>>>(x);
  return cudaDeviceSynchronize();
}
CU
  "$nvcc" -arch=sm_90 -cudart shared "$scratch/both.cu" -L"$gpu" -Xlinker -l:libcuda.so.1 -o "$scratch/both"
  export FAKE_GPU=forbidden
  gpu=$gpu:$home/shim run 0 --json "$scratch/both"
  unset FAKE_GPU
  json "d['launches'] == 1 and k['scale 4,1,1']['time_us'] == 7 and k['scale 4,1,1']['counters']['$waits'] is None"
  json "[r['emulated'] for a in d['against'] for r in a['counters'] if r['counter'] == 'load_requests'] == [32]"
  says out 'counters are forbidden' "Counts are the emulator's, times the GPU's"
else
  skip 'no nvcc, or a runtime on the emulator that was built with sanitizers'
fi

SOL_PROFILE_LIB=$scratch/nosuch run 2 "$program" -- cuda copy
says err "Sol's libsolprofile.so was not found"
without() { # FOLDER FUNCTION: the fake, without it
  mkdir "$1"
  "${CC:-cc}" -std=c17 -shared -fPIC -Iinclude -Isrc "-D$2=fake_of_no_use" -Wl,-soname,libcuda.so.1 tests/fake_gpu.c -ldl \
    -o "$1/libcuda.so.1" || bad "without $2 it does not compile"
  ln -s libcuda.so.1 "$1/libcupti.so.13"
}
without "$scratch/old" cuptiRangeProfilerEnable
gpu=$scratch/old run 0 --json "$program" -- cuda copy sum
json "d['launches'] == 2 and k['sum 1,1,1']['time_us'] == 7 and k['sum 1,1,1']['counters']['$waits'] is None"
says out 'this CUPTI \(130000\) has no range profiler; CUDA 12.6 and later have it'
without "$scratch/older" cuptiActivityFlushAll # of a CUPTI that cannot even time
gpu=$scratch/older run 2 "$program" -- cuda copy
says err 'this CUPTI is too old: it lacks cuptiActivityFlushAll'
without "$scratch/aged" cuGraphClone # a driver without copies of graphs: they are timed
gpu=$scratch/aged run 0 --json "$program" -- cuda copy graphs:k ran
says err 'ran k{10}\.'
json "k['my::copy 64,1,1']['counters']['$waits'] == 47 and k['sum 1,1,1']['launches'] == 10 and k['sum 1,1,1']['counters']['$waits'] is None"
says out 'kernels of CUDA graphs .* are timed, not counted'
mkdir "$scratch/empty"
"${CC:-cc}" -shared -x c /dev/null -Wl,-soname,libcuda.so.1 -o "$scratch/empty/libcuda.so.1"
gpu=$scratch/empty run 2 "$program" -- cuda copy
says err 'libcuda.so.1 is no CUDA driver: it lacks cuInit'
mkdir "$scratch/bare" # a driver without its CUPTI
cp "$gpu/libcuda.so.1" "$scratch/bare"
gpu=$scratch/bare SOL_CUPTI=$scratch/nosuch run 2 "$program" -- cuda copy
says err 'SOL_CUPTI=.*nosuch cannot be loaded' 'it comes with the CUDA toolkit'
SOL_CUPTI=$scratch/nosuch run 2 "$program" -- cuda copy # one that is named is used, also where another is there
says err 'SOL_CUPTI=.*nosuch cannot be loaded'
# One that forbids counters, and is linked with the CUPTI that it leaves the rest to.
"${CC:-cc}" -shared -fPIC tests/profile/forbid.c -o "$scratch/forbid.so" -Wl,--no-as-needed "$gpu/libcupti.so.13" || bad "it does not link"
SOL_CUPTI=$scratch/forbid.so run 0 --json "$program" -- cuda copy
says out 'counters are forbidden here' 'INSUFFICIENT_PRIVILEGES'
# An empty folder in the driver's place: none is found, wherever this machine keeps its own.
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
  rc=0
  timeout "$net" "$sol" profile "$program" >"$scratch/out" 2>"$scratch/err" </dev/null || rc=$?
  if [ $rc = 2 ]; then ok; else bad "no driver: exit code $rc"; fi
  says err 'no CUDA driver on this machine' "'sol audit' bills"
else
  skip 'there is a CUDA driver on this machine'
fi

echo "$passed passed, $failed failed$([ $skipped = 0 ] || echo ", $skipped skipped")"
[ $failed = 0 ]
