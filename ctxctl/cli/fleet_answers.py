"""What all captures of a directory answer, each request that several of them hold in one of them only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from ctxctl.analysis.shared_requests import owned_requests, packed_keys
from ctxctl.cli.fleet import Told
from ctxctl.fleet.asking import Failed
from ctxctl.model.problem import Problem
from ctxctl.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.analysis.shared_requests import Owned
    from ctxctl.cli.fleet import Fleet
    from ctxctl.fleet.asking import Question
    from ctxctl.fleet.captures import CaptureFile

_IN_MEMORY: Final = 16 << 20
"""Bytes of answers from which on the next ones wait in a temporary file."""


class Shelf(MutableMapping[str, bytes]):
    """Answers by the names of captures, in bounded memory; those beyond it wait in a temporary file."""

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        self._room = in_memory
        self._held: dict[str, bytes | tuple[int, int]] = {}
        self._file: IO[bytes] | None = None

    def __setitem__(self, name: str, data: bytes) -> None:
        self.pop(name, None)
        if len(data) <= self._room:
            self._room -= len(data)
            self._held[name] = data
            return
        if self._file is None:
            import tempfile  # slow to import

            self._file = tempfile.TemporaryFile(prefix="ctxctl-")  # noqa: SIM115 - kept open
        self._held[name] = (self._file.seek(0, 2), len(data))
        self._file.write(data)

    def __getitem__(self, name: str) -> bytes:
        held = self._held[name]
        if isinstance(held, bytes):
            return held
        assert self._file is not None
        self._file.seek(held[0])
        return self._file.read(held[1])

    def __delitem__(self, name: str) -> None:
        held = self._held.pop(name)
        self._room += len(held) if isinstance(held, bytes) else 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)


class FleetAnswers(NamedTuple):
    """What came of a question."""

    found: Mapping[str, bytes]
    lost: Mapping[str, Failed]
    owned: Owned

    def names(self) -> Sequence[str]:
        """All captures, in order."""
        return sorted({*self.found, *self.lost})

    def told(self, name: str, problems: Sequence[Problem], number: int, where: str) -> Told:
        """A capture's problems; that its requests are told of another is one.

        Args:
            name: The capture.
            problems: Those that its answer has.
            number: How many there were, those not kept included.
            where: What became of copied requests in the other capture: "counted there".
        """
        copied = [
            Problem(0, 0, "carried-history", f"{_are(count)} in {owner} too: {where}")
            for owner, count in sorted(self.owned.owners.get(name, {}).items())
        ]
        return Told(name, [*copied, *problems], number + len(copied))

    def copies(self, name: str) -> int:
        """In how many other captures requests of this one are counted: so many findings under `--strict`."""
        return len(self.owned.owners.get(name, ()))


def ask_all(
    fleet: Fleet,
    question: Question,
    requests: Callable[[bytes], bytes],
    more: Callable[[CaptureFile, list[int]], bytes],
) -> FleetAnswers:
    """Ask every capture, and once more those of whose requests some count in another one.

    Args:
        fleet: The captures.
        question: What is asked.
        requests: The requests that an answer says its capture holds (`RequestsHeld.packed`).
        more: What the question says of one capture, and of the keys of its requests that count elsewhere.
    """
    found, lost = Shelf(), dict[str, Failed]()
    said = {one.name: more(one, []) for one in fleet.captures}
    for one, data in fleet.asker.ask(question, fleet.captures, said):
        if isinstance(data, Failed):
            lost[one.name] = data
        else:
            found[one.name] = data
    owned = owned_requests({name: requests(found[name]) for name in found})
    again = [one for one in fleet.captures if one.name in owned.without]
    said = {one.name: more(one, owned.without[one.name]) for one in again}
    for one, data in fleet.asker.ask(question, again, said):
        if isinstance(data, Failed):
            lost[one.name] = data
            del found[one.name]
        else:
            found[one.name] = data
    return FleetAnswers(found, lost, owned)


def keys_alone(_one: CaptureFile, keys: list[int]) -> bytes:
    """What a question says of one capture that needs to know no more than these keys."""
    return packed_keys(keys)


def shared_note(owned: Owned, what: str) -> str | None:
    """How many requests several captures hold, and what was done with them; None where there is none."""
    return f"several captures share {plural(owned.requests, 'request')}; {what}" if owned.requests else None


def _are(count: int) -> str:
    return "1 request is" if count == 1 else f"{count:,} requests are"
