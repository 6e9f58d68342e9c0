"""Random damage to what parsers are given, without coverage: needs nothing but this repository."""

from __future__ import annotations

from random import Random

from tools.fuzz.parsers import Parser

LONGEST = 4096
"""Bytes of an input."""


def made(parser: Parser, random: Random, starts: list[bytes]) -> bytes:
    """One input: a beginning of the parser's, with some stretches taken out, repeated, or written over."""
    data = random.choice(starts) if random.random() < 0.9 else b""
    for _ in range(random.randrange(1, 6)):
        at = random.randrange(len(data) + 1)
        how = random.randrange(7)
        if how < 3:
            data = data[:at] + random.choice(parser.words) + data[at + random.choice((0, 0, 1, 8)) :]
        elif how == 3:
            data = data[:at] + data[at + random.randrange(1, 40) :]
        elif how == 4:
            data = data[:at] + random.randbytes(random.randrange(1, 5)) + data[at + 1 :]
        elif how == 5:
            data = data[:at] + data[at : at + random.randrange(1, 60)] * random.randrange(1, 9) + data[at:]
        else:
            data = data[:at] + random.choice(starts)[at:]
    return data[:LONGEST]
