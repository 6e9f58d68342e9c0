"""YAML of unknown origin: weighed before anything is made of it, with numbers of bounded size."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.errors import UnavailableError

MAX_DEPTH: Final = 200
MAX_VALUES: Final = 5_000_000
"""Values of the largest text that is read; each takes some 300 bytes while it is parsed."""
_GROWTH: Final = 8
"""How many times its written size a capture may become through its aliases."""
_SMALL: Final = 100_000
_DIGITS: Final = 100
"""Characters of the longest number; reading `1:59:59:...` takes time quadratic in its length."""


class BombError(Exception):
    """A text that would become far larger than it is written, or that is nested too deep."""


def module(what: str) -> Any:
    """The package `yaml`; `what`: begins the message where it is not there, as in `the records are YAML`.

    Raises:
        UnavailableError: `needs-yaml`.
    """
    try:
        import yaml
    except ImportError:
        raise UnavailableError("needs-yaml", what, hint="pip install 'ctxctl[yaml]'") from None
    return yaml


def damage(yaml: Any) -> tuple[type[Exception], ...]:
    """What loading a text that is no sound YAML raises."""
    return (yaml.YAMLError, ValueError, TypeError, RecursionError, OverflowError)


def loader(yaml: Any) -> Any:
    """A safe loader of which a number is a number of 64 bits, or the text that it was written as.

    Numbers without bound are slow to read, and as keys they can be chosen so that all have one hash.
    """
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc, valid-type]
        pass

    def whole(loader: Any, node: Any) -> Any:
        text = loader.construct_scalar(node)
        value = loader.construct_yaml_int(node) if len(text) <= _DIGITS else None
        return value if value is not None and -(2**63) <= value < 2**64 else text

    def broken(loader: Any, node: Any) -> Any:
        text = loader.construct_scalar(node)
        return loader.construct_yaml_float(node) if len(text) <= _DIGITS else text

    Loader.add_constructor("tag:yaml.org,2002:int", whole)
    Loader.add_constructor("tag:yaml.org,2002:float", broken)
    return Loader


class _Node:
    """A collection that is open."""

    __slots__ = ("anchor", "height", "size", "values")

    def __init__(self, anchor: str | None, size: int, values: int) -> None:
        self.anchor = anchor
        self.size = size
        """Expanded size before it."""
        self.values = values
        """Values before it."""
        self.height = 1
        """Levels of it so far, itself among them."""


class Weigher:
    """Weighs the texts of one capture: what their aliases make of them is bounded for all together."""

    def __init__(self) -> None:
        self._written = self._expanded = 0

    def weigh(self, yaml: Any, text: bytes | str, loader: Any) -> None:
        """Refuse what is nested too deep, or made many times larger by aliases, before anything is made.

        A text that is refused counts for nothing.

        Raises:
            BombError: It is not to be loaded.
        """
        weighing = _Weighing(yaml, self._written, self._expanded)
        for event in yaml.parse(text, Loader=loader):
            weighing.take(event)
        self._written, self._expanded = weighing.written, weighing.expanded


class _Weighing:
    """The weighing of one text."""

    def __init__(self, yaml: Any, written: int, expanded: int) -> None:
        self._yaml = yaml
        self.written = written
        self.expanded = expanded
        self._values = 0
        self._open: list[_Node] = []
        self._anchors: dict[str, tuple[int, int, int]] = {}
        """Size, values and levels of what an anchor stands for."""

    def take(self, event: Any) -> None:
        yaml = self._yaml
        if isinstance(event, yaml.AliasEvent):
            self._alias(event.anchor)
        elif isinstance(event, yaml.ScalarEvent):
            size = 1 + len(event.value)
            self._add(size, 1, 0)
            if event.anchor is not None:
                self._anchors[event.anchor] = size, 1, 0
        elif isinstance(event, yaml.CollectionStartEvent):
            self._add(1, 1, 1)
            self._open.append(_Node(event.anchor, self.expanded - 1, self._values - 1))
            if event.anchor is not None:
                self._anchors.pop(event.anchor, None)
        elif isinstance(event, yaml.CollectionEndEvent):
            node = self._open.pop()
            if self._open:
                self._open[-1].height = max(self._open[-1].height, node.height + 1)
            if node.anchor is not None:
                self._anchors[node.anchor] = (
                    self.expanded - node.size,
                    self._values - node.values,
                    node.height,
                )

    def _add(self, size: int, values: int, levels: int) -> None:
        self.written += size
        self.expanded += size
        self._count(values, levels)

    def _alias(self, anchor: str) -> None:
        known = self._anchors.get(anchor)
        if known is None:
            if any(node.anchor == anchor for node in self._open):
                raise BombError("an alias stands for the node that holds it; not read")
            return
        size, values, levels = known
        self.expanded += size
        if self.expanded > _SMALL and self.expanded > _GROWTH * self.written:
            raise BombError("its aliases make it many times larger than it is written; not read")
        self._count(values, levels)
        if self._open:
            self._open[-1].height = max(self._open[-1].height, 1 + levels)

    def _count(self, values: int, levels: int) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            raise BombError(f"more than {MAX_VALUES:,} values; not read")
        if len(self._open) + levels > MAX_DEPTH:
            raise BombError(f"nested deeper than {MAX_DEPTH} levels; not read")
