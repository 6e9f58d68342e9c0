"""The place in a session that an event belongs to, and ids as they can be written."""

from __future__ import annotations

_CONTROL = str.maketrans("", "", "".join(map(chr, [*range(32), 127])))


class Place:
    """Session, thread, turn and step; None leaves it to the line order (DESIGN section 2)."""

    __slots__ = ("_behind", "_raw", "key", "sealed", "session", "step", "thread", "turn")

    def __init__(
        self,
        session: str | None = None,
        thread: str | None = None,
        turn: str | None = None,
        step: str | None = None,
    ) -> None:
        self.session = session
        self.thread = thread
        self.turn = turn
        self.step = step
        self.key = f"{session or ''}\x00{thread or ''}"
        """What tells its thread from all others."""
        self.sealed = False
        """Whether the step's request went out: what is recorded from then on belongs to the next step."""
        self._raw: bytes | None = None
        self._behind: Place | None = None

    @property
    def behind(self) -> Place:
        """The place of what comes after the step: its turn, without a step."""
        if self._behind is None:
            self._behind = Place(self.session, self.thread, self.turn)
        return self._behind

    @property
    def raw(self) -> bytes:
        """The place as JSON fields, with a comma in front."""
        if self._raw is None:
            import orjson  # not at the top: it is slow to import, and a program may never record anything

            made = b""
            for name in ("session", "thread", "turn", "step"):
                value = getattr(self, name)
                if value is not None:
                    made += b',"%b_id":%b' % (name.encode(), orjson.dumps(value))
            self._raw = made
        return self._raw


def id_text(value: object) -> str | None:
    """Return an id as a short text in one line; None where it is empty or of another type."""
    if value is None:
        return None
    if isinstance(value, str):
        text = str.__str__(value)[:500].encode("utf-8", "replace").decode().translate(_CONTROL)
        return text or None
    if isinstance(value, int):
        return str(int.__int__(value)) if value.bit_length() < 200 else None
    if type(value).__module__ == "uuid":
        return str(value)
    return None
