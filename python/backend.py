"""The package's build backend (PEP 517, PEP 660): a wheel is a zip file, and writing one needs nothing but Python.

A plain build notes where Sol was built (``../build``, or ``$SOL_BUILD``), so that ``pip install ./python`` of a built
tree works at once. With ``SOL_BUNDLE=1`` (``make wheel``) the tool and the library go into the wheel, which then
needs no tree and is tagged for this platform.
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import re
import sysconfig
import zipfile
from typing import Any, Iterator

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: pip has a copy
    import pip._vendor.tomli as tomllib  # type: ignore[no-redef]

HERE = pathlib.Path(__file__).resolve().parent
NEEDED = ("sol", "libsol.so.0.2")
# Where they are built: every library that stands in for one of CUDA's, the profiler's, MPI's, and the page.
TAKEN = ("shim/*.so*", "inject/*.so", "fleet/*.so", "page.html")


def _project() -> dict[str, Any]:
    return tomllib.loads((HERE / "pyproject.toml").read_text())["project"]


def _build_folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("SOL_BUILD") or HERE.parent / "build").resolve()


def _glibc_of(data: bytes) -> int:
    """The newest glibc whose symbols the file asks for, 34 for 2.34."""
    return max((int(m) for m in re.findall(rb"\0GLIBC_2\.(\d+)(?=[\0.])", data)), default=17)


def _bundle() -> dict[str, bytes]:
    folder = _build_folder()
    for name in NEEDED:
        if not (folder / name).exists():
            raise SystemExit(f"{folder / name} is not there: run make first")
    taken = sorted(path.relative_to(folder).as_posix() for pattern in TAKEN for path in folder.glob(pattern))
    return {name: (folder / name).read_bytes() for name in (*NEEDED, *taken)}


def _tag(bundle: dict[str, bytes]) -> str:
    if not bundle:
        return "py3-none-any"
    machine = sysconfig.get_platform().split("-")[-1]
    return f"py3-none-manylinux_2_{max(map(_glibc_of, bundle.values()))}_{machine}"


def _sources(bundle: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    for path in sorted((HERE / "sol").rglob("*")):
        if path.suffix == ".py" or path.name == "py.typed":
            yield path.relative_to(HERE).as_posix(), path.read_bytes()
    for name, data in bundle.items():
        yield f"sol/_bundle/{name}", data
    if not bundle:
        yield "sol/_built.txt", str(_build_folder()).encode()


def _metadata(project: dict[str, Any], tag: str) -> Iterator[tuple[str, bytes]]:
    info = f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    needs = "".join(f"Requires-Dist: {name}\n" for name in project["dependencies"])
    yield f"{info}/METADATA", (
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        f"Summary: {project['description']}\nRequires-Python: {project['requires-python']}\n{needs}"
    ).encode()
    yield f"{info}/WHEEL", (
        f"Wheel-Version: 1.0\nGenerator: sol\nRoot-Is-Purelib: {str(tag.endswith('any')).lower()}\nTag: {tag}\n"
    ).encode()
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
    yield f"{info}/entry_points.txt", points.encode()


def _record_line(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def _write(directory: str, tag: str, files: list[tuple[str, bytes]]) -> str:
    project = _project()
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    name = f"{stem}-{tag}.whl"
    record = ""
    with zipfile.ZipFile(os.path.join(directory, name), "w", zipfile.ZIP_DEFLATED, compresslevel=6) as out:
        for path, data in [*files, *_metadata(project, tag)]:
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))  # the same input gives the same file
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if data[:4] == b"\x7fELF" else 0o100644) << 16
            out.writestr(entry, data)
            record += _record_line(path, data)
        out.writestr(f"{stem}.dist-info/RECORD", record + f"{stem}.dist-info/RECORD,,\n")
    return name


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    bundle = _bundle() if os.environ.get("SOL_BUNDLE") else {}
    return _write(wheel_directory, _tag(bundle), list(_sources(bundle)))


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    return _write(wheel_directory, _tag({}), [("sol_source.pth", f"{HERE}\n".encode())])


if __name__ == "__main__":  # SOL_BUNDLE=1 python3 backend.py FOLDER
    import sys

    print(build_wheel(sys.argv[1]))
