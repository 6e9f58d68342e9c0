"""Names of the fields that records of calls keep their bodies, ids and addresses in."""

from __future__ import annotations

from typing import Final

REQUESTS: Final = ("request", "req", "request_body", "requestBody", "raw_request", "body", "input", "payload",
                   "params", "modelInput", "kwargs", "data", "content")  # fmt: skip
"""Fields that a pair may hold its request in."""
RESPONSES: Final = ("response", "res", "resp", "response_body", "responseBody", "raw_response", "output",
                    "reply", "answer", "completion", "result", "modelOutput")  # fmt: skip
"""Fields that it may hold its answer in."""
INNER: Final = ("body", "json", "payload", "data", "parsed_body", "content", "message")
"""Fields of those that the body itself may be in."""
EITHER: Final = ("body", "payload", "data", "content")
"""Fields that a record of an answer alone may hold it in."""
URLS: Final = ("url", "path", "endpoint", "uri")
TIMES: Final = (
    "timestamp", "time", "ts", "created_at", "start_time", "started_at", "logged_at", "date",
    "processed_time",
)  # fmt: skip
STATUS: Final = ("status", "status_code", "statusCode", "response_status")
IDS: Final = ("custom_id", "customId", "recordId", "request_id", "requestId", "id", "call_id")
"""The first are a batch's: they tell which answer belongs to which request, whatever the order."""
OF_BATCHES: Final = ("custom_id", "customId", "recordId")
KEYED: Final = frozenset({"key", "request", "response", "status", "error", "metadata", "processed_time"})
"""All that a line of a Gemini batch has, whose id is its `key`."""
SESSIONS: Final = ("session_id", "sessionId", "session")
THREADS: Final = ("thread_id", "threadId", "thread")
TURNS: Final = ("turn_id", "turnId", "turn")
BESIDE: Final = frozenset(
    {
        *URLS, *TIMES, *STATUS, *IDS, *SESSIONS, *THREADS, *TURNS, *RESPONSES, *EITHER, "error", "method",
        "headers", "type", "kind", "direction", "event", "model", "provider", "duration", "duration_ms",
        "key", "latency", "latency_ms", "elapsed", "elapsed_ms", "seq", "index", "n", "usage",
    }
)  # fmt: skip
"""What a record of an answer alone has beside it; what has more is another document."""
