"""Where the ``sol`` tool and its library are.

In this order: ``$SOL`` (the tool; the library is looked for beside it, or is ``$SOL_LIBRARY``), inside the package (a wheel made by
``make wheel``), the build folder of the tree that the package was installed from or lies in, ``PATH``.
"""

from __future__ import annotations

import os
import pathlib
import shutil
from typing import Iterator

from .errors import MissingError

_PACKAGE = pathlib.Path(__file__).resolve().parent
_LIBRARY = "libsol.so.0.2"
_HINT = "build Sol with 'make' and set SOL=/path/to/build/sol, put 'sol' into PATH, or install a wheel made by 'make wheel'"


def _tools() -> Iterator[pathlib.Path]:
    yield _PACKAGE / "_bundle" / "sol"
    noted = _PACKAGE / "_built.txt"
    if noted.exists():
        yield pathlib.Path(noted.read_text().strip()) / "sol"
    if (_PACKAGE.parents[1] / "Makefile").exists():
        yield _PACKAGE.parents[1] / "build" / "sol"
    on_path = shutil.which("sol")
    if on_path:
        yield pathlib.Path(on_path)


def tool() -> pathlib.Path:
    """The ``sol`` tool. MissingError says where it was looked for."""
    named = os.environ.get("SOL")
    if named:
        if os.access(named, os.X_OK):
            return pathlib.Path(named).absolute()
        raise MissingError(f"SOL={named}: there is no such program; {_HINT}")
    tried = list(_tools())
    for path in tried:
        if os.access(path, os.X_OK):
            return path
    places = ", ".join(map(str, [*tried, "PATH"]))
    raise MissingError(f"the sol tool is not there (looked for it in: {places}); {_HINT}")


def library() -> pathlib.Path:
    """``libsol.so.0.2``, which belongs to the tool: beside it, or in ``../lib``."""
    named = os.environ.get("SOL_LIBRARY")
    if named:
        return pathlib.Path(named)
    folder = tool().resolve().parent
    places = [folder, *sorted((folder.parent / "lib").glob("*-linux-gnu")), folder.parent / "lib"]
    for place in places:
        if (place / _LIBRARY).exists():
            return place / _LIBRARY
    raise MissingError(f"{_LIBRARY} is not in {' or '.join(map(str, places))}; {_HINT}")
