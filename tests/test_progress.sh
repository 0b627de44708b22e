#!/usr/bin/env bash
# Work of more than a second says on a terminal where it is, and nothing where there is none. The kernel ends when the line
# was seen: how fast the machine is does not matter.
set -u
sol=${SOL:-build/sol}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/endless.ptx" <<'PTX'
.version 8.0
.target sm_80
.address_size 64
.visible .entry endless()
{
  .reg .u64 %rd1;
  mov.u64 %rd1, 0;
LOOP:
  add.u64 %rd1, %rd1, 1;
  bra LOOP;
}
PTX
python3 - "$sol" "$scratch/endless.ptx" <<'PY'
import os, pty, re, signal, subprocess, sys
sol, ptx = sys.argv[1:]
passed = failed = 0
def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print('FAIL', what)
env = {k: v for k, v in os.environ.items() if k not in ('CI', 'NO_COLOR')} | {'TERM': 'xterm', 'COLUMNS': '100'}
for command in ('run-ptx', 'audit'):
    ours, theirs = pty.openpty()
    run = subprocess.Popen([sol, command, ptx, '--kernel', 'endless', '--grid', '8', '--block', '64'], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=theirs, env=env)
    os.close(theirs)
    seen = ''
    while 'instr/s' not in seen:
        try:
            more = os.read(ours, 4096)
        except OSError: # its end
            break
        seen += more.decode('utf-8', 'replace')
    check(re.search(r'endless.*\d+% of blocks.*instr/s', seen), f'{command} shows no progress: {seen!r}')
    run.send_signal(signal.SIGINT)
    check(run.wait() == 4, f'{command} ends with code {run.returncode} after an interrupt')
    os.close(ours)
# Without a terminal: the same, ended by a number of instructions.
quiet = subprocess.run([sol, 'run-ptx', ptx, '--kernel', 'endless', '--grid', '1', '--block', '32', '--max-instructions',
                        '20000000'], capture_output=True, env=env)
check(quiet.returncode == 4 and b'of blocks' not in quiet.stderr and b'\r' not in quiet.stderr, f'not quiet: {quiet.stderr!r}')
print(f'{passed} passed, {failed} failed')
sys.exit(failed > 0)
PY
