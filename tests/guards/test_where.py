"""What the docs say of where things are is so: rooms by their names, and questions answered by modules."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import ctxctl

PACKAGE = Path(ctxctl.__file__).parent
DOCS = PACKAGE.parent / "docs"
ENTRY = frozenset({"__init__", "__main__"})
"""What a package has besides rooms."""
NO_MODULES = frozenset({"ctxctl.record.dropped", "ctxctl.session.ended", "ctxctl.lint.ignore"})
"""Types of events and settings that are spelled as modules are."""


def rooms() -> set[str]:
    """Return the folders of the package, and the modules that stand beside them."""
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return folders | {path.stem for path in PACKAGE.glob("*.py")} - ENTRY


def room_table() -> list[str]:
    """Return the rooms that design.md describes, in its order, the top floor first."""
    section = re.search(
        r"^## 7\..*?(?=^## )", (DOCS / "design.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert section is not None
    return re.findall(r"^\| `([a-z_]+)` \|", section.group(), re.MULTILINE)


def questions() -> dict[str, str]:
    """Return what where.md asks, and the module that each question is answered with."""
    page = (DOCS / "where.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| (.+?\?) \| `([\w.]+)` \|$", page, re.MULTILINE))


def pages() -> list[Path]:
    """Return every page that speaks of the code as it is; the changelog speaks of how it was."""
    root = PACKAGE.parent
    found = [*DOCS.rglob("*.md"), *root.glob("*.md"), *(root / ".github").rglob("*.md")]
    return [path for path in found if path.name != "CHANGELOG.md"]


def named(page: str) -> set[str]:
    """Return the modules, and the names in them, that a page speaks of by their dotted names."""
    found = re.findall(r"\bctxctl(?:\.[A-Za-z_]+)+", page)
    return {name for name in found if name.split(".")[1] in rooms()} - NO_MODULES


def is_there(name: str) -> bool:
    """Whether a dotted name is that of a module, or of something defined or imported at the top of one."""
    if file_of(name).is_file():
        return True
    module, _, own = name.rpartition(".")
    path = file_of(module)
    if not path.is_file():
        return False
    defined = rf"^(?:class |def |from .* import .*\b)?{own}\b"
    return re.search(defined, path.read_text(encoding="utf-8"), re.MULTILINE) is not None


def file_of(module: str) -> Path:
    path = PACKAGE.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def test_the_design_describes_each_room_once() -> None:
    assert Counter(room_table()) == Counter(rooms())


def test_the_design_lists_the_rooms_in_the_order_of_the_floors() -> None:
    import tomllib

    contracts = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    layers = next(
        one["layers"] for one in contracts["importlinter"]["contracts"] if one["containers"] == ["ctxctl"]
    )
    floor = {room: n for n, layer in enumerate(layers) for room in re.findall(r"[a-z_]+", layer)}
    floors = [floor[room] for room in room_table()]
    assert floors == sorted(floors)


def test_the_tests_stand_in_the_rooms_that_they_are_of() -> None:
    """So `make quick ROOM=engine` finds them."""
    folders = {path.parent.name for path in (PACKAGE.parent / "tests" / "unit").glob("*/test_*.py")}
    assert folders
    assert folders - rooms() == set()


def test_every_question_is_answered_by_a_module_that_says_what_it_is() -> None:
    silent = {}
    for question, module in questions().items():
        path = file_of(module)
        if not path.is_file():
            silent[question] = f"{module} is not there"
        elif not ast.get_docstring(ast.parse(path.read_bytes())):
            silent[question] = f"{module} has no docstring"
    assert silent == {}


def test_no_row_of_the_questions_is_passed_over() -> None:
    rows = re.findall(r"^\| .*\?.*", (DOCS / "where.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len(questions()) >= 20


def test_each_room_is_asked_about() -> None:
    asked = {module.split(".")[1] for module in questions().values()}
    assert rooms() - asked == set()


def test_one_module_answers_one_question() -> None:
    assert [module for module, times in Counter(questions().values()).items() if times > 1] == []


def test_what_a_page_names_by_its_dotted_name_is_there() -> None:
    assert is_there("ctxctl.text.visible")
    assert not is_there("ctxctl.text.not_there")
    gone = {
        f"{page.relative_to(PACKAGE.parent)}: {name}"
        for page in pages()
        for name in named(page.read_text(encoding="utf-8"))
        if not is_there(name)
    }
    assert gone == set()


def test_what_a_page_names_by_its_path_is_there() -> None:
    gone = {
        f"{page.relative_to(PACKAGE.parent)}: {path}"
        for page in pages()
        for path in re.findall(
            r"(?<![\w./-])(?:ctxctl|scripts)/[\w./-]*\.py", page.read_text(encoding="utf-8")
        )
        if not (PACKAGE.parent / path).exists()
    }
    assert gone == set()
