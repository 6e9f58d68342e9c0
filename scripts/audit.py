"""What is known against the locked packages, and under which licences they are (run by ``make audit``).

    audit.py TOOLS [LICENCES.md]    TOOLS: the folder of pip-audit; the list of licences is written to a file

Exits 1 where an advisory speaks of a locked version, where a licence is none of those that are allowed, or
where some packages could not be looked up.  Where none could, the index of advisories cannot be reached from
here: that is said, and is no failure.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements.txt", "requirements-dev.txt")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
ALLOWED = re.compile(
    r"MIT|BSD|Apache|PSF|Python-2\.0|Python Software Foundation|ISC|MPL|Mozilla|Unlicense|0BSD|CC0", re.I
)
"""Permissive ones, and the Mozilla licence, whose files nobody changes here."""

COPYLEFT = re.compile(r"\b[AL]?GPL|General Public", re.I)


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


def told(lock: str, found: dict[str, Any]) -> int:
    """Print what is known against the packages of a lock; how many of these things are failures."""
    packages = found["dependencies"]
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    known = [(one, fault) for one in packages for fault in one.get("vulns", ())]
    for one, fault in known:
        fixed = ", ".join(fault["fix_versions"]) or "none"
        print(f"{lock}: {one['name']} {one['version']}: {fault['id']} (mended in: {fixed})")
    if skipped and len(skipped) == len(packages):
        print(f"{lock}: NOT LOOKED UP: the index of advisories cannot be reached from here")
        return 0
    if skipped:
        print(f"{lock}: not looked up: {', '.join(skipped)}")
    if not known and not skipped:
        print(f"{lock}: nothing is known against {len(packages)} packages")
    return len(known) + len(skipped)


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
    rows = [(name, version, licence_of(name)) for name, version in sorted(locked(LOCKS[0]).items())]
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
    faults = sum(told(lock, advisories(tools, lock)) for lock in LOCKS)
    faults += licences(Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
