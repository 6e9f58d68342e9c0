"""Which language a text is in, and its colours.  Plain Python, run in the loader's threads.

The language is told by what the item says of itself (mime type, file name) or by what the text plainly is,
never guessed from words.  A highlighter's patterns were not made for hostile text: how much it gets, how many
tokens it may find and how long it may take are bounded, and what is left stays plain.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from time import thread_time
from typing import TYPE_CHECKING, Any, Final

from ctxctl.tui.spans import Spans

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST: Final = 1 << 18
"""Characters up to which a text is coloured."""
_LONGEST: Final = 4000
"""Characters of a line up to which a text is coloured."""
_TOKENS: Final = 150_000
_SECONDS: Final = 0.5
"""Processor time that the colours of one text may take."""
_CHECK: Final = 500

Check = Callable[[], None]

_BY_SUFFIX: Final = {
    "py": "python", "pyi": "python", "pyx": "cython", "js": "javascript", "mjs": "javascript",
    "cjs": "javascript", "jsx": "jsx", "ts": "typescript", "tsx": "tsx", "rs": "rust", "go": "go", "c": "c",
    "h": "c", "cc": "cpp", "cpp": "cpp", "cxx": "cpp", "hpp": "cpp", "hh": "cpp", "java": "java",
    "kt": "kotlin", "kts": "kotlin", "swift": "swift", "rb": "ruby", "php": "php", "cs": "csharp",
    "fs": "fsharp", "scala": "scala", "sh": "bash", "bash": "bash", "zsh": "bash", "fish": "fish",
    "ps1": "powershell", "sql": "sql", "html": "html", "htm": "html", "xml": "xml", "svg": "xml",
    "css": "css", "scss": "scss", "less": "less", "toml": "toml", "ini": "ini", "cfg": "ini", "yaml": "yaml",
    "yml": "yaml", "md": "markdown", "markdown": "markdown", "rst": "rst", "tex": "latex", "lua": "lua",
    "pl": "perl", "r": "r", "jl": "julia", "ex": "elixir", "exs": "elixir", "erl": "erlang", "hs": "haskell",
    "ml": "ocaml", "clj": "clojure", "dart": "dart", "vue": "html", "zig": "zig", "nix": "nix", "tf": "hcl",
    "proto": "protobuf", "graphql": "graphql", "diff": "diff", "patch": "diff", "json": "json",
    "jsonl": "json", "mk": "make", "cmake": "cmake", "gradle": "groovy", "groovy": "groovy", "bat": "batch",
    "vim": "vim", "sol": "solidity",
}  # fmt: skip
"""Pygments' names by the ends of file names."""
_BY_MIME: Final = {
    "application/json": "json", "application/javascript": "javascript", "text/javascript": "javascript",
    "application/typescript": "typescript", "application/xml": "xml", "text/xml": "xml", "text/html": "html",
    "text/css": "css", "text/markdown": "markdown", "text/x-python": "python",
    "application/x-python": "python", "application/x-sh": "bash", "text/x-sh": "bash",
    "application/yaml": "yaml", "application/x-yaml": "yaml",
    "text/yaml": "yaml", "application/toml": "toml", "application/sql": "sql", "text/x-diff": "diff",
    "text/x-patch": "diff", "text/x-rust": "rust", "text/x-go": "go", "text/x-c": "c", "text/x-c++": "cpp",
    "text/x-java": "java", "text/x-ruby": "ruby",
}  # fmt: skip
_WHOLE: Final = {"dockerfile": "docker", "makefile": "make", "gnumakefile": "make", "cmakelists.txt": "cmake"}
_NAME: Final = re.compile(
    r"[\w@%+~-][\w@%+~. -]*\.(\w{1,10})(?=$|[\s\"'`)\],;:#?])|\b(Dockerfile|Makefile|GNUmakefile)\b"
)
_LOOKED: Final = 400
"""Characters of a title or source in which a file name is looked for."""
_PROSE: Final = frozenset(
    {"system_prompt", "user_message", "assistant_message", "reasoning", "thread_summary", "manual_note",
     "developer_instruction", "working_memory", "durable_memory", "computed_summary", "peer_agent_message"}
)  # fmt: skip
"""Kinds that people and models write, as Markdown if as anything."""

_FILES: Final = frozenset(
    {"file_excerpt", "document_excerpt", "artifact_ref", "external_resource", "knowledge_pack_item"}
)
"""Kinds that are the text of a file."""
_READS: Final = re.compile(
    r"[/~.\w-]+\.\w{1,10}\Z|\W*(?:read|view|open|cat|get|fetch|show|write|edit|create|update|multiedit|apply)"
    r"(?:[_ -]?(?:file|contents?|text))*\b",
    re.IGNORECASE,
)
"""Titles of tools that show or change one file, and titles that are a path."""

_HUNK: Final = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_FROM: Final = re.compile(r"^(?:diff --git |--- )\S", re.MULTILINE)

_STYLES: Final = {
    "Token.Comment": "syntax-comment",
    "Token.Keyword": "syntax-keyword",
    "Token.Operator.Word": "syntax-keyword",
    "Token.Name.Tag": "syntax-key",
    "Token.Name.Attribute": "syntax-key",
    "Token.Name.Function": "syntax-name",
    "Token.Name.Class": "syntax-name",
    "Token.Name.Decorator": "syntax-name",
    "Token.Name.Builtin": "syntax-keyword",
    "Token.Literal.String": "syntax-string",
    "Token.Literal.Number": "syntax-number",
    "Token.Generic.Heading": "syntax-heading",
    "Token.Generic.Subheading": "syntax-heading",
    "Token.Generic.Strong": "syntax-strong",
    "Token.Generic.Emph": "syntax-strong",
}


def language(text: str, kind: str, mime: str | None, title: str | None, source: str | None) -> str:
    """The name of the text's language, by its mime type, the file it is from, or by what it plainly is.

    Empty where nothing tells.  A file that a prompt or a command only mentions is not what its text is from.
    """
    found = _BY_MIME.get((mime or "").partition(";")[0].strip().lower(), "")
    if found:
        return found
    head = text[:20_000]
    if _HUNK.search(head) and _FROM.search(head):
        return "diff"
    if kind in _PROSE:
        return "markdown"
    if title and (kind in _FILES or _READS.match(title)):
        found = _by_name(title)
    return found or _by_name(source or "")


def _by_name(name: str) -> str:
    for match in _NAME.finditer(name[:_LOOKED]):
        found = _WHOLE.get((match[2] or "").lower()) or _BY_SUFFIX.get((match[1] or "").lower())
        if found:
            return found
    return ""


def coloured(text: str, name: str, check: Check | None = None) -> tuple[Spans, str]:
    """The colours of a text, and a remark where they are left out or stop early."""
    if not name or name == "json":
        return Spans(), ""
    if len(text) > LARGEST:
        return Spans(), "too large for colours"
    if name == "diff":
        return _diff(text), ""
    if name == "markdown":
        return _markdown(text), ""
    if max(map(len, text.split("\n")), default=0) > _LONGEST:
        return Spans(), "lines too long for colours"
    return _by_pygments(text, name, check)


def _by_pygments(text: str, name: str, check: Check | None) -> tuple[Spans, str]:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(name)
    except ClassNotFound:
        return Spans(), ""
    spans = Spans()
    started = thread_time()
    styles: dict[Any, str] = {}
    tokens: Iterator[tuple[int, Any, str]] = lexer.get_tokens_unprocessed(text)
    for n, (at, kind, value) in enumerate(tokens):
        if n % _CHECK == 0:
            if check is not None:
                check()
            if n > _TOKENS or thread_time() - started > _SECONDS:
                return spans, "coloured in part"
        style = styles.get(kind)
        if style is None:
            style = styles[kind] = _style(str(kind))
        if style:
            spans.add(at, at + len(value), style)
    return spans, ""


def _style(kind: str) -> str:
    """The style of a kind of token, or of the nearest wider one that has any."""
    while kind:
        if kind in _STYLES:
            return _STYLES[kind]
        kind = kind.rpartition(".")[0]
    return ""


# What needs no grammar --------------------------------------------------------------------------------------


def _diff(text: str) -> Spans:
    """A patch by the first characters of its lines."""
    spans = Spans()
    at = 0
    for line in text.split("\n"):
        style = ""
        if line.startswith(("+++", "---", "diff ", "index ", "Index: ")):
            style = "syntax-strong"
        elif line.startswith("@@"):
            style = "hunk"
        elif line.startswith("+"):
            style = "add"
        elif line.startswith("-"):
            style = "del"
        if style:
            spans.add(at, at + len(line), style)
        at += len(line) + 1
    return spans


_FENCE: Final = re.compile(r" {0,3}(```+|~~~+)")
_MARK: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?=[ \t])|[ \t]*>")
_INLINE: Final = re.compile(r"`[^`]{1,500}`|\*\*[^*]{1,500}\*\*|</?[A-Za-z][\w:-]{0,60}[^<>]{0,200}>")


def _markdown(text: str) -> Spans:
    """Headings, fences, marks of lists, code, strong words, and the tags that prompts are full of."""
    spans = Spans()
    at = 0
    fence = ""
    for line in text.split("\n"):
        end = at + len(line)
        opened = _FENCE.match(line)
        if opened and (not fence or (opened[1].startswith(fence) and not line.strip(" `~"))):
            fence = "" if fence else opened[1]
            spans.add(at, end, "syntax-comment")
        elif fence:
            spans.add(at, end, "syntax-string")
        elif line.startswith("#") and line.lstrip("#")[:1] in (" ", ""):
            spans.add(at, end, "syntax-heading")
        else:
            _marked(spans, line, at)
        at = end + 1
    return spans


def _marked(spans: Spans, line: str, at: int) -> None:
    mark = _MARK.match(line)
    if mark:
        spans.add(at, at + mark.end(), "syntax-key")
    for match in _INLINE.finditer(line, mark.end() if mark else 0):
        first = match.group()[0]
        style = "syntax-string" if first == "`" else "syntax-strong" if first == "*" else "syntax-key"
        spans.add(at + match.start(), at + match.end(), style)
