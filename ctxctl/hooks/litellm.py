"""LiteLLM: `litellm.callbacks = [ContextLogger("run.jsonl")]` records every completion.

A request is recorded in the provider's dialect, as LiteLLM reports its body; a streamed answer in LiteLLM's
own, Chat Completions.  LiteLLM reports such an answer after it has handed it on, from another thread: where
the next request is quicker, that carries the answer, and the bill is recorded as late.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from litellm.integrations.custom_logger import CustomLogger

from ctxctl.record.exchange import Exchanges
from ctxctl.record.recorder import Recorder
from ctxctl.record.values import type_name

if TYPE_CHECKING:
    from ctxctl.record.exchange import Exchange

_WAITING: Final = 1_000
"""Calls that wait for their end at most."""
_OURS: Final = ("extra_headers", "extra_query", "timeout", "api_key")
"""Fields that LiteLLM hands to the provider's package beside the body."""
_TYPES: Final = frozenset(
    (
        "completion", "acompletion", "responses", "aresponses", "anthropic_messages", "generate_content",
        "agenerate_content", "generate_content_stream", "agenerate_content_stream",
    )
)  # fmt: skip


class ContextLogger(CustomLogger):
    """Records what LiteLLM sends to models.

    LiteLLM calls these methods by keyword and swallows what they raise: the names of the parameters are part
    of its interface.

    Args:
        to: The trace, or a recorder.
        options: Options of `Recorder`, where a trace is named.
    """

    def __init__(self, to: str | os.PathLike[str] | Recorder, **options: Any) -> None:
        super().__init__()
        self.recorder = to if isinstance(to, Recorder) else Recorder(to, **options)
        self._exchanges = Exchanges(self.recorder)
        self._waiting: OrderedDict[str, Exchange] = OrderedDict()
        self._lock = threading.Lock()
        self.ctxctl_key = f"{id(self):x}"
        """Differs for each logger: LiteLLM takes two with the same plain attributes for one."""

    def log_pre_api_call(self, model: Any, messages: Any, kwargs: Any) -> None:
        """Record a request that is about to be sent."""
        given = kwargs.get("additional_args") or {}
        sent = given.get("complete_input_dict")
        if kwargs.get("call_type") not in _TYPES or not sent:
            return
        body = _body(sent, model, messages)
        url = given.get("api_base")
        session = _session(kwargs)
        exchange = self._exchanges.begin_from_body(
            body, url=url if isinstance(url, str) else "", session=session
        )
        if exchange is None:
            return
        with self._lock:
            before = self._waiting.pop(_key(kwargs), None)
            self._waiting[_key(kwargs)] = exchange
            last = self._waiting.popitem(last=False)[1] if len(self._waiting) > _WAITING else None
        for one, why in ((before, "no answer: sent again"), (last, "no answer was told of")):
            if one is not None:
                one.answered(None, failure=why)

    def log_post_api_call(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Record a raw answer; of a stream nothing has come yet."""
        from ctxctl.record.bodies import body_of

        raw = kwargs.get("original_response")
        response = body_of({}, raw) if isinstance(raw, str) and raw[:1] == "{" else None
        if response is not None and "error" not in response and (exchange := self._taken(kwargs)) is not None:
            exchange.answered(response)

    def log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Record an answer that was handed on."""
        from ctxctl.providers.dialects import by_name, of_response
        from ctxctl.record.bodies import body_of

        exchange = self._taken(kwargs)
        if exchange is None:
            return
        response = body_of({}, response_obj)
        dialect = of_response(response) if response is not None else None
        exchange.answered(response, dialect=dialect or by_name("openai-chat"))

    def log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Record that there was no answer."""
        exchange = self._taken(kwargs)
        if exchange is None:
            return
        error = kwargs.get("exception")
        status = getattr(error, "status_code", None)
        kind = type_name(error).rpartition(".")[2] if error is not None else "error"
        exchange.answered(None, failure=f"HTTP {status}: {kind}" if type(status) is int else kind)

    async def async_log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Record the answer of an asynchronous call."""
        self.log_success_event(kwargs, response_obj, start_time, end_time)

    async def async_log_failure_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Record that an asynchronous call got no answer."""
        self.log_failure_event(kwargs, response_obj, start_time, end_time)

    def _taken(self, kwargs: Any) -> Exchange | None:
        with self._lock:
            return self._waiting.pop(_key(kwargs), None)


def _key(kwargs: Any) -> str:
    return str(kwargs.get("litellm_call_id"))


def _body(sent: Any, model: Any, messages: Any) -> Any:
    """Return the body as it goes over the wire, with what LiteLLM calls extra beside the rest."""
    if not isinstance(sent, dict):
        return sent
    body = {name: value for name, value in sent.items() if name not in _OURS}
    extra = body.pop("extra_body", None)
    if isinstance(extra, dict):
        body = {**body, **extra}
    body.setdefault("model", model)
    return body


def _session(kwargs: Any) -> str | None:
    """Return the session that the caller names in LiteLLM's ways."""
    parameters = kwargs.get("litellm_params") or {}
    holders = (parameters, parameters.get("metadata") or {}, kwargs.get("metadata") or {})
    for holder in holders:
        for name in ("litellm_session_id", "session_id", "conversation_id"):
            value = holder.get(name) if isinstance(holder, dict) else None
            if isinstance(value, str) and value:
                return value
    return None
