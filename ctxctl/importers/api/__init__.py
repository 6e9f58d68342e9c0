"""Bodies of requests to models as they went over the wire, and of the answers."""

from __future__ import annotations

from typing import Final

from ctxctl.importers.api import detection
from ctxctl.importers.api.detection import RESPONSES
from ctxctl.importers.shared_claims import BODY_CLAIMS, BODY_DIALECTS, BODY_LIMITS, BODY_TURNS
from ctxctl.ingest.about import About, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.outline import OUTLINED, outline

_HEADS: Final = 8
_HEAD: Final = 1 << 16


ABOUT: Final = About(
    reads=(
        f"Bodies of requests to models ({BODY_DIALECTS}) and of the answers: one in a file, JSON lines of "
        "requests, of requests and answers in turn or by id, or of pairs, an event stream, or a directory"
        " of such files that are paired by their names.  Batches of OpenAI, Anthropic, Gemini and "
        "Bedrock: what was sent, what came back, or both in one file or directory, paired by their ids.  "
        "LiteLLM's log of each call (`StandardLoggingPayload`).  "
        "Calls of google-genai as its callers write them (`contents` and `config`).  Bodies may be JSON "
        "in a string, base64, compressed, or in an envelope (`content`, `data`, `body_segments`)."
    ),
    places=(
        "whatever a proxy, a client's debug log or a script wrote down",
        "the files that a batch is made of and that it gives back",
    ),
    turns=BODY_TURNS,
    claims={
        **BODY_CLAIMS,
        # The model that an answer names is the one that answered, and not what was asked for.
        "model": native(beside=(*RESPONSES, "message", "model", "modelVersion", "model_version")),
    },
    limits=(
        *BODY_LIMITS,
        "an answer without its request shows what was answered and billed, and no window",
        "a request that waits for its answer behind more than 64 MiB of others is read without it",
    ),
    origin="the providers' API references",
)


def detect(head: bytes) -> int:
    """How sure the first bytes are a body, a pair of bodies, or an event stream."""
    return detection.body_score(head)


def detect_folder(folder: Folder) -> int:
    """How sure the directory's JSON files are bodies, by the first bytes of some of them."""
    names = [name for name in folder.files if is_body_file(name)]
    if not names:
        return 0
    step = max(1, len(names) // _HEADS)
    asked = False
    for name in names[::step][:_HEADS]:
        score = _told(folder, name)
        if not score:
            return 0
        asked = asked or score in (detection.BARE, detection.PLAIN, detection.WRAPPED)
    return detection.BARE if asked else 0


def _told(folder: Folder, name: str) -> int:
    head = folder.head(name, _HEAD)
    score = detect(head) or detection.frame_score(head)
    if score or len(head) < _HEAD:
        return score
    return detect(outline(folder.head(name, OUTLINED)))


def is_body_file(name: str) -> bool:
    """Whether a file of a directory may be a body, by its name's end."""
    base = name.rpartition("/")[2].lower()
    ends = (".json", ".jsonl", ".ndjson", ".sse", ".txt", ".body", ".json.gz", ".json.zst", ".event-stream",
            ".req", ".res", ".request", ".response")  # fmt: skip
    return not base.startswith(("readme", "license", ".")) and ("." not in base or base.endswith(ends))


FORMAT: Final = Format(
    name="api",
    title="API request bodies",
    detect=detect,
    reader="ctxctl.importers.api.reader:read",
    about=ABOUT,
    detect_folder=detect_folder,
    folder_reader="ctxctl.importers.api.reader:read_folder",
)
