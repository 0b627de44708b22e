"""The corpus of public programs: bench/corpus.csv lists them, with what builds and runs each; their sources are not part of
this repository. A source folder has one work tree a collection, named as the collection: SRC/HeCBench/src/adam-cuda/main.cu.
bench/corpus_gpu.py measures them on a GPU, bench/corpus_table.py makes tests/data/h200-corpus.csv of what it measured,
bench/fidelity.py holds the emulator to that table."""
import concurrent.futures
import csv
import glob
import hashlib
import os
import random
import re
import shlex

from profile_compare import ROOT, run

LISTS = {  # of programs: bench/corpus_NAME.csv, what was measured of them in tests/data/h200-corpus-NAME.csv, and what they are
    "": "public programs, measured with counters; all their kernels are to learn from since 2026-11-19",
    "more": "further programs, times alone; all their kernels are to learn from",
    "kinds": "kernels of this repository, one mechanism each (bench/kinds): SRC is the repository; split by the same hash",
    "fresh": "programs of which nothing was measured before 2026-11-18, times alone; split by the same hash",
    "next": "programs of which predictions were kept before anything was measured (2026-11-19), times alone; split by the same hash",
    "blind": "programs that nobody had tried, chosen before anything was measured on them (2026-11-19), times alone; all only scored",
}
LEARNT, SCORED = ("", "more"), ("blind",)  # lists whose kernels may all be looked at, and those of which none may; of others a hash decides
COMMITS = {  # what was measured
    "Altis": ("utcs-scea/altis", "042e2926d1fe9a5ea5b3e2d659b75bf925b152cc"),
    "HeCBench": ("zjin-lcf/HeCBench", "f27000a5188f8ac79bd43fc95a1b3f890c18823d"),
    "PolyBench-ACC": ("cavazos-lab/PolyBench-ACC", "70ea4ca9047dc4ec9c3ca79b4c91b3b2cc1510e7"),
    "Rodinia": ("yuhc/gpu-rodinia", "9c10d3ea16ddba2ba057cc3951a9efc4c2cc18a4"),
    "SHOC": ("vetter/shoc", "0aea03beba2f09fcb5935cc11737372fe4de9ec0"),
    "cuda-samples": ("NVIDIA/cuda-samples", "c94ff366aed18c797b8a85dfaac7817b0228b420"),
}
FLAGS = ["-O3", "-arch=sm_90", "-lineinfo", "-w"]
OLD = ["-include", os.path.join(ROOT, "bench", "corpus_compat.h")]


def list_of(name=""):
    return os.path.join(ROOT, "bench", "_".join(filter(None, ("corpus", name))) + ".csv")


def table_of(name=""):
    return os.path.join(ROOT, "tests", "data", "-".join(filter(None, ("h200-corpus", name))) + ".csv")


def programs(source, only=None, table=None):
    """The rows of the list whose folder is there. only: programs' names, or collections'; table: another list."""
    with open(table or list_of(), encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    return [r for r in rows if os.path.isdir(place(source, r)) and (not only or r["program"] in only or r["collection"] in only)]


def place(source, row):
    return os.path.join(source, row["collection"], row["folder"])


def title(row):
    """The same for every run of one program; arguments distinguish the runs."""
    return f"{row['collection']}/{row['program']}"


def key(row):
    return f"{title(row)} {row['arguments']}".strip()


def symbol(name):
    """A kernel's mangled name without what depends on the path of its source when it was compiled: the name of its unit."""
    static = re.match(r"__nv_static_(\d+)_", name)
    if static:
        name = name[static.end() + int(static.group(1)) + 1:]
    unit = re.search(r"(\d+)_GLOBAL__N__", name)
    return name[:unit.start()] + "_GLOBAL_" + name[unit.start(1) + len(unit.group(1)) + int(unit.group(1)):] if unit else name


def scored(program, kernel, name="next"):
    """What is only scored, never looked at kernel by kernel: of a list that is split a third of all kernels. Until 2026-11-18 it was a half,
    of which a third was opened then, to learn what the model lacks that the kernels to learn from do not show; the corpus's own was
    opened whole on 2026-11-19."""
    if name in LEARNT + SCORED:
        return name in SCORED
    digest = hashlib.sha256(f"{program}/{kernel}".encode()).digest()
    return digest[0] >= 128 and digest[1] >= 85


def prepare(source, row):
    """Input files that the collections keep elsewhere: the same on every machine."""
    words, here = row["data"].split(), place(source, row)
    if words[:1] == ["empty"]:  # a header that their configure script would write
        open(os.path.join(here, words[1]), "a").close()
    elif words[:1] == ["grid"]:  # a number a line
        for name, count in zip(words[1::2], words[2::2]):
            lines(os.path.join(here, name), int(count))
    elif words[:1] == ["graph"]:
        graph(os.path.join(here, "graph.txt"), int(words[1]), int(words[2]))


def lines(path, count):
    if not os.path.exists(path):
        some = random.Random(path.rpartition("/")[2])
        part = "".join(f"{300 + 50 * some.random():.3f}\n" for _ in range(65536))
        with open(path, "w") as f:
            f.write((part * (count // 65536 + 1))[: len(part) * count // 65536])


def graph(path, nodes, degree):
    """Rodinia's format: nodes with first edge and degree, the source, edges with a weight."""
    if not os.path.exists(path):
        some = random.Random(1)
        with open(path, "w") as f:
            f.write(f"{nodes}\n" + "".join(f"{i * degree} {degree}\n" for i in range(nodes)) + f"\n0\n\n{nodes * degree}\n")
            f.writelines(f"{some.randrange(nodes)} 1\n" for _ in range(nodes * degree))


def binary(folder, row):
    return os.path.join(folder, row["collection"] + "_" + row["program"])


def sources(source, row):
    found = []
    for pattern in row["sources"].split():
        found += sorted(glob.glob(os.path.join(glob.escape(place(source, row)), pattern))) or [pattern]
    return found


def build(source, row, folder, more=(), limit=240):
    """(whether it is built, nvcc's messages)"""
    out = binary(folder, row)
    if os.path.exists(out):
        return True, ""
    prepare(source, row)
    before = [] if row["collection"] in ("HeCBench", "cuda-samples", "bench") else OLD
    code, _, err = run(["nvcc", *FLAGS, *before, *more, *shlex.split(row["flags"]), *sources(source, row), "-o", out + ".part"], limit,
                       cwd=place(source, row))
    if code:
        return False, "time-out" if code == 124 else err.strip()[-600:]
    os.replace(out + ".part", out)
    return True, ""


def build_all(source, rows, folder, jobs, more=(), limit=240):
    """{title: (built, nvcc's messages)}, in the order of completion, some at a time."""
    first = {title(row): row for row in rows}
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        todo = {pool.submit(build, source, row, folder, more, limit): name for name, row in first.items()}
        for done in concurrent.futures.as_completed(todo):
            yield todo[done], done.result()
    finally:  # a caller that stops early waits only for those already started
        pool.shutdown(cancel_futures=True)
