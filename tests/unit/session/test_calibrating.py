"""A calibration from a trace to the screen: fitted, kept, named, and beside the counts."""

from __future__ import annotations

import json
import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ctxctl.cli.main import run
from ctxctl.errors import UnreadableError, UsageError
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.session.calibration import chosen_calibration, sessions_of
from ctxctl.tokens.calibrate import store
from ctxctl.tokens.calibrate.expect import model_weights
from ctxctl.tokens.calibrate.shipped import over_shipped, shipped_calibration
from tests.oracle.build import Event, assembly, at, event, inject, item, lines

ROOT = Path(__file__).resolve().parents[3]
Out = pytest.CaptureFixture[str]
MODEL = "claude-imagined-9"
SLOPE, PER_ITEM, BEYOND = 1.25, 10, 20_000
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa"
SECRET = "quokka"


def usage(tokens: int | None, model: str = MODEL, **more: Any) -> Event:
    return event("ctxctl.usage.reported", {"model": model, "input_tokens": tokens, **more})


def session(seed: int = 0, steps: int = 30, *, model: str = MODEL, silent: tuple[int, ...] = ()) -> bytes:
    """A thread that gets one result a step; its bills are what `SLOPE` and the others say."""
    made, names, billed = [], [], float(BEYOND)
    for n in range(1, steps + 1):
        words = WORDS.split()
        text = " ".join(words[(seed + n * k) % 10] for k in range(20 + 7 * ((n * 13 + seed) % 11)))
        names.append(f"r{seed}-{n}")
        made += at(
            "1", str(n), item(names[-1], f"{SECRET} {text}", kind="tool_result"),
            assembly(f"w{n}", list(names)), inject(f"w{n}"),
        )  # fmt: skip
        billed += SLOPE * _tokens(f"{SECRET} {text}") + PER_ITEM
        if n not in silent:
            made += at("1", str(n), usage(round(billed), model))
    return lines([{**one, "session_id": f"s{seed}"} for one in made])


def _tokens(text: str) -> int:
    from ctxctl.tokens.counter import Counter

    return Counter("o200k_base").count(text)[0]


@pytest.fixture
def traces(tmp_path: Path) -> list[str]:
    """Three sessions of one model."""
    paths = [tmp_path / f"{seed}.jsonl" for seed in (1, 2, 3)]
    for seed, path in enumerate(paths, 1):
        path.write_bytes(session(seed))
    return [str(path) for path in paths]


def steps(path: str, **more: Any) -> list[Step]:
    with Inspector.open(path, **more) as inspector:
        return [one for one in inspector.replay() if isinstance(one, Step)]


def expected(step: Step) -> int | None:
    found: int | None = step.stages["evidence"].facts.get("expected_input")
    return found


def test_it_is_fitted_told_kept_and_used(traces: list[str], capsys: Out) -> None:
    assert run(["calibrate", *traces[:2], "--save"]) == 0
    out, err = capsys.readouterr()
    assert "1.25" in out
    assert "error on steps that were not fitted" in out
    saved = store.saved()
    assert saved is not None
    assert f"digest {saved.digest}" in out
    assert f"saved {saved.digest}" in err
    (fit,) = saved.fits
    assert fit.model == MODEL
    assert fit.weights[2] == pytest.approx(SLOPE, abs=0.01)
    assert fit.weights[8] == pytest.approx(PER_ITEM, abs=1.5)
    assert fit.beyond.p50 == pytest.approx(BEYOND, abs=40)

    assert run(["replay", traces[2], "--plain", "--steps"]) == 0
    out = capsys.readouterr().out
    told = " ".join(out.split())
    assert f"(calibration {over_shipped(saved).digest[:8]}, saved); the next size is off by" in told
    assert "(calibrated:o200k_base," in told
    assert run(["calibrate"]) == 0
    out = capsys.readouterr().out
    for digest in (saved.digest, shipped_calibration().digest, over_shipped(saved).digest):
        assert digest in out


def test_without_one_counts_stay_as_they_are(traces: list[str], capsys: Out) -> None:
    assert run(["replay", traces[2], "--json", "--calibration", "none"]) == 0
    before = capsys.readouterr().out
    run(["calibrate", *traces[:2], "--save"])
    capsys.readouterr()
    assert run(["replay", traces[2], "--json"]) == 0
    after = capsys.readouterr().out
    assert run(["replay", traces[2], "--json", "--calibration", "none"]) == 0
    assert capsys.readouterr().out == before
    assert run(["replay", traces[2], "--json"]) == 0
    assert capsys.readouterr().out == after
    plain, told = ([json.loads(line) for line in text.splitlines()] for text in (before, after))
    saved = store.saved()
    assert saved is not None
    assert plain[0]["calibration"] is None
    assert told[0]["calibration"]["digest"] == over_shipped(saved).digest
    for one, other in zip(plain, told, strict=True):
        if one["type"] != "step":
            continue
        assert one["window"]["recorded"] == one["window"]["counted"] == other["window"]["counted"]
        assert one["window"]["used"] == other["window"]["used"] == one["usage"]["reported_input"]
        assert other["window"]["recorded"] > other["window"]["counted"]
        assert one["counts"] == other["counts"]


def test_each_step_says_what_was_expected(traces: list[str]) -> None:
    run(["calibrate", *traces[:2], "--save"])
    found = steps(traces[2], calibration="saved")
    assert expected(found[0]) is None
    assert found[0].window.unrecorded == pytest.approx(BEYOND, abs=40)
    for step in found:
        assert step.usage is not None
        assert step.window.used == step.usage.reported_input
        assert step.window.by_method.keys() == {"calibrated:o200k_base"}
    for step in found[1:]:
        assert expected(step) == pytest.approx(step.window.used, abs=12)


def test_a_step_without_a_bill_has_its_expected_size(tmp_path: Path, traces: list[str]) -> None:
    run(["calibrate", *traces, "--save"])
    path = tmp_path / "silent.jsonl"
    path.write_bytes(session(4, 20, silent=(10, 11, 12)))
    whole = tmp_path / "whole.jsonl"
    whole.write_bytes(session(4, 20))
    found, billed = steps(str(path), calibration="saved"), steps(str(whole))
    for n in (9, 10, 11):
        window = found[n].window
        assert window.used_method == "expected"
        assert window.used == pytest.approx(billed[n].window.used, abs=30)
        assert window.used_error is not None
        assert window.used == window.recorded + (window.unrecorded or 0)
    assert found[11].window.used_error > found[9].window.used_error  # type: ignore[operator]
    assert found[12].window.used_method == "reported"
    assert found[10].stages["evidence"].verdict == "not_recorded"
    assert steps(str(path))[10].window.used_method == "recorded", "without a calibration nothing is expected"


def test_any_step_says_the_same_however_it_is_reached(traces: list[str]) -> None:
    run(["calibrate", *traces[:2], "--save"])
    in_order = steps(traces[2], calibration="saved")
    with Inspector.open(traces[2], calibration="saved") as inspector:
        for n in (29, 3, 17, 16, 0):
            assert inspector.at(n).step.window == in_order[n].window
        inspector.outline()
        assert inspector.at(21).step.window == in_order[21].window


def test_a_session_can_be_fitted_to_itself(traces: list[str], capsys: Out) -> None:
    assert run(["show", f"{traces[0]}@1.5", "--calibration", "session", "--json"]) == 0
    head, frame = (json.loads(line) for line in capsys.readouterr().out.splitlines()[:2])
    assert head["calibration"]["from"] == "session"
    assert head["calibration"]["models"][0]["held_out"] == "stretches"
    assert frame["step"]["window"]["by_method"].keys() == {"calibrated:o200k_base"}
    assert store.saved() is None, "nothing is kept unless it is asked for"


def test_a_session_that_cannot_be_fitted_says_why(tmp_path: Path, capsys: Out) -> None:
    path = tmp_path / "short.jsonl"
    path.write_bytes(session(1, 5))
    assert run(["replay", str(path), "--plain", "--calibration", "session"]) == 0
    assert f"{MODEL} is not: too few steps" in " ".join(capsys.readouterr().out.split())
    assert run(["calibrate", str(path), "--save"]) == 2
    assert "nothing was saved" in capsys.readouterr().err
    assert store.saved() is None


def test_a_public_tokenizer_is_exact_and_never_fitted(tmp_path: Path, traces: list[str], capsys: Out) -> None:
    path = tmp_path / "open.jsonl"
    path.write_bytes(session(1, 30, model="gpt-4o"))
    assert run(["calibrate", str(path), "--json"]) == 0
    head, refused = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert head["models"] == []
    assert head["digest"] is None
    assert refused["why"].startswith("its tokenizer is public")
    run(["calibrate", *traces, "--save"])
    one = steps(str(path), calibration="saved")[4].window
    assert one.by_method.keys() == {"exact:o200k_base"}
    assert one.recorded == one.counted


def test_a_new_segment_is_expected_with_a_wider_error(tmp_path: Path, traces: list[str]) -> None:
    run(["calibrate", *traces, "--save"])
    path = tmp_path / "cut.jsonl"
    body = session(5, 12).splitlines(keepends=True)
    compaction = {
        "compaction_id": "c1", "strategy": "summarize", "created_at": "2026-01-02T03:04:05Z",
        "source_item_refs": [f"r5-{n}" for n in range(1, 9)], "schema_version": "0.1.1",
    }  # fmt: skip
    cut = {
        **event("context.compaction.completed", compaction), "event_id": "x1", "session_id": "s5",
        "turn_id": "1", "step_id": "13",
    }  # fmt: skip
    more = at("1", "13", assembly("w13", [f"r5-{n}" for n in range(9, 13)]), inject("w13"))
    tail = lines([{**one, "session_id": "s5", "event_id": f"y{n}"} for n, one in enumerate(more)])
    path.write_bytes(b"".join(body) + json.dumps(cut).encode() + b"\n" + tail)
    *_, before, last = steps(str(path), calibration="saved")
    assert "compacted" in last.flags
    assert last.window.used_method == "expected"
    assert last.window.used < before.window.used
    assert last.window.used_error is not None
    assert last.window.used_error > 0.05 * last.window.used


def test_what_a_session_costs_in_the_models_own_tokens(traces: list[str], capsys: Out) -> None:
    run(["calibrate", *traces[:2], "--save"])
    capsys.readouterr()
    assert run(["cost", traces[2], "--json"]) == 0
    *_, total = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    recorded, sent = (sum(total[f"{name}_tokens"].values()) for name in ("counted", "sent"))
    assert recorded < sent == sum(total["billed_tokens"].values())
    assert run(["cost", traces[2], "--calibration", "none", "--json"]) == 0
    *_, raw = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert sum(raw["counted_tokens"].values()) < recorded
    assert raw["sent"] == total["sent"]


def test_lines_of_json_are_what_the_schema_says(traces: list[str], tmp_path: Path, capsys: Out) -> None:
    schema = json.loads((ROOT / "docs" / "json.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    short = tmp_path / "short.jsonl"
    short.write_bytes(session(9, 4, model="gemini-imagined"))
    said = []
    for arguments in (
        ["calibrate", *traces, str(short), "--save"],
        ["calibrate"],
        ["replay", traces[0]],
        ["replay", str(short), "--calibration", "session"],
        ["cost", traces[0]],
    ):
        assert run([*arguments, "--json"]) == 0
        said += [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in said:
        validator.validate(line)
        known = schema["$defs"][line["type"]]["properties"]
        assert set(line) <= set(known), line["type"]
    assert {"calibration", "fit", "refused", "step", "step_cost", "cost"} <= {line["type"] for line in said}


def test_the_order_of_the_traces_is_all_one(traces: list[str], capsys: Out) -> None:
    said = []
    for order in (traces, traces[::-1]):
        assert run(["calibrate", *order, "--json"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


def test_a_directory_is_all_sessions_in_it(traces: list[str], capsys: Out) -> None:
    run(["calibrate", *traces, "--json"])
    named = capsys.readouterr().out
    assert run(["calibrate", str(Path(traces[0]).parent), "--json"]) == 0
    assert capsys.readouterr().out == named


def test_what_is_kept_is_private_and_holds_no_content(traces: list[str], tmp_path: Path) -> None:
    to = tmp_path / "mine.json"
    assert run(["calibrate", *traces, "--save", "--to", str(to)]) == 0
    saved = store.saved()
    assert saved is not None
    path = store.folder() / f"{saved.digest}.json"
    assert to.read_bytes() == path.read_bytes()
    for one in (to, path, store.folder() / store.CURRENT):
        assert stat.S_IMODE(os.stat(one).st_mode) == 0o600
        text = one.read_text()
        assert SECRET not in text
        assert "alpha" not in text
        assert "s1" not in text
    assert store.named(str(to)) == store.named(saved.digest[:6]) == saved


def test_what_was_saved_before_stays_beside_it(traces: list[str], tmp_path: Path) -> None:
    run(["calibrate", *traces, "--save"])
    before = store.saved()
    other = tmp_path / "other.jsonl"
    other.write_bytes(session(8, 40, model="gemini-imagined"))
    run(["calibrate", str(other), "--save"])
    after = store.saved()
    assert before is not None
    assert after is not None
    assert [fit.model for fit in after.fits] == [MODEL, "gemini-imagined"]
    assert after.fits[0] == before.fits[0]
    assert after.digest != before.digest
    assert store.named(before.digest) == before, "what a header named can still be had"


def test_a_calibration_that_was_changed_is_not_used(traces: list[str], capsys: Out) -> None:
    run(["calibrate", *traces, "--save"])
    saved = store.saved()
    assert saved is not None
    path = store.folder() / f"{saved.digest}.json"
    path.write_text(path.read_text().replace('"steps":', '"steps":1'))
    with pytest.raises(UnreadableError, match="it was changed"):
        store.saved()
    capsys.readouterr()
    assert run(["replay", traces[0], "--plain"]) == 3
    assert "--calibration none" in capsys.readouterr().err
    assert run(["replay", traces[0], "--plain", "--calibration", "none"]) == 0


def test_the_shipped_one_is_in_force_until_another_is_saved(traces: list[str], tmp_path: Path) -> None:
    for name in (None, "saved", "shipped", shipped_calibration().digest, shipped_calibration().digest[:5]):
        assert chosen_calibration(name).calibration == shipped_calibration(), name
    assert chosen_calibration(None).origin == chosen_calibration("shipped").origin == "shipped"
    assert chosen_calibration("none").calibration is None
    run(["calibrate", *traces, "--save"])
    own, found = store.saved(), chosen_calibration(None)
    assert own is not None
    assert found.calibration is not None
    assert (found.origin, found.own) == ("saved", (MODEL,))
    assert {fit.model for fit in found.calibration.fits} == {
        MODEL,
        *(fit.model for fit in shipped_calibration().fits),
    }
    assert found.calibration.common == shipped_calibration().common
    assert chosen_calibration("shipped").calibration == shipped_calibration()
    # By its own digest, by the one that headers name, and as a file.
    path = store.folder() / f"{own.digest}.json"
    for name in (own.digest[:6], found.calibration.digest, found.calibration.digest[:6], str(path)):
        assert chosen_calibration(name).calibration == found.calibration, name
        assert chosen_calibration(name).origin == "named"


def test_the_users_fit_takes_the_place_of_the_shipped_one_of_that_model(tmp_path: Path) -> None:
    paths = [tmp_path / f"{seed}.jsonl" for seed in (1, 2, 3)]
    for seed, path in enumerate(paths, 1):
        path.write_bytes(session(seed, model="claude-opus-4-5"))
    run(["calibrate", *map(str, paths), "--save"])
    found = chosen_calibration(None).calibration
    assert found is not None
    assert len(found.fits) == len(shipped_calibration().fits)
    fit = found.of("claude-opus-4-5", "o200k_base")
    assert fit is not None
    assert fit.weights[2] == pytest.approx(SLOPE, abs=0.01)


def test_what_an_earlier_version_saved_is_still_read() -> None:
    """It knows nothing of the error in tokens; what is measured on all captures stands in."""
    told = json.loads(shipped_calibration().encode())
    told.pop("common")
    for fit in told["fits"]:
        for name in ("spread", "blind_item", "blinds"):
            fit.pop(name)
        fit["model"] = fit["model"].replace("claude", "klaude")
    raw = json.dumps(told, separators=(",", ":")).encode()
    digest = sha256(raw).hexdigest()[:16]
    store.folder().mkdir(parents=True)
    (store.folder() / f"{digest}.json").write_bytes(raw + b"\n")
    (store.folder() / store.CURRENT).write_bytes(digest.encode())
    calibration = chosen_calibration(None).calibration
    how = model_weights(calibration, "klaude-opus-4-5", "o200k_base")
    common = shipped_calibration().common
    assert common is not None
    assert how.method == "calibrated:o200k_base"
    assert how.spread == common.estimate


@pytest.mark.parametrize("held", [b"", b"../../etc/passwd\n", b"\xff\xfe", b"zzzz"])
def test_a_damaged_pointer_is_said(held: bytes) -> None:
    store.folder().mkdir(parents=True)
    (store.folder() / store.CURRENT).write_bytes(held)
    with pytest.raises(UnreadableError, match="it holds no digest"):
        store.saved()


def test_what_is_no_calibration_is_said(traces: list[str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no calibration is called"):
        store.named("deadbeef")
    with pytest.raises(UnreadableError, match="none of ours"):
        store.named(traces[0])
    with pytest.raises(UnreadableError, match="no file"):
        store.named(str(tmp_path))


def test_at_most_five_of_those_saved_are_named(tmp_path: Path) -> None:
    store.folder().mkdir(parents=True)
    digests = [f"ab{number:014x}" for number in range(7)]
    for digest in digests:
        (store.folder() / f"{digest}.json").write_bytes(b"{}")
    few = ", ".join(digests[:5])
    with pytest.raises(UsageError, match="no calibration is called") as unknown:
        store.named("deadbeef")
    assert unknown.value.hint == f"saved are: {few}"
    with pytest.raises(UsageError, match="7 saved calibrations begin with ab00") as several:
        store.named("ab00")
    assert several.value.hint == f"there are: {few}"


def test_a_session_still_written_is_not_fitted_to(traces: list[str], capsys: Out) -> None:
    assert run(["watch", traces[0], "--plain", "--idle", "0", "--calibration", "session"]) == 2
    assert "needs a finished session" in capsys.readouterr().err


def test_watching_says_what_is_expected(traces: list[str], capsys: Out) -> None:
    run(["calibrate", *traces[:2], "--save"])
    capsys.readouterr()
    assert run(["watch", traces[2], "--json", "--idle", "0"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    made = [(one["window"]["used"], one["window"]["recorded"]) for one in told if one["type"] == "step"]
    found = steps(traces[2], calibration="saved")
    assert made == [(step.window.used, step.window.recorded) for step in found]


@pytest.mark.parametrize("bill", [0, -5, 1, 10**11])
def test_a_hostile_bill_is_counted_out(tmp_path: Path, traces: list[str], bill: int) -> None:
    path = tmp_path / "hostile.jsonl"
    body = session(6, 40).decode().splitlines()
    bills = [n for n, line in enumerate(body) if "usage.reported" in line]
    for n in bills[5::10]:
        told = json.loads(body[n])
        told["data"]["input_tokens"] = bill
        body[n] = json.dumps(told)
    path.write_text("\n".join(body) + "\n")
    ((lane,),) = sessions_of(steps(str(path)))
    # A bill below nothing is none to the reader of traces.
    assert lane.contradicted in (4, 0 if bill < 0 else 4)
    assert len(lane.points) == 36
    assert run(["calibrate", str(path), *traces, "--save"]) == 0
    saved = store.saved()
    assert saved is not None
    assert saved.fits[0].weights[2] == pytest.approx(SLOPE, abs=0.02)


def test_what_is_no_bill_of_a_known_model_is_not_fitted_to(tmp_path: Path) -> None:
    """A bill that was worked out from the session's total, and those of a model that nobody named."""
    path = tmp_path / "session.jsonl"
    body = [json.loads(line) for line in session(6, 40).splitlines()]
    bills = [one["data"] for one in body if "usage.reported" in one["event_type"]]
    for bill in bills[5::10]:
        bill["metadata"] = {"ctxctl": {"derived": True}}
    path.write_bytes(lines(body))
    ((lane,),) = sessions_of(steps(str(path)))
    assert (len(lane.points), lane.contradicted) == (36, 0)
    for bill in bills:
        bill["model"] = None
    path.write_bytes(lines(body))
    assert sessions_of(steps(str(path))) == []


def test_another_model_is_held_against_its_own_window_in_its_own_tokens(tmp_path: Path) -> None:
    """A bill larger than the supposed model's window is not its bill: it neither teaches nor contradicts."""
    path = tmp_path / "long.jsonl"
    sent = [item("a", "one two three"), assembly("w1", ["a"]), inject("w1")]
    body = at("1", "1", *sent, usage(154_000, "claude-opus-4-5"))
    path.write_bytes(lines([{**one, "session_id": "s"} for one in body]))
    with Inspector.open(path, model="gpt-4o", calibration="shipped") as inspector:
        (step,) = (one for one in inspector.replay() if isinstance(one, Step))
    window = step.window
    assert (window.limit, window.limit_source, window.used_method) == (128_000, "catalogue", "expected")
    assert 128_000 < window.used < 154_000, "fewer tokens of gpt-4o than of Claude"
    assert window.over == window.used - 128_000
    assert window.used_error is not None
    assert window.used == window.recorded + (window.unrecorded or 0)
    (own,) = steps(str(path), calibration="shipped")
    assert (own.window.used, own.window.used_method, own.window.limit) == (154_000, "reported", 200_000)


def test_only_what_the_model_sees_is_calibrated(traces: list[str], capsys: Out) -> None:
    assert run(["replay", traces[0], "--target", "tool", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["calibration"] is None
