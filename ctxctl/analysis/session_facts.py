"""Compute the facts of one session for a list (`model.session_list.SessionFacts`)."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from ctxctl.analysis.cost_groups import CostWords
from ctxctl.analysis.request_cost import add_cost, cost_of
from ctxctl.fleet.captures import lasting
from ctxctl.fleet.packing import packed
from ctxctl.fleet.session_list import ReadSession
from ctxctl.importers.whereabouts import recorded_directory
from ctxctl.model.cost_sums import CostSums
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.model.session_list import PROMPT, SessionFacts
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.session.billed_steps import billed_steps
from ctxctl.session.first_prompt import LOOKED_AT, first_of
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.trace.inputs import recording


def work(path: str, format_name: str, words: bytes, _more: bytes) -> tuple[bytes, bool]:
    """Return what a capture holds and cost, as an encoded `ReadSession`; `words`: encoded `CostWords`.

    Raises what `Inspector.open` raises.
    """
    with recording() as inputs:
        facts, problems = _facts(path, format_name, words)
    keep = inputs.settled and lasting(format_name, _asked(words)[0].policy, problems)
    listings = [(*key, digest) for key, digest in inputs.listings.items()]
    return packed(ReadSession(facts, inputs.files, listings, keep)), keep


def _facts(path: str, format_name: str, words: bytes) -> tuple[SessionFacts, list[Problem]]:
    asked, book = _asked(words)
    billed = billed_steps(
        path, format_name, target=asked.target, model=asked.model, encoding=asked.encoding,
        policy=asked.policy, calibration=asked.calibration, learned=asked.learned, prompt=True,
    )  # fmt: skip
    if billed is not None:
        summed = _Summed(book)
        for step in billed.steps:
            summed.add(step)
        sessions = len({step.session for step in billed.steps})
        return summed.facts(path, billed.prompt, sessions, billed.turns), billed.problems
    from ctxctl.session.facade import Inspector  # the engine: slow to load

    summed, prompts = _Summed(book), list[str]()
    with Inspector.open(
        path, target=asked.target, model=asked.model, encoding=asked.encoding, policy=asked.policy,
        format=format_name, calibration=asked.calibration, learned=asked.learned, own_models=asked.models,
    ) as inspector:  # fmt: skip
        for result in inspector.replay():
            if isinstance(result, Step):
                summed.add(result)
            elif len(prompts) < LOOKED_AT and result.thread == MAIN_THREAD and result.title:
                prompts.append(result.title[:PROMPT])
        summary = inspector.summary
        assert summary is not None
        facts = summed.facts(path, first_of(prompts), summary.sessions, summary.turns)
        return facts, inspector.problems


class _Summed:
    """The sums over a session's requests, and their times."""

    def __init__(self, book: RateBook) -> None:
        self._book = book
        self._sums = CostSums()
        self._times: list[str] = []
        """The first and the last."""

    def add(self, step: Step) -> None:
        """Take in a request."""
        add_cost(self._sums, cost_of(step, self._book))
        if step.time is not None:
            times = [*self._times, step.time]
            self._times = [min(times), max(times)]

    def facts(self, path: str, prompt: str | None, sessions: int, turns: int) -> SessionFacts:
        """What a list says of the session."""
        sums, times = self._sums, self._times
        return SessionFacts(
            directory=recorded_directory(path),
            prompt=prompt,
            sessions=sessions,
            turns=turns,
            steps=sums.steps,
            sent=sums.sent_tokens.context + sums.unsized_tokens,
            unbilled=sums.unreported,
            unsized=sums.unsized,
            cost=sums.cost,
            counted=sums.is_counted,
            at_least=sums.at_least,
            first=times[0] if times else None,
            last=times[1] if times else None,
            stated=sums.stated,
        )


@lru_cache(maxsize=4)
def _asked(words: bytes) -> tuple[CostWords, RateBook]:
    """Return the settings and the source of prices, whose lookups are reused for the next session."""
    asked = msgspec.msgpack.decode(words, type=CostWords)
    return asked, RateBook(asked.models, asked.provider, asked.as_of)
