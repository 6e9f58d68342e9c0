"""Runs other tools on captures: each in a home of its own, and without a network."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tools.bench.cases import Bench
from tools.bench.measure import Sample, run
from tools.bench.peers.homes import ClaudeHome
from tools.bench.peers.specs import COSTS, Peer

_NOWHERE = "http://127.0.0.1:9"
"""A port at which nobody answers: a tool that asks somebody outside ends with an error instead."""


def case_name(peer: str, question: str, name: str, state: str) -> str:
    """The name of a case; `state`: `first` or `again`."""
    return f"{peer}: {question}, {name}, {state}"


def add_peer(bench: Bench, peer: Peer, question: str, captures: ClaudeHome, name: str) -> None:
    """Add the cases of a question that is asked of a tool: the first time, and again."""
    kept = bench.scratch / f"home-{peer.name}-{name}"
    program = peer.program(bench.peers) or peer.name

    def prepare() -> None:
        home(kept, captures)
        for words in peer.ready:
            run([program, *words], environment(bench, peer, kept, captures), bench.scratch)
        if not peer.ready:
            ask(kept)

    def ask(where: Path) -> Sample:
        out = bench.scratch / "page.html"
        words = filled(peer.asks[question], captures, out)
        done = run([program, *words], environment(bench, peer, where, captures), bench.scratch, keep=True)
        return checked(done, bench.scratch / "stdout", captures) if question == COSTS else done

    def first() -> Sample:
        fresh = bench.scratch / f"home-{peer.name}-fresh"
        home(fresh, captures)
        try:
            return ask(fresh)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    bench.before(prepare)
    if peer.keeps and not peer.ready:
        bench.add_case(case_name(peer.name, question, name, "first"), first, min(3, bench.runs))
    bench.add_case(case_name(peer.name, question, name, "again"), lambda: ask(kept))


def checked(done: Sample, output: Path, captures: ClaudeHome) -> Sample:
    """The run, failed unless the answer says what all sessions bill: one that read nothing is fast too."""
    if not done.good:
        return done
    said = output.read_text(errors="replace").replace(",", "").replace(" ", "")
    if str(captures.output_tokens) in said:
        return done
    return replace(
        done, status=1, complaint=f"its answer lacks the {captures.output_tokens:,} tokens of output"
    )


def home(path: Path, captures: ClaudeHome) -> None:
    """Make a home in which a tool finds the captures and can keep what it keeps."""
    path.mkdir(parents=True, exist_ok=True)
    if not (path / ".claude").is_symlink():
        (path / ".claude").symlink_to((captures.path / ".claude").resolve())


def environment(bench: Bench, peer: Peer, where: Path, captures: ClaudeHome) -> dict[str, str]:
    """The environment of a tool."""
    own = {
        "PATH": peer.path(bench.peers),
        "HOME": str(where.resolve()),
        "CLAUDE_CONFIG_DIR": str((captures.path / ".claude").resolve()),
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _NOWHERE),
    }
    places = {"projects": str(captures.projects.resolve()), "home": str(where.resolve())}
    return bench.env(where) | own | _formatted(peer.env, places)


def filled(words: tuple[str, ...], captures: ClaudeHome, out: Path) -> list[str]:
    """A tool's arguments for these captures."""
    places = {
        "{projects}": captures.projects,
        "{session}": captures.first,
        "{id}": captures.first.stem,
        "{out}": out,
    }
    made = []
    for word in words:
        for name, value in places.items():
            word = word.replace(name, str(value))
        made.append(word)
    return made


def _formatted(env: Mapping[str, str], places: Mapping[str, str]) -> dict[str, str]:
    return {name: value.format_map(places) for name, value in env.items()}
