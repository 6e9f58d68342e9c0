"""Examples of every command, as its help and docs/cli.md show them; a test runs each one."""

from __future__ import annotations

from typing import Final, NamedTuple


class Example(NamedTuple):
    """One command line."""

    line: str
    """As it is typed in a shell."""
    what: str
    """What it is for, as a comment behind it."""


def _of(*pairs: tuple[str, str]) -> tuple[Example, ...]:
    return tuple(Example(line, what) for line, what in pairs)


EXAMPLES: Final = {
    "ls": _of(
        ("ctxctl ls", "all sessions of this machine"),
        ("ctxctl ls --here --since 2d", "of this directory, in the last two days"),
    ),
    "replay": _of(
        ("ctxctl replay run.jsonl", "the UI; piped, a summary and a line for each turn"),
        ("ctxctl replay run.jsonl@3", "each step of turn 3"),
        ("ctxctl replay run.jsonl --where 'window > 80%'", "only the steps that fill the window"),
        ("ctxctl replay run.jsonl --compare --window 32k", "what a smaller window would have meant"),
    ),
    "watch": _of(
        ("ctxctl watch run.jsonl --until 3", "until turn 3 is over"),
        ("ctxctl watch run.jsonl --json --idle 2", "as JSON, until nothing is written for two seconds"),
    ),
    "record": _of(
        ("ctxctl record -o run.jsonl -- claude", "what a client sends, while it runs"),
        ("ctxctl record --stdin -o run.jsonl < events.jsonl", "events that another program writes"),
    ),
    "diff": _of(
        ("ctxctl diff run.jsonl@12 @13", "two turns of one trace"),
        ("ctxctl diff run.jsonl@12 --stat", "a turn and the one before it, without texts"),
        ("ctxctl diff run.jsonl other.jsonl --sessions", "two sessions of one task"),
    ),
    "show": _of(
        ("ctxctl show run.jsonl@3", "what the model saw on turn 3"),
        ("ctxctl show run.jsonl@3.2 --text", "one step of it, as text"),
    ),
    "blame": _of(
        ("ctxctl blame run.jsonl@12", "which item each block of text is from"),
        ("ctxctl blame run.jsonl@12 --stale", "only what a later copy replaced"),
    ),
    "find": _of(
        ("ctxctl find run.jsonl 'window > 80%'", "steps that fill the window"),
        ("ctxctl find run.jsonl 'is removed kind:tool_result'", "steps where a tool result was removed"),
        ("ctxctl find sessions 'sent > 1k'", "in all captures of a directory"),
    ),
    "bisect": _of(
        ("ctxctl bisect run.jsonl 'window > 80%'", "the first step that fills the window"),
        ("ctxctl bisect run.jsonl other.jsonl", "the step at which two sessions diverge"),
    ),
    "log": _of(
        ("ctxctl log run.jsonl cli.py", "what happened to a file that was read"),
        ("ctxctl log run.jsonl system --json", "one item by its id"),
    ),
    "why": _of(
        ("ctxctl why run.jsonl@12 gauge.py", "why the model has the file, or not"),
        ("ctxctl why run.jsonl@-1 'system prompt' --no-what-if", "only what is recorded"),
    ),
    "compactions": _of(
        ("ctxctl compactions run.jsonl", "what compactions took, and what is lost"),
        ("ctxctl compactions run.jsonl@9 --all", "only those of turn 9, with every item"),
    ),
    "cost": _of(
        ("ctxctl cost run.jsonl", "the bill, and what it was spent on"),
        ("ctxctl cost run.jsonl --by item --top 5", "the five most expensive items"),
        ("ctxctl cost sessions --by model", "of all captures in a directory, by model"),
    ),
    "budget": _of(
        ("ctxctl budget plan.toml --from run.jsonl", "a plan from a recorded session"),
        ("ctxctl budget plan.toml", "whether it fits, and what it costs"),
        ("ctxctl budget plan.toml --check", "exit 1 if a limit is exceeded"),
    ),
    "lint": _of(
        ("ctxctl lint run.jsonl", "waste, contradictions and leaks"),
        ("ctxctl lint run.jsonl --format sarif > lint.sarif", "for code scanning"),
        ("ctxctl lint --explain CTX004", "explains one rule"),
    ),
    "check": _of(
        ("ctxctl check run.jsonl --max 99%", "fails if a request uses more of its limit"),
        ("ctxctl check run.jsonl --max-cost 5 --max-tool-result 10k", "limits on cost and on tool results"),
    ),
    "validate": _of(
        ("ctxctl validate run.jsonl", "exit 1 if a line is wrong"),
        ("ctxctl validate run.jsonl --json", "each problem as JSON"),
    ),
    "import": _of(
        ("ctxctl import rollout.jsonl -o trace.jsonl", "a client's log as a trace"),
        ("ctxctl import rollout.jsonl --read-as codex > trace.jsonl", "with the format named"),
    ),
    "export": _of(
        ("ctxctl export run.jsonl -o report.html", "a page to open in a browser"),
        ("ctxctl export run.jsonl@3 -o turn.md", "a turn, for an issue or a pull request"),
        ("ctxctl export run.jsonl --table changes -o changes.csv", "each change as a row"),
    ),
    "sql": _of(
        ("ctxctl sql", "the tables and their columns"),
        (
            "ctxctl sql run.jsonl 'SELECT kind, sum(tokens * requests) FROM stays GROUP BY kind'",
            "what was carried, by kind",
        ),
        ("ctxctl sql run.jsonl 'SELECT * FROM bills' --csv", "every bill as CSV"),
    ),
    "formats": _of(
        ("ctxctl formats", "what can be opened"),
        ("ctxctl formats codex", "where its files are, and what they record"),
    ),
    "policies": _of(
        ("ctxctl policies", "what there is"),
        ("ctxctl policies fifo", "its rules and parameters"),
    ),
    "calibrate": _of(
        ("ctxctl calibrate run.jsonl --to weights.json", "fit to the bills of a session"),
        ("ctxctl calibrate", "what is in use"),
    ),
    "learn": _of(
        ("ctxctl learn bodies", "from a dump of a client's requests"),
        ("ctxctl learn", "what has been learned"),
    ),
    "fleet": _of(
        ("ctxctl fleet --dataset fleet", "what a dataset holds; the UI on a terminal"),
        ("ctxctl fleet --dataset fleet --json", "the same as JSON"),
    ),
    "fleet add": _of(
        ("ctxctl fleet add ~/.claude/projects --to dataset", "what is new, or has changed"),
        ("ctxctl fleet add sessions --to dataset --label team=search", "with a label to filter by"),
    ),
    "fleet status": _of(
        ("ctxctl fleet status --dataset fleet", "rows, files and bytes of each table"),
        ("ctxctl fleet status --dataset fleet --json", "the same as JSON"),
    ),
    "fleet files": _of(
        ("ctxctl fleet files stays --dataset fleet", "for another engine to read"),
        ("ctxctl fleet files steps --dataset fleet --version 1", "as of an earlier commit"),
    ),
    "fleet compact": _of(
        ("ctxctl fleet compact --dataset fleet", "fewer, larger files"),
        ("ctxctl fleet compact --dataset fleet --json", "what it did, as JSON"),
    ),
    "fleet vacuum": _of(
        ("ctxctl fleet vacuum --dataset fleet", "unused files, after an hour"),
        ("ctxctl fleet vacuum --dataset fleet --grace 7d", "after a week"),
    ),
    "fleet forget": _of(
        ("ctxctl fleet forget --where \"project = 'shop'\" --dataset fleet", "a project, for good"),
        ("ctxctl fleet forget --before 90d --dataset fleet", "retention"),
    ),
    "fleet ask": _of(
        ("ctxctl fleet ask", "the questions by name"),
        ("ctxctl fleet ask servers --dataset fleet", "which MCP server costs most, and since when"),
        ("ctxctl fleet ask cost --dataset fleet --since 30d --csv", "the last month's costs as CSV"),
        ("ctxctl fleet ask --dataset fleet --sql - < own.sql", "your own SQL"),
    ),
    "fleet diff": _of(
        ("ctxctl fleet diff 2026-01 2026-02 --dataset fleet", "two months"),
        ("ctxctl fleet diff client_version=2.0.1 client_version=2.1.0 --dataset fleet", "two versions"),
    ),
    "fleet check": _of(
        ("ctxctl fleet check rules.toml --dataset fleet", "exit 1 if a rule fails"),
        ("ctxctl fleet check rules.toml --dataset fleet --junit report.xml", "with a report for CI"),
    ),
    "fleet report": _of(
        ("ctxctl fleet report --dataset fleet -o fleet.html", "a page to share"),
        ("ctxctl fleet report --dataset fleet --since 30d -o month.html", "of the last month"),
    ),
    "models": _of(
        ("ctxctl models claude-sonnet-4-5", "its window, limits and prices"),
        ("ctxctl models --provider openai", "all of one provider"),
    ),
    "cache": _of(
        ("ctxctl cache", "what is kept, and how much of it"),
        ("ctxctl cache prune --max 500M", "delete what has gone unused longest"),
    ),
}  # fmt: skip
"""By command, in the order of the help."""


def example_lines(name: str) -> list[str]:
    """The examples of a command as its help has them, with what they are for in a column behind them."""
    shown = EXAMPLES[name]
    width = max(len(one.line) for one in shown)
    return ["Examples:", *(f"  {one.line.ljust(width)}  # {one.what}" for one in shown)]
