"""Cassettes: HTTP interactions that tests recorded, in YAML or JSON."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.importers.shared_claims import BODY_CLAIMS, BODY_LIMITS, BODY_TURNS
from ctxctl.ingest.about import About, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import text_of_head

_YAML: Final = re.compile(
    rb"^(?:http_)?interactions[ ]*:[ ]*(?:#.*)?\r?\n(?:[ ]*+(?:#[^\n]*+|\r?+)\n)*+[ ]*+-[ ]*(?:\r?\n[ ]+)?"
    rb"(?:request|response|id|recorded_at)[ ]*:",
    re.M,
)
_PHP: Final = re.compile(
    rb"\A(?:---[^\n]*\n)?-[ ]*\r?\n?[ ]+request[ ]*:[ ]*\r?\n[ ]+(?:method|url|headers)[ ]*:"
)
_JSON: Final = re.compile(
    rb'\A\{\s*(?:"(?:version|recorded_with|replay_id|replayId)"\s*:\s*+[^,{\[]++,\s*+)?"(?:http_)?interactions"\s*:\s*\['
)
_ROOT: Final = re.compile(rb'\A\[\s*\{\s*"(?:request|scope)"\s*:')
_SURE: Final = 94
_LIKELY: Final = 90


ABOUT: Final = About(
    reads=(
        "Cassettes of vcrpy (and pytest-recording), Ruby VCR, PHP-VCR, go-vcr, Betamax and nock: bodies "
        "parsed, as text, base64 or compressed, under `body` or `content`, streamed answers included; "
        "replay files of google-genai (`body_segments`).  YAML needs the extra `yaml`."
    ),
    places=(
        "tests/cassettes/*.yaml",
        "spec/vcr_cassettes/*.yml",
        "tests/fixtures of a library",
        "$GOOGLE_GENAI_REPLAYS_DIRECTORY/MODULE/TEST/{mldev,vertex}.json",
    ),
    turns=BODY_TURNS,
    claims={**BODY_CLAIMS, "times": native("where the recorder notes them; vcrpy does not")},
    limits=(*BODY_LIMITS, "brotli bodies are not decompressed"),
    origin="vcrpy 1 to 8, vcr 2 to 6 (Ruby), php-vcr, go-vcr 2 to 4, betamax, nock, google-genai 3.4",
)


def detect(head: bytes) -> int:
    """How sure the head looks like a cassette's."""
    start = text_of_head(head)
    if start[:1] == b"{":
        return _SURE if _JSON.match(start) and b'"request"' in start else 0
    if start[:1] == b"[":
        scoped = _ROOT.match(start) is not None
        return _LIKELY if scoped and (b'"http_version"' in start or b'"scope"' in start[:200]) else 0
    if _PHP.match(start):
        return _LIKELY
    return _SURE if _YAML.search(start) and b"request" in start else 0


FORMAT: Final = Format(
    name="vcr",
    title="VCR cassette",
    detect=detect,
    reader="ctxctl.importers.vcr.reader:read",
    about=ABOUT,
)
