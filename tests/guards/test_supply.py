"""What is installed is looked at: every lock against advisories, and every platform for wheels."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import audit, wheels

ROOT = Path(__file__).resolve().parents[2]
NAMES = [
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-site.txt",
    "scripts/requirements-audit.txt",
]


def test_every_lock_of_the_repository_is_audited() -> None:
    beside = [*ROOT.glob("tests/*/requirements-*.txt"), *ROOT.glob("tools/*/requirements-*.txt")]
    written = {str(p.relative_to(ROOT)) for p in beside} | {*NAMES}
    assert len(written) > 8
    assert set(audit.locks()) == written
    assert audit.locks()[0] == "requirements.txt"


def test_a_lock_is_found_wherever_it_is_and_environments_hold_none(tmp_path: Path) -> None:
    lock = "a==1 \\\n    --hash=sha256:00\n"
    for name in ("new/locked.txt", ".venv/lib/locked.txt", "build/locked.txt", "new/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a word" if "notes" in name else lock)
    assert audit.locks(tmp_path) == ["new/locked.txt"]


def one(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "version": "1", "vulns": [], **more}


SKIPPED = [{"name": "a", "skip_reason": "not found"}, {"name": "b", "skip_reason": "not found"}]
FAULTY = [one("a", vulns=[{"id": "X-1", "fix_versions": ["2"]}]), one("b")]


@pytest.mark.parametrize(
    ("lock", "found", "alone", "in_ci", "says"),
    [
        ("requirements.txt", [one("a"), one("b")], 0, 0, "nothing is known against 2 packages"),
        ("requirements.txt", FAULTY, 1, 1, "a 1: X-1 (mended in: 2)\n"),
        ("tests/x/requirements-y.txt", FAULTY, 0, 0, "only tests install"),
        ("requirements.txt", SKIPPED, 0, 1, "NOT LOOKED UP"),
        ("tests/x/requirements-y.txt", SKIPPED, 0, 1, "NOT LOOKED UP"),
        ("requirements.txt", [one("a"), SKIPPED[1]], 1, 1, "not looked up: b"),
    ],
)
def test_what_an_audit_finds_is_a_failure(
    capsys: pytest.CaptureFixture[str],
    lock: str,
    found: list[dict[str, Any]],
    alone: int,
    in_ci: int,
    says: str,
) -> None:
    assert audit.told(lock, {"dependencies": found}, needed=False) == alone
    assert audit.told(lock, {"dependencies": found}, needed=True) == in_ci
    assert says in capsys.readouterr().out


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_an_audit_that_could_not_be_made_fails_in_ci(tmp_path: Path, ci: str, code: int) -> None:
    tool = tmp_path / "pip-audit"
    tool.write_text(f"#!/bin/sh\necho '{json.dumps({'dependencies': SKIPPED})}'\n")
    tool.chmod(0o755)
    command = [
        sys.executable,
        str(ROOT / "scripts" / "audit.py"),
        str(tmp_path),
        str(tmp_path / "licences.md"),
    ]
    done = subprocess.run(command, env={**os.environ, "CI": ci}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("NOT LOOKED UP")) == (code, len(audit.locks())), done.stderr


def test_wheels_are_asked_for_on_every_platform_and_python_that_the_readme_names() -> None:
    said = (
        (ROOT / "README.md")
        .read_text(encoding="utf-8")
        .partition("## Where it runs")[2]
        .partition("\n## ")[0]
    )
    assert all(re.search(rf"\b{version}\b", said) for version in wheels.pythons())
    assert wheels.pythons()[0] == "3.11"
    spelt = {"linux": "Linux", "alpine": "Alpine", "macos": "macOS", "x86_64": "x86-64", "arm64": "arm64"}
    asked = {tuple(spelt[part] for part in name.split("-")) for name in wheels.PLATFORMS}
    assert asked == {(system, one) for system in ("Linux", "Alpine", "macOS") for one in ("x86-64", "arm64")}
    assert all(word in said for name in asked for word in name)


def test_the_whole_lock_is_asked_for_and_what_has_no_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[set[str], list[str]]] = []
    answers = iter(
        [
            "cause: Because orjson==3.13.0 has no usable wheels and you require orjson==3.13.0, we can …",
            "cause: Because msgspec==0.22.0 has no wheels with a matching platform tag (e.g., …",
            None,
        ]
    )

    def answer(lock: str, options: list[str]) -> str | None:
        asked.append((set(re.findall(r"(?m)^([a-z0-9-]+)==", lock)), options))
        return next(answers)

    monkeypatch.setattr(wheels, "asked_uv", answer)
    assert wheels.without_wheel("alpine-arm64", "3.12") == ["orjson", "msgspec"]
    locked = set(re.findall(r"(?m)^([a-z0-9-]+)==", (ROOT / "requirements.txt").read_text()))
    assert [names for names, _ in asked] == [
        locked - {"google-re2"},
        locked - {"google-re2", "orjson"},
        locked - {"google-re2", "orjson", "msgspec"},
    ]
    first = ["--python-platform", "aarch64-unknown-linux-musl", "--python-version", "3.12"]
    assert [options for _, options in asked] == [first, [*first, "--no-deps"], [*first, "--no-deps"]]


def test_an_answer_of_another_kind_is_no_wheel_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "asked_uv", lambda *_: "error: the index cannot be reached")
    with pytest.raises(SystemExit, match="uv gave no answer that is understood"):
        wheels.without_wheel("linux-arm64", "3.13")
