# ruff: noqa: E501 - patterns and samples stand in one piece
"""Secrets: none on disk, whatever they are in; ordinary text is left; the user's own rules; the key."""

from __future__ import annotations

import json
import os
import random
import string
from pathlib import Path
from typing import Any

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st
from record_help import SECRET, data, events, types

from ctxctl import Recorder
from ctxctl.errors import UsageError
from ctxctl.record import rules
from ctxctl.record.redact import FoundSecrets, SecretRedactor, stubs_in
from ctxctl.record.rules import RULES, Rule

HEX, DIGITS, UPPER = "0123456789abcdef", string.digits, string.ascii_uppercase + string.digits
WORDS = string.ascii_letters + string.digits
URL = WORDS + "-_"


def some(chance: random.Random, alphabet: str, count: int) -> str:
    """Random characters, digits among them, as in any key that was issued."""
    made = [chance.choice(alphabet) for _ in range(count)]
    made[chance.randrange(1, count - 1)] = chance.choice([c for c in alphabet if c.isdigit()])
    return "".join(made)


FORMATS: dict[str, Any] = {
    "anthropic": lambda r: "sk-ant-api03-" + some(r, URL, 93) + "AA",
    "openai project": lambda r: "sk-proj-" + some(r, URL, 74) + "T3BlbkFJ" + some(r, URL, 74),
    "openai": lambda r: "sk-" + some(r, WORDS, 20) + "T3BlbkFJ" + some(r, WORDS, 20),
    "openrouter": lambda r: "sk-or-v1-" + some(r, HEX, 64),
    "github": lambda r: r.choice(["ghp_", "gho_", "ghu_", "ghs_", "ghr_"]) + some(r, WORDS, 36),
    "github fine-grained": lambda r: "github_pat_" + some(r, WORDS, 22) + "_" + some(r, WORDS, 59),
    "gitlab": lambda r: "glpat-" + some(r, URL, 20),
    "aws id": lambda r: r.choice(["AKIA", "ASIA"]) + some(r, UPPER, 16),
    "google": lambda r: "AIza" + some(r, URL, 35),
    "google oauth": lambda r: "ya29." + some(r, URL, 60),
    "slack": lambda r: f"xoxb-{some(r, DIGITS, 12)}-{some(r, DIGITS, 12)}-{some(r, WORDS, 24)}",
    "slack hook": lambda r: f"https://hooks.slack.com/services/T{some(r, UPPER, 8)}/B{some(r, UPPER, 8)}/" + some(r, WORDS, 24),
    "stripe": lambda r: "sk_live_" + some(r, WORDS, 24),
    "npm": lambda r: "npm_" + some(r, WORDS, 36),
    "pypi": lambda r: "pypi-AgEIcHlwaS5vcmc" + some(r, URL, 80),
    "hugging face": lambda r: "hf_" + some(r, WORDS, 34),
    "groq": lambda r: "gsk_" + some(r, WORDS, 52),
    "sendgrid": lambda r: f"SG.{some(r, URL, 22)}.{some(r, URL, 43)}",
    "telegram": lambda r: some(r, DIGITS, 9) + ":AA" + some(r, URL, 33),
    "digitalocean": lambda r: "dop_v1_" + some(r, HEX, 64),
    "databricks": lambda r: "dapi" + some(r, HEX, 32),
    "vault": lambda r: "hvs." + some(r, URL, 90),
    "shopify": lambda r: "shpat_" + some(r, HEX, 32),
    "jwt": lambda r: f"eyJhbGciOiJIUzI1NiJ9.eyJ{some(r, URL, 40)}.{some(r, URL, 43)}",
    "private key": lambda r: f"-----BEGIN RSA PRIVATE KEY-----\n{some(r, WORDS + '+/', 64)}\n{some(r, WORDS, 64)}\n-----END RSA PRIVATE KEY-----",
    "grafana": lambda r: f"glsa_{some(r, WORDS, 32)}_{some(r, HEX, 8)}",
    "terraform": lambda r: f"{some(r, WORDS, 14)}.atlasv1.{some(r, URL, 67)}",
    "linear": lambda r: "lin_api_" + some(r, WORDS, 40),
}  # fmt: skip
NAMED: dict[str, Any] = {
    "env": lambda s: f"export DATABASE_PASSWORD={s}\n",
    "yaml": lambda s: f"db:\n  password: \"{s}\"\n",
    "json": lambda s: json.dumps({"client_secret": s}),
    "json in json": lambda s: json.dumps(json.dumps({"api_key": s})),
    "python": lambda s: f"API_KEY = '{s}'",
    "url": lambda s: f"postgres://admin:{s}@db.internal:5432/app",
    "query": lambda s: f"GET /v1?user=1&access_token={s}&x=2",
    "header": lambda s: f"Authorization: Bearer {s}",
    "curl": lambda s: f"curl -s -u admin:{s} https://example.com",
    "cookie": lambda s: f"Cookie: session={s}",
}  # fmt: skip
AROUND = (
    "{}",
    "my key is {} ok",
    "key={}\n",
    '{{"k": "{}"}}',
    "`{}`",
    "({})",
    "x\n{}\ny",
    "<b>{}</b>",
    "'{}',",
    "é {} \U0001f600",
)


def planted(chance: random.Random, index: int) -> tuple[str, str]:
    """A text and the secret in it."""
    if index % 3 == 0:
        secret = some(chance, WORDS, chance.randrange(12, 40))
        return list(NAMED.values())[index // 3 % len(NAMED)](secret), secret
    secret = list(FORMATS.values())[index % len(FORMATS)](chance)
    own = secret.rpartition("/")[2] if "://" in secret else secret.rpartition(".atlasv1.")[2]
    return chance.choice(AROUND).format(secret), own


def traces(secret: str, text: str) -> bool:
    """Whether a good part of a secret is left."""
    flat = secret.split("\n")
    return any(
        part[at : at + 16] in text
        for part in flat
        for at in range(0, max(1, len(part) - 15), 8)
        if "KEY" not in part
    )


def test_ten_thousand_planted_secrets_leave_no_trace() -> None:
    chance = random.Random(7)
    redactor = SecretRedactor(b"key" * 11)
    missed = []
    for index in range(10_000):
        text, secret = planted(chance, index)
        made = redactor.text(text, FoundSecrets())
        if traces(secret, made):
            missed.append(text)
    assert missed == []


def test_none_is_on_the_disk_wherever_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, chance, secrets = tmp_path / "run.jsonl", random.Random(1), []
    recorder = Recorder(path, session=f"s-{SECRET}", source=SECRET)
    for index in range(300):
        text, secret = planted(chance, index)
        secrets.append(secret)
        place = index % 8
        with recorder.turn(f"t{index}") as turn, turn.step(model=text if place == 7 else "m") as step:
            if place == 0:
                step.item(f"i{index}", text, title=text)
            elif place == 1:
                step.item(f"i{index}", {"deep": [{text: 1}, text]}, metadata={"note": text})
            elif place == 2:
                step.request(messages=[{"role": "user", "content": text}], metadata={"x": text})
            elif place == 3:
                step.request(
                    {
                        "model": "m",
                        "system": text,
                        "max_tokens": 5,
                        "messages": [
                            {
                                "role": "user",
                                "content": [{"type": "tool_result", "tool_use_id": "t", "content": text}],
                            }
                        ],
                    }
                )
            elif place == 4:
                stream = step.stream()
                for at in range(0, len(text), 5):
                    stream.text(text[at : at + 5])
                stream.close()
            elif place == 5:
                step.missing(text, reason=text)
                step.selection([text], query=text, omitted=[(text, text)])
            elif place == 6:
                step.failed(text)
                step.event("x.y", {"a": text}, metadata={"b": text})
                call: Any = step
                call.surface(object(), items=[text], nonsense=text)
            else:
                step.assembly([{"item_refs": ["x"], "wrapper": {"before": text}}])
                step.injection(native_id=text)
    recorder.close()
    text = path.read_text() + capsys.readouterr().err
    decoded = "".join(json.dumps(event, ensure_ascii=False) for event in events(path))
    left = [secret for secret in secrets if traces(secret, text) or traces(secret, decoded)]
    assert left == []
    assert SECRET not in text
    assert sum(recorder.redacted.values()) >= 300


ORDINARY = """
The token limit is 128000 and max_tokens: 4096; the password field is required. api_key: str = os.environ["OPENAI_API_KEY"]
def login(password: str, token: Optional[str] = None) -> Session: return Session(password=password, token=token)
secret = get_secret("name"); key = dictionary["key"]; tokens = tokenizer.encode(text); key: value; "token": "Hello",
git commit 3f786850e387550fdab836ed7e6dc881de23001b; uuid 550e8400-e29b-41d4-a716-446655440000; sha256:e3b0c44298fc1c149afbf4c8996fb924
see https://example.com/a?page=2&sort=name and http://user@host/path; cookie: yes; sk-learn, task-oriented, risk-assessment-of-long-names
{"type": "object", "properties": {"password": {"type": "string"}, "api_key": {"type": "string", "description": "the key"}}}
password = getpass.getpass(); password=${PASSWORD}; API_KEY=<your-key>; token: "xxxxxxxx"; secret: changeme; Authorization: Bearer <token>
basic authentication and bearer tokens are described below; Basic understanding; eyJust a word; SKILLS; AKIA; ghp_; input_tokens=12
<input type="password" name="password">  pass: bool = True; passed: 12345678; keyboard = "qwertyuiop"; monkey: banana; author: someone
"""


@pytest.mark.parametrize("line", ORDINARY.strip().splitlines())
def test_ordinary_text_is_left_as_it_is(line: str) -> None:
    assert SecretRedactor(b"k" * 32).text(line, FoundSecrets()) == line


def test_a_stub_keeps_kind_length_and_identity_and_is_no_secret_itself() -> None:
    one, two = SecretRedactor(b"1" * 32), SecretRedactor(b"2" * 32)
    made = one.text(f"a {SECRET} b {SECRET}", FoundSecrets())
    first, second = made[2:].split(" b ")
    assert made == f"a {first} b {first}"
    assert first.startswith("[redacted github-token, 40 chars, #")
    assert two.text(f"a {SECRET} b {SECRET}", FoundSecrets()) != made
    assert (
        one.text(f'password: "{first}" token={first}', FoundSecrets()) == f'password: "{first}" token={first}'
    )
    assert stubs_in(made.encode()).record() == {"secrets": 2, "bytes": 80, "kinds": {"github-token": 2}}
    assert second == first


@given(
    st.lists(
        st.one_of(
            st.text(max_size=30),
            st.sampled_from([SECRET, "password='", '"token": "', "sk-", "://", "@", "[redacted "]),
        ),
        max_size=12,
    )
)
@settings(max_examples=300)
def test_redacting_twice_changes_nothing(pieces: list[str]) -> None:
    redactor = SecretRedactor(b"k" * 32)
    once = redactor.text("".join(pieces), FoundSecrets())
    again = FoundSecrets()
    assert redactor.text(once, again) == once
    assert again.count == 0


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
def test_every_rule_is_linear_has_one_group_and_is_reached(rule: Rule) -> None:
    pattern = re2.compile(rule.pattern.encode())
    assert pattern.groups == 1
    assert rule.literals
    assert rule.kind.replace("-", "").isalnum()


def test_headers_are_never_stored_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    headers = {
        "Authorization": "plain",
        "X-API-Key": "words",
        "Cookie": ["a", "b"],
        "accept": "text/html",
        "x-mine": "own",
    }
    rules = tmp_path / "rules.toml"
    rules.write_text('names = ["X-Mine"]\n[[rule]]\nkind = "ticket"\npattern = "TICKET-[0-9]+"\n')
    with Recorder(path, redact=rules, strict=True) as recorder:
        recorder.item("h", {"headers": headers, "list": [["authorization", "plain"], ["accept", "x"]]})
        recorder.item("har", [{"name": "Set-Cookie", "value": "plain"}, {"name": "Accept", "value": "fine"}])
        recorder.item("t", "see TICKET-1234")
    found = {record["item_id"]: record["content"] for record in data(path, "context.item.added")}
    kept = found["h"]["headers"]
    assert kept.pop("accept") == "text/html"
    assert all("[redacted header" in json.dumps(value) for value in kept.values())
    assert found["h"]["list"][1] == ["accept", "x"]
    assert found["har"][1]["value"] == "fine"
    assert "plain" not in path.read_text()
    assert found["t"].startswith("see [redacted ticket, 11 chars, #")
    assert recorder.redacted == {"header": 7, "ticket": 1}


@pytest.mark.parametrize(
    "text",
    ["no toml [", "rule = 3", "[[rule]]\nkind = 'x'", "[[rule]]\nkind='x'\npattern='('", "[[rule]]\nkind='x'\npattern='(a)(b)'",
     "[[rule]]\nkind='x'\npattern='(?=a)'", "names = 'x'", "[[rule]]\nkind='x]'\npattern='a'", "rules = []", None],
)  # fmt: skip
def test_with_wrong_rules_nothing_is_written_at_all(
    tmp_path: Path, text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    path, rules = tmp_path / "run.jsonl", tmp_path / "rules.toml"
    if text is not None:
        rules.write_text(text)
    recorder = Recorder(path, redact=rules)
    recorder.item("x", "y")
    assert not path.exists()
    assert recorder.dropped == 2
    assert "not recording" in capsys.readouterr().err
    with pytest.raises(UsageError) as caught:
        Recorder(path, redact=rules, strict=True)
    assert caught.value.slug == "bad-redaction-rules"


def test_a_redaction_that_fails_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.jsonl"
    recorder = Recorder(path)
    recorder.item("before", "x")
    monkeypatch.setattr(SecretRedactor, "data", lambda *_: 1 / 0)
    recorder.item("with", f"a {SECRET}")
    monkeypatch.undo()
    recorder.item("after", "x")
    recorder.close()
    assert types(path) == ["item.added", "ctxctl.record.dropped", "item.added"]
    assert data(path, "ctxctl.record.dropped")[0]["reasons"] == {"ZeroDivisionError in a call": 1}


def test_it_is_off_only_where_that_is_said(tmp_path: Path) -> None:
    with Recorder(tmp_path / "off.jsonl", redact=False) as recorder:
        recorder.item("x", SECRET)
    assert SECRET in (tmp_path / "off.jsonl").read_text()
    for given_value in (None, 0, ""):
        call: Any = Recorder
        with call(tmp_path / "other.jsonl", redact=given_value) as recorder:
            recorder.item("x", SECRET)
        if (tmp_path / "other.jsonl").exists():
            assert SECRET not in (tmp_path / "other.jsonl").read_text()


def test_the_key_is_this_users_alone_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXCTL_STATE_DIR", str(tmp_path / "state"))
    key = rules.user_key()
    path = tmp_path / "state" / "redaction.key"
    assert (rules.user_key(), len(key), path.stat().st_mode & 0o777) == (key, 32, 0o600)
    assert sorted(os.listdir(path.parent)) == ["redaction.key"]
    path.chmod(0o644)
    assert rules.user_key() != key  # others may have read it
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(key)
    assert rules.user_key() != key
    monkeypatch.setenv("CTXCTL_STATE_DIR", "/proc/nowhere")
    assert len(rules.user_key()) == 32


def test_the_finder_gives_the_same_where_the_package_changed_inside() -> None:
    from ctxctl.linear import finder

    class Wrapped:
        def __init__(self, pattern: Any) -> None:
            self.search = pattern.search

    pattern = re2.compile(b"a+b")
    for text in (b"", b"xx", b"aab", b"x" * 100 + b"ab"):
        assert finder(pattern)(text) == finder(Wrapped(pattern))(text) == (b"ab" in text)
