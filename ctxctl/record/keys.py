"""The key of the stubs' digests, one for each user, and the user's own rules."""

from __future__ import annotations

import os
from typing import Final

from ctxctl.errors import UsageError
from ctxctl.record.rules import Rule

_BYTES: Final = 32
_RULES: Final = 1000


def user_key() -> bytes:
    """The key of this user, made at first use (`redaction.key` in the state directory, 0600).

    Where it cannot be kept or is not safe (another owner, a symbolic link, open to others), a new one for
    this process only: stubs of two runs then do not compare.
    """
    try:
        return _stored(os.path.join(_state_directory(), "redaction.key"))
    except (OSError, ValueError):
        return os.urandom(_BYTES)


def _state_directory() -> str:
    """Where state is kept; found without a package, as every traced program pays for the import."""
    given = os.environ.get("CTXCTL_STATE_DIR")
    if given:
        return given
    base = os.environ.get("XDG_STATE_HOME") or ""
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "ctxctl")


def _stored(path: str) -> bytes:
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    # Written beside and linked: whoever comes second reads the first one's key whole.
    beside = f"{path}.{os.urandom(8).hex()}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, os.urandom(_BYTES))
        os.link(beside, path)
    except FileExistsError:
        pass
    finally:
        os.close(fd)
        os.unlink(beside)
    return _read(path)


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(fd)
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise ValueError("not this user's alone")
        key = os.read(fd, _BYTES + 1)
    finally:
        os.close(fd)
    if len(key) != _BYTES:
        raise ValueError("not a key")
    return key


def rules_of(path: str) -> tuple[list[Rule], list[str]]:
    """The user's rules, and the names whose values are never stored.

    A TOML file: `[[rule]]` tables with `kind` and `pattern` (RE2 syntax; its one group, or else all of it, is
    replaced), optionally `literals`; and `names = [...]`.

    Raises:
        UsageError: `bad-redaction-rules`; nothing is recorded with half of the rules.
    """
    import tomllib

    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise UsageError("bad-redaction-rules", f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError("bad-redaction-rules", f"{path}: not TOML: {error}") from None
    entries, names = table.get("rule", []), table.get("names", [])
    if not isinstance(entries, list) or not _texts(names) or len(entries) > _RULES:
        raise UsageError(
            "bad-redaction-rules", f"{path}: `rule` is a list of tables and `names` one of texts"
        )
    unknown = sorted(set(table) - {"rule", "names"})
    if unknown:
        raise UsageError("bad-redaction-rules", f"{path}: nothing is known of `{unknown[0]}`")
    return [_rule(entry, f"{path}: rule {at}") for at, entry in enumerate(entries, 1)], list(names)


def _rule(entry: object, where: str) -> Rule:
    import re2

    if not isinstance(entry, dict):
        raise UsageError("bad-redaction-rules", f"{where} is no table")
    kind, pattern, literals = entry.get("kind"), entry.get("pattern"), entry.get("literals", [])
    if not isinstance(kind, str) or not isinstance(pattern, str) or not pattern or not _texts(literals):
        raise UsageError("bad-redaction-rules", f"{where}: `kind` and `pattern` are texts, `literals` a list")
    if not kind.replace("-", "").isalnum() or not kind.isascii() or len(kind) > 40:
        raise UsageError("bad-redaction-rules", f"{where}: `kind` holds more than letters, digits and `-`")
    options = re2.Options()
    options.log_errors = False
    try:
        groups = re2.compile(pattern.encode(), options).groups
    except re2.error as error:
        raise UsageError("bad-redaction-rules", f"{where}: no pattern of RE2: {error}") from None
    if groups > 1:
        raise UsageError("bad-redaction-rules", f"{where}: {groups} groups; write `(?:…)` for all but one")
    return Rule(kind, tuple(literals), pattern if groups else f"({pattern})")


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one for one in value)
