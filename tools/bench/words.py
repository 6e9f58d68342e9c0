# ruff: noqa: E501, SIM905 - a list of words is read as a text
"""Deterministic filler that costs a tokenizer about what prose, code and logs cost it."""

from __future__ import annotations

import random

_WORDS = """
the of and to in is that for it on with as was are by this be at from or have an they which one you had not
but what all were when we there can said use each she how their will up other about out many then them these so
some her would make like him into time has look two more write go see number no way could people my than first
water been call who find now long down day did get come made may part over new sound take only little work know
place year live me back give most very after thing our just name good sentence man think say great where help
through much before line right too mean old any same tell boy follow came want show also around form three small
set put end does another well large must big even such because turn here why ask went men read need land different
home us move try kind hand picture again change off play spell air away animal house point page letter mother
answer found study still learn should world high every near add food between own below country plant last school
father keep tree never start city earth eye light thought head under story saw left few while along might close
something seem next hard open example begin life always those both paper together got group often run important
until children side feet car mile night walk white sea began grow took river four carry state once book hear stop
without second later miss idea enough eat face watch far really almost let above girl sometimes mountain cut young
talk soon list song being leave family body music color stand sun question fish area mark dog horse birds problem
complete room knew since ever piece told usually friends easy heard order red door sure become top ship across
today during short better best however low hours black products happened whole measure remember early waves reached
""".split()
_NAMES = ("items", "index", "total", "window", "config", "result", "cursor", "offset", "tokens", "frame")


def _prose(rng: random.Random) -> str:
    words = rng.choices(_WORDS, k=rng.randint(8, 22))
    return " ".join(words).capitalize() + rng.choice((".", ".", ".", "?", ";")) + rng.choice((" ", " ", "\n"))


def _code(rng: random.Random) -> str:
    name, other = rng.choices(_NAMES, k=2)
    word = rng.choice(_WORDS)
    return (
        f"def {word}_{name}({other}: list[int], limit: int = {rng.randint(1, 9999)}) -> int:\n"
        f'    """{" ".join(rng.choices(_WORDS, k=7)).capitalize()}."""\n'
        f"    {name} = sum({other}[i] for i in range(limit) if {other}[i] > {rng.randint(0, 99)})\n"
        f"    return {name} if {name} < limit else limit\n\n"
    )


def _log(rng: random.Random) -> str:
    return (
        f"2026-05-{rng.randint(1, 28):02d}T{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:"
        f"{rng.randint(0, 59):02d}.{rng.randint(0, 999):03d}Z {rng.choice(('INFO', 'INFO', 'WARN', 'ERROR'))} "
        f"{rng.choice(_NAMES)}.{rng.choice(_WORDS)} took={rng.randint(1, 4000)}ms id={rng.getrandbits(48):012x}\n"
    )


def text(rng: random.Random, size: int) -> str:
    """About `size` characters of one sort of text; different for every state of `rng`."""
    make = rng.choice((_prose, _prose, _code, _log))
    parts = []
    length = 0
    while length < size:
        part = make(rng)
        parts.append(part)
        length += len(part)
    return "".join(parts)


def phrase(rng: random.Random, number: int) -> str:
    """Some words."""
    return " ".join(rng.choices(_WORDS, k=number))


def size(rng: random.Random) -> int:
    """Length of a content that is not a prompt: log-normal, 200 to 20 000 characters, 5 900 in the mean."""
    return int(min(20_000.0, max(200.0, rng.lognormvariate(8.42, 0.85))))
