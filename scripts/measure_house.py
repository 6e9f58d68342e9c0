"""How large the files and functions of a Python package are: one row of the table in docs/design.md.

    measure_house.py FOLDER…      prints one row each
    measure_house.py              writes the row of `ctxctl` into the page

Lines are those of the files as they are, comments and blank ones included; an empty file is none.  A function
is measured from its `def` to its last line, methods and inner functions too, decorators not.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent


def row(folder: Path) -> str:
    """Return the folder's row: its files and their lines, then how long files and functions are."""
    files, functions = [], []
    for path in sorted(folder.rglob("*.py")):
        data = path.read_bytes()
        if not data.strip():
            continue
        files.append(len(data.splitlines()))
        functions += [
            (node.end_lineno or node.lineno) - node.lineno + 1
            for node in ast.walk(ast.parse(data))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    functions.sort()
    tall = f"{median(functions):.0f} / {functions[len(functions) * 9 // 10]} / {functions[-1]}"
    return f"| {folder.name} | {len(files)} / {round(sum(files) / 1000)}k | {median(files):.0f} | {tall} |"


def main() -> int:
    """Print the rows of the folders named on the command line, or write that of the package."""
    for name in sys.argv[1:]:
        print(row(Path(name).resolve()))
    if not sys.argv[1:]:
        page = ROOT / "docs" / "design.md"
        lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
        ours = next(n for n, line in enumerate(lines) if line.startswith("| ctxctl | "))
        lines[ours] = row(ROOT / "ctxctl") + "\n"
        page.write_text("".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
