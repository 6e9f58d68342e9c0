"""Order and pairs of bodies that no index names, told by what later requests repeat."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ctxctl.formats.build import Json, canonical, digest_of
from ctxctl.formats.kit.parts import string


class Asked(NamedTuple):
    """What a request tells of its place."""

    file: str
    session: str | None
    head: str
    """Digest of its tools and its model: the same for the requests of one conversation."""
    tools: int
    messages: int
    first: str
    """Digest of its first message."""
    said: tuple[tuple[int, str], ...]
    """Index and mark of each answer of the model in it."""
    model: str | None


def asked(file: str, body: Json, session: str | None) -> Asked:
    """The place of a request's body."""
    tools = body.get("tools")
    tools = tools if isinstance(tools, list) else []
    found = body.get("messages")
    messages: list[Any] = found if isinstance(found, list) else []
    said = []
    for at, message in enumerate(messages):
        if isinstance(message, dict) and message.get("role") == "assistant":
            made = mark(message)
            if made is not None:
                said.append((at, made))
    names = [tool.get("name") if isinstance(tool, dict) else None for tool in tools]
    return Asked(
        file,
        session,
        digest_of(canonical([names, body.get("model")])),
        len(tools),
        len(messages),
        digest_of(canonical(messages[:1])),
        tuple(said),
        string(body.get("model")),
    )


def mark(message: Json) -> str | None:
    """What tells an answer from others: the ids of its calls, else its text; None where it has neither."""
    content = message.get("content")
    if isinstance(content, str):
        return content or None
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    ids = [block["id"] for block in blocks if isinstance(block.get("id"), str)]
    if ids:
        return "\n".join(ids)
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    return "\n".join(texts) or None


def ordered(found: Iterable[Asked]) -> list[Asked]:
    """Conversations one after the other, those with the most tools first; each by its length.

    The order between conversations is not recorded: a sub-agent's requests stand behind those of its parent.
    """
    return sorted(found, key=lambda a: (a.session or "", -a.tools, a.head, a.first, a.messages, a.file))


def pairs(found: Iterable[Asked], answers: Iterable[tuple[str, Json]]) -> tuple[dict[str, str], list[str]]:
    """By a request's file, that of its answer; and the answers that cannot be paired.

    An answer is that of the longest request which is a beginning of one that repeats the answer.
    """
    requests = list(found)
    repeated: dict[str, set[tuple[str | None, str, str, int]]] = {}
    for one in requests:
        for at, made in one.said:
            repeated.setdefault(made, set()).add((one.session, one.head, one.first, at))
    by_place = {(one.session, one.head, one.first, one.messages): one.file for one in requests}
    made_pairs: dict[str, str] = {}
    left: list[tuple[str, Json]] = []
    for file, body in answers:
        places = repeated.get(mark(body) or "", set())
        asking = [by_place[place] for place in places if place in by_place]
        if len(asking) == 1 and asking[0] not in made_pairs:
            made_pairs[asking[0]] = file
        else:
            left.append((file, body))
    _last(requests, left, made_pairs)
    paired = set(made_pairs.values())
    return made_pairs, [file for file, _ in left if file not in paired]


def _last(requests: list[Asked], left: list[tuple[str, Json]], made_pairs: dict[str, str]) -> None:
    """Pair what is left where one request and one answer of a model are."""
    waiting: dict[str | None, list[str]] = {}
    for one in requests:
        if one.file not in made_pairs:
            waiting.setdefault(one.model, []).append(one.file)
    answers: dict[str | None, list[str]] = {}
    for file, body in left:
        answers.setdefault(string(body.get("model")), []).append(file)
    for model, files in answers.items():
        asking = waiting.get(model, [])
        if len(files) == len(asking) == 1:
            made_pairs[asking[0]] = files[0]
