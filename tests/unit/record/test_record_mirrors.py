"""A context provider and a context manager that record: the same answers, and what was seen in the trace."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, runtime_checkable

import pytest
from record_help import SECRET, data, events, replayed, types

from ctxctl import Recorder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


class Notes:
    """As an app writes it, in JavaScript's spelling."""

    id = "editor-state"
    name = "Editor"

    def __init__(self) -> None:
        self.text: str | None = "Open note: plans"

    def getCurrent(self) -> Any:  # noqa: N802
        return None if self.text is None else {"content": self.text, "title": "Open note"}

    def getList(self, options: Any = None) -> Any:  # noqa: N802
        return {"items": [{"id": "n1", "title": "One"}, {"id": "n2", "title": "Two"}], "hasMore": True}

    def getById(self, id: str) -> Any:  # noqa: A002, N802
        if id == "bad":
            raise KeyError(id)
        return {"id": id, "content": f"Note {id}", "version": "v7", "type": "note"}


def test_a_provider_gives_what_it_gave_and_the_trace_has_it(path: Path) -> None:
    with Recorder(path, strict=True) as recorder:
        own = Notes()
        notes = recorder.context_provider(own, app="sanqian-notes")
        assert (notes.id, notes.name) == ("editor-state", "Editor")
        assert notes.getCurrent() == {"content": "Open note: plans", "title": "Open note"}
        assert notes.getCurrent()["content"] == "Open note: plans"
        own.text = f"Open note: plans, and {SECRET}"
        assert notes.getCurrent()["content"] == own.text
        own.text = None
        assert notes.getCurrent() is None
        own.text = "back"
        notes.getCurrent()
        assert len(notes.getList()["items"]) == 2
        assert notes.getById("n1")["version"] == "v7"
        with pytest.raises(KeyError):
            notes.getById("bad")
        with pytest.raises(AttributeError):
            notes.nothing  # noqa: B018
    assert types(path) == [
        "item.added", "item.updated", "missing.detected", "missing.resolved", "item.updated",
        "surface.created",
        "item.added",
    ]  # fmt: skip
    found = [event["data"] for event in events(path)]
    assert found[0]["item_id"] == "sanqian-notes:editor-state"
    assert SECRET not in path.read_text()
    assert found[5]["available_item_refs"] == [
        "sanqian-notes:editor-state/n1",
        "sanqian-notes:editor-state/n2",
    ]
    assert (found[6]["item_id"], found[6]["metadata"]["version"]) == ("sanqian-notes:editor-state/n1", "v7")


async def test_an_asynchronous_provider_of_objects(path: Path) -> None:
    class Provider:
        id = "app:state"

        async def get_current(self) -> Any:
            return SimpleNamespace(content={"a": 1}, title=None, id=None)

        async def get_by_id(self, id: str) -> Any:  # noqa: A002
            return None

    with Recorder(path, strict=True) as recorder:
        provider = recorder.context_provider(Provider())
        assert (await provider.get_current()).content == {"a": 1}
        assert await provider.get_by_id(id="n9") is None
    assert types(path) == ["item.added", "missing.detected"]
    assert [event["data"].get("item_id") or event["data"]["missing_id"] for event in events(path)] == [
        "app:state", "missing-app:state/n9",
    ]  # fmt: skip


class Context:
    """As context-simple behaves: the history stays, the view is cut."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.keep = 100

    async def add_message(self, message: dict[str, Any]) -> None:
        self.messages.append(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Any = None
    ) -> list[dict[str, Any]]:
        system = [m for m in self.messages if m["role"] == "system"]
        return system + [m for m in self.messages if m["role"] != "system"][-self.keep :]

    async def clear(self) -> None:
        self.messages = []


async def test_every_view_of_a_context_manager_is_recorded_and_cuts_are_compactions(path: Path) -> None:
    with Recorder(path, strict=True) as recorder:
        context = recorder.context_manager(Context())
        await context.add_message({"role": "system", "content": "Be brief."})
        for number in range(4):
            await context.add_message({"role": "user", "content": f"question {number}"})
            view = await context.get_messages_for_request(provider=None)
            assert view[-1] == {"role": "user", "content": f"question {number}"}
            await context.add_message({"role": "assistant", "content": [
                {"type": "thinking", "thinking": f"thought {number}", "signature": "s"},
                {"type": "tool_call", "id": f"c{number}", "name": "look",
                "input": {"at": number}}]})  # fmt: skip
            await context.add_message(
                {"role": "tool", "tool_call_id": f"c{number}", "content": f"result {number}"}
            )
            await context.get_messages_for_request()
        context.keep  # noqa: B018 - attributes are the manager's
        context._manager.keep = 4
        await context.get_messages_for_request()
        await context.clear()
        await context.add_message({"role": "user", "content": "anew"})
        await context.get_messages_for_request()
    steps = replayed(path)
    assert [step["turn"] for step in steps] == [1, 1, 2, 2, 3, 3, 4, 4, 4, 5]
    assert all(step["layer"] == "view" for step in steps)
    assert [step["counts"]["added"] for step in steps] == [2, 3, 1, 3, 1, 3, 1, 3, 0, 1]
    (compaction,) = data(path, "context.compaction.completed")
    assert len(compaction["source_item_refs"]) == 11
    assert {change["cause"] for change in steps[8]["changes"] if change["status"] == "removed"} == {
        "compacted"
    }
    assert {change["cause"] for change in steps[9]["changes"] if change["status"] == "removed"} == {"cleared"}


async def test_a_check_of_the_interface_takes_it_for_a_context_manager(path: Path) -> None:
    @runtime_checkable
    class Manager(Protocol):
        async def add_message(self, message: dict[str, Any]) -> None: ...
        async def get_messages_for_request(self) -> list[dict[str, Any]]: ...
        async def clear(self) -> None: ...

    @runtime_checkable
    class Compactor(Protocol):
        async def compact(self) -> None: ...

    with Recorder(path) as recorder:
        context = recorder.context_manager(Context())
        assert isinstance(context, Manager)
        assert not isinstance(context, Compactor)
        assert inspect.getattr_static(context, "add_message", None) is not None
        context.keep = 3  # an attribute of the stand-in alone


async def test_views_inside_a_step_belong_to_it(path: Path) -> None:
    with Recorder(path, strict=True) as recorder:
        context = recorder.context_manager(Context(), thread="agent")
        await context.add_message({"role": "user", "content": "x"})
        async with recorder.turn("t1", thread="agent") as turn, turn.step(step_id="r1"):
            await context.get_messages_for_request()
            recorder.injection()
    (step,) = replayed(path)
    assert (step["thread"], step["turn_id"], step["step_id"], step["layer"]) == (
        "agent",
        "t1",
        "r1",
        "injected",
    )
