# ruff: noqa: E501 - samples stand in one piece
"""Values without quotes: `NAME=value`, `password: value`, wherever they are written; and what only looks alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.record.redact import FoundSecrets, SecretRedactor

REDACTOR = SecretRedactor(b"k" * 32)
SECRETS = (
    "DB_PASSWORD=hunter2",
    "export DATABASE_PASSWORD=hunter2\nnext",
    "POSTGRES_PASSWORD=correct-horse",
    "MYSQL_ROOT_PASSWORD=mypassword1",
    "docker run -e DB_PASS=abc123 img",
    "CLIENT_SECRET=correct-horse-battery",
    "API_TOKEN=abc12345",
    "SECRET=hunter2",
    "FOO_API_KEY=abcdef",
    "  password: hunter2\n  user: x",
    "password: letmein",
    "password: 'hunter2'",
    'password: "hunter2"',
    "Password: hunter2",
    "db_password = hunter2\n",
    "host=db user=me password=hunter2 dbname=x",
    "mysql --password=hunter2 db",
    "Server=x;Password=p4ss;User=y",
    '{"text": "A=1\\nDB_PASSWORD=hunter2\\nB=2"}',
    '"{\\"t\\": \\"password: hunter2\\\\nx: y\\"}"',
    "PGPASSWORD=hunter2 psql -h x",
    "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
    "client_secret: s3cr3tvalue",
    "pwd: hunter2",
    "password: p@ss:w0rd # comment",
    "ADMIN_PASSWORD=p@ss$w0rd&x",
    "set PASSWORD=hunter2\r\n",
    "PASSWORD = hunter22",
    "`PASSWORD=hunter2`",
    "spring.datasource.password=hunter2\n",
    "REDIS_PASSWORD=abc, then",
    "smtp_password=hunter2&x",
    "wifi passphrase: tulip7garden",
)
"""Each holds one, which has one of `MARKS` in it."""
MARKS = (
    "hunter2",
    "correct-horse",
    "mypassword1",
    "abc",
    "s3cr3t",
    "letmein",
    "p4ss",
    "p@ss",
    "wJalr",
    "tulip7",
)
ORDINARY = (
    "password: str",
    "password: Optional[str] = None",
    "def f(password: str, x: int): pass",
    "password: string;",
    "password: String\n",
    "password: SecretStr",
    "  password: z.string(),",
    "PASSWORD=$VAR",
    "PASSWORD=${DB_PASSWORD}",
    "password=None",
    "password=password",
    "connect(password=pw, user=u)",
    "connect(user=u, password=args.pw)",
    "password = getpass()",
    "password=user_password",
    "password = input\n",
    "PWD=/srv/x",
    "OLDPWD=/tmp",
    "pwd=/home/d",
    "password: required",
    "Password: incorrect\n",
    "password: ${{ secrets.DB_PASSWORD }}",
    "password: !vault |",
    "PASS=12 FAIL=0",
    "MAX_TOKENS=4096",
    "max_tokens=4096",
    "TOKEN=none",
    "password == other",
    "if password != x1:",
    "password: process.env.DB_PASS",
    "password: the password of the user",
    "password: user's password",
    "API_KEY=<your-key>",
    "API_KEY=$(pass show x)",
    "password: UserPassword",
    "password: userInput",
    "PASSWORD=",
    "DB_PASSWORD=\nNEXT=hello",
    "password=*****",
    "password: xxxxxxxx",
    "self.password = password1 if x else y",
    "TOKEN_TYPE=bearer",
    "NEXT_TOKEN=None",
    "bypass=yes",
    "compass: north1",
    "password: bytes",
    "password=hash_password(x)",
    "SECRET=false",
    "token=token",
    "password: [REDACTED]",
    "PASSWORD=your-password",
    "passwords: many1",
    "password: ****",
    "export PASSWORD",
    "password=%s",
    "password: {{ pw }}",
    'password=f"{x}"',
    "key=lambda x: x",
    "password,\n",
    "GIT_TOKEN: string",
    "password: password,",
    "const { password } = req.body;",
    "password: req.body.password,",
    "password?: string",
    "password: string | null",
    "password: number\n",
    "password=bcrypt.hash(pw)",
    "POSTGRES_PASSWORD: postgres_password",
)


@pytest.mark.parametrize("text", SECRETS)
@pytest.mark.parametrize("wrap", [str, json.dumps, lambda text: f"$ env\nUSER=me\n{text}\n"])
def test_a_value_without_quotes_is_replaced(text: str, wrap: Any) -> None:
    found = FoundSecrets()
    made = REDACTOR.text(wrap(text), found)
    assert found.count == 1, made
    assert not any(mark in made for mark in MARKS), made
    # Its name, and what stands around it, stays.
    assert made[:3] == wrap(text)[:3]


@pytest.mark.parametrize("text", ORDINARY)
def test_what_is_no_value_stays(text: str) -> None:
    assert REDACTOR.text(text, FoundSecrets()) == text
    assert REDACTOR.text(json.dumps(text), FoundSecrets()) == json.dumps(text)


@pytest.mark.parametrize(
    "value",
    [
        {"POSTGRES_PASSWORD": "hunter2"}, {"env": {"DB_PASS": "hunter2"}}, {"smtpPassword": "hunter2"},
        {"x": "DB_PASSWORD=hunter2"}, {"steps": [{"run": "export TOKEN=hunter2 && go"}]},
    ],
)  # fmt: skip
def test_a_field_is_known_by_the_end_of_its_name(value: Any) -> None:
    made = REDACTOR.value(value, json.dumps(value, separators=(",", ":")).encode(), FoundSecrets())
    assert "hunter2" not in json.dumps(made)


@pytest.mark.parametrize(
    "value",
    [
        {"next_page_token": "CAUQAA12"}, {"properties": {"DB_PASSWORD": {"type": "string"}}},
        {"password": "str"}, {"userPassword": "required"}, {"max_tokens": "12"}, {"passwordField": "abc"},
    ],
)  # fmt: skip
def test_a_field_that_holds_none_stays(value: Any) -> None:
    assert REDACTOR.value(value, json.dumps(value, separators=(",", ":")).encode(), FoundSecrets()) == value
