"""Build the documentation as a site (run by ``make site``): ``docs_site.py [--out DIR]``.

The pages are those of docs/ and a few of the root, in the order of `SECTIONS`; nothing in them is written for
the site.  Links between them stay, links to what is no page become plain words, and a page that no section
names is an error.  Zensical builds it and checks links and anchors.  Afterwards each page is held to load
nothing from another host; a Content-Security-Policy in it says the same to the browser.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

# Each page by its path in the repository, under the name that the navigation has for it.
SECTIONS: Final[dict[str, dict[str, str]]] = {
    "First steps": {
        "What it is": "README.md",
        "Tutorial": "docs/tutorial.md",
        "Twelve questions": "docs/questions.md",
        "The terminal UI": "docs/ui.md",
        "Finding a session": "docs/ls.md",
    },
    "Recordings": {
        "Captures": "docs/captures.md",
        "Recording a session": "docs/recording.md",
        "Watching a live session": "docs/watch.md",
        "What a log leaves out": "docs/learn.md",
        "Formats": "docs/formats/README.md",
    },
    "What happened": {
        "Searching a trace": "docs/search.md",
        "Why is it (not) there?": "docs/why.md",
        "Blame": "docs/blame.md",
        "Compactions": "docs/compactions.md",
        "Two sessions": "docs/sessions.md",
        "Cost": "docs/cost.md",
        "The possible prefix": "docs/prefix.md",
    },
    "What would happen": {
        "What if": "docs/whatif.md",
        "Policies": "docs/policies.md",
        "Budgets": "docs/budget.md",
        "Limits": "docs/limits.md",
        "Models": "docs/models.md",
        "Calibration": "docs/calibration.md",
        "Four long sessions": "docs/true-window.md",
    },
    "Many sessions": {
        "Many captures as one dataset": "docs/fleet.md",
        "Its tables and questions": "docs/fleet-reference.md",
    },
    "Checks": {
        "Lint": "docs/lint.md",
        "A gate for recorded sessions": "docs/check.md",
        "Tests of your own": "docs/testing.md",
    },
    "Reference": {
        "The command line": "docs/cli.md",
        "JSON output": "docs/json.md",
        "SQL": "docs/sql.md",
        "Exports": "docs/export.md",
        "The trace format": "docs/format.md",
        "Messages": "docs/messages.md",
        "What is kept between runs": "docs/cache.md",
        "The session store": "docs/store.md",
        "Benchmarks": "docs/benchmarks.md",
        "Beside other tools": "docs/benchmarks-peers.md",
        "Under load for minutes": "docs/benchmarks-soak.md",
        "A fleet into a dataset": "docs/benchmarks-fleet.md",
        "Changes": "CHANGELOG.md",
    },
    "Working on ctxctl": {
        "Contributing": "CONTRIBUTING.md",
        "For who works on the code": "AGENTS.md",
        "Design": "docs/design.md",
        "Where is …?": "docs/where.md",
        "Writing an importer": "docs/importers.md",
        "Releasing": "docs/releasing.md",
        "Security": "SECURITY.md",
    },
}
# What pages link to beside pages.
ASSETS: Final = ("docs/screenshots", "docs/examples", "docs/json.schema.json")
_NAMES: Final = {"README.md": "index.md", "docs/formats/README.md": "formats/index.md"}

CONFIG: Final = """[project]
site_name = "ctxctl"
site_description = "What an LLM saw on each turn, why, and what it cost"
docs_dir = "source"
site_dir = "site"
use_directory_urls = false
nav = {nav}

[project.validation]
invalid_links = true
invalid_link_anchors = true

[project.theme]
custom_dir = "theme"
font = false
features = ["content.code.copy", "navigation.footer", "navigation.top", "toc.follow"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle = {{ icon = "lucide/moon", name = "Dark" }}

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle = {{ icon = "lucide/sun", name = "Light" }}

[project.markdown_extensions.toc]
permalink = true
slugify = {{ object = "pymdownx.slugs.slugify", kwds = {{ case = "lower" }} }}

[project.markdown_extensions.pymdownx.highlight]
pygments_lang_class = true

[project.markdown_extensions.pymdownx.superfences]
"""

_LINK: Final = re.compile(r"(!?)\[((?:[^\]\\\[]|\\.|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_FENCE: Final = re.compile(r"\s*(```|~~~)")
_CODE: Final = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_ITEM: Final = re.compile(r"(?:[-*]|\d+\.) ")


class SiteError(Exception):
    """What keeps the site from being built."""


def pages() -> dict[str, str]:
    """Path in the site by path in the repository, in the order of the navigation."""
    named = [path for section in SECTIONS.values() for path in section.values()]
    formats = sorted(
        f"docs/formats/{one.name}"
        for one in (ROOT / "docs" / "formats").glob("*.md")
        if one.name != "README.md"
    )
    return {path: _NAMES.get(path, path.removeprefix("docs/")) for path in named + formats}


def forgotten() -> list[str]:
    """Pages of docs/ that no section names."""
    known = pages()
    here = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md")))
    return [path for path in here if path not in known]


def navigation() -> list[dict[str, object]]:
    """The navigation as Zensical has it: the pages of formats below their own page."""
    known = pages()
    found: list[dict[str, object]] = []
    for title, section in SECTIONS.items():
        entries: list[object] = []
        for name, path in section.items():
            if path == "docs/formats/README.md":
                below = [{Path(site).stem: site} for site in known.values() if site.startswith("formats/")]
                entries.append({name: [known[path], *below[1:]]})
            else:
                entries.append({name: known[path]})
        found.append({title: entries})
    return found


def assemble(target: Path) -> None:
    """Write the pages, with links as the site has them, and what they link to below `target`."""
    if missing := forgotten():
        raise SiteError(f"no section of scripts/docs_site.py names {', '.join(missing)}")
    for path, site in pages().items():
        page = target / site
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(rewritten((ROOT / path).read_text(encoding="utf-8"), path), encoding="utf-8")
    for name in ASSETS:
        source, copy = ROOT / name, target / name.removeprefix("docs/")
        if source.is_dir():
            shutil.copytree(source, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)


def rewritten(text: str, path: str) -> str:
    """A page as the site's Markdown reads it as GitHub does: links, lists and bars in the code of tables."""
    lines, fenced, before = [], False, ""
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            line = _outside_code(line, path)
            if _ITEM.match(line) and before.strip() and not _in_list(before):
                lines.append("")
        lines.append(line)
        before = line
    return "\n".join(lines) + "\n"


def _in_list(line: str) -> bool:
    return _ITEM.match(line) is not None or line.startswith(" ")


def _outside_code(line: str, path: str) -> str:
    """A line with its links rewritten where they are no code."""
    if line.lstrip().startswith("|"):
        line = _CODE.sub(lambda code: code[0].replace("\\|", "|"), line)
    return _LINK.sub(lambda link: _linked(link, path), line)


def _linked(link: re.Match[str], path: str) -> str:
    mark, words, address = link.groups()
    if "://" in address or address.startswith(("#", "mailto:")):
        return link[0]
    known = pages()
    named, hash_, anchor = address.partition("#")
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), named))
    if not (ROOT / wanted).exists():
        raise SiteError(f"{path} links to {address}, which is not there")
    here = posixpath.dirname(known[path])
    to = known.get(wanted)
    if to is None and any(wanted == asset or wanted.startswith(f"{asset}/") for asset in ASSETS):
        to = wanted.removeprefix("docs/")
    return words if to is None else f"{mark}[{words}]({posixpath.relpath(to, here or '.')}{hash_}{anchor})"


class _Loads(HTMLParser):
    """What a page makes a browser load, and whether it forbids other hosts."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses that the element loads by itself."""
        said = {name: value or "" for name, value in attrs}
        if tag == "meta" and said.get("http-equiv", "").lower() == "content-security-policy":
            self.policy = said.get("content", "")
        names = ["src", "srcset", "poster", "data", "action", "formaction"]
        if tag == "link" and said.get("rel") not in {"canonical", "prev", "next", "edit"}:
            names.append("href")
        self.addresses += [said[name] for name in names if name in said]
        self.addresses += _FROM_STYLE.findall(said.get("style", ""))

    def handle_data(self, data: str) -> None:
        """Note what style sheets in the page load."""
        if self.lasttag == "style":
            self.addresses += _FROM_STYLE.findall(data)


_FROM_STYLE: Final = re.compile(r"(?:url\(\s*[\"']?|@import\s+[\"'])([^\"')]+)", re.IGNORECASE)
_FOREIGN: Final = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
POLICY: Final = "default-src 'self' data: blob: 'unsafe-inline'"


def foreign(name: str, text: str) -> Iterator[str]:
    """What a page or a style sheet would load from another host, and a page without the policy."""
    if name.endswith(".css"):
        addresses = _FROM_STYLE.findall(text)
    else:
        page = _Loads()
        page.feed(text)
        addresses = page.addresses
        if page.policy != POLICY:
            yield f"{name}: does not forbid other hosts"
    yield from (f"{name}: loads {one}" for one in addresses if _FOREIGN.match(one))


def loads_of(site: Path) -> list[str]:
    """The same of a whole site."""
    found = [one for kind in ("*.html", "*.css", "*.svg") for one in sorted(site.rglob(kind))]
    return [
        said
        for one in found
        for said in foreign(one.relative_to(site).as_posix(), one.read_text(encoding="utf-8"))
        if one.suffix != ".svg" or "forbid" not in said
    ]


def build(out: Path, work: Path) -> None:
    """Assemble the pages in `work`, and build the site in `out`."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
    assemble(work / "source")
    theme = work / "theme"
    theme.mkdir()
    (theme / "main.html").write_text(
        '{% extends "base.html" %}\n{% block extrahead %}\n{{ super() }}\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n{{% endblock %}}\n',
        encoding="utf-8",
    )
    config = work / "zensical.toml"
    config.write_text(CONFIG.format(nav=_toml(navigation())), encoding="utf-8")
    program = Path(sys.executable).parent / "zensical"
    command = [str(program), "build", "--clean", "--strict", "--config-file", str(config)]
    if subprocess.run(command, cwd=work).returncode:
        raise SiteError("Zensical could not build the site, or a link leads nowhere: see above")
    if found := loads_of(work / "site"):
        raise SiteError("\n".join(found))
    shutil.move(work / "site", out)


def _toml(value: object) -> str:
    """A value as TOML; strings are written as in JSON, which TOML reads the same."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def main() -> int:
    """Build it; 1 with what is wrong where it cannot be built."""
    parser = argparse.ArgumentParser(description="Build the documentation as a site.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="where to")
    out = parser.parse_args().out.resolve()
    try:
        build(out, ROOT / "build" / "site-work")
    except SiteError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{out}/index.html: {sum(1 for _ in out.rglob('*.html'))} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
