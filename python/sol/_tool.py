"""Calls the ``sol`` tool, and turns what it says into objects and exceptions."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any, Iterator, NamedTuple, Sequence

from . import _find
from .errors import ArgumentError, Error, UnsupportedError

BAD_INPUT, WENT_WRONG = 2, 4  # exit codes of the tool
_END_SECONDS = 10.0
_POPEN: dict[str, Any] = {
    "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", "errors": "replace",
    "start_new_session": True,
}


class Answer(NamedTuple):
    code: int
    out: str
    err: str


def _end(process: "subprocess.Popen[str]") -> None:
    """SIGTERM first: the tool then removes its files and ends what it started."""
    process.terminate()
    try:
        process.communicate(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits until the block ends: inside Popen it would leave a process that nobody knows."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came: list[Any] = []
    signal.signal(signal.SIGINT, lambda *how: came.append(how))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[0])


def run(arguments: Sequence[str]) -> Answer:
    """Runs it to its end. An exception meanwhile, as KeyboardInterrupt, ends the tool before it goes on.

    The tool has a session of its own, so that Ctrl-C in a terminal reaches Python alone. SOL_PARENT has it end with
    this process, even where that is killed.
    """
    command, process = [str(_find.tool()), *arguments], None
    try:
        with _interrupts_held():
            process = subprocess.Popen(command, env={**os.environ, "SOL_PARENT": str(os.getpid())}, **_POPEN)
        out, err = process.communicate()
    except BaseException:
        if process is not None:
            _end(process)
        raise
    return Answer(process.returncode, out, err)


def error_of(answer: Answer, command: str) -> Error:
    """The exception for a call that gave no answer."""
    lines = [line for line in answer.err.splitlines() if not line.startswith("see: sol ")]
    text = "\n".join(lines).removeprefix(f"sol {command}: ").strip()
    if not text:
        text = f"sol {command} ended with code {answer.code} and no message"
    if "not emulated" in text or "not supported" in text or "cannot do" in text:
        return UnsupportedError(text)
    return ArgumentError(text) if answer.code == BAD_INPUT else Error(text)


def options_of(**options: Any) -> list[str]:
    """``kv_heads=8, graph=True`` as ``--kv-heads 8 --graph``. None and False are left out."""
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(str(value))
    return words


def ask(command: str, *words: str, **options: Any) -> Any:
    """``sol COMMAND --json``, read."""
    answer = run([command, *words, *options_of(**options), "--json"])
    if answer.code:
        raise error_of(answer, command)
    return json.loads(answer.out)


def pass_on(text: str) -> None:
    """What a kernel or a program printed."""
    if text:
        print(text, end="", file=sys.stderr)
