"""A cache miss in the UI: its sign in the list of turns, a stop on the way, words on the frame."""

from __future__ import annotations

import msgspec
from fake import FakeInspector, notes_agent

from ctxctl.model.results import Cache, Miss, Step
from ctxctl.session.survey import row_of
from ctxctl.tui.answers import turns
from ctxctl.tui.outline import Turns
from ctxctl.tui.screens.turns.header import _bill

MISS = Miss(41_203, 0, 41_203, "expired", None, 720.0, 300)
WORDS = "↯ missed 41,203 (expired: idle 12 min, kept for 5 min)"


class Missing(FakeInspector):
    """The third step of four missed its cache; nothing of the others is known."""

    def step(self, ordinal: int) -> Step:
        step = super().step(ordinal)
        miss = MISS if ordinal == 2 else None
        return msgspec.structs.replace(step, cache=Cache(10, None, 0, None, None, miss))


def test_its_turn_is_of_note_and_has_the_sign() -> None:
    inspector = Missing(notes_agent())
    rows = [row_of(n, inspector.step(n)) for n in range(4)]
    assert [row.missed for row in rows] == [0, 0, 41_203, 0]
    missed = [entry for entry in Turns.of(rows).entries if entry.missed]
    assert len(missed) == 1
    assert missed[0].rewritten
    assert missed[0].notable
    assert not missed[0].broken


def test_the_frame_and_the_head_say_it() -> None:
    inspector = Missing(notes_agent())
    notes = turns.frame_notes(inspector.step(2))
    assert [note.text for note in notes if note.warning] == [f"cache: {WORDS}"]
    assert not any("missed" in note.text for note in turns.frame_notes(inspector.step(1)))
    step = next(s for s in map(inspector.step, range(4)) if s.usage is not None)
    replaced = msgspec.structs.replace(step, cache=Cache(10, None, 0, None, None, MISS))
    assert WORDS in _bill(replaced, whole=True)
    assert "↯" not in _bill(replaced, whole=False)
