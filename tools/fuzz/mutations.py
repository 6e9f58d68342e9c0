"""Structure-aware damage to captures: the same bytes and the same seed give the same damage.

A capture is taken apart as what it is (JSON Lines, one JSON document, MessagePack, an archive, a database,
gzip around any of them, else lines of text), damaged where its structure is, and put together again.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import sqlite3
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import msgpack

Value = Any
Container = dict[str, Any] | list[Any]

TOO_DEEP = 120
"""Levels of what is nested on purpose: more than the trace keeps, less than `json` refuses to write."""
LONG = 40_000
BAD_BYTES = (b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\0", b"\r", b"\xe2\x80", b"\xf8\x88\x80\x80\x80")
BAD_TEXTS = (
    "", " ", "\0", "\ud800", "\udc00x", "\x1b]0;x\x07", "\u202e", "\u2028", "\n\n", "null", "-1",
    "1e999", "../../etc",
    "a" * 300, "\U0001f469\u200d\U0001f469", "{", "[[", '{"a":', "```", "---", "NaN", "%s%n{}", "@-1", "main",
)  # fmt: skip
NUMBERS = (
    0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**30, 10**400, 1.5, -0.0, 1e308, math.inf,
    -math.inf, math.nan,
)  # fmt: skip
TIMES = (
    "1970-01-01T00:00:00Z", "9999-12-31T23:59:60Z", "2026-02-30T10:00:00Z", "2026-01-01T00:00:00+14:00",
    "0000-00-00T00:00:00Z", "2026-01-01", 0, -1, 1e20, "yesterday", 1767225600, 1767225600123, 10**18,
)  # fmt: skip


class Twice(dict[str, Any]):
    """An object whose JSON has some members a second time, with other values."""

    def __init__(self, members: dict[str, Any], again: list[tuple[str, Any]]) -> None:
        super().__init__(members)
        self.again = again

    def items(self) -> Any:
        """The members, and those that come again."""
        return [*super().items(), *self.again]


def mutated(data: bytes, random: Random, donors: list[bytes] | None = None) -> bytes:
    """`data` with one to four damages; `donors` are captures from which records are taken over."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        data = _damaged(data, random, donors or [], 0)
    return data


def _damaged(data: bytes, random: Random, donors: list[bytes], depth: int) -> bytes:
    if random.random() < 0.08:
        return _bytes(data, random)
    if data.startswith(b"\x1f\x8b") and depth < 2:
        return _gzipped(data, random, donors, depth)
    if data.startswith(b"PK\x03\x04") and depth < 2:
        return _archive(data, random, donors, depth)
    if data.startswith(b"SQLite format 3\0"):
        return _database(data, random)
    made = _json(data, random) or _lines(data, random, donors) or _packed(data, random)
    return made if made is not None else _text(data, random)


def _gzipped(data: bytes, random: Random, donors: list[bytes], depth: int) -> bytes:
    try:
        inner = gzip.decompress(data)
    except (OSError, EOFError, ValueError, zlib.error):
        return _bytes(data, random)
    return gzip.compress(_damaged(inner, random, donors, depth + 1), 1, mtime=0)


def _archive(data: bytes, random: Random, donors: list[bytes], depth: int) -> bytes:
    out = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile, NotImplementedError):
        return _bytes(data, random)
    if members:
        at = random.randrange(len(members))
        name, content = members[at]
        how = random.randrange(8)
        if how == 0:
            del members[at]
        elif how == 1:
            members[at] = (
                random.choice(BAD_TEXTS[1:]).replace("\0", "0").replace("\ud800", "") or "x",
                content,
            )
        else:
            members[at] = (name, _damaged(content, random, donors, depth + 1))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            # One date for all: an archive of today would be another one tomorrow.
            archive.writestr(
                zipfile.ZipInfo(name.encode("utf-8", "replace").decode(), (2026, 1, 1, 0, 0, 0)), content
            )
    return out.getvalue()


def _database(data: bytes, random: Random) -> bytes:
    """Changes some cells, drops or repeats some rows, or a table."""
    with sqlite3.connect(":memory:") as database:
        try:
            database.deserialize(data)
            tables = sorted(
                name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                if not name.startswith("sqlite_")
            )  # fmt: skip
            if tables:
                _table(database, random.choice(tables), random)
                database.commit()
            return database.serialize()
        except (sqlite3.Error, ValueError, UnicodeError, OverflowError):
            return _bytes(data, random)


def _table(database: sqlite3.Connection, table: str, random: Random) -> None:
    quoted = '"' + table.replace('"', '""') + '"'
    rows = database.execute(f"SELECT rowid, * FROM {quoted} ORDER BY rowid").fetchall()
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({quoted})")]
    how = random.randrange(10)
    if how == 0 or not rows:
        database.execute(f"DROP TABLE {quoted}")
        return
    row = random.choice(rows)
    if how == 1:
        database.execute(f"DELETE FROM {quoted} WHERE rowid = ?", (row[0],))
        return
    at = random.randrange(len(columns))
    value: Any = row[at + 1]
    if isinstance(value, str) and value[:1] in "{[":
        try:
            value = _dumped(_changed(json.loads(value), random)).decode("utf-8", "replace")
        except ValueError:
            value = random.choice(BAD_TEXTS).encode("utf-8", "replace").decode()
    else:
        value = _scalar(value, random)
        value = value if isinstance(value, str | int | float | None) else None
        value = value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
    name = '"' + columns[at].replace('"', '""') + '"'
    database.execute(f"UPDATE OR IGNORE {quoted} SET {name} = ? WHERE rowid = ?", (value, row[0]))


def _json(data: bytes, random: Random) -> bytes | None:
    """One JSON document, damaged; None where it is none."""
    if data.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict | list):
        return None
    lists = [one for one in _containers(value) if isinstance(one, list) and len(one) > 1]
    if lists and random.random() < 0.35:
        _shuffled(random.choice(lists), random)
    else:
        value = _changed(value, random)
    made = _dumped(value)
    # Documents that are written over many lines are read by another way.
    return made if b"\n" not in data.strip() else _indented(value, made)


def _indented(value: Value, made: bytes) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return made


def _lines(data: bytes, random: Random, donors: list[bytes]) -> bytes | None:
    """JSON Lines (or an SSE stream), damaged; None where it is neither."""
    lines = data.split(b"\n")
    records = [
        at for at, line in enumerate(lines) if line.strip()[:1] in (b"{", b"[") or line.startswith(b"data: {")
    ]
    if not records or len(records) * 3 < len(lines):
        return None
    how = random.random()
    if how < 0.4:
        _shuffled(lines, random, donors)
        return b"\n".join(lines)
    at = random.choice(records)
    if how < 0.46:
        lines[at] = _bytes(lines[at], random)
        return b"\n".join(lines)
    start = b"data: " if lines[at].startswith(b"data: ") else b""
    try:
        value = json.loads(lines[at][len(start) :])
        lines[at] = start + _dumped(_changed(value, random, _ids(lines, records, random)))
    except (ValueError, RecursionError):
        lines[at] = _bytes(lines[at], random)
    return b"\n".join(lines)


def _ids(lines: list[bytes], records: list[int], random: Random) -> list[tuple[str, Value]]:
    """Members of some other record: ids, parents and times that belong elsewhere."""
    try:
        other = json.loads(lines[random.choice(records)])
    except (ValueError, RecursionError):
        return []
    found: list[tuple[str, Value]] = []
    for holder in _containers(other):
        if isinstance(holder, dict):
            found += [(key, value) for key, value in holder.items() if not isinstance(value, dict | list)]
    return found[:200]


def _packed(data: bytes, random: Random) -> bytes | None:
    """MessagePack values one behind the other, damaged; None where it is something else."""
    if data[:1] < b"\x80":
        return None
    unpacker = msgpack.Unpacker(io.BytesIO(data), raw=False, strict_map_key=False)
    try:
        values = list(unpacker)
    except Exception:  # whatever a foreign unpacker thinks of foreign bytes
        return None
    if not any(isinstance(value, dict | list) for value in values):
        return None
    if random.random() < 0.3:
        _shuffled(values, random)
    else:
        at = random.randrange(len(values))
        values[at] = _changed(values[at], random)
    made = []
    for value in values:
        try:
            made.append(msgpack.packb(value, use_bin_type=True, unicode_errors="surrogatepass"))
        except (ValueError, OverflowError, TypeError):
            made.append(b"\xc1")  # the one byte that is never used
    return b"".join(made)


def _text(data: bytes, random: Random) -> bytes:
    """Lines of text (YAML, Markdown, a log): whole lines moved, or bytes damaged."""
    lines = data.split(b"\n")
    if len(lines) < 3 or random.random() < 0.4:
        return _bytes(data, random)
    _shuffled(lines, random)
    return b"\n".join(lines)


def _bytes(data: bytes, random: Random) -> bytes:
    if not data:
        return random.choice(BAD_BYTES)
    at = random.randrange(len(data))
    how = random.randrange(6)
    if how == 0:
        return data[:at]
    if how == 1:
        return data[:at] + random.choice(BAD_BYTES) + data[at:]
    if how == 2:
        return data[:at] + random.choice(BAD_BYTES) + data[at + 1 :]
    if how == 3:
        return data[:at] + data[at + random.randrange(1, 64) :]
    if how == 4:
        return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]
    return data[:at] + data[at : at + random.randrange(1, 256)] + data[at:]


def _shuffled(records: list[Any], random: Random, donors: list[bytes] | None = None) -> None:
    """Drops, repeats, swaps, moves, glues or cuts records of a list, or brings in one of another capture."""
    if not records:
        return
    at, other = random.randrange(len(records)), random.randrange(len(records))
    how = random.randrange(9 if donors else 8)
    if how == 0:
        del records[at]
    elif how == 1:
        records.insert(other, records[at])
    elif how == 2:
        records[at], records[other] = records[other], records[at]
    elif how == 3:
        records.insert(other, records.pop(at))
    elif how == 4:
        del records[at : at + random.randrange(1, 6)]
    elif how == 5:
        records[at:at] = records[at : at + random.randrange(2, 12)]
    elif how == 6:
        records.reverse() if random.random() < 0.2 else records.extend(records[at:])
    elif how == 7:
        if isinstance(records[at], bytes):
            records[at] = records[at][: random.randrange(len(records[at]) + 1)]
        else:
            records[at] = None
    elif donors:
        lines = random.choice(donors).split(b"\n")
        records.insert(at, random.choice(lines))


def _changed(value: Value, random: Random, members: list[tuple[str, Value]] | None = None) -> Value:
    """A JSON value with one place in it changed."""
    holders = [one for one in _containers(value) if one]
    if not holders:
        return _scalar(value, random)
    holder = random.choice(holders)
    if isinstance(holder, list):
        at = random.randrange(len(holder))
        if random.random() < 0.3:
            _shuffled(holder, random)
        else:
            holder[at] = _scalar(holder[at], random)
        return value
    key = random.choice(sorted(holder, key=str))
    if not isinstance(key, str):  # of MessagePack
        holder[key] = _scalar(holder[key], random)
        return value
    how = random.randrange(8)
    if how == 0:
        del holder[key]
    elif how == 1:
        holder[random.choice((key + "_", key.upper(), "", *BAD_TEXTS[:6]))] = holder.pop(key)
    elif how == 2 and members:
        name, taken = random.choice(members)
        holder[name if random.random() < 0.7 else key] = taken
    elif how == 3:
        return _with_twice(value, holder, key, random)
    else:
        holder[key] = _scalar(holder[key], random, key)
    return value


def _with_twice(value: Value, holder: dict[str, Any], key: str, random: Random) -> Value:
    twice = Twice(holder, [(key, _scalar(holder[key], random, key))])
    if holder is value:
        return twice
    for one in _containers(value):
        for name, inner in one.items() if isinstance(one, dict) else enumerate(one):
            if inner is holder:
                one[name] = twice  # type: ignore[index]
                return value
    return value


def _scalar(value: Value, random: Random, key: str = "") -> Value:
    """Another value in the place of one: of another type, out of range, hostile, or too much of it."""
    if (
        key
        and any(word in key.lower() for word in ("time", "date", "created", "_at", "ts"))
        and random.random() < 0.5
    ):
        return random.choice(TIMES)
    how = random.randrange(10)
    if how == 0:
        return None
    if how == 1:
        return random.choice(NUMBERS)
    if how == 2:
        return random.choice(BAD_TEXTS)
    if how == 3:
        return random.choice((True, False, [], {}, [None], {"": None}, [[]], [{}], {"a": {"b": []}}))
    if how == 4:
        return [value] if random.random() < 0.5 else {"value": value}
    if how == 5:
        return _nested(value, random.randrange(2, TOO_DEEP))
    return _altered(value, random)


def _altered(value: Value, random: Random) -> Value:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return random.choice((-value, value * 1000, value + 1, str(value), 0))
    if not isinstance(value, str):
        return str(value)[:LONG] if random.random() < 0.3 else type(value)()
    at = random.randrange(len(value) + 1)
    return random.choice((
        value[:at], value[at:] + value[:at], value + random.choice(BAD_TEXTS), value[:1000] * min(20,
        LONG // (len(value) + 1) + 1),
        value[:at] + random.choice(BAD_TEXTS) + value[at:], value.swapcase(), json.dumps(value), len(value),
    ))  # fmt: skip


def _nested(value: Value, levels: int) -> Value:
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def _containers(value: Value) -> list[Container]:
    """Every object and list in a value that is no leaf, the outermost first."""
    found: list[Container] = []
    waiting = [value]
    while waiting and len(found) < 20_000:
        one = waiting.pop()
        if isinstance(one, dict | list):
            found.append(one)
            waiting.extend(one.values() if isinstance(one, dict) else one)
    return found


def _dumped(value: Value) -> bytes:
    dumps: Callable[..., str] = json.dumps
    try:
        return dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return b'{"too":"deep"}'
