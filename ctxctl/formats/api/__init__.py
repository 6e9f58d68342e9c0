"""Bodies of requests to models as they went over the wire, and of the answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from ctxctl.formats.api.fields import ASKS, REQUEST, RESPONSE
from ctxctl.formats.calls.about import BODIES, DIALECTS, LIMITS, TURNS
from ctxctl.formats.fidelity import About
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.kit.skim import Skim, skim
from ctxctl.formats.lines import Report
from ctxctl.trace.source import Source

_BARE: Final = 85
_WRAPPED: Final = 75
_PLAIN: Final = 60
_STREAM: Final = 84
_ANSWER: Final = 80
_HEADS: Final = 8
REQUESTS: Final = ("request", "req", "request_body", "requestBody", "raw_request", "body", "input", "payload")
"""Fields that a pair may hold its request in."""
RESPONSES: Final = ("response", "res", "resp", "response_body", "responseBody", "raw_response", "output",
                    "reply", "answer", "completion")  # fmt: skip
"""Fields that it may hold its answer in."""
INNER: Final = ("body", "json", "payload", "data", "parsed_body")
"""Fields of those that the body itself may be in."""
_ANSWERED: Final = tuple(
    f"{outer}.{inner}" for outer in RESPONSES for inner in ("", "body.", "json.", "data.")
)
_SSE: Final = re.compile(
    rb"\A(?:\xef\xbb\xbf)?(?:(?:event|id|retry)?+:[^\n]*+\n|\s)*+data:\s*+(\{[^\n]{0,4096})"
)
_EVENT: Final = re.compile(
    rb'"choices"\s*:|"type"\s*:\s*"(?:message_start|content_block_|ping"|response\.)|"candidates"\s*:'
)
_FRAME: Final = re.compile(rb'\s*+\{[^{}\n]{0,200}?"type"\s*+:\s*+"(?:response\.|message_start)')
"""How an answer begins that came over a socket: an event of its stream a line, with nothing in front."""
_WRITTEN: Final = re.compile(
    rb'"(?:request|req|request_body|requestBody|body|payload)"\s*+:\s*+"\s*+\{(?=([^\n]{0,2000}))'
)
"""Where a body was written down as a string, and how it goes on."""
_QUOTED: Final = re.compile(rb'\\"(?:messages|contents|input)\\"\s*+:')
_TRIED: Final = 40


class Api:
    """The importer for raw request and response bodies."""

    name: str = "api"
    title: str = "API request bodies"
    default_policy: str = "recorded"
    about: About = About(
        reads=(
            f"Bodies of requests to models ({DIALECTS}) and of the answers: one in a file, JSON lines of "
            "requests, of requests and answers in turn, or of pairs, an event stream, or a directory of such "
            "files that are paired by their names."
        ),
        places=("whatever a proxy, a client's debug log or a script wrote down",),
        turns=TURNS,
        claims=BODIES,
        limits=(*LIMITS, "an answer without its request shows what was answered and billed, and no window"),
        origin="the providers' API references",
    )

    def detect(self, head: bytes) -> int:
        """How sure the first bytes are a body, a pair of bodies, or an event stream."""
        stream = _SSE.match(head)
        if stream is not None:
            return _STREAM if _EVENT.search(stream.group(1)) else 0
        shown = skim(head)
        for prefix in ("", "[]."):
            score = _bare(shown, prefix)
            if score:
                return score
            answered = any(_is_answer(shown, f"{prefix}{path}") for path in _ANSWERED)
            if answered and _says_no_more(shown, prefix, frozenset(RESPONSES)):
                return _WRAPPED
            for outer in REQUESTS:
                for path in (f"{prefix}{outer}.", *(f"{prefix}{outer}.{inner}." for inner in INNER)):
                    if _is_request(shown, path):
                        return _WRAPPED
                    if _says_no_more(shown, path):
                        return _WRAPPED if answered else _PLAIN
        strings = islice(_WRITTEN.finditer(head), _TRIED)
        return _WRAPPED if any(_QUOTED.search(found[1]) for found in strings) else 0

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """The file's events."""
        from ctxctl.formats.api.reader import read

        return read(source, report)

    def detect_folder(self, folder: Folder) -> int:
        """How sure the directory's JSON files are bodies, by the first bytes of some of them."""
        names = [name for name in folder.files if is_body_file(name)]
        if not names:
            return 0
        step = max(1, len(names) // _HEADS)
        heads = [folder.head(name, 1 << 16) for name in names[::step][:_HEADS]]
        known = [self.detect(head) or (_STREAM if _FRAME.match(head) else 0) for head in heads]
        asked = any(score in (_BARE, _PLAIN, _WRAPPED) for score in known)
        return _BARE if asked and all(known) else 0

    def folder_events(self, folder: Folder, report: Report) -> Iterator[dict[str, Any]]:
        """The directory's events: its bodies in the order of their names, requests with their answers."""
        from ctxctl.formats.api.directory import read_folder

        return read_folder(folder, report)


def is_body_file(name: str) -> bool:
    """Whether a file of a directory may be a body, by its name's end."""
    base = name.rpartition("/")[2].lower()
    ends = (".json", ".jsonl", ".ndjson", ".sse", ".txt", ".body", ".json.gz", ".json.zst", ".event-stream",
            ".req", ".res", ".request", ".response")  # fmt: skip
    return not base.startswith(("readme", "license", ".")) and ("." not in base or base.endswith(ends))


def _fields(shown: Skim, prefix: str) -> set[str]:
    """Names of the fields of the object at a prefix."""
    found = set()
    for path in shown.paths:
        if path.startswith(prefix):
            name = path[len(prefix) :]
            if "." not in name and "[" not in name:
                found.add(name)
    return found


def _bare(shown: Skim, prefix: str) -> int:
    """How sure the objects at a prefix are bodies, requests or answers, and nothing else."""
    if not shown.paths:
        return 0
    fields = _fields(shown, prefix)
    if _is_request(shown, prefix) and len(fields - REQUEST - RESPONSE) <= 1:
        return _BARE
    if _says_no_more(shown, prefix):
        return _PLAIN
    return _ANSWER if _is_answer(shown, prefix) and not fields - RESPONSE - REQUEST else 0


def _says_no_more(shown: Skim, prefix: str, beside: frozenset[str] = frozenset()) -> bool:
    """Whether the objects at a prefix have a model, messages and nothing that no request has."""
    whole = shown.has(f"{prefix}model", f"{prefix}messages[].role")
    return whole and not _fields(shown, prefix) - REQUEST - beside


def _is_answer(shown: Skim, prefix: str) -> bool:
    return (
        shown.has(f"{prefix}content[].type", f"{prefix}usage.output_tokens", f"{prefix}role")
        or shown.has(f"{prefix}choices[].message.role", f"{prefix}object")
        or shown.has(f"{prefix}choices[].message.role", f"{prefix}usage.prompt_tokens")
        or shown.has(f"{prefix}output[].type", f"{prefix}object")
        or shown.has(f"{prefix}candidates[].content.parts[].text")
        or shown.has(f"{prefix}candidates[].content.parts[].functionCall.name")
    )


def _is_request(shown: Skim, prefix: str) -> bool:
    if shown.any(f"{prefix}contents[].parts[].text", f"{prefix}contents[].parts.text") or shown.any(
        f"{prefix}contents[].parts[].functionCall", f"{prefix}contents[].parts[].functionResponse",
        f"{prefix}contents[].parts[].inlineData",
    ):  # fmt: skip
        return True
    named = shown.any(f"{prefix}model", f"{prefix}anthropic_version")
    if shown.has(f"{prefix}messages[].role"):
        # A transcript has messages too; a request has at least something more to say about the answer.
        return named and bool(_fields(shown, prefix) & ASKS or shown.has(f"{prefix}tools"))
    asked = shown.any(f"{prefix}input[].role", f"{prefix}input[].type") or (
        shown.has(f"{prefix}input")
        and shown.any(*(f"{prefix}{name}" for name in ("instructions", "tools", "previous_response_id",
                                                       "max_output_tokens", "store", "reasoning")))
    )  # fmt: skip
    return named and asked and not shown.any(f"{prefix}encoding_format", f"{prefix}voice", f"{prefix}output")
