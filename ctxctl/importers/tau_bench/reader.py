"""Makes sessions of the tasks of a results file; each answer's request carried the messages before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.chat import Chat
from ctxctl.ingest.document import document
from ctxctl.ingest.parts import Part, string
from ctxctl.ingest.run import Run
from ctxctl.providers.usage import chat_usage, stated_total
from ctxctl.trace.source import Source

_OUTPUT: Final = "API output: "
"""How a message begins that tells agents without tool calling what a tool gave back."""


class Results(Run):
    """One import of a results file."""

    def events(self, source: Source) -> Iterator[Json]:
        """The tasks' sessions, in the order of the file."""
        value = document(source, self.report)
        policy = model = None
        tasks: Any = value
        if isinstance(value, dict):
            policy, model = _facts(value.get("info"))
            tasks = value.get("simulations") if "simulations" in value else [value]
        if not isinstance(tasks, list):
            if value is not None:
                self.problem("not-a-record", "no tasks in the document; not read")
            return
        names: dict[str, int] = {}
        for number in range(len(tasks)):
            task, tasks[number] = tasks[number], None
            if not isinstance(task, dict):
                self.problem("not-a-record", f"task {number + 1} is not an object; skipped")
                continue
            name = _name(task, number)
            again = names[name] = names.get(name, 0) + 1
            self.session = name if again == 1 else f"{name}~{again}"
            yield from _Task(self, task, policy, model).events()


class _Task:
    """One task's conversation."""

    def __init__(self, run: Results, task: Json, policy: str | None, model: str | None) -> None:
        self._run = run
        self._thread = run.thread()
        self._chat = Chat()
        self._model = model
        self._turns = 0
        found = task.get("traj", task.get("messages"))
        self._messages = [m for m in found if isinstance(m, dict)] if isinstance(found, list) else []
        self._policy = policy
        self._usd = task.get("agent_cost")
        """The cost of all of the agent's requests, as a run of tau2 states it."""

    def events(self) -> Iterator[Json]:
        if self._policy is not None and not any(m.get("role") == "system" for m in self._messages):
            self._thread.append(Part("system_prompt", self._policy, "system", title="policy", derived=True))
        at = 0
        for message in self._messages:
            inner = message.get("tool_messages")
            for one in inner if isinstance(inner, list) else [message]:
                if isinstance(one, dict) and not _is_users_tool(one):
                    self._read(one, at)
                    yield from self._run.drain()
                at += 1
        self._thread.stated(stated_total("session", usd=self._usd))
        yield from self._run.end_session()

    def _read(self, message: Json, at: int) -> None:
        self._run.make.at(message.get("timestamp"))
        role = message.get("role")
        content = message.get("content")
        if role == "assistant" and not self._is_greeting(message):
            self._thread.turn = f"turn-{self._turns}" if self._turns else None
            self._thread.request(model=self._model, derived=True)
            self._thread.usage(chat_usage(message.get("usage"), model=self._model))
        kind = None
        if role == "user":
            if isinstance(content, str) and content.startswith(_OUTPUT):
                kind = "tool_result"
            else:
                # A turn begins with the request: the message that ends a task sets none off.
                self._turns += 1
            message = {name: field for name, field in message.items() if name != "tool_calls"}
        parts = self._chat.cut(message, kind=kind)
        for index, part in enumerate(parts):
            part.place = f"message-{at}" if index == 0 else f"message-{at}/{index}"
        self._thread.append(*parts)

    def _is_greeting(self, message: Json) -> bool:
        """Whether a message is the fixed greeting with which tau2 opens, and which no model made."""
        return self._turns == 0 and not message.get("usage") and "turn_idx" in message


def _is_users_tool(message: Json) -> bool:
    """Whether a message is what the simulated user does with its own tools, which the agent does not see."""
    if message.get("requestor") == "user":
        return True
    return message.get("role") == "user" and not message.get("content") and bool(message.get("tool_calls"))


def _name(task: Json, number: int) -> str:
    ident = task.get("task_id")
    name = f"task-{ident}" if isinstance(ident, str | int) else f"task-{number + 1}"
    trial = task.get("trial")
    return f"{name}.trial-{trial}" if isinstance(trial, int) else name


def _facts(info: Any) -> tuple[str | None, str | None]:
    """The policy and the agent's model of a tau2 run."""
    info = info if isinstance(info, dict) else {}
    environment, agent = info.get("environment_info"), info.get("agent_info")
    policy = string(environment.get("policy")) if isinstance(environment, dict) else None
    return policy, string(agent.get("llm")) if isinstance(agent, dict) else None
