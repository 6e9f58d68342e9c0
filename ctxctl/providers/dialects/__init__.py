"""The JSON that providers' APIs take and give: cut into items, and put into steps."""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.build import Json
from ctxctl.providers.dialects.anthropic import Anthropic
from ctxctl.providers.dialects.base import Dialect
from ctxctl.providers.dialects.gemini import Gemini
from ctxctl.providers.dialects.openai_chat import OpenAIChat
from ctxctl.providers.dialects.openai_responses import OpenAIResponses

DIALECTS: Final[tuple[Dialect, ...]] = (Anthropic(), OpenAIChat(), OpenAIResponses(), Gemini())
_SURE: Final = 50
_ADDRESSES: Final = (
    ("/chat/completions", "openai-chat"),
    ("/responses", "openai-responses"),
    ("/messages", "anthropic"),
    (":generatecontent", "gemini"),
    (":streamgeneratecontent", "gemini"),
    (":rawpredict", "anthropic"),
    (":streamrawpredict", "anthropic"),
)


def by_name(name: str) -> Dialect:
    """A dialect by its name; raises KeyError for what there is not."""
    for dialect in DIALECTS:
        if dialect.name == name:
            return dialect
    raise KeyError(name)


def of_body(body: Json, url: str | None = None) -> Dialect | None:
    """The dialect of a request body; the address decides where the body allows it.

    None where the body is no request to a model that is read here (a batch, a count of tokens, an embedding).
    """
    if not isinstance(body, dict):
        return None
    path = url.partition("?")[0].rstrip("/").lower() if isinstance(url, str) else ""
    for end, name in _ADDRESSES:
        if path.endswith(end):
            dialect = by_name(name)
            field = dialect.section
            if isinstance(body.get(field), list | str | dict) or dialect.detect(body):
                return dialect
    best: Dialect | None = None
    top = _SURE - 1
    for dialect in DIALECTS:
        score = dialect.detect(body)
        if score > top:
            best, top = dialect, score
    return best


def of_response(response: Json) -> Dialect | None:
    """The dialect of a response body; None for what is none."""
    if not isinstance(response, dict):
        return None
    best: Dialect | None = None
    top = _SURE - 1
    for dialect in DIALECTS:
        score = dialect.answers(response)
        if score > top:
            best, top = dialect, score
    return best
