#!/usr/bin/env python3
"""Programs by others on the emulator: builds each with its default line, runs it under `sol audit`, and says what came of it.
usage: compat.py SRC... [--only NAME,...] [--new N] [--seconds S] [--sol PATH] [--work DIR] [--write] [--list]
SRC is a checkout of NVIDIA's cuda-samples (Samples/*/NAME) or of HeCBench (src/NAME-cuda), or several. Sources are not changed: they
are copied to DIR and built there, a HeCBench program by its Makefile for sm_90, a sample by nvcc with all sources of its folder. The
arguments are those of the table in docs/compatibility.md; for a program that is not there, those of the Makefile, or none. --new N
takes up to N programs of each SRC that the table does not have; --write puts the results into that table and counts it anew.
A program
  passes    ends with 0, prints that its own check holds, and the bill is complete
  runs      ends with 0, and prints no check
  refused   the bill is incomplete, or a kernel or library was refused: the reason names it
  too slow  was not done after S seconds of CPU time
  fails     ends otherwise
  does not build"""
import argparse
import functools
import glob
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOC = os.path.join(ROOT, "docs", "compatibility.md")
ROW = re.compile(r"^\| ([\w.-]+) \| ([\w/.+-]+) \| (?:`([^|]*)`)? ?\| (passes|runs|refused|too slow|fails|does not build|waived|not tried) \| (.*?) ?\|$")
GOOD = re.compile(r"\bpass(ed|es)?\b|\bsuccess(ful|fully)?\b|\bcorrect\b|results? match|\bok\b|\b(0|no) (errors?|mismatch(es)?|fail(ed|ures?))\b|\berrors?\b[\w\s()]*[=:] *0(\.0*)?(e[+-]?0+)?(?![.\d])", re.I)
BAD = re.compile(r"\bfail(s|ed|ures?)?\b|\b(in|not )correct\b|\bwrong\b|mismatch|\berrors?\b(?! statistics)|\bnot ok\b|unsuccessful", re.I)
SMALL = re.compile(r"\berror\b[^=:]*[=:] *([\d.]+e-\d+|0?\.00\d+)\b", re.I)  # an error that is only shown
CLASSES = ("passes", "runs", "refused", "too slow", "fails", "does not build", "waived", "not tried")


def run(command, seconds, cwd=None, env=None, cpu=None):
    """(exit code or None where it took longer, what it printed); cpu: seconds of CPU time after which each of its processes ends"""
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_CPU, (cpu, cpu + 5)) if cpu else None
    try:
        done = subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
                              check=False, preexec_fn=limit)  # noqa: PLW1509 (this program has no threads)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        return None, (late.stdout or b"").decode(errors="replace")


def nvcc_home():
    code, home = run([os.path.join(ROOT, "scripts", "cuda-env"), "home"], 60)
    if code:
        sys.exit("no CUDA 13 toolkit (make setup)")
    return home.strip()


class Program:
    def __init__(self, collection, name, folder):
        self.collection, self.name, self.folder = collection, name, folder

    def __repr__(self):
        return f"{self.collection} {self.name}"


def sources_of(folder):
    """Those of a sample, which may stand in src/, relative to its folder."""
    places = [os.path.join(folder, p) for p in ("*.cu", "*.cpp", "src/*.cu", "src/*.cpp")]
    return sorted(os.path.relpath(f, folder) for place in places for f in glob.glob(place))


def programs_of(source):
    found = [Program("HeCBench", os.path.basename(f)[: -len("-cuda")], f) for f in sorted(glob.glob(os.path.join(source, "src", "*-cuda")))]
    for folder in sorted(glob.glob(os.path.join(source, "Samples", "*", "*"))):
        if sources_of(folder):
            found.append(Program("cuda-samples", os.path.basename(folder), folder))
    return found


def place_for(program, work):
    """A copy of the program's folder, with its neighbours beside it under their own names."""
    parent = os.path.join(work, program.collection, os.path.basename(os.path.dirname(program.folder)))
    own = os.path.join(parent, os.path.basename(program.folder))
    os.makedirs(parent, exist_ok=True)
    for neighbour in glob.glob(os.path.join(os.path.dirname(program.folder), "*")):
        link = os.path.join(parent, os.path.basename(neighbour))
        if not os.path.lexists(link):
            os.symlink(neighbour, link)
    if os.path.islink(own):
        os.unlink(own)
    if not os.path.isdir(own):
        shutil.copytree(program.folder, own)
    return own


def says(own, files):
    return "".join(open(os.path.join(own, f), encoding="utf-8", errors="replace").read() for f in files)


def needs(text):
    """Libraries of a CMakeLists.txt, as nvcc takes them."""
    wanted = {"cublas": "cublas", "cublasLt": "cublasLt", "curand": "curand", "cusparse": "cusparse", "cufft": "cufft", "cusolver": "cusolver",
              "nvrtc": "nvrtc", "nvJitLink": "nvJitLink", "cuda_driver": "cuda", "nppi": "nppisu", "nvjpeg": "nvjpeg"}
    return [f"-l{lib}" for name, lib in wanted.items() if re.search(rf"CUDA::{name}\b", text)]


def build_sample(program, own, home, seconds):
    cmake = os.path.join(own, "CMakeLists.txt")
    text = open(cmake, encoding="utf-8").read() if os.path.exists(cmake) else ""
    common = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(program.folder))), "Common")
    sources = sources_of(own)
    nvcc = [os.path.join(home, "bin", "nvcc"), "-std=c++17", "-arch=sm_90", "-I", common, "-I", own, "-I", os.path.join(own, "inc")]
    for kind in ("fatbin", "ptx"):  # files that the program loads as it runs
        for kernels in [f for f in sources if f.endswith("_kernel.cu") and re.search(rf"64\.{kind}|-{kind}\b", text)]:
            sources.remove(kernels)
            run([*nvcc, f"-{kind}", kernels, "-o", kernels[: -len(".cu")] + f"64.{kind}"], seconds, own)
    sources += [os.path.join(common, f) for f in ("helper_multiprocess.cpp", "multithreading.cpp") if f in text or f[:-4] + ".h" in says(own, sources)]
    if "nvrtc" in text:  # kernels that the program compiles as it runs
        sources = [f for f in sources if not f.endswith(".cu")]
        include = os.path.join(home, "include")
        wanted = ("cooperative_groups*", "nv", "cuda", "cccl/nv", "cccl/cuda")  # copied there by the sample's CMakeLists.txt
        for header in [h for name in wanted for h in glob.glob(os.path.join(include, name))]:
            link = os.path.join(own, os.path.basename(header))
            if not os.path.lexists(link):
                os.symlink(header, link)
    flags = ["-rdc=true"] if "SEPARABLE_COMPILATION ON" in text else []
    if "OpenMP" in text:
        flags += ["-Xcompiler", "-fopenmp"]
    binary = os.path.join(own, "sol-program")
    code, said = run([*nvcc, *flags, *sources, *needs(text), "-o", binary], seconds, own)
    return (binary, "") if code == 0 else (None, said)


def build_hecbench(own, home, seconds):
    env = dict(os.environ, PATH=os.path.join(home, "bin") + ":" + os.environ["PATH"])
    name = re.search(r"^program\s*=\s*(\S+)", open(os.path.join(own, "Makefile"), encoding="utf-8").read(), re.M)
    binary = os.path.join(own, name.group(1) if name else "main")
    code, said = run(["make", "ARCH=sm_90"], seconds, own, env)
    return (binary, "") if code == 0 and os.path.exists(binary) else (None, said)


def default_arguments(own):
    makefile = os.path.join(own, "Makefile")
    if not os.path.exists(makefile):
        return ""
    found = re.search(r"^run:.*\n(?:\t.*\n)*?\t.*\./(?:\$\(program\)|\w+)[ \t]*(.*)$", open(makefile, encoding="utf-8").read(), re.M)
    return found.group(1).strip() if found else ""


def first_error(said):
    lines = [line.strip() for line in said.splitlines() if re.search(r"error|fatal|undefined reference|No such file|cannot find", line)]
    text = re.sub(r"^\S*?([\w.+-]+\.\w+)(?=[(:])", r"\1", lines[0]) if lines else "nvcc says nothing"
    return plain(text)


def plain(text):
    text = re.sub(r"/\S*/", "", re.sub(r"\s+", " ", text)).replace("|", "/")
    return text if len(text) < 120 else text[:117] + "..."


def refusal(said):
    for pattern in (r"it called what does not run here: (.+)", r"Incomplete: did not run here, and is not in this bill: (.+?)\.", r"sol: this program calls ([\w ]+?)[,;]",
                    r"sol: (.*?(?:not emulated|not supported|not in the emulator|cannot run).*)", r"sol: (.*PTX.*)"):
        found = re.search(pattern, " ".join(said.split()) if pattern.startswith("Incomplete") else said)
        if found:
            return plain(found.group(1))
    return None


def judge(code, said):
    reason = refusal(said)
    printed = re.split(r" on\s+NVIDIA\s", said, maxsplit=1)[0]  # the bill follows
    own = said[len(printed) :] + "\n".join(line for line in said.splitlines() if line.startswith("sol"))
    if "no kernel was launched: the program ended with exit code 0" in own and not reason:
        code = 0  # it only asks, as deviceQuery does
    if code is None or code == -signal.SIGXCPU or re.search(r"stopped after|time limit|seconds are over|was stopped|signal 24", own):
        return "too slow", None
    if code == 5 or (code and reason):
        return "refused", reason or "the bill is incomplete"
    if code:
        found = re.search(r"Went wrong:?\s*(.+)|ended with exit code (\d+)|(killed by .*)", said)
        waived = re.search(r"ended with exit code 2\b", said) and re.search(r"waiv", said, re.I)
        lines = [line for line in printed.splitlines() if BAD.search(line)] or [line for line in said.splitlines() if line.startswith("sol")]
        return ("waived" if waived else "fails"), plain(lines[0] if lines else found.group(0) if found else f"exit code {code}")
    # A line that says both ("error = 0.00, SUCCESS") is good, unless it is a negation. One bad line outweighs all others.
    for line in printed.splitlines():
        if BAD.search(SMALL.sub("", line)) and (not GOOD.search(line) or re.search(r"\bnot (correct|ok|pass)|incorrect|unsuccessful", line, re.I)):
            return "fails", plain(line)
    return ("passes", "") if GOOD.search(printed) else ("runs", "prints no check of its own")


def attempt(program, arguments, args, home):
    own = place_for(program, os.path.abspath(args.work))
    binary, said = build_sample(program, own, home, 300) if program.collection == "cuda-samples" else build_hecbench(own, home, 300)
    if not binary:
        return arguments, "does not build", first_error(said) if said else "not built after 300 s"
    if arguments is None:
        arguments = default_arguments(own)
    try:
        words = shlex.split(arguments)
    except ValueError:
        words = []
    command = [os.path.abspath(args.sol), "audit", binary, *(["--", *words] if words else [])]
    code, said = run(command, args.seconds * 20, own, cpu=args.seconds)  # CPU time: a busy machine changes no verdict
    with open(os.path.join(own, "sol-audit.txt"), "w", encoding="utf-8") as kept:
        kept.write(said)
    result, why = judge(code, said)
    return arguments, result, f"not done after {args.seconds} s of CPU time" if result == "too slow" else why


def table():
    """Lines of the page, and the places of the table's rows by program."""
    with open(DOC, encoding="utf-8") as page:
        lines = page.read().split("\n")
    return lines, {(m.group(1), m.group(2)): (i, m.group(3)) for i, m in ((i, ROW.match(line)) for i, line in enumerate(lines)) if m}


def counts(lines):
    results = [m.group(4) for m in map(ROW.match, lines) if m]
    parts = [f"{results.count(c)} {'pass' if c == 'passes' else 'run but check nothing' if c == 'runs' else c}" for c in CLASSES if results.count(c)]
    return f"Of {len(results)} programs: " + ", ".join(parts) + "."


def put(lines, rows, results):
    last = max(place for place, _ in rows.values())
    for (collection, name), (arguments, result, why) in results.items():
        row = f"| {collection} | {name} | {f'`{arguments}`' if arguments else ''} | {result} | {why} |".replace("  |", " |").replace("| |", "|  |")
        if (collection, name) in rows:
            lines[rows[collection, name][0]] = row
        else:
            lines.insert(last + 1, row)
            last += 1
    start = next(i for i, line in enumerate(lines) if re.match(r"Of \d+ programs:", line))
    end = next(i for i in range(start, len(lines)) if not lines[i])
    lines[start:end] = [counts(lines)]
    with open(DOC, "w", encoding="utf-8") as page:
        page.write("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("src", nargs="+")
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--new", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--sol", default=os.path.join(ROOT, "build", "sol"))
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "compat"))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", action="store_true", help="only say which programs would be tried")
    args = parser.parse_args()
    lines, rows = table()
    only, chosen = set(filter(None, (args.only or "").split(","))), []
    for source in args.src:
        programs = programs_of(os.path.abspath(source))
        if not programs:
            sys.exit(f"{source}: neither cuda-samples (Samples/*/NAME) nor HeCBench (src/NAME-cuda)")
        known = [p for p in programs if (p.collection, p.name) in rows]
        fresh = [p for p in programs if (p.collection, p.name) not in rows][: args.new]
        chosen += [p for p in programs if p.name in only] if only else known + fresh
    if args.list:
        print("\n".join(map(str, chosen)))
        return
    home, results = nvcc_home(), {}
    for program in chosen:
        key = program.collection, program.name
        results[key] = attempt(program, rows[key][1] or "" if key in rows else None, args, home)
        print(f"{program.collection:13} {program.name:28} {results[key][1]:15} {results[key][2] or ''}", flush=True)
        if args.write:
            put(*table(), {key: results[key]})
    for c in CLASSES:
        number = sum(r[1] == c for r in results.values())
        if number:
            print(f"{c:15} {number}")


if __name__ == "__main__":
    main()
