"""What is known against the locked packages, and under which licences they are (run by ``make audit``).

    audit.py TOOLS [LICENCES.md]    TOOLS: the folder of pip-audit; the list of licences is written to a file

The locks are all files of requirements with hashes that there are.  Exits 1 where an advisory speaks of a
locked version, where a licence is none of those that are allowed, or where some packages could not be looked
up.  Where none could, the index of advisories cannot be reached from here: that is said, and is a failure
where ``CI`` is set, as there nobody reads what a green run says.

Advisories on what `APART` holds are printed and are no failure: these packages run in an environment of their
own, on inputs that the tests make, and some are old on purpose, as hooks are tested with what people have.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RUN = "requirements.txt"
APART = ("tests/", "tools/")
NOT_OURS = re.compile(r"\.|build$|dist$|node_modules$")
"""Folders whose files are not the project's: environments, caches, outputs."""
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
ALLOWED = re.compile(
    r"MIT|BSD|Apache|PSF|Python-2\.0|Python Software Foundation|ISC|MPL|Mozilla|Unlicense|0BSD|CC0", re.I
)
"""Permissive ones, and the Mozilla licence, whose files nobody changes here."""

COPYLEFT = re.compile(r"\b[AL]?GPL|General Public", re.I)


def locks(top: Path = ROOT) -> list[str]:
    """All locks, the one of what runs first: by what is in them, so that none can be forgotten."""
    found = []
    for folder, inner, files in os.walk(top):
        inner[:] = sorted(name for name in inner if not NOT_OURS.match(name))
        paths = (Path(folder, name) for name in sorted(files) if name.endswith(".txt"))
        found += [str(path.relative_to(top)) for path in paths if is_lock(path)]
    return sorted(found, key=lambda name: (name != RUN, name.startswith(APART), name))


def is_lock(path: Path) -> bool:
    """Whether a file has requirements with versions and hashes."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return "--hash=sha256:" in text and PIN.search(text) is not None


def locked(lock: str) -> dict[str, str]:
    """The packages of a lock and their versions."""
    return dict(PIN.findall((ROOT / lock).read_text(encoding="utf-8")))


def advisories(tools: Path, lock: str) -> dict[str, Any]:
    """What pip-audit says of a lock."""
    command = [
        str(tools / "pip-audit"), "--requirement", str(ROOT / lock), "--disable-pip", "--require-hashes",
        "--format", "json", "--progress-spinner", "off",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        if re.search(r"ConnectionError|ServiceError|timed out|Name or service|Max retries", done.stderr):
            return {"dependencies": [{"name": name, "skip_reason": "no answer"} for name in locked(lock)]}
        raise SystemExit(f"pip-audit gave no answer:\n{done.stderr[-2000:]}") from None
    return found


def told(lock: str, found: dict[str, Any], *, needed: bool) -> int:
    """Print what is known against the packages of a lock; how many of these things are failures.

    `needed`: whether an index that cannot be reached is one.
    """
    packages = found["dependencies"]
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    known = [(one, fault) for one in packages for fault in one.get("vulns", ())]
    for one, fault in known:
        fixed = ", ".join(fault["fix_versions"]) or "none"
        apart = ", which only tests install: no failure" if lock.startswith(APART) else ""
        print(f"{lock}: {one['name']} {one['version']}: {fault['id']} (mended in: {fixed}){apart}")
    if skipped and len(skipped) == len(packages):
        print(f"{lock}: NOT LOOKED UP: the index of advisories cannot be reached from here")
        return int(needed)
    if skipped:
        print(f"{lock}: not looked up: {', '.join(skipped)}")
    if not known and not skipped:
        print(f"{lock}: nothing is known against {len(packages)} packages")
    return (0 if lock.startswith(APART) else len(known)) + len(skipped)


def licence_of(name: str) -> str:
    """What a package says of its licence in one line; empty where it says nothing or is not installed."""
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    classified = [
        one.rpartition(" :: ")[2] for one in about.get_all("Classifier", []) if one.startswith("License")
    ]
    said = about.get("License-Expression") or "; ".join(classified) or about.get("License") or ""
    return " ".join(said.split())[:80]


def licences(out: Path | None) -> int:
    """Print or write the licences of what runs; how many are not allowed or not known."""
    rows = [(name, version, licence_of(name)) for name, version in sorted(locked(RUN).items())]
    lines = ["| package | version | licence |", "|---|---|---|"]
    lines += [
        f"| {name} | {version} | {said or 'not installed on this platform'} |" for name, version, said in rows
    ]
    text = "\n".join(lines) + "\n"
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="utf-8")
    wrong = [
        (name, said) for name, _, said in rows if said and (COPYLEFT.search(said) or not ALLOWED.search(said))
    ]
    for name, said in wrong:
        print(f"{name}: {said}: not among the licences that are allowed", file=sys.stderr)
    return len(wrong)


def main() -> int:
    """Audit the locks, then the licences."""
    tools = Path(sys.argv[1])
    needed = bool(os.environ.get("CI"))
    faults = sum(told(lock, advisories(tools, lock), needed=needed) for lock in locks())
    faults += licences(Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
