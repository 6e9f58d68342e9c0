"""What a lint rule is: a class with a code, shown each step and each record as one replay comes by them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from ctxctl.model.findings import Place, Severity

if TYPE_CHECKING:
    from ctxctl.lint.context import SeenRecord, StepContext

NO_HITS: Final[tuple[Hit, ...]] = ()


class Hit(NamedTuple):
    """A rule's finding at one place; hits of one thread about one subject become one finding."""

    subject: str
    """What it is about, the same from run to run: an item, a source, a tool."""
    message: str
    """One sentence without a full stop; a finding has that of its first hit."""
    place: Place
    item: str | None = None
    tokens: int | None = None
    money: Decimal | None = None
    steps: int = 1
    """How many steps the hit stands for."""
    note: str | None = None


class Rule:
    """One rule over one trace; an instance sees its steps once, in order.

    The class's docstring is what `--explain` prints first: what is wrong with it, and where the rule is from.
    Parameters are class attributes named in `parameters`; settings may give an instance others.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity] = "warning"
    default: ClassVar[bool] = True
    """Whether it runs where nobody asks for it."""
    needs: ClassVar[str] = ""
    """What has to be recorded for it, in a few words."""
    fix: ClassVar[str]
    """One sentence: what to do about it."""
    parameters: ClassVar[dict[str, str]] = {}
    """Names of what can be set, each with what it is; the values are attributes."""

    @property
    def repeats(self) -> bool:
        """Whether it wants to be shown item records that it has been shown before."""
        return False

    def seen(self, seen: SeenRecord) -> Iterable[Hit]:
        """Look at a record that the engine has taken in; item records that say nothing new are not shown."""
        return NO_HITS

    def step(self, look: StepContext) -> Iterable[Hit]:
        """Look at a step with its frame."""
        return NO_HITS

    def end(self) -> Iterator[Hit]:
        """Give what is only known once the trace is over."""
        return iter(NO_HITS)

    def idle(self) -> str | None:
        """Why it had nothing to look at; None where it had."""
        return None

    @classmethod
    def sees_records(cls) -> bool:
        """Whether it wants to be shown records."""
        return cls.seen is not Rule.seen

    @classmethod
    def sees_steps(cls) -> bool:
        """Whether it wants to be shown steps."""
        return cls.step is not Rule.step
