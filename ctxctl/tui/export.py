"""Taking what is seen elsewhere: to the clipboard, to a file, into another program.  No event loop."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol, runtime_checkable

from ctxctl.errors import CtxctlError, Exit
from ctxctl.text import visible
from ctxctl.whole_file import create_file, is_read, replace_file

CLIPBOARD: Final = 100_000
"""Bytes that are copied at most: terminals drop longer sequences, or cut them."""

_NAME: Final = re.compile(r"[^\w.+-]+")
_LONGEST: Final = 80


class ExportError(CtxctlError):
    """The text cannot be taken there; the message says why, to the user."""

    exit_code = Exit.FINDINGS


def harmless(text: str) -> str:
    """The text for a terminal or its clipboard: what hides or steers is made visible, tabs stay."""
    lines = text.replace("\r\n", "\n") if "\r\n" in text else text
    if "\t" not in lines:
        return visible(lines, newline=True)
    return "\t".join(visible(part, newline=True) for part in lines.split("\t"))


def for_clipboard(text: str) -> str:
    """The text as it is copied.

    Raises ExportError (`too-much-to-copy`) where it is more than terminals take; its work is bounded then.
    """
    if len(text) <= CLIPBOARD:
        found = harmless(text)
        if len(found.encode()) <= CLIPBOARD:
            return found
    raise ExportError("too-much-to-copy", f"too much to copy: terminals take {CLIPBOARD // 1000} kB")


def tmux_copy(text: str, environment: Mapping[str, str]) -> bool:
    """Give the text to tmux itself, which by default takes no such sequence from a program inside it."""
    tmux = shutil.which("tmux") if environment.get("TMUX") else None
    if tmux is None:
        return False
    try:
        done = subprocess.run(
            [tmux, "load-buffer", "-w", "-"],
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=2,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


# Files ------------------------------------------------------------------------------------------------------


def file_name(trace: str, phrase: str) -> str:
    """A name for a file with what the phrase says, of a trace of this name: plain characters only."""
    base = os.path.basename(trace.rstrip("/")) or "trace"
    stem = base.partition(".")[0] or base.strip(".")
    name = re.sub("-{2,}", "-", _NAME.sub("-", f"{visible(stem)}-{visible(phrase)}")).strip("-.")
    return (name[:_LONGEST].rstrip("-.") or "text") + ".txt"


def free_name(folder: Path, name: str) -> str:
    """The name, or the next one that no file in the folder has."""
    stem, dot, end = name.rpartition(".")
    for n in range(1, 1000):
        tried = name if n == 1 else f"{stem}-{n}{dot}{end}"
        if not os.path.lexists(folder / tried):
            return tried
    return name


def _mode_of(path: str) -> int | None:
    """A file's mode, of a link its own; None where there is none.  Raises OSError."""
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return None


def write_file(path: str, text: str, *, over: bool = False) -> Literal["written", "exists"]:
    """Write the raw text to a file that only the user may read.

    A file that is there is left alone unless `over`; then it keeps its mode.  Raises ExportError
    (`cannot-export`) where it cannot be written, is no regular file (links are not followed), or is one of
    those that were read.
    """
    where = os.path.expanduser(path)
    try:
        there = _mode_of(where)
        if there is not None and not stat.S_ISREG(there):
            kind = "a directory" if stat.S_ISDIR(there) else "no regular file"
            raise ExportError("cannot-export", f"{path} is {kind}")
        if there is not None and not over:
            return "exists"
        if there is not None and is_read(os.lstat(where)):
            raise ExportError("cannot-export", f"{path} is one of the files that are read")
        data = text.encode("utf-8", "backslashreplace")
        if there is None:
            create_file(where, data)
        else:
            replace_file(where, data, mode=stat.S_IMODE(there), exactly=True)
    except FileExistsError:
        return "exists"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "that is not a file name"
        raise ExportError("cannot-export", f"{path}: {why}") from None
    return "written"


# Other programs ---------------------------------------------------------------------------------------------

Program = Literal["pager", "editor"]
_VARIABLES: Final[dict[Program, tuple[str, ...]]] = {"pager": ("PAGER",), "editor": ("VISUAL", "EDITOR")}
_DEFAULTS: Final[dict[Program, tuple[str, ...]]] = {"pager": ("less", "more"), "editor": ("vi", "nano")}


def program_words(program: Program, environment: Mapping[str, str]) -> list[str]:
    """How the user's pager or editor is called, without the file.

    Raises ExportError (`no-program`) where there is none.
    """
    for variable in _VARIABLES[program]:
        value = environment.get(variable, "").strip()
        if not value:
            continue
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise ExportError("no-program", f"${variable}: {str(error).lower()}") from None
        if words and shutil.which(words[0], path=environment.get("PATH")):
            return words
        raise ExportError("no-program", f"${variable}: there is no program {words[0] if words else value}")
    for name in _DEFAULTS[program]:
        if shutil.which(name, path=environment.get("PATH")):
            return [name]
    named = " or ".join(f"${variable}" for variable in _VARIABLES[program])
    raise ExportError("no-program", f"there is no {program} here: {named} names one")


@contextmanager
def lent_file(text: str, name: str, *, raw: bool) -> Iterator[Path]:
    """A file with the text, which only the user may read, for as long as a program shows it.

    Not raw, it is made visible: a pager passes on what it is given.
    """
    folder = tempfile.mkdtemp(prefix="ctxctl-")
    try:
        path = Path(folder) / name
        write_file(str(path), text if raw else harmless(text))
        path.chmod(0o400)
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_program(words: Sequence[str], path: Path, out: int) -> str:
    """Run a program on the terminal until it ends; what went wrong, in words, or nothing.

    `out` is the terminal to write on: standard error may be kept aside meanwhile.
    """
    try:
        done = subprocess.run([*words, str(path)], stdout=out, stderr=out, check=False)
    except OSError as error:
        return f"{words[0]}: {error.strerror or 'cannot be run'}"
    if done.returncode < 0:
        return f"{words[0]} was ended by signal {-done.returncode}"
    return f"{words[0]} ended with exit code {done.returncode}" if done.returncode else ""


class VisibleText(NamedTuple):
    """The text in front of the user, whole: also what is scrolled out of view."""

    name: str
    """A phrase that says what it is, such as ``assembled text of step 3.1``; no file name."""
    text: str
    """Raw text; whoever shows it on a terminal makes it visible."""


@runtime_checkable
class ShowsText(Protocol):
    """A screen whose content can be taken elsewhere."""

    def seen(self) -> VisibleText | None:
        """The text in front; None while there is none."""
        ...
