"""A secret that was redacted and comes back is found; one that stays away is not.

The secrets are made at run time: none stands in a file.
"""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest
from lint_help import Made, found


@pytest.fixture
def secret() -> str:
    chance = random.Random(11)
    return "sk" + "-" + "".join(chance.choices(string.ascii_letters + string.digits, k=32))


def redacted(path: Path, secret: str) -> Made:
    """A session in which a secret is said, and then redacted."""
    made = (
        Made(path).turn(1).item("message", f"Use {secret} for the upload.", "user_message").sent(["message"])
    )
    made.turn(2).event(
        "context.redaction.applied", item_id="message", redaction_state="masked", redaction_method="pattern"
    )
    made.item("message", "Use [masked] for the upload.", "user_message", "updated", redaction_state="masked")
    return made.sent(["message"])


@pytest.mark.parametrize("way", ["summary", "item", "later version", "the very same record"])
def test_it_is_found_when_it_comes_back(tmp_path: Path, secret: str, way: str) -> None:
    made = redacted(tmp_path / "t.jsonl", secret).turn(3)
    if way == "summary":
        text = f"The user uploads with {secret}."
        made.event(
            "context.summary.created", item_id="summary", context_kind="thread_summary",
            content_mode="inline", content=text, visibility=["model"],
        ).event(
            "context.compaction.completed", compaction_id="c", scope="session", source_item_refs=["message"],
            summary_ref="summary", method="abstractive_summary", created_at="2026-05-04T08:00:00Z",
            coverage={"messages": 1},
        ).sent(["summary"])  # fmt: skip
    elif way == "item":
        made.item("note", f"key={secret}").sent(["message", "note"])
    elif way == "later version":
        made.item("message", f"Once more: {secret}", "user_message", "updated").sent(["message"])
    else:
        made.item("message", f"Use {secret} for the upload.", "user_message").sent(["message"])
    findings = found(made.save()).findings
    assert [f.code for f in findings] == ["CTX020"]
    assert findings[0].place.turn == 3
    assert findings[0].place.ordinal == 2
    assert findings[0].severity == "error"


def test_it_is_not_found_when_it_stays_away(tmp_path: Path, secret: str) -> None:
    made = redacted(tmp_path / "t.jsonl", secret).turn(3)
    made.item("summary", "The user uploads with a key.", "thread_summary").sent(["summary"])
    assert found(made.save()).findings == []


def test_no_finding_holds_the_secret(tmp_path: Path, secret: str) -> None:
    import msgspec

    made = (
        redacted(tmp_path / "t.jsonl", secret).turn(3).item("note", f"key={secret}").sent(["message", "note"])
    )
    findings = found(made.save(), "all").findings
    assert findings
    assert secret.encode() not in msgspec.json.encode(findings)


def test_a_text_that_the_trace_never_had_is_found_by_its_digest(tmp_path: Path, secret: str) -> None:
    from hashlib import sha256

    text = f"Use {secret} for the upload."
    ref = "sha256:" + sha256(text.encode()).hexdigest()
    made = Made(tmp_path / "t.jsonl").turn(1).event(
        "context.item.added", item_id="message", context_kind="user_message", content_mode="ref",
        content_ref=ref, visibility=["model"],
    ).sent(["message"])  # fmt: skip
    made.turn(2).event("context.redaction.applied", item_id="message", redaction_state="removed")
    made.sent([])
    made.turn(3).item("note", text).sent(["note"])
    assert [f.code for f in found(made.save()).findings] == ["CTX020"]
    other = Made(tmp_path / "u.jsonl")
    other.lines = [*made.lines]
    other.lines[-3] = other.lines[-3].replace(secret, "nothing")
    assert found(other.save()).findings == []
