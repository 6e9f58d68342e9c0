"""The built wheel, alone in a new environment: what a user installs, without the checkout and its tools.

What the wheel asks for is taken from the developers' environment, where the locked versions are.
"""

from __future__ import annotations

import base64
import email
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]

GIVEN = os.environ.get("CTXCTL_WHEEL")
"""The wheel that is to be tested, where a release has built it; else one is built here."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if GIVEN:
        return Path(GIVEN)
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    return built


def asked_for(wheel: Path) -> Iterator[Distribution]:
    """What the wheel asks for, and what that asks for, as this environment has it: the locked versions."""
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        told = email.message_from_bytes(packed.read(name))
    wanted = [Requirement(text) for text in told.get_all("Requires-Dist") or ()]
    found: set[str] = set()
    while wanted:
        requirement = wanted.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        installed = distribution(requirement.name)
        assert requirement.specifier.contains(installed.version, prereleases=True), str(requirement)
        extras = [*requirement.extras, ""]
        inner = [Requirement(text) for text in installed.requires or ()]
        wanted += [
            Requirement(str(one).partition(";")[0])
            for one in inner
            if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras)
        ]
        if installed.name not in found:
            found.add(installed.name)
            yield installed


def install_alone(wheel: Path, where: Path, machine: dict[str, str]) -> Path:
    """Return the python of a new environment with nothing in it but the wheel and what the wheel asks for."""
    home = where / "venv"
    python = home / "bin" / "python"
    env = {name: value for name, value in machine.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--quiet", "--disable-pip-version-check"]
    for command in (
        [sys.executable, "-m", "venv", "--without-pip", str(home)],
        [*pip, "install", "--no-index", "--no-deps", str(wheel)],
    ):
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    packages = home / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for installed in asked_for(wheel):
        for file in installed.files or ():
            if ".." not in file.parts:  # scripts; none of them is of use to us
                (packages / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(installed.locate_file(file), packages / file)  # type: ignore[call-overload]
    done = subprocess.run([*pip, "check"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return python


def test_the_wheel_holds_the_package_and_its_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    info = next(n for n in names if "dist-info" in n).split("/")[0]
    data = info.replace(".dist-info", ".data")
    assert {name.split("/")[0] for name in names} == {"ctxctl", info, data}
    pages = {f"{data}/data/share/man/man1/{page.name}" for page in (ROOT / "man").iterdir()}
    assert {name for name in names if name.startswith(f"{data}/")} == pages
    for pattern, least in [
        (r"ctxctl/tokens/data/.*\.lb\.z", 2),
        (r"ctxctl/tokens/data/.*LICEN[CS]E.*|ctxctl/tokens/data/.*NOTICE.*", 1),
        (r"ctxctl/trace/schemas/.*\.json", 10),
        (r"ctxctl/tui/.*\.tcss", 1),
        (r"ctxctl/report/html/assets/.*\.(?:js|css|html)", 14),
        (r".*\.dist-info/licenses/LICENSE", 1),
    ]:
        assert sum(re.fullmatch(pattern, name) is not None for name in names) >= least, pattern


def unpacked(wheel: Path) -> dict[str, bytes]:
    """Return what a wheel holds, by name."""
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def test_the_wheel_is_the_same_when_built_again(wheel: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    again = tmp_path / wheel.name
    if GIVEN:  # built on another machine, whose zlib may pack otherwise
        assert unpacked(again) == unpacked(wheel)
    else:
        assert again.read_bytes() == wheel.read_bytes()


def test_the_wheel_alone_is_enough(
    wheel: Path, machine: dict[str, str], ran: Callable[..., Any], small_trace: Path, tmp_path: Path
) -> None:
    python = install_alone(wheel, tmp_path, machine)

    script = [str(python.with_name("ctxctl")), "--version"]
    version = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (python.parent.parent / "share" / "man" / "man1" / "ctxctl.1").is_file()
    assert re.search(r"\d+\.\d+\.\d+", version.stdout)

    replayed = ran("replay", "--json", str(small_trace), python=str(python))
    assert (replayed.code, replayed.network) == (0, []), replayed.err
    rows = [json.loads(line) for line in replayed.out.splitlines()]
    assert [row["window"]["used"] for row in rows if row["type"] == "step"] == [2]

    validated = ran("validate", str(small_trace), python=str(python))
    assert (validated.code, validated.network) == (0, []), validated.out + validated.err

    command = [str(python), "-c", "import ctxctl.tui.app, ctxctl; print(ctxctl.__file__)"]
    imported = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert imported.returncode == 0, imported.stderr
    assert os.path.realpath(imported.stdout.strip()).startswith(os.path.realpath(tmp_path / "venv"))


def test_wheels_for_musl_are_the_same_without_what_has_no_wheel_there(wheel: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copy(wheel, tmp_path))
    done = subprocess.run(
        [sys.executable, "scripts/musl_wheels.py", str(copied)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    made = [Path(line) for line in done.stdout.splitlines()]
    assert [one.name.rpartition("-")[2] for one in made] == [
        "musllinux_1_1_x86_64.whl", "musllinux_1_1_aarch64.whl",
    ]  # fmt: skip
    whole = unpacked(copied)
    for one in made:
        held = unpacked(one)
        assert held.keys() == whole.keys()
        changed = {name.rpartition("/")[2] for name in held if held[name] != whole[name]}
        assert changed == {"METADATA", "WHEEL", "RECORD"}
        (told,) = (data for name, data in held.items() if name.endswith("/METADATA"))
        (before,) = (data for name, data in whole.items() if name.endswith("/METADATA"))
        gone = set(before.splitlines()) - set(told.splitlines())
        assert [line.partition(b">=")[0] for line in gone] == [b"Requires-Dist: google-re2"]
        (rows,) = (data.decode() for name, data in held.items() if name.endswith("/RECORD"))
        for row in rows.splitlines():
            name, digest, size = row.rsplit(",", 2)
            if digest:
                found = base64.urlsafe_b64encode(hashlib.sha256(held[name]).digest()).rstrip(b"=").decode()
                assert (digest, int(size)) == (f"sha256={found}", len(held[name]))
        assert {row.rsplit(",", 2)[0] for row in rows.splitlines()} == held.keys()
