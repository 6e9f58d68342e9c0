"""Turns and steps for the runs of an agent framework; the hooks of all frameworks use them."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.model import vocab
from ctxctl.record.calls import guarded
from ctxctl.record.place import Place
from ctxctl.record.scopes import Scope, Step, Turn, current

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ctxctl.record.recorder import Recorder

_SHORT: Final = 200


class Document(NamedTuple):
    """A piece of text that a retriever gave."""

    text: str
    id: str | None = None
    source: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] | None = None


class ConvertedBody(NamedTuple):
    """A request's body, converted from a framework's messages as the provider's package would do it."""

    body: dict[str, Any]
    dialect: str | None
    """None: the body itself shows it."""
    by: str
    """The function that converted it."""


class AgentRun:
    """All that one call by the user sets off: a turn in each thread that works on it.

    Safe to use from several threads.  Overlapping requests of one thread get branches, as turns do: `writer`,
    `writer~2`.  In a turn that the program has opened itself, the main thread is that turn's.

    Args:
        recorder: Where to record.
        session: The session; None: the recorder's.
        root: The name of the thread that `None` means.
        loose: Whether to begin no turn: as with `recorder.request`, a request that ends with a prompt does.
    """

    def __init__(
        self,
        recorder: Recorder,
        session: str | None = None,
        *,
        root: str = vocab.MAIN_THREAD,
        loose: bool = False,
    ) -> None:
        self._core = recorder._core
        self.recorder = recorder
        self._session = session
        self._root = root
        self._loose = loose
        where = recorder._current_place()
        self._given = where if where.turn is not None else None
        self._lock = threading.Lock()
        self._turns: dict[str, list[_Slot]] = {}
        self._over = False

    def place(self, thread: str | None = None) -> Scope:
        """Return the scope of what belongs to the thread, but to no request."""
        with self._lock:
            return self._slots(thread or self._root)[0].scope

    def call(self, thread: str | None = None, model: str | None = None) -> ModelCall:
        """Begin a request to a model."""
        with self._lock:
            name = thread or self._root
            slots = self._slots(name)
            slot = next((one for one in slots if not one.busy), None)
            if slot is None:
                slot = self._opened(name, len(slots) + 1)
                slots.append(slot)
            slot.busy = True
        return ModelCall(self, slot, model)

    def close(self) -> None:
        """End the run."""
        with self._lock:
            self._over = True
            for slots in self._turns.values():
                for slot in slots:
                    slot.leave()
            self._turns.clear()

    def _slots(self, name: str) -> list[_Slot]:
        slots = self._turns.get(name)
        if slots is None:
            slots = [self._opened(name, 1)]
            if self._over:  # what asks for the scope outlives its run
                slots[0].leave()
            else:
                self._turns[name] = slots
        return slots

    def _opened(self, name: str, number: int) -> _Slot:
        if self._given is not None and name == self._root and number == 1:
            return _Slot(Scope(self.recorder, self._given))
        if self._loose:
            shown = name if number == 1 else f"{name}~{number}"
            return _Slot(Scope(self.recorder, Place(self._session or self.recorder.session, shown)))
        return _Slot(self.recorder.turn(session=self._session, thread=name))


class _Slot:
    """A turn of a thread, and whether it is busy with a request."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.busy = False

    def leave(self) -> None:
        """End the turn, unless the program opened it."""
        self.scope.open = False
        if isinstance(self.scope, Turn):
            self.scope.__exit__(None, None, None)


class ModelCall:
    """One request to a model, its answer and its end; only the first end is recorded."""

    def __init__(self, run: AgentRun, slot: _Slot, model: str | None) -> None:
        self._core = run._core
        self._run = run
        self._slot = slot
        self._model = model
        self._inner: Scope | None = None
        self.over = False
        self.answering_model: str | None = None
        """The model that answered, where a hook learns it before the answer."""
        self.names_only = is_wired(run.recorder)
        """Whether the watched transport records the request itself, so that nothing is recorded here."""
        self._step: Step | None = None

    @guarded
    def request(self, body: Any, dialect: str | None = None, *, native_id: str | None = None,
                **marks: Any) -> None:  # fmt: skip
        """Record the request; `marks`: further fields of the assembly's `metadata.ctxctl`."""
        if self.names_only or self.over:
            return
        from ctxctl.record.bodies import SentRequest, body_of, dialect_of

        whole = body_of({}, body)
        if whole is None:
            raise TypeError("a request's body is a JSON object")
        recorder = self._run.recorder
        named = self._model or whole.get("model")
        model = named if isinstance(named, str) else None
        place = recorder._step_place(self._slot.scope._place, None)
        step = self._step = Step(recorder, place, model)
        step._dialect = dialect_of(dialect, whole, None)
        sent = SentRequest(
            whole, step._dialect, place.step or "", place.turn, model, self._core.clean_id(native_id),
            marks={name: value for name, value in marks.items() if value is not None},
        )  # fmt: skip
        step._place = recorder._record_request(sent, place)

    @guarded
    def response(self, body: Any, dialect: str | None = None) -> None:
        """Record the answer, in the request's dialect or another, with its bill if it holds one."""
        if self._step is None or self.over:
            return
        from ctxctl.providers.dialects import by_name
        from ctxctl.record.bodies import body_of

        whole = body_of({}, body)
        if whole is None:
            raise TypeError("a response's body is a JSON object")
        if isinstance(whole.get("usage"), dict):
            self._step.usage(whole)
        spoken = by_name(dialect) if dialect is not None else self._step._dialect
        self._run.recorder._record_answer(whole, self._step._place, spoken)

    @guarded
    def usage(self, **counts: Any) -> None:
        """Record what was billed, where the answer holds no bill."""
        if self._step is not None and not self.over:
            self._step.usage(**counts)

    @guarded
    def failed(self, error: BaseException | str) -> None:
        """Record that the answer is missing or incomplete."""
        if self._step is not None and not self.over:
            self._step.failed(error)

    def done(self) -> None:
        """Free the thread for its next request; a second call changes nothing."""
        self.over = True
        self._slot.busy = False
        if self._inner is not None:
            self._inner.open = False
            current.set(_open_one(current.get()))
            self._inner = None

    def enter(self) -> None:
        """Put the present context into the request until `done`.

        A watched transport learns from it where a request belongs, or that it is recorded already.
        """
        inner: Scope
        if self._step is not None:
            inner = self._step
        elif self.names_only:
            inner = Scope(self._run.recorder, self._slot.scope._place)
        else:
            return
        inner._outer = _open_one(current.get())
        current.set(inner)
        self._inner = inner


def record_retrieval(scope: Scope, query: str, documents: Iterable[Document], *, name: str | None = None,
              candidates: Iterable[Document] | None = None) -> None:  # fmt: skip
    """Record what a retriever gave, or what a reranker chose, as items and a selection."""
    kept = [_item(scope, one) for one in documents]
    if candidates is None:
        refs, metadata = [ref for ref, _ in kept], {"candidates_not_reported": True}
    else:
        refs, metadata = [ref for ref, _ in (_item(scope, one) for one in candidates)], None
    chosen = [ref for ref, _ in kept]
    left = [(ref, "low_relevance") for ref in refs if ref not in set(chosen)]
    surface = scope.surface(items=refs, kind="retriever", sources=[name] if name else ())
    scores = {ref: score for ref, score in kept if score is not None}
    scope.selection(
        chosen,
        omitted=left,
        candidates=refs,
        query=query,
        scores=scores or None,
        surface=surface,
        metadata=metadata,
    )


def _item(scope: Scope, document: Document) -> tuple[str, float | None]:
    from ctxctl.ingest.build import digest_of

    name = document.id or f"{document.source or 'document'}#{digest_of(document.text)[:12]}"
    ref = scope.item(
        name[:_SHORT], document.text, kind="retrieval_result", source=document.source,
        metadata=document.metadata or None,
    )  # fmt: skip
    return ref, document.score


def is_wired(recorder: Recorder) -> bool:
    """Whether all HTTP clients of this process are watched for the recorder (`ctxctl.hooks.capture`)."""
    capture = sys.modules.get("ctxctl.hooks.capture")
    return any(one.recorder is recorder for one in getattr(capture, "_active", ()))


def _open_one(scope: Scope | None) -> Scope | None:
    while scope is not None and not scope.open:
        scope = scope._outer
    return scope
