"""The calls that record: one method for each kind of record, on a recorder, a turn and a step alike."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ctxctl.model import vocab

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ctxctl.record.core import Core
    from ctxctl.record.place import Place

    Fields = Mapping[str, Any]
    Ref = str | Mapping[str, Any]

_FOR_MODEL = (vocab.MODEL,)
_NOTHING = (None,) * 6
P = ParamSpec("P")
R = TypeVar("R")


def guarded(call: Callable[P, R]) -> Callable[P, R]:
    """Make a call that never raises into the program: errors are counted, and raised only if `strict`."""

    @wraps(call)
    def never_raising(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return call(*args, **kwargs)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:
            core: Core = args[0]._core  # type: ignore[attr-defined]
            return core.call_failed(error)  # type: ignore[no-any-return]

    return never_raising


class Calls:
    """Typed calls; `None` leaves a field out, further keywords become fields of the record as they are.

    Every call writes before it returns.  What is passed may be changed afterwards.  A call that fails returns
    an empty text in place of an id.
    """

    _core: Core

    def _current_place(self) -> Place:
        """Return the place where an event that is recorded now belongs."""
        raise NotImplementedError

    @guarded
    def surface(
        self,
        surface_id: str | None = None,
        *,
        items: Iterable[Ref] = (),
        sources: Iterable[str] = (),
        kind: str | None = None,
        scope: str = "turn",
        updated: bool = False,
        **fields: Any,
    ) -> str:
        """Record what there is to choose from: refs of items, and names of sources.  Returns its id."""
        core = self._core
        made = surface_id or core.new_id("surface")
        record = {
            "surface_id": made, "scope": scope, "surface_kind": kind,
            "available_source_refs": _listed(sources),
            "available_item_refs": _listed(items), **fields,
        }  # fmt: skip
        core.record(
            vocab.SURFACE_UPDATED if updated else vocab.SURFACE_CREATED, record, self._current_place()
        )
        return made

    @guarded
    def item(
        self,
        item_id: str,
        content: Any = None,
        *,
        kind: str = "custom",
        version: str | None = None,
        title: str | None = None,
        visibility: Iterable[str] = _FOR_MODEL,
        source: str | None = None,
        tokens: int | None = None,
        priority: float | None = None,
        metadata: Fields | None = None,
        **fields: Any,
    ) -> str:
        """Record a piece of context with its content, a text or any JSON.  Returns its ref, `ID@VERSION`.

        It is `added` the first time and `updated` when it differs; nothing is written if the file has this
        version.  Without `version`, the version is the content's digest.  Without content, `tokens` may say
        how large it is.
        """
        core, where = self._core, self._current_place()
        if type(content) is str and visibility is _FOR_MODEL and not fields:
            others = (version, title, source, tokens, priority, metadata)
            if others == _NOTHING and (ref := core.text_item(item_id, content, kind, where)) is not None:
                return ref
        meta = dict(metadata) if metadata else {}
        if version is not None:
            meta["version"] = str(version)
        record: dict[str, Any] = {"item_id": item_id, "context_kind": kind, "visibility": list(visibility)}
        if title is not None:
            record["title"] = title
        if source is not None:
            record["source_refs"] = [core.source_ref(source)]
        if meta or fields or tokens is not None or priority is not None:
            record.update(fields, token_estimate=tokens, priority=priority, metadata=meta or None)
        return core.item(record, content, version, where)

    @guarded
    def remove(self, item_id: str, *, cause: str | None = None, **fields: Any) -> None:
        """Record that an item is gone; `cause`: `detached`, `expired`, `cleared` …"""
        record = {"item_id": item_id, "metadata": {"cause": cause} if cause is not None else None, **fields}
        self._core.remove_item(record, self._current_place())

    @guarded
    def selection(
        self,
        selected: Iterable[Ref] = (),
        *,
        omitted: Iterable[Ref | tuple[str, str]] = (),
        candidates: Iterable[Ref] = (),
        query: str | None = None,
        intent: str | None = None,
        scores: Mapping[str, float] | None = None,
        surface: str | None = None,
        rationale: str | None = None,
        started: bool = False,
        **fields: Any,
    ) -> str:
        """Record what was chosen from a surface, and what was left out: refs, or `(ref, reason)`.

        Returns its id.
        """
        core = self._core
        made = core.new_id("selection")
        chosen, left = _listed(selected), [_omitted(one) for one in omitted]
        record = {
            "selection_id": made, "surface_id": surface or core.last_surface(self._current_place()),
            "candidate_item_refs": _listed(candidates) or None, "selected_item_refs": chosen,
            "omitted_item_refs": left, "query": query, "intent": intent, "rationale": rationale,
            "ranking_signals": {ref: {"relevance": one} for ref, one in scores.items()} if scores else None,
            **fields,
        }  # fmt: skip
        event = vocab.SELECTION_STARTED if started else vocab.SELECTION_COMPLETED
        core.record(event, record, self._current_place(), refs=core.refs_in(chosen))
        return made

    @guarded
    def budget(
        self,
        *,
        max_tokens: int | None = None,
        reserved_tokens: int | None = None,
        actual_tokens: int | None = None,
        max_input: int | None = None,
        dropped: Iterable[Ref | tuple[str, str]] = (),
        truncated: Iterable[Ref | tuple[str, int]] = (),
        segments: Mapping[str, Iterable[str]] | None = None,
        overflow: str | None = None,
        target: str = vocab.MODEL,
        metadata: Fields | None = None,
        **fields: Any,
    ) -> str:
        """Record limits in tokens, and what was done to keep them.  Returns its id.

        Args:
            max_tokens: The window.
            reserved_tokens: Tokens that are kept free for the answer.
            actual_tokens: The runtime's own count.
            max_input: The provider's limit on input, beside the window.
            dropped: Items left out: refs, or `(ref, reason)`.
            truncated: Items cut to fit: refs, or `(ref, tokens that are left)`.
            segments: Refs by the segment of the window they belong to.
            overflow: What is done when it does not fit (`truncate_tail`, `reject` …).
            target: Who sees the window.
            metadata: Fields that are kept as they are.
            fields: Further fields (`max_items`, `max_bytes` …).
        """
        core = self._core
        made = core.new_id("budget")
        record = {
            "budget_id": made, "target": target, "max_tokens": max_tokens, "reserved_tokens": reserved_tokens,
            "actual_tokens": actual_tokens, "overflow_strategy": overflow,
            "truncation_records": [*map(_dropped, dropped), *map(_truncated, truncated)] or None,
            "window_segments": [
                {"segment_id": name, "role": name, "target": target, "item_refs": list(refs), "order": at}
                for at, (name, refs) in enumerate(segments.items())
            ] if segments else None,
            "metadata": _with(metadata, max_input=max_input), **fields,
        }  # fmt: skip
        core.record(vocab.BUDGET_APPLIED, record, self._current_place())
        return made

    @guarded
    def assembly(
        self,
        blocks: Iterable[Ref],
        *,
        mode: str = "window",
        model: str | None = None,
        target: str = vocab.MODEL,
        whole: bool = False,
        cause: str | None = None,
        metadata: Fields | None = None,
        **fields: Any,
    ) -> str:
        """Record the blocks of a window in order: refs, or tables with `item_refs`, `role`, `wrapper` …

        Give the whole window each time: unless `whole`, only the differences from the thread's last one are
        written.  `mode`: `window` (each request carries all of it) or `append`.  `cause`: why items are gone
        (`branched`, `cleared`).  Returns its id.
        """
        marks = {"mode": mode, "model": model, "cause": cause}
        meta = _with(metadata, **marks) or {}
        return self._core.assembly(blocks, target, meta, dict(fields), self._current_place(), whole=whole)

    @guarded
    def injection(
        self,
        point: str = "message_history",
        *,
        assembly: str | None = None,
        target: str = vocab.MODEL,
        native_id: str | None = None,
        model: str | None = None,
        metadata: Fields | None = None,
        **fields: Any,
    ) -> str:
        """Record that the last assembly went out, which seals the step.

        `native_id`: the provider's id of the request.  Returns its id.
        """
        core = self._core
        made = core.new_id("injection")
        where = self._current_place()
        own = {"model": model} if model is not None else {}
        record = {
            "injection_id": made, "assembly_id": assembly or core.last_assembly(where, target),
            "target": target, "injection_point": point, "native_id": native_id, "visibility": [target],
            "metadata": {**(metadata or {}), **own} or None, **fields,
        }  # fmt: skip
        core.record(vocab.INJECTION_APPLIED, record, where)
        if target == vocab.MODEL:
            where.sealed = where.step is not None
        return made

    @guarded
    def compaction(
        self,
        sources: Iterable[str],
        *,
        summary: str | None = None,
        method: str | None = None,
        trigger: str | None = None,
        scope: str = "session",
        coverage: Fields | None = None,
        started: bool = False,
        **fields: Any,
    ) -> str:
        """Record that items left the window and `summary` (a ref) took their place.  Returns its id."""
        core = self._core
        made = core.new_id("compaction")
        record = {
            "compaction_id": made, "scope": scope, "source_item_refs": _listed(sources),
            "summary_ref": summary,
            "method": method or ("abstractive_summary" if summary is not None else "custom"),
            "trigger": trigger,
            "coverage": dict(coverage) if coverage else None, **fields,
        }  # fmt: skip
        event = vocab.COMPACTION_STARTED if started else vocab.COMPACTION_COMPLETED
        core.record(event, record, self._current_place(), refs=core.refs_in([summary] if summary else []))
        return made

    @guarded
    def missing(
        self,
        question: str,
        *,
        missing_id: str | None = None,
        severity: str = "info",
        status: str = "open",
        scope: str = "turn",
        needed_for: str | None = None,
        resolved_by: Iterable[str] = (),
        **fields: Any,
    ) -> str:
        """Record that something was missing; `status` `requested` and `resolved` follow it up.

        Returns its id, to be passed when it is resolved.
        """
        core = self._core
        made = missing_id or core.new_id("missing")
        record = {
            "missing_id": made, "scope": scope, "question": question, "severity": severity, "status": status,
            "needed_for": needed_for, "resolution_refs": _listed(resolved_by) or None, **fields,
        }  # fmt: skip
        event = {"requested": vocab.MISSING_REQUESTED, "resolved": vocab.MISSING_RESOLVED}.get(status)
        core.record(event or vocab.MISSING_DETECTED, record, self._current_place())
        return made

    @guarded
    def redaction(
        self,
        item_id: str,
        *,
        state: str = "redacted",
        method: str | None = None,
        policies: Iterable[str] = (),
        reason: str | None = None,
        **fields: Any,
    ) -> None:
        """Record that the program itself masked an item; its earlier versions are shown no more."""
        record = {
            "item_id": item_id, "redaction_state": state, "redaction_method": method,
            "redaction_reason": reason, "policy_refs": _listed(policies) or None, **fields,
        }  # fmt: skip
        self._core.record(vocab.REDACTION_APPLIED, record, self._current_place())

    @guarded
    def usage(
        self,
        response: Any = None,
        *,
        model: str | None = None,
        provider: str | None = None,
        input_tokens: int | None = None,
        cached_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        output_tokens: int | None = None,
        reasoning_tokens: int | None = None,
        **fields: Any,
    ) -> None:
        """Record what the provider billed: its response (or the `usage` of it), or the counts.

        `input_tokens` is the whole context, cache reads and writes included.  A response of the OpenAI,
        Anthropic or Gemini API is brought into this shape.
        """
        record: dict[str, Any] = {} if response is None else self._core.bill(response)
        given = {
            "model": model, "provider": provider, "input_tokens": input_tokens,
            "cached_tokens": cached_tokens,
            "cache_write_tokens": cache_write_tokens, "output_tokens": output_tokens,
            "reasoning_tokens": reasoning_tokens, **fields,
        }  # fmt: skip
        record.update((name, value) for name, value in given.items() if value is not None)
        if record:
            self._core.record(vocab.USAGE_REPORTED, record, self._current_place())

    @guarded
    def event(self, event_type: str, data: Fields | None = None, *, metadata: Fields | None = None) -> None:
        """Record any other event, of a type that need not be known here."""
        self._core.record(event_type, dict(data or {}), self._current_place(), metadata=metadata)


def _listed(refs: Iterable[Any]) -> list[Any]:
    return [refs] if isinstance(refs, str) else list(refs)


def _omitted(one: Ref | tuple[str, str]) -> Any:
    return {"item_ref": one[0], "reason": one[1]} if isinstance(one, tuple) else one


def _dropped(one: Ref | tuple[str, str]) -> dict[str, Any]:
    if isinstance(one, dict):
        return {"action": "dropped", **one}
    ref, reason = one if isinstance(one, tuple) else (one, "budget_limit")
    return {"item_ref": ref, "action": "dropped", "reason": reason}


def _truncated(one: Ref | tuple[str, int]) -> dict[str, Any]:
    if isinstance(one, dict):
        return {"action": "truncated", **one}
    if isinstance(one, tuple):
        return {"item_ref": one[0], "action": "truncated", "tokens_after": one[1]}
    return {"item_ref": one, "action": "truncated"}


def _with(metadata: Fields | None, **marks: Any) -> dict[str, Any] | None:
    """Return metadata with those of these marks of ctxctl that are not None."""
    made = dict(metadata or {})
    present = {name: value for name, value in marks.items() if value is not None}
    if present:
        own = made.get("ctxctl")
        made["ctxctl"] = {**(own if isinstance(own, dict) else {}), **present}
    return made or None
