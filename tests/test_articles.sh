#!/usr/bin/env bash
# The kernels that articles begin with (examples/articles.cu): the first advice of sol audit is the article's, at its line,
# and its gain about what an H200 measured for the kernel that follows it (the ladders in bench/results).
set -u
sol=${SOL:-build/sol}
[ -e "$(dirname "$sol")/shim/libcudart.so.13" ] || { echo "the runtime on the emulator was not built" && exit 77; }
nvcc=$(scripts/cuda-env nvcc) || { echo "no CUDA 13 compiler" && exit 77; }
bin=${B:-build}/audit-programs
mkdir -p "$bin"
source=examples/articles.cu
if [ ! "$bin/articles" -nt $source ]; then
  "$nvcc" -lineinfo -Wno-deprecated-gpu-targets -cudart shared -arch=sm_90 $source -o "$bin/articles" || exit 1
fi
preload=
if nm -D "$(dirname "$sol")/shim/libcudart.so.13" | grep -q ' U __asan_init'; then
  preload=$(${CC:-cc} -print-file-name=libasan.so)
  export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:verify_asan_link_order=0"
fi
PRELOADED=$preload python3 - "$sol" "$bin/articles" $source bench/results/2026-11-15-h200-ladders.json <<'PY'
import json, os, re, subprocess, sys
sol, program, source, results = sys.argv[1:]
ladders = {l['name']: {r['rung']: r['measured']['time_us'] for r in l['rungs']} for l in json.load(open(results))['ladders']}
advice = {}  # of a kernel: the rule and its line
for number, line in enumerate(open(source), 1):
    found = re.search(r'// advice: (\w+) (\w+)', line)
    if found:
        advice[found[1]] = (found[2], number)
# The rung with the fault, and those of which the measured gain is to be expected between.
rungs = {'softmax': ('serial-max', 'parallel-max', 'parallel-max'),
         'transpose': ('naive', 'padded', 'padded'),
         'particles': ('structures', 'arrays', 'arrays'),
         'column_scale': ('strided', 'contiguous', 'contiguous'),
         'rmsnorm': ('block', 'half2', 'vectors'),  # the article takes half2; the advice is to take 16 bytes
         'embedding': ('coalesced', 'pointers', 'pointers')}
WITHIN = 0.25
passed = failed = 0
def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print('FAIL', what)
# Under ASan one is enough: emulating is slow there.
for name in list(rungs)[2:3] if os.environ['PRELOADED'] else rungs:
    run = subprocess.run([sol, 'audit', program, '--device', 'h200', '--cold', '--sample', '1', '--json', '--', name],
                         capture_output=True, text=True, stdin=subprocess.DEVNULL,
                         env=os.environ | {'LD_PRELOAD': os.environ['PRELOADED']})
    check(run.returncode == 0, f'{name}: exit code {run.returncode}: {run.stderr}')
    if run.returncode:
        continue
    check(all(l['line'] > 0 for l in json.loads(run.stdout)['kernels'][0]['lines']), f'{name}: something is charged to line 0')
    first = json.loads(run.stdout)['kernels'][0]['findings'][0]
    rule, line = advice[name]
    check(first['rule'] == rule, f"{name}: first advice is {first['rule']}, not {rule}")
    lines = (line, line - 10) if name == 'rmsnorm' else (line,)
    check(first['line'] in lines, f"{name}: at line {first['line']}, not {lines}")
    bad, low, high = (ladders[name][r] for r in rungs[name])
    least, most = bad / low * (1 - WITHIN), bad / high * (1 + WITHIN)
    check(least <= first['gain'] <= most, f"{name}: a gain of {first['gain']:.2f}x, measured {bad / low:.2f}x to {bad / high:.2f}x")
    print(f"{name:13} {first['rule']:12} {first['gain']:5.2f}x, measured {bad / high:5.2f}x")
print(f'{passed} passed, {failed} failed')
sys.exit(failed > 0)
PY
