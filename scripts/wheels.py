"""Whether what ctxctl needs to run installs without a compiler, by platform (run by ``make wheels``).

    wheels.py [PLATFORM…]    all platforms, or those that are named (linux-arm64)

Asks pip for wheels alone, of the locked versions, and prints a table of the packages that have none.  Exits 1
if there is one.  What the wheels for musl do not require is not asked for there (`musl_wheels.WITHOUT`).
Nothing is installed; what is downloaded goes to a temporary folder.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from musl_wheels import WITHOUT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "3.13"
PLATFORMS = {
    "linux-x86_64": ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"],
    "linux-arm64": ["manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"],
    "macos-arm64": ["macosx_14_0_arm64", "macosx_13_0_arm64", "macosx_11_0_arm64"],
    "macos-x86_64": ["macosx_13_0_x86_64", "macosx_10_13_x86_64", "macosx_10_12_x86_64"],
    "alpine-x86_64": ["musllinux_1_2_x86_64", "musllinux_1_1_x86_64"],
    "alpine-arm64": ["musllinux_1_2_aarch64", "musllinux_1_1_aarch64"],
}
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)


def needed(platform: str) -> list[str]:
    """The run-time requirements on a platform, with their locked versions; not what they need themselves."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = {
        canonicalize_name(name): version
        for name, version in PIN.findall((ROOT / "requirements.txt").read_text())
    }
    names = [canonicalize_name(Requirement(one).name) for one in project["dependencies"]]
    without = WITHOUT if platform.startswith("alpine-") else frozenset()
    return [f"{name}=={pins[name]}" for name in names if name not in without]


def without_wheel(platform: str) -> list[str]:
    """The requirements that have no wheel for a platform."""
    missing: list[str] = []
    asked, tags = needed(platform), PLATFORMS[platform]
    while asked:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
            command += ["--only-binary=:all:", f"--python-version={PYTHON}", "--no-deps", "--dest", folder]
            done = subprocess.run(
                [*command, *(f"--platform={tag}" for tag in tags), *asked], capture_output=True, text=True,
                check=False,
            )  # fmt: skip
        if not done.returncode:
            break
        found = re.search(r"No matching distribution found for ([A-Za-z0-9._-]+)==", done.stderr)
        if found is None:
            raise SystemExit(f"pip gave no answer that is understood:\n{done.stderr[-2000:]}")
        missing.append(canonicalize_name(found[1]))
        asked = [one for one in asked if one.partition("==")[0] != missing[-1]]
    return missing


def main() -> int:
    """Ask for each platform."""
    new = []
    print(f"| platform | run-time requirements | of these, without a wheel for Python {PYTHON} |")
    print("|---|--:|---|")
    for platform in sys.argv[1:] or PLATFORMS:
        missing = without_wheel(platform)
        print(f"| {platform} | {len(needed(platform))} | {', '.join(missing) or 'none'} |", flush=True)
        new += [f"{name} on {platform}" for name in missing]
    for one in new:
        print(f"no wheel: {one}", file=sys.stderr)
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
