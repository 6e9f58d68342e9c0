"""Resolve the dependencies of pyproject.toml into the requirements files (run by ``make lock``).

The files hold versions and hashes and never an address: where packages come from is the business of the
machine that installs them.  They are universal: one resolution for every supported Python and platform.
``requirements.txt`` runs a checkout with the extra `all`; ``requirements-dev.txt`` is a superset with every
extra but Ray, and the same versions.  ``requirements-site.txt`` has what ``make site`` builds the
documentation with, in an environment of its own.  The packages that hooks are tested with have files of
their own, as their needs clash: each ``NAME.in`` in tests/frameworks gives ``requirements-NAME.txt`` beside
it; what ctxctl needs has the same versions there.  A line ``# python: 3.13`` in one of them says that its
packages need that at least.  So does what `make fuzz-parsers` needs, in tools/fuzz.

    lock.py             keep what still fits
    lock.py --upgrade   take the newest of everything that fits
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = Path(sys.executable).parent / "uv"
RUN, DEV, SITE = "requirements.txt", "requirements-dev.txt", "requirements-site.txt"
BESIDE = (ROOT / "tests" / "frameworks", ROOT / "tools" / "fuzz")

APART = ("ray",)
PYTHON = "3.11"
NEEDS = "# python: "
OPTIONS = (
    "--quiet",
    "--universal",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-annotate",
    "--custom-compile-command=make lock",
)


def resolve(output: str, *more: str, python: str = PYTHON, project: bool = True) -> str:
    """Write one file; versions already in it are kept unless an option says otherwise.

    `project`: with what ctxctl itself needs.
    """
    needs = ["pyproject.toml"] if project else []
    command = [str(UV), "pip", "compile", *needs, *OPTIONS, f"--python-version={python}", *more]
    command += ["--output-file", output]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return output


def beside(*options: str) -> list[str]:
    """Write the files of the environments that hooks are tested in, and parsers are fuzzed in."""
    made = []
    for source in (source for folder in BESIDE for source in sorted(folder.glob("*.in"))):
        name = source.relative_to(ROOT)
        output = name.with_name(f"requirements-{source.stem}.txt")
        made.append(
            resolve(str(output), str(name), f"--constraints={RUN}", *options, python=python_of(source))
        )
    return made


def python_of(source: Path) -> str:
    """The least Python that an environment needs; the Makefile reads the same line."""
    named = [line for line in source.read_text(encoding="utf-8").splitlines() if line.startswith(NEEDS)]
    return named[0].removeprefix(NEEDS).strip() if named else PYTHON


def extras() -> list[str]:
    """All extras, as options, but for those that only an environment of their own has: Ray alone is 80 MB."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [f"--extra={name}" for name in project["optional-dependencies"] if name not in APART]


def main() -> int:
    """Write all files; the others are bound to the first one's versions."""
    options = sys.argv[1:]
    made = [
        resolve(RUN, "--extra=all", "--group=build", *options),
        resolve(DEV, *extras(), "--group=dev", f"--constraints={RUN}", *options),
        resolve(SITE, "--group=site", *options, project=False),
        *beside(*options),
        resolve("scripts/requirements-audit.txt", "scripts/audit.in", *options, project=False),
    ]
    for name in made:
        text = (ROOT / name).read_text(encoding="utf-8")
        if "://" in text or "-url" in text:
            print(f"{name} holds an address: not fit to be committed", file=sys.stderr)
            return 1
        print(f"{name}: {sum(line[:1].isalnum() for line in text.splitlines())} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
