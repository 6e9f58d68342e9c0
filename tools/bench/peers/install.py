"""Installs the other tools from npm and PyPI, each into a folder of its own, by their ordinary clients."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.bench.peers.specs import Peer

_LIMIT = 900.0
"""Seconds."""


def install(peer: Peer, folder: Path) -> str | None:
    """Install a tool unless it is there; returns why that did not work, or None."""
    if peer.installed(folder):
        return None
    place = folder / peer.name
    place.mkdir(parents=True, exist_ok=True)
    if peer.npm:
        steps = [
            ["npm", "install", "--no-fund", "--no-audit", "--loglevel=error", "--prefix", ".", *peer.npm]
        ]
    else:
        steps = [
            [sys.executable, "-m", "venv", "."],
            [str(place.resolve() / "bin" / "pip"), "install", "--quiet", *peer.pip],
        ]
    for step in steps:
        try:
            done = subprocess.run(step, cwd=place, capture_output=True, text=True, timeout=_LIMIT)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{step[0]}: {type(error).__name__}"
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            return lines[0][:200] if lines else f"exit code {done.returncode}"
    return None if peer.installed(folder) else "it was installed, and cannot be found"


def version(peer: Peer, folder: Path, home: Path) -> str:
    """What it says its version is."""
    program = peer.program(folder)
    if program is None:
        return "not installed"
    env = {"PATH": peer.path(folder), "HOME": str(home.resolve()), "NO_COLOR": "1"}
    try:
        done = subprocess.run([program, "--version"], env=env, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    words = done.stdout.split()
    return next((word.lstrip("v") for word in words if any(c.isdigit() for c in word)), "unknown")
