"""Records told as calls of the recorder (`{"call": "item", …}`), for clients that keep no books."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from ctxctl.record.place import Place
from ctxctl.record.receive.inbox import BadEventError
from ctxctl.record.scopes import Scope, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxctl.record.recorder import Recorder

Json = dict[str, Any]
_RECORDS: Final = (
    "surface", "item", "remove", "selection", "budget", "assembly", "injection", "compaction", "missing",
    "redaction", "usage", "event",
)  # fmt: skip
_OF_STEP: Final = ("request", "response", "failed")
NAMES: Final = (*_RECORDS, *_OF_STEP, "end_session")
_AFTER: Final = frozenset(("response", "failed", "usage"))
"""What belongs to the thread's last request where it names no step."""
_PLACE: Final = ("session", "thread", "turn", "step")
_OWN: Final = frozenset(("call", "id", *_PLACE))
_PAIRS: Final = {"selection": ("omitted",), "budget": ("dropped", "truncated"), "assembly": ("blocks",)}
"""Lists whose elements may be pairs; JSON has no tuples."""
_OPEN: Final = 4096


class Caller:
    """Makes calls; remembers the steps that are open, those used last.  Not for several threads at once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._name = recorder._core.name
        self._scopes: OrderedDict[tuple[str | None, ...], Scope] = OrderedDict()
        self._last: OrderedDict[str, Step] = OrderedDict()
        """By thread: the step of its last request."""

    def make(self, line: Json) -> None:
        """One call; what it records is in the file on return, or counted as dropped.

        Raises:
            BadEventError: there is no such call, or its fields do not fit.
        """
        name = line.get("call")
        if name not in NAMES:
            raise BadEventError(f"no such call; there are {', '.join(NAMES)}")
        for field in _PLACE:
            if line.get(field) is not None and not isinstance(line[field], str):
                raise BadEventError(f"{field} is not a text")
        fields = {key: value for key, value in line.items() if key not in _OWN and value is not None}
        for field in _PAIRS.get(name, ()):
            if isinstance(fields.get(field), list):
                fields[field] = [tuple(one) if isinstance(one, list) else one for one in fields[field]]
        if name == "response" and "body" in fields:
            fields["response"] = fields.pop("body")
        place = self._place(line)
        journal = self._recorder._core.journal
        before, journal.strict = journal.strict, True  # what is wrong is the sender's to know
        try:
            self._make(name, place, fields)
        finally:
            journal.strict = before

    def _make(self, name: str, place: Place, fields: Json) -> None:
        if name == "end_session":
            _call(name, self._recorder.end_session, {"session": place.session})
        elif name == "request":
            self._request(place, fields)
        else:
            _call(name, getattr(self._scope(name, place), name), fields)

    def _place(self, line: Json) -> Place:
        session, thread, turn, step = (self._name(line.get(field)) for field in _PLACE)
        default = self._recorder._default
        return Place(session or default.session, thread or default.thread, turn, step)

    def _request(self, place: Place, fields: Json) -> None:
        recorder = self._recorder
        named = place.step is not None
        step = Step(recorder, place if named else recorder._step_place(place, None), None)
        _call("request", step.request, fields)
        _keep(self._last, place.key, step)
        if named:
            _keep(self._scopes, (place.session, place.thread, place.step), step)

    def _scope(self, name: str, place: Place) -> Scope:
        """Where a call belongs; the same object each time, as a step that was sent remembers it."""
        if place.step is None and name in (*_AFTER, *_OF_STEP):
            last = self._last.get(place.key)
            if last is not None and place.turn in (None, last._place.turn):
                return last
        if place.step is not None:
            key: tuple[str | None, ...] = (place.session, place.thread, place.step)
        else:
            key = (place.session, place.thread, None, place.turn)
        found = self._scopes.get(key)
        if found is None:
            step = place.step is not None or name in _OF_STEP
            found = Step(self._recorder, place, None) if step else Scope(self._recorder, place)
        _keep(self._scopes, key, found)
        return found


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > _OPEN:
        kept.popitem(last=False)


def _call(name: str, call: Callable[..., Any], fields: Json) -> None:
    try:
        inspect.signature(call).bind(**fields)
    except TypeError as error:
        raise BadEventError(f"{name}: {error}") from None
    try:
        call(**fields)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        # Not its text: that may quote what was passed.
        raise BadEventError(
            f"{name}: a field has a value of the wrong type ({type(error).__name__})"
        ) from None
