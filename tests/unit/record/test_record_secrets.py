"""Ten thousand secrets of many kinds, everywhere where a program may pass one: none reaches the disk."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import string
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ctxctl import Recorder
from ctxctl.record.event_cleaner import EventCleaner
from ctxctl.record.options import Options
from ctxctl.record.redact import SecretRedactor
from ctxctl.trace.writer import TraceWriter

SECRETS = int(os.environ.get("CTXCTL_SECRETS", "10000"))
GRAM = 12
"""Characters in a row of a secret that must not be found anywhere."""
RUN = re.compile("[A-Za-z0-9]{12,}")
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
# In pieces, so that nothing here looks like a key to those who search for keys.
KINDS: dict[str, tuple[str, str, int]] = {
    "github": ("ghp_", ALNUM, 36),
    "github-fine": ("github_pat_", ALNUM, 60),
    "gitlab": ("glpat-", ALNUM, 20),
    "openai": ("sk-proj-", ALNUM, 48),
    "anthropic": ("sk-ant-api03-", ALNUM, 80),
    "openrouter": ("sk-or-v1-", HEX, 64),
    "aws-id": ("AKIA", UPPER, 16),
    "google": ("AIza", ALNUM, 35),
    "google-oauth": ("ya29.", ALNUM, 60),
    "slack": ("xoxb-", ALNUM, 40),
    "stripe": ("sk_live_", ALNUM, 24),
    "npm": ("npm_", ALNUM, 36),
    "pypi": ("pypi-", ALNUM, 100),
    "huggingface": ("hf_", ALNUM, 34),
    "groq": ("gsk_", ALNUM, 52),
    "xai": ("xai-", ALNUM, 80),
    "replicate": ("r8_", ALNUM, 37),
    "nvidia": ("nvapi-", ALNUM, 60),
    "sendgrid": ("SG.", ALNUM, 22),
    "shopify": ("shpat_", HEX, 32),
    "digitalocean": ("dop_v1_", HEX, 64),
    "linear": ("lin_api_", ALNUM, 40),
    "databricks": ("dapi", HEX, 32),
    "vault": ("hvs.", ALNUM, 90),
    "docker": ("dckr_pat_", ALNUM, 27),
    "postman": ("PMAK-", HEX, 24),
    "langsmith": ("lsv2_pt_", HEX, 36),
    "tavily": ("tvly-", ALNUM, 32),
    "jwt": ("eyJ", ALNUM, 30),
    "private-key": ("-----BEGIN PRIVATE KEY-----\n", ALNUM, 64),
}


def secret_of(kind: str, chance: random.Random) -> str:
    prefix, letters, size = KINDS[kind]
    made = prefix + "".join(chance.choices(letters, k=size - 1)) + "7"
    more = "".join(chance.choices(ALNUM, k=43))
    if kind == "sendgrid":
        made += f".{more}"
    elif kind == "jwt":
        made += f".eyJ{more}.{more[::-1]}"
    elif kind == "postman":
        made += "-" + "".join(chance.choices(HEX, k=34))
    elif kind == "private-key":
        made += "\n-----END PRIVATE KEY-----"
    return made


class Program:
    """A program that passes secrets on, in every way that a recorder offers."""

    def __init__(self, recorder: Recorder, chance: random.Random) -> None:
        self.recorder = recorder
        self.chance = chance
        self.ways: tuple[Callable[[str, int], Any], ...] = (
            self.text, self.headers, self.pairs, self.har, self.arguments, self.tool_result, self.body,
            self.stream, self.chunks, self.names, self.url, self.basic, self.typed, self.error, self.metadata,
        )  # fmt: skip

    def text(self, secret: str, n: int) -> None:
        self.recorder.item(f"t{n}", f"the key is {secret}\nand {json.dumps(secret)}, said twice", kind="file")

    def headers(self, secret: str, n: int) -> None:
        names = ("Authorization", "x-api-key", "Cookie", "X-Goog-Api-Key", "proxy-authorization")
        self.recorder.item(f"h{n}", {"headers": {names[n % 5]: f"Bearer {secret}", "accept": "text/html"}})

    def pairs(self, secret: str, n: int) -> None:
        self.recorder.item(f"p{n}", [["content-type", "x"], ["AUTHORIZATION", f"token {secret}"]])

    def har(self, secret: str, n: int) -> None:
        self.recorder.item(f"r{n}", {"request": {"headers": [{"name": "X-Api-Key", "value": secret}]}})

    def arguments(self, secret: str, n: int) -> None:
        call = {
            "id": "c",
            "function": {"name": "bash", "arguments": json.dumps({"command": f"X='{secret}' run"})},
        }
        self.recorder.request(model="m", messages=[{"role": "assistant", "tool_calls": [call]}])

    def tool_result(self, secret: str, n: int) -> None:
        inner = json.dumps({"stdout": json.dumps({"env": {"SERVICE_TOKEN": secret}})})
        with self.recorder.step(model="m") as step:
            step.request(messages=[{"role": "tool", "tool_call_id": "c", "content": inner}])

    def body(self, secret: str, n: int) -> None:
        with self.recorder.turn() as turn, turn.step() as step:
            step.request(
                {
                    "model": "claude",
                    "system": f"Use {secret}.",
                    "metadata": {"key": secret},
                    "messages": [{"role": "user", "content": [{"type": "text", "text": secret}]}],
                }
            )
            step.response(
                {"content": [{"type": "text", "text": f"ok, {secret}"}], "usage": {"input_tokens": 1}}
            )

    def stream(self, secret: str, n: int) -> None:
        sse = "".join(
            f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': piece}}]})}\n\n"
            for piece in self.split(f"It is {secret} !")
        )
        with self.recorder.step(model="m") as step:
            step.request(messages=[{"role": "user", "content": "?"}])
            with step.stream() as stream:
                for piece in self.split(sse):
                    stream.feed(piece)

    def chunks(self, secret: str, n: int) -> None:
        with self.recorder.step(model="m") as step:
            step.request(messages=[{"role": "user", "content": "?"}])
            with step.stream() as stream:
                for piece in self.split(secret):
                    stream.text(piece)

    def names(self, secret: str, n: int) -> None:
        name = secret.partition("\n")[0] if "\n" not in secret else f"n{n}"
        ref = self.recorder.item(f"file:{name}", f"content {n}", title=f"{name}.txt", source=f"/tmp/{name}")
        with self.recorder.turn(f"turn {name}", session=f"s {name}", thread=f"th {name}") as turn:
            turn.surface(items=[ref], sources=[name])
            turn.remove(f"file:{name}")

    def url(self, secret: str, n: int) -> None:
        value = quote(secret, safe="")
        self.recorder.item(
            f"u{n}", f"GET https://host/x?access_token={value}&y=1 and https://me:{value}@host/"
        )

    def basic(self, secret: str, n: int) -> None:
        value = base64.b64encode(f"user:{secret}".encode()).decode()
        self.recorder.item(
            f"b{n}", {"Authorization": f"Basic {value}", "log": f"authorization: Basic {value}"}
        )

    def typed(self, secret: str, n: int) -> None:
        turn = self.recorder
        turn.selection([f"a{n}"], omitted=[(f"b{n}", secret)], query=secret, rationale=f"as {secret}")
        turn.missing(f"Is it {secret}?")
        turn.compaction([f"a{n}"], summary=f"short {n}", loss_notes=[secret])

    def error(self, secret: str, n: int) -> None:
        with suppress(RuntimeError), self.recorder.step() as step:
            step.request(messages=[{"role": "user", "content": f"{n}"}])
            raise RuntimeError(f"401: key {secret} is not valid")

    def metadata(self, secret: str, n: int) -> None:
        self.recorder.item(f"m{n}", "x", metadata={"env": [{"deep": {"client_secret": secret}}, secret]})

    def split(self, text: str) -> list[str]:
        at = sorted(
            {0, len(text), *(self.chance.randrange(len(text)) for _ in range(self.chance.randrange(6)))}
        )
        return [text[a:b] for a, b in pairwise(at)]


def grams(texts: list[str]) -> set[str]:
    """All that is long enough of what was planted, in any of its spellings."""
    found: set[str] = set()
    for text in texts:
        for run in RUN.findall(text):
            found.update(run[at : at + GRAM] for at in range(len(run) - GRAM + 1))
    return found


def leaked(data: str, planted: set[str]) -> list[str]:
    """What is found of it in a file."""
    runs = set(RUN.findall(data))
    return [
        run[at : at + GRAM]
        for run in runs
        for at in range(len(run) - GRAM + 1)
        if run[at : at + GRAM] in planted
    ]


def innocent() -> set[str]:
    """Words of the formats themselves."""
    return grams(["BEGIN PRIVATE KEY", *(prefix for prefix, _, _ in KINDS.values())])


@pytest.mark.slow
def test_none_of_ten_thousand_secrets_reaches_the_disk(tmp_path: Path) -> None:
    chance = random.Random(7)
    kinds = list(KINDS)
    planted: list[str] = []
    path = tmp_path / "run.jsonl"
    with Recorder(path, source="program") as recorder:
        program = Program(recorder, chance)
        for number in range(SECRETS):
            secret = secret_of(kinds[number % len(kinds)], chance)
            planted.append(secret)
            program.ways[number // len(kinds) % len(program.ways)](secret, number)
    assert len(kinds) >= 25
    assert recorder.dropped == 0
    assert sum(recorder.redacted.values()) >= SECRETS * 0.9
    spelled = [
        form
        for secret in planted
        for form in (secret, base64.b64encode(f"user:{secret}".encode()).decode(), quote(secret, safe=""))
    ]
    written = "".join(file.read_text() for file in tmp_path.rglob("*.jsonl"))
    assert len(written) > SECRETS * 200
    assert leaked(written, grams(spelled) - innocent()) == []
    # The search would have found one.
    assert leaked(f"{written} {planted[77]}", grams(spelled) - innocent())


@pytest.mark.parametrize("kind", ["github", "anthropic", "jwt"])
def test_a_stream_that_is_cut_at_any_place_keeps_the_secret(tmp_path: Path, kind: str) -> None:
    secret = secret_of(kind, random.Random(3))
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:
        for at in range(1, len(secret)):
            with recorder.step(model="m") as step:
                step.request(messages=[{"role": "user", "content": "?"}])
                with step.stream() as stream:
                    stream.text(f"It is {secret[:at]}")
                    stream.text(f"{secret[at:]} indeed")
    assert leaked(path.read_text(), grams([secret]) - innocent()) == []
    assert sum(recorder.redacted.values()) >= len(secret) - 1


def test_events_of_others_are_looked_through_whole(tmp_path: Path) -> None:
    """What `--stdin` and `--watch` write: contents, ids, and what stands for a content elsewhere."""
    chance = random.Random(5)
    replaced: dict[str, int] = {}
    cleaner = EventCleaner(SecretRedactor(b"k" * 32), replaced)
    secrets = [secret_of(kind, chance) for kind in KINDS if kind != "private-key"]
    digests: list[str] = []
    path = tmp_path / "t.jsonl"
    with TraceWriter(path, source="x", clock=lambda: "2026-01-01T00:00:00Z") as writer:
        for number, secret in enumerate(secrets):
            text = f"a file with {secret} in it, long enough to be referred to by its digest, number {number}"
            digest = sha256(text.encode()).hexdigest()
            digests.append(digest)
            item = {"item_id": f"i{number}", "content": text, "version": digest[:16], "visibility": ["model"]}
            block = {"block_id": "b", "item_refs": [f"i{number}@{digest[:16]}"], "role": "user"}
            window = {"assembly_id": f"a{number}", "target": "model", "ordered_blocks": [block]}
            again = {"item_id": f"j{number}", "content_ref": f"sha256:{digest}", "visibility": ["model"]}
            for kind, record in (
                ("context.item.added", item), ("context.assembly.created", window),
                ("context.item.added", again),
            ):  # fmt: skip
                event = {"event_type": kind, "session_id": f"s {secret}", "thread_id": "t", "data": record}
                assert writer.write(cleaner.clean(event))
    written = path.read_text()
    assert leaked(written, grams([*secrets, *digests]) - innocent()) == []
    assert sum(replaced.values()) >= 3 * len(secrets)
    steps = [json.loads(line)["data"] for line in written.splitlines()]
    for item, window, again in zip(steps[::3], steps[1::3], steps[2::3], strict=True):
        now = sha256(item["content"].encode()).hexdigest()
        assert window["ordered_blocks"][0]["item_refs"] == [f"{item['item_id']}@{now[:16]}"]
        assert (item["version"], again["content_ref"]) == (now[:16], f"sha256:{now}")


def test_options_of_the_command_line_redact(tmp_path: Path) -> None:
    secret = secret_of("github", random.Random(1))
    recorder = Options(tmp_path / "a.jsonl").recorder()
    recorder.item("x", secret)
    recorder.close()
    assert secret not in (tmp_path / "a.jsonl").read_text()
    recorder = Options(tmp_path / "b.jsonl", redact=False).recorder()
    recorder.item("x", secret)
    recorder.close()
    assert secret in (tmp_path / "b.jsonl").read_text()
