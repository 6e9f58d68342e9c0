# ruff: noqa: E501 - a case a line
"""Secrets that a name tells, however they are spelled, quoted, coloured, packed or nested; what is none is left."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from typing import Any

import orjson
import pytest

from ctxctl.record.redact import FoundSecrets, SecretRedactor

REDACTOR = SecretRedactor(b"k" * 32)
KEY = "ghp_a8Kd93jfLQ0dkf73HDs9dkf8sDfj29Dksl3f"
VALUE = "hunter2Xk9pQ"
LONG = "aB3" * 400


def text(given: str) -> str:
    return REDACTOR.text(given, FoundSecrets())


def structure(given: Any) -> str:
    return json.dumps(REDACTOR.value(given, orjson.dumps(given), FoundSecrets()))


@pytest.mark.parametrize(
    "before",
    [
        "\x1b[32m", "\x1b[01;31m\x1b[K", "\\u001b[32m", "\\x1b[32m", "\\033[32m", "\\u201c", "3\\u2192", "\\f", "\\b",
    ],
)  # fmt: skip
@pytest.mark.parametrize("secret", [KEY, f"DB_PASSWORD={VALUE}"])
def test_behind_colours_and_escapes(before: str, secret: str) -> None:
    assert secret[-12:] not in text(f"said {before}{secret}\x1b[0m\n")


def test_with_colours_inside() -> None:
    coloured = f"{KEY[:7]}\x1b[01;31m\x1b[K{KEY[7:12]}\x1b[m\x1b[K{KEY[12:]}"
    made = text(f"x: {coloured}\n")
    assert KEY[12:] not in made
    assert KEY[4:7] not in made


@pytest.mark.parametrize(
    "form",
    [
        '{"access_token": "%s"}', "export MY_API_TOKEN=%s\n", "token = '%s'", "token: %s\n", "X-Api-Key: %s\r\n",
        "postgres://u:%s@h/d", '{"password":"%s"}', "password: %s\n", '{"client_secret": "%s"',
    ],
)  # fmt: skip
def test_of_any_length(form: str) -> None:
    made = text(form % LONG)
    assert "aB3aB3" not in made
    assert text(made) == made


@pytest.mark.parametrize(
    "value",
    [
        "$tr0ngP@ss!9", "%Xk9pQ22", "Password123!Zq", "tommy-8Zq2Lw", "k9::ZpQ2", "S3cure1234567!", "xxxxA9q2",
        "replaced9Q!", "Example9!Q", "my-dog-Rex99!", "{{Aq99", "ab()9Q", "correct horse 9 battery",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["password", "DB_PASSWORD", "smtpPassword"])
def test_of_any_shape(name: str, value: str) -> None:
    assert value not in structure({"x": {name: value}})
    assert value not in text(json.dumps({"x": {name: value}}))


@pytest.mark.parametrize(
    "given",
    [
        f'{{"user":"u","password":"{VALUE}',
        f'{{"client_secret": "{VALUE}... [output truncated]',
        json.dumps({"o": f"password:\t{VALUE}\n"}),
        f"Use **Password:** {VALUE}\n",
        f"mysql --password {VALUE} db",
        f"- name: DB_PASSWORD\n  value: {VALUE}\n",
        f"<password>{VALUE}</password>",
        f"ENV DB_PASSWORD {VALUE}\n",
        f"> Authorization: {VALUE}\n",
        f"curl -H 'Authorization: {VALUE}' https://h",
        f"Authorization: SSWS {VALUE}",
        f'Authorization: Token token="{VALUE}"',
        f'Authorization: Digest username="u", response="{"9f8a" * 8}{VALUE.lower()}"'.replace("Xk9pQ", "xk9pq"),
        f'Cookie: theme="dark"; session={VALUE}',
        f"Cookie: foo; session={VALUE}",
        f"postgres://user@tenant:{VALUE}@host/d",
        f"postgres:\\/\\/u:{VALUE}@h\\/d",
        f'{{"password": "a\\"{VALUE}"}}',
    ],
)  # fmt: skip
def test_however_it_is_written(given: str) -> None:
    assert VALUE.lower() not in text(given).lower()


@pytest.mark.parametrize(
    "given",
    [
        {"env": {"JWT_SECRET": VALUE, "PATH": "/bin"}}, {"GH_TOKEN": VALUE}, {"MYSQL_PWD": VALUE}, {"pass": VALUE},
        {"password1": VALUE}, {"passwords": [VALUE]}, {"password": {"value": VALUE}}, {"password_confirmation": VALUE},
        {"Name": "DB_PASSWORD", "Value": VALUE}, {"name": "Authorization", "value": [VALUE]}, ["DB_PASSWORD", VALUE],
        {"key": "http.request.header.authorization", "value": {"stringValue": VALUE}},
        {"http.request.header.authorization": [VALUE]}, {"cmd": ["mysql", "--password", VALUE, "db"]},
        {"Authorization": {"type": "x", "value": VALUE}}, {"apiKeys": [VALUE]},
    ],
)  # fmt: skip
def test_in_structures(given: Any) -> None:
    assert VALUE not in structure(given)
    assert VALUE not in structure({"a": 1, "b": [given]})


def test_in_a_first_reading_of_escapes_though_a_second_one_reads_more() -> None:
    assert "Z9QGX3F85ASrRZc8" not in text(
        "https%3A%2F%2Fh%2F%3Fx%3Dexport%20DB_PASSWORD%3D2FZ9QGX3F85ASrRZc8%0A"
    )


def test_what_stands_beside_a_secret_in_a_list_is_looked_through_too() -> None:
    made = structure({"passwords": [VALUE, {"note": f"use {KEY}"}, f"{KEY} {KEY}", 7]})
    assert VALUE not in made
    assert KEY not in made
    assert made.endswith(", 7]}")


def test_numbers() -> None:
    assert "48151623" not in structure({"password": 48151623})
    left = {"pass": 12, "fail": 3, "max_tokens": 4096, "token": 5, "password": None, "passwords": 0}
    assert structure(left) == json.dumps(left)


@pytest.mark.parametrize(
    "packed",
    [
        ("é " + KEY).encode().hex(),
        "\\x" + KEY.encode().hex(),
        base64.b64encode(gzip.compress(b"one, nothing\n") + gzip.compress(KEY.encode())).decode(),
        base64.b64encode(gzip.compress(b"nothing") + b"\n" + KEY.encode()).decode(),
        base64.b64encode(gzip.compress(gzip.compress(KEY.encode()))).decode(),
        base64.b64encode(gzip.compress(KEY.encode())[:-8] + bytes(8)).decode(),
        base64.b64encode(zlib.compress(KEY.encode())[:-4] + bytes(4)).decode(),
    ],
    ids=["hexadecimal", "bytea", "two members", "what follows", "twice", "checksum", "zlib checksum"],
)
def test_packed(packed: str) -> None:
    found = FoundSecrets()
    made = REDACTOR.text(f"data: {packed} end", found)
    assert found.count == 1
    assert packed not in made


def test_lines_of_base64_of_any_usual_width() -> None:
    whole = base64.b64encode(("a line of text " * 9 + KEY + " more" * 20).encode()).decode()
    for width, end in ((48, "\n"), (64, "\n" + " " * 20), (76, "\r\n")):
        found = FoundSecrets()
        REDACTOR.text(end.join(whole[at : at + width] for at in range(0, len(whole), width)), found)
        assert found.count == 1, width


@pytest.mark.parametrize(
    "left",
    [
        '{"password": "${DB_PASSWORD}"}', '{"password": "<your password>"}', '{"password": "required"}',
        '{"forgotPassword": "Forgot your password?"}', '{"password": "must have at least 8 characters"}',
        'password = os.environ["DB_PASSWORD"]', "PASSWORD=$DB_PASS/x", "PASSWORD=$(pass show db)", "DB_PASSWORD={{ vault }}",
        "password: !secret db_password", "api_key: YOUR_API_KEY", "token: sk-...", '"token": "sk-1234567890abcdef"',
        "Authorization: required for administrators", "Authorization: Bearer $TOKEN", "--token auto", "<token>word</token>",
        'const token = user?.token', "password: [REDACTED]", '{"pwd": "/home/me/work"}', "secret: my-secret",
    ],
)  # fmt: skip
def test_what_is_no_secret_is_left(left: str) -> None:
    assert text(left) == left


def test_schemas_and_working_directories_are_left() -> None:
    left = {
        "properties": {"password": {"type": "string"}, "Authorization": {"type": ["string", "null"]}},
        "PWD": "/home/me", "next_token": "end", "name": "token", "tokens": ["a", "b"], "argv": ["--token", "auto"],
        "logprobs": [{"token": " user's9", "logprob": -0.25}],
    }  # fmt: skip
    assert structure(left) == json.dumps(left)
