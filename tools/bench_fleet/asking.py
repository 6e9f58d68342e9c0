"""How long the questions to a dataset take, warm: the second time in one process, and as whole commands."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ctxctl.dataset import opening, questions
from ctxctl.dataset.duck import Asked

_GIVEN: dict[str, dict[str, Any]] = {"sentence": {"text": "the quick brown fox"}}
"""What questions must be told: words that are hardly anywhere, so that every text is looked through."""
_ROUNDS = 3


class Timed(NamedTuple):
    """One question."""

    name: str
    rows: int
    first: float
    """Seconds of the clock, as the first one that a process asks."""
    warm: float
    """The same of the best of several further times, in that process."""
    command: float
    """The same of the whole command `ctxctl fleet ask`, with the files in memory."""


def asked(dataset: Path, texts: Path, environment: Mapping[str, str]) -> list[Timed]:
    """Each question's times, those of the lists behind them.

    Args:
        dataset: What is asked.
        texts: The same sessions with their texts, which the questions that read texts are asked of.
        environment: Of the commands.
    """
    names = [*questions.ORDER, *questions.LISTS]
    return [_timed(name, texts if questions.question(name).texts else dataset, environment) for name in names]


def _timed(name: str, dataset: Path, environment: Mapping[str, str]) -> Timed:
    given = _GIVEN.get(name, {})
    begun = time.perf_counter()
    with Asked(opening.opened(str(dataset), questions.question_tables(name)).files) as connection:
        rows = len(connection.ask(name, given).rows)
        first = time.perf_counter() - begun
        warm = min(_seconds(lambda: connection.ask(name, given)) for _ in range(_ROUNDS))
    command = [sys.executable, "-m", "ctxctl", "fleet", "ask", name, "--dataset", str(dataset), "--json"]
    command += [word for key, value in given.items() for word in ("--param", f"{key}={value}")]
    whole = min(
        _seconds(lambda: subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True))
        for _ in range(_ROUNDS - 1)
    )
    return Timed(name, rows, first, warm, whole)


def again(files: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """By question that reads no texts, its seconds the second time in one process."""
    names = [name for name in questions.ORDER if not questions.question(name).texts]
    found = {}
    for name in names:
        with Asked(files) as connection:
            connection.ask(name, {})
            found[name] = min(_seconds(lambda name=name: connection.ask(name, {})) for _ in range(_ROUNDS))
    return found


def overview_seconds(dataset: Path, environment: Mapping[str, str]) -> float:
    """Seconds of `ctxctl fleet` in a pipe: what the overview on the screen begins with."""
    command = [sys.executable, "-m", "ctxctl", "fleet", "--plain", "--dataset", str(dataset)]
    return min(
        _seconds(lambda: subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True))
        for _ in range(_ROUNDS - 1)
    )


def _seconds(run: Any) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun
