"""The samples of a log, from an archive or a document, one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from ctxctl.formats.build import Json
from ctxctl.formats.inspect_ai.archive import Archive
from ctxctl.formats.inspect_ai.sample import Sample
from ctxctl.formats.kit.document import document
from ctxctl.formats.kit.parts import string
from ctxctl.formats.kit.run import Run
from ctxctl.trace.source import Source

_MONOLITH: Final = re.compile(r"samples/(.+)_epoch_(\d+)\.json\Z", re.DOTALL)
_SHELL: Final = re.compile(r"samples/(.+)_epoch_(\d+)/sample\.json\Z", re.DOTALL)
_DIGITS: Final = re.compile(r"(\d+)")
_SHOWN: Final = 80


class Log(Run):
    """One import of a log."""

    def events(self, source: Source) -> Iterator[Json]:
        """The samples' sessions: of an archive by id and epoch, of a document as they stand."""
        samples = self._archive(source) if source.read(0, 2) == b"PK" else self._document(source)
        names: dict[str, int] = {}
        for sample, model in samples:
            name = _session(sample)
            again = names[name] = names.get(name, 0) + 1
            self.session = name if again == 1 else f"{name}~{again}"
            yield from Sample(self, sample, model).events()
            yield from self.end_session()

    def _document(self, source: Source) -> Iterator[tuple[Json, str | None]]:
        value = document(source, self.report)
        if not isinstance(value, dict):
            if value is not None:
                self.problem("not-a-record", "the document is not an object; not read")
            return
        model = _model(value)
        self.understood.version(value.get("version"), 1)
        samples = value.get("samples")
        samples = samples if isinstance(samples, list) else []
        for number in range(len(samples)):
            sample, samples[number] = samples[number], None
            if isinstance(sample, dict):
                yield sample, model
            else:
                self.problem("not-a-record", f"sample {number + 1} is not an object; skipped")

    def _archive(self, source: Source) -> Iterator[tuple[Json, str | None]]:
        archive = Archive(source, self.report)
        names = sorted(archive.names, key=_natural)
        model = None
        for name in ("header.json", "_journal/start.json"):
            model = model or _model(self._read(archive, name))
        for name in names:
            whole, shell = _MONOLITH.match(name), _SHELL.match(name)
            if whole is None and shell is None:
                continue
            sample = self._read(archive, name)
            if not isinstance(sample, dict):
                continue
            match = whole or shell
            assert match is not None
            sample.setdefault("id", match.group(1))
            sample.setdefault("epoch", int(match.group(2)[:9]))
            if shell is not None:
                self._chunks(archive, names, name.removesuffix("sample.json"), sample)
            self.make.file = name
            yield sample, model
        self.make.file = None

    def _read(self, archive: Archive, name: str) -> Any:
        data = archive.read(name)
        if data is None:
            return None
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError as error:
            self.problem("bad-json", f"{name[:_SHOWN]}: not valid JSON ({error.msg}); skipped")
            return None

    def _chunks(self, archive: Archive, names: list[str], prefix: str, sample: Json) -> None:
        """Put a chunked sample together: its events, pools and attachments stand in entries of their own.

        It refers to attachments by place; what is given by hash, in its shell or in a chunk, is kept.
        """
        found: dict[str, list[Any]] = {"messages": [], "events": [], "calls": [], "attachments": []}
        texts: Json = {}
        for name in names:
            sequence, _, number = (
                name.removeprefix(prefix).partition("/") if name.startswith(prefix) else ("",) * 3
            )
            if sequence not in found or not number.removesuffix(".json").isdigit():
                continue
            chunk = self._read(archive, name)
            if isinstance(chunk, list):
                found[sequence] += chunk
            elif isinstance(chunk, dict) and sequence == "attachments":
                texts |= chunk
        sample["events"] = found["events"] or sample.get("events")
        if found["messages"] or found["calls"]:
            sample["events_data"] = {"messages": found["messages"], "calls": found["calls"]}
        texts |= {str(at): text for at, text in enumerate(found["attachments"])}
        own = sample.get("attachments")
        sample["attachments"] = {**(own if isinstance(own, dict) else {}), **texts}


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Numbers in names count as numbers."""
    return [(0, int(bit[:18]), "") if bit.isdecimal() else (1, 0, bit) for bit in _DIGITS.split(name)]


def _session(sample: Json) -> str:
    ident, epoch = sample.get("id"), sample.get("epoch")
    name = str(ident) if isinstance(ident, int | str) else "sample"
    name = name.replace("/", "_").replace(":", "_")
    return f"{name}.epoch-{epoch}" if isinstance(epoch, int) else name


def _model(header: Any) -> str | None:
    facts = header.get("eval") if isinstance(header, dict) else None
    return string(facts.get("model")) if isinstance(facts, dict) else None
