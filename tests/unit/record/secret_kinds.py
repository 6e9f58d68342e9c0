# ruff: noqa: E501 - a kind, or a shape, a line
"""Secrets of many kinds, made by chance, and the shapes in which they come; and a search for any of it.

The search knows nothing of rules: it looks for what was planted, as it stands and in whatever the text spells.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import quopri
import random
import re
import string
import zlib
from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import quote, unquote

ALNUM = string.ascii_letters + string.digits
URL = ALNUM + "-_"
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
B64 = ALNUM + "+/"
GRAM = 12
"""Characters in a row of a secret that must not be found anywhere."""


class Planted(NamedTuple):
    """A text with a secret in it."""

    kind: str
    text: str
    secret: str
    """Of a key, what comes after the head that all keys of its kind have."""
    head: str = ""

    @property
    def bare(self) -> bool:
        """Whether the text is a key alone, without white space, which can be a part of a name or be cut in two."""
        return self.kind in _FORMS and "\n" not in self.text


def some(chance: random.Random, letters: str, count: int) -> str:
    """Characters by chance, digits among them, as in any key that was issued."""
    made = chance.choices(letters, k=count)
    for at in range(3, count, 7):
        made[at] = chance.choice([c for c in letters if c.isdigit()])
    return "".join(made)


# In pieces, so that nothing here looks like a key to those who search for keys: the head, then letters and a
# number of them by turns, or more of the key as it is.
_FORMS: dict[str, tuple[object, ...]] = {
    "anthropic": ("sk-ant-api03-", URL, 93, "AA"),
    "openai-project": ("sk-proj-", URL, 74, "T3Blbk", "FJ", URL, 74),
    "openai": ("sk-", ALNUM, 20, "T3Blbk", "FJ", ALNUM, 20),
    "openrouter": ("sk-or-v1-", HEX, 64),
    "github": ("ghp_", ALNUM, 36),
    "github-fine": ("github_pat_", ALNUM, 22, "_", ALNUM, 59),
    "github-app": ("ghs_", ALNUM, 36),
    "gitlab": ("glpat-", URL, 20),
    "gitlab-runner": ("GR13" + "48941", URL, 20),
    "aws-id": ("AKIA", UPPER, 16),
    "aws-bedrock": ("ABSK", "QmVkcm9jaw", ALNUM, 100),
    "google": ("AIza", URL, 35),
    "google-oauth": ("ya29.", URL, 60),
    "google-client": ("GOCSPX-", URL, 28),
    "slack-bot": ("xoxb-", "1234567890", "-", "9876543210", "-", ALNUM, 24),
    "slack-app": ("xapp-1-", UPPER, 11, "-", "4567890123", "-", HEX, 64),
    "stripe": ("sk_live_", ALNUM, 24),
    "webhook": ("whsec_", ALNUM, 32),
    "npm": ("npm_", ALNUM, 36),
    "pypi": ("pypi-", "AgEIcHlwaS5vcmc", URL, 80),
    "rubygems": ("rubygems_", HEX, 48),
    "crates": ("cio", ALNUM, 32),
    "docker": ("dckr_pat_", URL, 27),
    "hugging-face": ("hf_", ALNUM, 34),
    "groq": ("gsk_", ALNUM, 52),
    "xai": ("xai-", ALNUM, 80),
    "perplexity": ("pplx-", ALNUM, 48),
    "replicate": ("r8_", ALNUM, 37),
    "nvidia": ("nvapi-", URL, 64),
    "cerebras": ("csk-", LOWER, 48),
    "tavily": ("tvly-", ALNUM, 32),
    "langsmith": ("lsv2_pt_", HEX, 32, "_", HEX, 10),
    "langfuse": ("sk-lf-", HEX, 8, "-", HEX, 4, "-", HEX, 4, "-", HEX, 4, "-", HEX, 12),
    "pinecone": ("pcsk_", ALNUM, 60),
    "together": ("tgp_v1_", URL, 43),
    "fireworks": ("fw_", ALNUM, 24),
    "elevenlabs": ("sk_", HEX, 48),
    "logfire": ("pylf_v1_", "us_", ALNUM, 43),
    "sendgrid": ("SG.", URL, 22, ".", URL, 43),
    "mailgun": ("key-", HEX, 32),
    "mailchimp": (HEX, 32, "-us12"),
    "brevo": ("xkeysib-", HEX, 64, "-", ALNUM, 16),
    "twilio": ("SK", HEX, 32),
    "shopify": ("shpat_", HEX, 32),
    "square": ("sq0atp-", URL, 22),
    "facebook": ("EAAC", ALNUM, 110),
    "digitalocean": ("dop_v1_", HEX, 64),
    "linear": ("lin_api_", ALNUM, 40),
    "notion": ("ntn_", ALNUM, 46),
    "figma": ("figd_", URL, 40),
    "databricks": ("dapi", HEX, 32),
    "atlassian": ("ATATT3", URL, 186),
    "vault": ("hvs.", URL, 95),
    "terraform": (ALNUM, 14, ".atlasv1.", URL, 67),
    "doppler": ("dp.pt.", ALNUM, 43),
    "grafana": ("glsa_", ALNUM, 32, "_", HEX, 8),
    "newrelic": ("NRAK-", UPPER, 27),
    "sentry": ("sntryu_", HEX, 64),
    "planetscale": ("pscale_tkn_", URL, 43),
    "supabase": ("sbp_", HEX, 40),
    "postman": ("PMAK-", HEX, 24, "-", HEX, 34),
    "airtable": ("pat", ALNUM, 14, ".", HEX, 64),
    "hubspot": ("pat-na1-", HEX, 8, "-", HEX, 4, "-", HEX, 4, "-", HEX, 4, "-", HEX, 12),
    "fly": ("fm2_", ALNUM, 120),
    "heroku": ("HRKU-AA", URL, 58),
    "dropbox": ("sl.", URL, 130),
    "artifactory": ("AKCp", ALNUM, 69),
    "openshift": ("sha256~", URL, 43),
    "easypost": ("EZAK", ALNUM, 54),
    "azure-client": (ALNUM, 3, "8Q~", ALNUM, 34),
    "telegram": ("7301234567", ":AA", URL, 33),
    "discord": ("M", ALNUM, 25, ".", ALNUM, 6, ".", URL, 38),
    "onepassword": ("ops_", "eyJ", ALNUM, 250),
    "adobe": ("p8e-", LOWER, 32),
    "alibaba": ("LTAI", ALNUM, 20),
    "buildkite": ("bkua_", HEX, 40),
    "circleci": ("CCIPAT_", ALNUM, 22, "_", HEX, 40),
    "cloudflare": ("v1.0-", HEX, 24, "-", HEX, 146),
    "cloudflare-global": ("cfk_", ALNUM, 40, HEX, 8),
    "cloudflare-user": ("cfut_", ALNUM, 40, HEX, 8),
    "cloudflare-account": ("cfat_", ALNUM, 40, HEX, 8),
    "gemini-auth": ("AQ.", "Ab8RN6", URL, 44),
    "slack-cookie": ("xoxd-", ALNUM, 30, "%2B", ALNUM, 30, "%2F", ALNUM, 20, "%3D%3D"),
    "slack-client": ("xoxc-", "1234567890", "-", "9876543210", "-", HEX, 64),
    "vercel": ("vcp_", ALNUM, 56),
    "vercel-gateway": ("vck_", ALNUM, 56),
    "e2b": ("e2b_", HEX, 40),
    "firecrawl": ("fc-", HEX, 32),
    "resend": ("re_", ALNUM, 8, "_", ALNUM, 24),
    "modal-id": ("ak-", ALNUM, 22),
    "modal-secret": ("as-", ALNUM, 22),
    "cursor": ("crsr_", HEX, 64),
    "cursor-old": ("key_", HEX, 64),
    "langfuse-public": ("pk-lf-", HEX, 8, "-", HEX, 4, "-", HEX, 4, "-", HEX, 4, "-", HEX, 12),
    "helicone": ("sk-helicone-", LOWER, 7, "-", LOWER, 7, "-", LOWER, 7, "-", LOWER, 7),
    "deepseek": ("sk-", HEX, 32),
    "apify": ("apify_api_", ALNUM, 36),
    "runpod": ("rpa_", UPPER, 46),
    "daytona": ("dtn_", HEX, 64),
    "voyage": ("pa-", URL, 43),
    "mem0": ("m0-", ALNUM, 40),
    "clojars": ("CLOJARS_", HEX, 60),
    "contentful": ("CFPAT-", URL, 43),
    "duffel": ("duffel_live_", URL, 43),
    "dynatrace": ("dt0c01.", UPPER, 24, ".", UPPER, 64),
    "flutterwave": ("FLWSECK_TEST-", HEX, 32, "-X"),
    "harness": ("pat.", URL, 22, ".", ALNUM, 24, ".", ALNUM, 20),
    "infracost": ("ico-", ALNUM, 32),
    "launchdarkly": ("sdk-", HEX, 8, "-", HEX, 4, "-", HEX, 4, "-", HEX, 4, "-", HEX, 12),
    "maxmind": (ALNUM, 6, "_", ALNUM, 29, "_mmk"),
    "netlify": ("nfp_", ALNUM, 40),
    "octopus": ("API-", UPPER, 26),
    "posthog": ("phx_", ALNUM, 43),
    "prefect": ("pnu_", ALNUM, 36),
    "pulumi": ("pul-", HEX, 40),
    "readme": ("rdme_", LOWER, 70),
    "render": ("rnd_", ALNUM, 32),
    "scalingo": ("tk-us-", URL, 48),
    "settlemint": ("sm_pat_", ALNUM, 16),
    "shippo": ("shippo_live_", HEX, 40),
    "sonar": ("sqp_", HEX, 40),
    "sourcegraph": ("sgp_", HEX, 16, "_", HEX, 40),
    "tailscale": ("tskey-auth-", ALNUM, 12, "-", ALNUM, 32),
    "typeform": ("tfp_", ALNUM, 59),
    "jwt": ("eyJ", "hbGciOiJIUzI1NiJ9", ".eyJ", URL, 60, ".", URL, 43),
    "age": ("AGE-SECRET-", "KEY-1", UPPER, 58),
    "private-key": ("-----BEGIN RSA PRIVATE", " KEY-----\n", B64, 64, "\n", B64, 64, "\n", B64, 30, "==\n-----END RSA PRIVATE", " KEY-----"),
}  # fmt: skip
_NAMED: dict[str, tuple[str, str, int]] = {
    "aws-secret": ("aws_secret_access_key = {}\n", B64, 40),
    "password-env": ("export DATABASE_PASSWORD={}\n", ALNUM, 18),
    "password-yaml": ("db:\n  password: {}\n", ALNUM, 18),
    "password-json": ('{{"user": "u", "password": "{}"}}', ALNUM, 18),
    "password-url": ("postgres://admin:{}@db.internal:5432/app", ALNUM, 18),
    "api-key-code": ("API_KEY = '{}'", ALNUM, 32),
    "client-secret": ('{{"client_secret": "{}"}}', ALNUM, 40),
    "azure-storage": ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={}==;EndpointSuffix=core.windows.net", B64, 86),
    "token-url": ("https://{}@github.example/a/b.git", ALNUM, 40),
    "token-url-basic": ("https://{}:x-oauth-basic@github.example/a/b.git", ALNUM, 40),
    "query": ("https://api.example.com/v1?user=1&access_token={}&x=2", ALNUM, 32),
    "header": ("X-Api-Key: {}", ALNUM, 32),
    "bearer": ("Authorization: Bearer {}", URL, 40),
    "basic": ("Authorization: Basic {}", ALNUM, 32),
    "cookie": ("Cookie: session={}", ALNUM, 40),
    "curl": ("curl -s -u admin:{} https://example.com", ALNUM, 18),
    "flag": ("deploy --password={} --yes", ALNUM, 18),
    "netrc": ("machine api.example.com login me password {}\n", ALNUM, 20),
    "slack-hook": ("https://hooks.slack.com/services/{}", UPPER, 44),
    "discord-hook": ("https://discord.com/api/webhooks/123456789012345678/{}", URL, 68),
}  # fmt: skip
KINDS = [*_FORMS, *_NAMED]


def planted(kind: str, chance: random.Random) -> Planted:
    """A secret of a kind, in the least text that says what it is."""
    if kind in _NAMED:
        around, letters, size = _NAMED[kind]
        secret = some(chance, letters, size)
        return Planted(kind, around.format(secret), secret)
    made, pieces = "", list(_FORMS[kind])
    while pieces:
        piece = str(pieces.pop(0))
        made += (
            some(chance, piece, int(str(pieces.pop(0)))) if pieces and isinstance(pieces[0], int) else piece
        )
    head = "" if isinstance(_FORMS[kind][1], int) else str(_FORMS[kind][0])
    return Planted(kind, made, made.removeprefix(head), head)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


def png(text: str, chunk: bytes = b"tEXt", *, packed: bool = False) -> bytes:
    """An image of one pixel with a text in its metadata."""
    packed = packed or chunk == b"zTXt"
    held = zlib.compress(text.encode()) if packed else text.encode()
    between = {b"zTXt": b"\0", b"iTXt": b"\x01\0\0\0" if packed else b"\0\0\0\0"}.get(chunk, b"")
    said = b"Comment\0" + between + held
    return b"\x89PNG\r\n\x1a\n" + b"".join((
        _chunk(b"IHDR", bytes((0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0))), _chunk(chunk, said),
        _chunk(b"IDAT", zlib.compress(b"\0\0")), _chunk(b"IEND", b""),
    ))  # fmt: skip


def jpeg(text: str) -> bytes:
    """The head of a JPEG with a text as the image's description (EXIF)."""
    said = text.encode() + b"\0"
    entry = b"\x01\x0e\x00\x02" + len(said).to_bytes(4, "big") + (26).to_bytes(4, "big")
    exif = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01" + entry + b"\0\0\0\0" + said
    return (
        b"\xff\xd8\xff\xe1"
        + (len(exif) + 2).to_bytes(2, "big")
        + exif
        + b"\xff\xda\0\x08\x01\x01\0\0\x3f\0\xd2\xff\xd9"
    )


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _nested(text: str, levels: int) -> str:
    for _ in range(levels):
        text = json.dumps({"out": text})
    return text


SHAPES: dict[str, Callable[[str], str]] = {
    "as it is": lambda s: s,
    "a sentence": lambda s: f"Use this: {s}\nand nothing else.",
    "code": lambda s: f"```\n{s}\n```",
    "JSON": lambda s: json.dumps({"says": s}),
    "JSON in JSON": lambda s: _nested(s, 2),
    "a line in JSON": lambda s: json.dumps({"file": f"first\n{s}\nlast"}),
    "a line in JSON in JSON": lambda s: json.dumps(json.dumps([f"first\t\n{s}\r\nlast"])),
    "JSON, five deep": lambda s: _nested(s, 5),
    "JSON, all escaped": lambda s: '{"says": "' + "".join(f"\\u{ord(c):04x}" for c in s) + '"}',
    "percent": lambda s: f"q={quote(s, safe='')}&page=1",
    "percent, all": lambda s: "".join(f"%{ord(c):02X}" for c in s),
    "percent, twice": lambda s: quote("".join(f"%{ord(c):02x}" for c in s), safe=""),
    "HTML": lambda s: f"<p>{html.escape(s)}</p>",
    "HTML, numbers": lambda s: "<p>" + "".join(f"&#{ord(c)};" for c in s) + "</p>",
    "HTML, hex, in JSON": lambda s: json.dumps("".join(f"&#x{ord(c):x};" for c in s)),
    "base64": lambda s: f"data: {_b64(s.encode())}",
    "base64 for URLs": lambda s: base64.urlsafe_b64encode(f"see {s}".encode()).decode().rstrip("="),
    "base64 in lines": lambda s: base64.encodebytes(f"{'a line of a file' * 9}\n{s}\n".encode()).decode(),
    "base64 in base64": lambda s: _b64(_b64(f"says {s}".encode()).encode()),
    "JSON in base64 in JSON": lambda s: json.dumps({"body": _b64(json.dumps({"in": s}).encode())}),
    "percent in base64": lambda s: _b64(quote(f"https://h/?x={s}", safe="").encode()),
    "PNG tEXt": lambda s: f"data:image/png;base64,{_b64(png(s))}",
    "PNG iTXt": lambda s: _b64(png(s, b"iTXt")),
    "PNG zTXt": lambda s: _b64(png(s, b"zTXt")),
    "PNG iTXt, packed": lambda s: _b64(png(s, b"iTXt", packed=True)),
    "gzip in base64": lambda s: f"body: {_b64(gzip.compress(f'says {s} here'.encode(), mtime=0))}",
    "zlib in base64": lambda s: _b64(zlib.compress(f"says {s} here".encode())),
    "gzip in base64 in base64": lambda s: _b64(_b64(gzip.compress(f"says {s}".encode(), mtime=0)).encode()),
    "JSON in gzip in base64 in JSON": lambda s: json.dumps({"b": _b64(gzip.compress(json.dumps({"a": s}).encode()))}),
    "hex": lambda s: f"dump {s.encode().hex()} end",
    "hex, capitals, 0x": lambda s: f"0x{s.encode().hex().upper()}",
    "base64 in hex": lambda s: _b64(f"says {s}".encode()).encode().hex(),
    "gzip in hex": lambda s: gzip.compress(f"says {s}".encode(), mtime=0).hex(),
    "UTF-16 in base64": lambda s: _b64(f"$key = '{s}'".encode("utf-16-le")),
    "UTF-16 with a mark in base64": lambda s: _b64(f"$key = '{s}'".encode("utf-16")),
    "UTF-16": lambda s: f"says {s}".encode("utf-16-le").decode("latin-1"),
    "UTF-16 in JSON": lambda s: json.dumps({"a": f"says {s}".encode("utf-16-be").decode("latin-1")}),
    "quoted-printable": lambda s: quopri.encodestring(f"{'words ' * 9}says {s} and more".encode()).decode(),
    "quoted-printable in JSON": lambda s: json.dumps({"a": quopri.encodestring(f"{'words ' * 9}says {s} and more".encode()).decode()}),
    "percent before the same, in JSON": lambda s: json.dumps({"q": f"a={quote(s, safe='')}&b=1", "said": [s]}, separators=(",", ":")),
    "JPEG EXIF": lambda s: f"data:image/jpeg;base64,{_b64(jpeg(s))}",
}  # fmt: skip

_RUN = re.compile(rf"[A-Za-z0-9_-]{{{GRAM},}}")
_CARRIED = re.compile(r"[A-Za-z0-9+/_-]{20,}(?:(?:\\n|\n)[A-Za-z0-9+/_-]+)*")
_PRINTABLE = re.compile(r"[\x20-\x7e\n]{8,}")


def grams(texts: Iterable[str]) -> set[str]:
    """All that is long enough of what was planted."""
    found: set[str] = set()
    for text in texts:
        for run in _RUN.findall(text):
            found.update(run[at : at + GRAM] for at in range(len(run) - GRAM + 1))
    return found


def heads() -> set[str]:
    """What stands in every key of a kind and tells nobody anything."""
    return grams(str(piece) for form in _FORMS.values() for piece in form) - {ALNUM[:GRAM]}


def readings(text: str, depth: int = 5) -> Iterable[str]:
    """A text, and what it says in every other reading: escapes, base64, hexadecimal, UTF-16, packed, again and again.

    Each text is read once, at its first level: many spellings of a long one come to the same.
    """
    level, known, seen = [text], {hash(text)}, set[str]()
    for left in range(depth, -1, -1):
        following: list[str] = []
        for one in level:
            yield one
            for other in _others(one, seen) if left else ():
                if hash(other) not in known:
                    known.add(hash(other))
                    following.append(other)
        level = following


def _others(text: str, seen: set[str]) -> Iterable[str]:
    """What a text says in other readings of it, and of the runs in it that were not `seen` yet."""
    plain = re.sub(r"\\+u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text)
    yield html.unescape(unquote(re.sub(r'\\+(["/])', r"\1", re.sub(r"\\+[nrt]", "\n", plain))))
    yield re.sub("=([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), re.sub(r"=\r?\n", "", text))
    yield text.replace("\0", "")
    for run in set(_CARRIED.findall(text)) - seen:
        seen.add(run)
        if (digits := re.search("(?:[0-9a-fA-F]{2}){10,}", run)) is not None:
            yield from _said(bytes.fromhex(digits[0]))
        packed = re.sub(r"\\n|\n", "", run).translate(str.maketrans("-_", "+/"))
        for start in range(4):
            tail = (len(packed) - start) % 4
            data = base64.b64decode(
                packed[start : len(packed) - tail] + (packed[-tail:] + "===")[: 4 if tail > 1 else 0]
            )
            yield from _said(data)


def _said(data: bytes) -> Iterable[str]:
    """The texts in data: as they stand, without NULs, and unpacked from wherever that can be."""
    held = [data, data.replace(b"\0", b"")]
    for found in re.finditer(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]", data):
        try:
            held.append(zlib.decompressobj(47).decompress(data[found.start() :], 1 << 20))
        except zlib.error:
            continue
    for one in held:
        yield from _PRINTABLE.findall(one.decode("latin-1"))


def _pieces(text: str, size: int = 1 << 18) -> Iterable[str]:
    """A text in pieces of whole lines: its readings are held together, and take many times its size."""
    at = 0
    while at < len(text):
        end = text.find("\n", at + size) + 1 or len(text)
        yield text[at:end]
        at = end


def leaked(text: str, secrets: set[str]) -> list[str]:
    """What of the secrets (their `grams`) a text says, in any reading."""
    seen: set[str] = set()
    found: list[str] = []
    for reading in (said for piece in _pieces(text) for said in readings(piece)):
        for run in set(_RUN.findall(reading)) - seen:
            seen.add(run)
            found += [
                run[at : at + GRAM] for at in range(len(run) - GRAM + 1) if run[at : at + GRAM] in secrets
            ]
    return found
