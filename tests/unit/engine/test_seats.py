"""The window of a fitting policy as seats: who stays keeps the seat, and what moved is what changed."""

from __future__ import annotations

from typing import Any

from ctxctl.engine.simulate.state import SeatList
from tests.unit.policies.fitting_help import candidate

A, B, C, D, E = (candidate(name, 1) for name in "ABCDE")


def moved(seats: SeatList, window: list[Any]) -> tuple[str, str] | None:
    """What left and what came; None where all seats are new."""
    moves = seats.move_to(window, lambda one: one)  # type: ignore[arg-type, return-value]
    assert [seat.candidate for seat in seats.seats] == window
    places = [seat.place for seat in seats.seats]
    assert places == sorted(set(places))
    assert all(place % 4 == 0 and place > 0 for place in places)
    if moves is None:
        return None
    return tuple("".join(seat.candidate.name for seat in some) for some in (moves.left, moves.came))  # type: ignore[return-value]


def test_what_stays_keeps_its_seat() -> None:
    seats = SeatList()
    assert moved(seats, [A, B, C]) == ("", "ABC")
    first, _, last = seats.seats
    assert moved(seats, [A, D, E, C]) == ("B", "DE")
    assert moved(seats, [D, A, E, C, B]) in (("A", "AB"), ("D", "DB"))
    assert last in seats.seats
    assert seats.of("B") == [seats.seats[-1]]
    assert moved(seats, []) == ("DAECB", "")
    assert first not in seats.seats
    assert seats.of("A") == []


def test_where_no_place_is_left_between_two_all_sit_down_anew() -> None:
    seats, window, anew = SeatList(), [A], []
    assert moved(seats, window) == ("", "A")
    for number in range(60):
        window = [candidate(f"x{number}", 1), *window]
        if moved(seats, window) is None:
            anew.append(number)
    assert anew, "places halve"
    assert anew[0] >= 15
    assert len(anew) <= 4
