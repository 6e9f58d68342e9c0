"""Makes the windows of requests from a trajectory's history and from the lists that its steps stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.chat import Chat
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.document import document
from ctxctl.ingest.parts import Part, first_line, mapping, objects_of, string
from ctxctl.ingest.run import Run
from ctxctl.providers.usage import stated_total
from ctxctl.trace.source import Source

_TURN: Final = "run"


class Trajectory(Run):
    """One import of a `.traj` file."""

    def events(self, source: Source) -> Iterator[Json]:
        """Yield the runs of the document: one, or one for each attempt."""
        value = document(source, self.report)
        if not isinstance(value, dict):
            if value is not None:
                self.problem("not-a-record", "the document is not an object; not read")
            return
        attempts = [a for a in objects_of(value.get("attempts")) if a.get("history") or a.get("trajectory")]
        for number, attempt in enumerate(attempts, 1):
            self.session = f"attempt-{number}"
            yield from self._run(attempt)
            yield from self.end_session()
        if not attempts:
            yield from self._run(value)
        yield from self.finish()

    def _run(self, run: Json) -> Iterator[Json]:
        steps = objects_of(run.get("trajectory"))
        history = objects_of(run.get("history")) or _history_of(steps)
        agents: dict[str, list[Json]] = {}
        for message in history:
            agents.setdefault(string(message.get("agent")) or "main", []).append(message)
        for number, (agent, messages) in enumerate(agents.items()):
            options: Json = {"origin": {"agent_type": agent}} if number else {}
            thread = self.thread(agent if number else None, **options)
            thread.turn = _TURN
            sent = _sent_lists(steps, messages) if number == 0 else {}
            for _ in _requests(thread, messages, sent, _model(run)):
                yield from self.drain()
        self.thread().stated(_total(run.get("info")))


def _requests(
    thread: Conversation, messages: list[Json], sent: dict[int, list[Json]], model: str | None
) -> Iterator[None]:
    """Seal a step for each answer; its window is the history, or the list that was stored for it."""
    reader = _Reader()
    elided = False
    for at, message in enumerate(messages):
        if _is_answer(message):
            exact = sent.get(at)
            if exact is not None or elided:
                thread.replace(_sent_parts(messages[:at] if exact is None else exact, messages))
            elided = exact is not None
            thread.request(model=model, derived=None if elided else True)
            yield
        thread.append(*reader.read(message, at))


def _sent_parts(sent: list[Json], history: list[Json]) -> list[Part]:
    """The parts of a list that was sent; a part that was cut against the history is marked as truncated."""
    reader = _Reader()
    made: list[Part] = []
    for at, message in enumerate(sent):
        parts = reader.read(message, at)
        if at < len(history) and _text_of(history[at].get("content")) != _text_of(message.get("content")):
            for part in parts:
                part.truncated = True
        made += parts
    return made


def _text_of(content: Any) -> Any:
    """The text of a message, without the marks for the provider's cache."""
    if not isinstance(content, list):
        return content
    found = [block.get("text") if isinstance(block, dict) else block for block in content]
    said = [text for text in found if isinstance(text, str)]
    return "\n".join(said) if len(said) == len(found) else content


class _Reader:
    """Cuts messages, whose identity is their place in the history."""

    def __init__(self) -> None:
        self._chat = Chat()
        self._answered = False
        self._action: str | None = None
        """The last answer's command, which names its output."""

    def read(self, message: Json, at: int) -> list[Part]:
        """The parts of the message at a place of the history."""
        if _is_answer(message):
            self._answered = True
            self._action = first_line(message.get("action"))
        parts = self._cut(message)
        for index, part in enumerate(parts):
            part.place = f"message-{at}" if index == 0 else f"message-{at}/{index}"
        return parts

    def _cut(self, message: Json) -> list[Part]:
        role = message.get("role")
        if role == "user":
            if message.get("is_demo") or message.get("message_type") == "demonstration":
                return self._chat.cut(message, kind="external_resource", title="demonstration")
            # Without function calling, what a command printed comes back as a user's message.
            if self._answered:
                return self._chat.cut(message, kind="tool_result", title=self._action)
            return self._chat.cut(message)
        if role == "assistant" and message.get("tool_calls"):
            return self._chat.cut(message)
        calls = message.get("tool_call_ids")
        if role == "tool" and isinstance(calls, list) and calls:
            return self._chat.result(string(calls[0]), message.get("content"))
        return self._chat.cut(message)


def _is_answer(message: Json) -> bool:
    return message.get("role") == "assistant" and not message.get("is_demo")


def _sent_lists(steps: list[Json], messages: list[Json]) -> dict[int, list[Json]]:
    """The lists that the steps stored, by the place of the answer in the history.

    `query` is what the step's request carried.  `messages` is what there was to send once the step was done,
    so it belongs to the next request.
    """
    answers = [at for at, message in enumerate(messages) if _is_answer(message)]
    found: dict[int, list[Json]] = {}
    asked = [step for step in steps if step.get("response") or step.get("query") or step.get("messages")]
    if len(asked) != len(answers):
        return found
    for number, step in enumerate(asked):
        query = objects_of(step.get("query"))
        after = objects_of(step.get("messages"))
        if query:
            found[answers[number]] = query
        elif after and number + 1 < len(answers) and len(after) == answers[number + 1]:
            found[answers[number + 1]] = after
    return found


def _history_of(steps: list[Json]) -> list[Json]:
    """The history that the steps tell, where a file holds none."""
    made: list[Json] = []
    for step in steps:
        query = objects_of(step.get("query"))
        if query and not made:
            made += query
        response = step.get("response")
        if isinstance(response, str) and response:
            made.append({"role": "assistant", "content": response})
        observation = step.get("observation")
        if isinstance(observation, str):
            made.append({"role": "user", "content": observation})
    return made


def _total(info: Any) -> Json | None:
    """A run's totals."""
    stats = mapping(mapping(info).get("model_stats"))
    return stated_total(
        "session", usd=stats.get("instance_cost"), input_tokens=stats.get("tokens_sent"),
        output_tokens=stats.get("tokens_received"), requests=stats.get("api_calls"),
    )  # fmt: skip


def _model(run: Json) -> str | None:
    config = run.get("replay_config")
    for name in ("agent", "model", "name"):
        config = config.get(name) if isinstance(config, dict) else None
    return string(config)
