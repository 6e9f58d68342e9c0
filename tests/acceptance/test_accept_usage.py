"""Wrong usage: one line that says what is wrong and what there is, exit code 2, nothing on stdout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.runs import assert_error, ctxctl
from tests.acceptance.tracing import SOUND

USAGE = 2


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sound trace as a file."""
    path = tmp_path_factory.mktemp("usage") / "run.jsonl"
    path.write_bytes(SOUND)
    return path


ADDRESSES = {
    "a turn too far": ("RUN@4", "3"),
    "too far from the end": ("RUN@-4", "3"),
    "turn nought": ("RUN@0", "3"),
    "a step too far": ("RUN@2.9", "1"),
    "no thread of that name": ("RUN@explorer:1", "main"),
    "no session of that name": ("RUN@other/main:1", "s"),
    "nothing after the @": ("RUN@", ""),
    "a word": ("RUN@last", "TURN"),
    "half a step": ("RUN@1.", "TURN"),
    "a fraction of a step": ("RUN@1.2.3", "TURN"),
    "a number of many digits": ("RUN@" + "9" * 5000, ""),
}


@pytest.mark.parametrize("name", ADDRESSES)
def test_wrong_addresses(name: str, run: Path) -> None:
    address, says = ADDRESSES[name]
    assert_error(ctxctl("show", address.replace("RUN", str(run))), USAGE, says)


OPTIONS = {
    "encoding": ("replay RUN --encoding o300k", "o200k_base"),
    "policy": ("replay RUN --policy none", "recorded"),
    "target": ("replay RUN --target everyone", "evidence_export"),
    "format": ("replay RUN --read-as csv", "ctxctl formats"),
    "format of an import": ("import RUN --read-as csv", "ctxctl formats"),
    "stage": ("show RUN@1 --stage first", "assembly"),
    "turn too far": ("replay RUN --turn 9", "3"),
    "turn in words": ("replay RUN --turn two", "3"),
    "turn nought": ("replay RUN --turn 0", "3"),
    "thread": ("replay RUN --thread other", "main"),
    "thread of a frame": ("show RUN --thread other", "main"),
    "colour": ("replay RUN --color blue", "always"),
    "item": ("log RUN delta", "alpha"),
    "item in another thread": ("log RUN alpha --thread other", "main"),
    "second frame": ("diff RUN@1 @9", "3"),
    "frame before the first": ("diff RUN@1", "@"),
    "address and turn": ("show RUN@1 --turn 2", "--turn"),
    "unknown option": ("replay RUN --colour always", "--help"),
    "unknown command": ("replay-all RUN", "--help"),
    "no trace": ("validate", "--help"),
    "no item": ("log RUN", "no item is named"),
    "too many": ("replay RUN RUN", "--help"),
    "JSON and a trace on one stream": ("import RUN --json", "-o"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_wrong_names(name: str, run: Path) -> None:
    line, says = OPTIONS[name]
    done = ctxctl(*(word.replace("RUN", str(run)) for word in line.split()))
    assert_error(done, USAGE, says)


def test_no_command_at_all() -> None:
    done = ctxctl()
    assert done.code == USAGE
    assert done.stdout == b""
    assert "replay" in done.err


def test_an_unknown_model_is_no_error_and_says_what_was_assumed(run: Path) -> None:
    done = ctxctl("replay", "--json", "--strict", run, "--model", "no-such-model-9")
    assert done.code == 0
    first = done.lines[0]
    assert first["encoding"] == "o200k_base"
    assert first["encoding_known"] is False
    assert "no-such-model-9" in first["assumed"]
    assert all(list(s["window"]["by_method"]) == ["estimate:o200k_base"] for s in done.of_type("step"))
    assert "no-such-model-9" in ctxctl("replay", "--plain", run, "--model", "no-such-model-9").out


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"CTXCTL_STRICT": "maybe"}, "strict"),
        ({"CTXCTL_TARGET": "everyone"}, "everyone"),
        ({"CTXCTL_CONFIG": "/no/such/settings.toml"}, "/no/such/settings.toml"),
    ],
)
def test_wrong_settings_in_the_environment(env: dict[str, str | None], says: str, run: Path) -> None:
    assert_error(ctxctl("replay", run, env=env), USAGE, says)


@pytest.mark.parametrize(
    "text", ["target = ", "tarqet = 'model'", "problems = -1", "\x00", "a = " + "[" * 3000]
)
def test_wrong_settings_in_a_file(text: str, run: Path, tmp_path: Path) -> None:
    (tmp_path / "ctxctl.toml").write_text(text, encoding="utf-8")
    done = ctxctl("replay", run, cwd=tmp_path, env={"CTXCTL_CONFIG": None})
    assert_error(done, USAGE, "ctxctl.toml")


def test_the_last_of_defaults_file_environment_and_flags_wins(run: Path, tmp_path: Path) -> None:
    (tmp_path / "ctxctl.toml").write_text("target = 'tool'\nencoding = 'cl100k_base'\n", encoding="utf-8")
    free: dict[str, str | None] = {"CTXCTL_CONFIG": None}
    by_file = ctxctl("replay", "--json", run, cwd=tmp_path, env=free).lines[0]
    assert (by_file["target"], by_file["encoding"]) == ("tool", "cl100k_base")
    by_env = ctxctl("replay", "--json", run, cwd=tmp_path, env={**free, "CTXCTL_TARGET": "user"}).lines[0]
    assert (by_env["target"], by_env["encoding"]) == ("user", "cl100k_base")
    given = ctxctl(
        "replay", "--json", run, "--target", "model", cwd=tmp_path, env={**free, "CTXCTL_TARGET": "user"}
    )
    assert given.lines[0]["target"] == "model"
