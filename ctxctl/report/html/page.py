"""The frame of the page: markup, style and script of our own, and the policy that lets nothing else run."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files
from typing import Any, Final, NamedTuple

from ctxctl.labels import tables
from ctxctl.report.html.pack import dumped, escaped
from ctxctl.text import visible

SCRIPTS: Final = (
    "base.js", "text.js", "data.js", "diff.js", "chart.js", "steps.js", "step.js", "item.js",
    "report.js", "search.js", "keys.js", "main.js",
)  # fmt: skip
"""Parts of the one script, in their order."""
_OPEN: Final = "<!-- data -->"


class Page(NamedTuple):
    """What stands before the data and after it."""

    head: bytes
    tail: bytes


def page(name: str, meta: dict[str, Any]) -> Page:
    """The page around the data of a trace.

    Args:
        name: What the page is called.
        meta: What it knows before anything is unpacked.
    """
    style = _asset("style.css")
    script = (
        f"'use strict';\n(() => {{\nconst LABELS = {dumped(tables()).decode()};\n"
        + "".join(map(_asset, SCRIPTS))
        + "})();\n"
    )
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head, _, tail = _asset("page.html").partition(_OPEN)
    head = head.replace("{{policy}}", escape(policy)).replace("{{style}}", style)
    head = head.replace("{{name}}", escape(visible(name)))
    before, _, after = tail.partition("{{meta}}")
    data = escaped(dumped(meta))
    return Page(head.encode(), before.encode() + data + after.replace("{{script}}", script).encode())


def _asset(name: str) -> str:
    return files("ctxctl.report.html").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """A source expression of Content Security Policy: what stands between the tags, to the last byte."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
