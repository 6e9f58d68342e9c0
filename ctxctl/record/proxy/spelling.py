"""Which path a provider has, where a program leaves its version out or gives it twice.

One program appends `/messages` to the address that it is given, another one `/v1/messages`; some that are
given `https://api.openai.com/v1` append `/v1/chat/completions` to it.  Behind a variable that many programs
read, one of the spellings would not be answered, so the relay takes both.  All else of a path stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_ENDPOINTS: Final = {
    "anthropic": re.compile(rb"/messages(?:/count_tokens|/batches(?:/.*)?)?"),
    "openai": re.compile(
        rb"/(?:chat/completions|responses(?:/.*)?|completions|embeddings|models(?:/[^:]*)?)"
    ),
    "gemini": re.compile(rb"/models/[^/]+:[A-Za-z]+"),
}
_VERSIONS: Final = {"anthropic": b"/v1", "openai": b"/v1", "gemini": b"/v1beta"}
_VERSION: Final = re.compile(rb"/v[0-9]+(?:alpha|beta)?[0-9]*\Z")

Bases = Mapping[str, bytes]
"""Of the providers behind one server, the path of each one's address: `{"openai": b"/v1"}`."""


def spelled(target: bytes, bases: Bases) -> bytes:
    """The request's target as the provider has it: a path, and perhaps a query.

    Only a known endpoint right behind the address is looked at:

    - `/messages` becomes `/v1/messages`, Gemini's `/models/M:generateContent` gets `/v1beta`: these APIs have
      a version in every path, whoever offers them.
    - A version that the address has and the path lacks, or has twice, is put right.  OpenAI's, without one in
      the address, stays without (`https://api.deepseek.com/chat/completions`): it may be meant so.
    """
    path, question, query = target.partition(b"?")
    for family, base in bases.items():
        made = _spelled(path, family, base.rstrip(b"/"))
        if made != path:
            return made + question + query
    return target


def _spelled(path: bytes, family: str, base: bytes) -> bytes:
    endpoint, version = _ENDPOINTS[family], _VERSIONS[family]
    own = _VERSION.search(base)
    root, version = (base[: own.start()], own[0]) if own is not None else (base, version)
    if not path.startswith(root):
        return path
    rest = path[len(root) :]
    if rest.startswith(version * 2 + b"/") and endpoint.fullmatch(rest[2 * len(version) :]):
        return root + rest[len(version) :]
    if (own is not None or family != "openai") and endpoint.fullmatch(rest):
        return root + version + rest
    return path
