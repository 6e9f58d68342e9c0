"""Installs the clients from npm and PyPI into a folder of their own, by their ordinary clients."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.clients.specs import SPECS, Spec

_LIMIT: Final = 900.0
NODE: Final = 22
"""Several clients need this version of Node."""


class InstallError(Exception):
    """It does not install; says why in a line."""


def installed(folder: Path, spec: Spec) -> str | None:
    """The version that is there."""
    place = folder / _slug(spec.package)
    if spec.npm:
        try:
            found = json.loads((place / "node_modules" / spec.package / "package.json").read_bytes())
        except (OSError, ValueError):
            return None
        return str(found.get("version"))
    names = re.sub(r"[-_.]+", "[-_.]", spec.package)
    for info in place.glob("lib/python3*/site-packages/*.dist-info"):
        found_name = re.fullmatch(rf"({names})-(.+)\.dist-info", info.name, re.IGNORECASE)
        if found_name is not None:
            return found_name[2]
    return None


def install(folder: Path, spec: Spec) -> str:
    """Install one, unless it is there: the newest version, else the one that the spec knows to install.

    Returns the version.  Raises InstallError.
    """
    there = installed(folder, spec)
    if there is not None:
        return there
    try:
        return _install(folder, spec, "")
    except InstallError:
        if not spec.version:
            raise
        return _install(folder, spec, spec.version)


def _install(folder: Path, spec: Spec, version: str) -> str:
    place = folder / _slug(spec.package)
    place.mkdir(parents=True, exist_ok=True)
    if spec.npm:
        _npm(place, folder, f"{spec.package}@{version or 'latest'}")
    else:
        python = _python()
        _run([python, "-m", "venv", str(place)])
        package = f"{spec.package}=={version}" if version else spec.package
        _run([str(place / "bin/pip"), "install", "--quiet", package, *spec.also])
    there = installed(folder, spec)
    if there is None:
        raise InstallError("it was installed, and is not there")
    return there


def node(folder: Path) -> None:
    """Get a newer Node where the machine's own is too old.  Raises InstallError."""
    own = shutil.which("node")
    said = subprocess.run([own, "--version"], capture_output=True, text=True).stdout if own else ""
    if said[1:].partition(".")[0].isdigit() and int(said[1:].partition(".")[0]) >= NODE:
        return
    place = folder / "node"
    if not (place / "node_modules/.bin/node").exists():
        place.mkdir(parents=True, exist_ok=True)
        _npm(place, folder, f"node@{NODE}")


def path(folder: Path, spec: Spec) -> str:
    """The `PATH` in which a client is found, before what the machine has."""
    place = folder / _slug(spec.package)
    own = place / ("node_modules/.bin" if spec.npm else "bin")
    return os.pathsep.join(
        (str(own), str(folder / "node/node_modules/.bin"), os.environ.get("PATH", os.defpath))
    )


def available() -> str | None:
    """Why nothing can be installed here; None: it can."""
    return None if shutil.which("npm") else "npm is not here"


def _npm(place: Path, folder: Path, package: str) -> None:
    newer = str(folder / "node/node_modules/.bin")
    env = {**os.environ, "PATH": os.pathsep.join((newer, os.environ.get("PATH", os.defpath)))}
    command = ["npm", "install", "--no-fund", "--no-audit", "--loglevel=error", "--prefix", ".", package]
    _run(command, cwd=place, env=env)


def _python() -> str:
    """aider needs a Python that is not the newest."""
    names = ("python3.12", "python3.11")
    return next((found for name in names if (found := shutil.which(name)) is not None), sys.executable)


def _run(command: list[str], **more: object) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, **more)  # type: ignore[call-overload]
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(f"{command[0]}: {error}") from None
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        told = [line for line in lines if "error code" not in line] or lines
        raise InstallError(told[0][:200] if told else f"exit code {done.returncode}")


def _slug(package: str) -> str:
    return package.replace("/", "_").lstrip("@")


def slugs() -> list[str]:
    """The folders of all clients."""
    return [_slug(spec.package) for spec in SPECS]
