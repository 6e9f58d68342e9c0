"""Whether all that runs with ctxctl installs without a compiler, by platform and Python (``make wheels``).

    wheels.py [PLATFORM…]    all platforms, or those that are named (linux-arm64)

Asks uv whether it could install the whole lock of what runs, wheels alone, for each platform and each Python
that the package declares, and prints a table of the packages that have none.  Exits 1 if there is one.  What
the wheels for musl do not require is not asked for there (`musl_wheels.WITHOUT`).  Nothing is installed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.utils import canonicalize_name

sys.path.insert(0, str(Path(__file__).parent))
from musl_wheels import WITHOUT

ROOT = Path(__file__).resolve().parent.parent
UV = Path(sys.executable).parent / "uv"
LOCK = "requirements.txt"
PLATFORMS = {
    "linux-x86_64": "x86_64-manylinux_2_28",
    "linux-arm64": "aarch64-manylinux_2_28",
    "macos-arm64": "aarch64-apple-darwin",
    "macos-x86_64": "x86_64-apple-darwin",
    "alpine-x86_64": "x86_64-unknown-linux-musl",
    "alpine-arm64": "aarch64-unknown-linux-musl",
}
"""By the name that is printed, what uv calls it."""
ENTRY = re.compile(r"\n(?=[A-Za-z0-9])")
MISSING = re.compile(r"\b([A-Za-z0-9._-]+)==\S+ has no (?:usable )?wheels")


def pythons() -> list[str]:
    """The versions of Python that the package declares."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [
        one.rpartition(" :: ")[2] for one in project["classifiers"] if re.search(r":: Python :: 3\.\d+$", one)
    ]


def needed(platform: str) -> dict[str, str]:
    """The lock's entries for a platform, with their hashes, by the name of the package."""
    entries = ENTRY.split((ROOT / LOCK).read_text(encoding="utf-8"))
    found = {canonicalize_name(one.partition("==")[0]): one for one in entries if one[:1].isalnum()}
    without = WITHOUT if platform.startswith("alpine-") else frozenset()
    return {name: entry for name, entry in found.items() if name not in without}


def without_wheel(platform: str, python: str) -> list[str]:
    """The packages of the lock that have no wheel for a platform and a Python."""
    missing: list[str] = []
    asked = needed(platform)
    while asked:
        options = ["--python-platform", PLATFORMS[platform], "--python-version", python]
        # The first time, uv also sees whether the lock holds all that its packages need there.
        told = asked_uv("\n".join(asked.values()), [*options, "--no-deps"] if missing else options)
        if told is None:
            break
        found = MISSING.search(told)
        if found is None or canonicalize_name(found[1]) not in asked:
            raise SystemExit(f"uv gave no answer that is understood:\n{told[-2000:]}")
        missing.append(canonicalize_name(found[1]))
        del asked[missing[-1]]
    return missing


def asked_uv(lock: str, options: list[str]) -> str | None:
    """What uv has against installing a lock; None: nothing."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "lock.txt").write_text(f"{lock}\n", encoding="utf-8")
        command = [str(UV), "pip", "install", "--dry-run", "--target", f"{folder}/target", *options]
        command += ["--only-binary", ":all:", "--require-hashes", "--requirement", f"{folder}/lock.txt"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else None


def main() -> int:
    """Ask for each platform and Python."""
    new = []
    print("| platform | packages | Python | of these, without a wheel |")
    print("|---|--:|---|---|")
    for platform in sys.argv[1:] or PLATFORMS:
        for python in pythons():
            missing = without_wheel(platform, python)
            told = ", ".join(missing) or "none"
            print(f"| {platform} | {len(needed(platform))} | {python} | {told} |", flush=True)
            new += [f"{name} on {platform}, Python {python}" for name in missing]
    for one in new:
        print(f"no wheel: {one}", file=sys.stderr)
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
