"""What captures were billed, in dollars by part, found with nothing but json and a price list.

A second reading that shares no line with ctxctl: it knows where Claude Code's transcripts and streams,
Codex's rollouts and recorded answers of APIs hold a bill, and what tokens cost by family.  The corpus test
holds `ctxctl cost` against it; what it leaves out, and why, stands in tools/independent/dollars.md.

    python tools/independent/dollars.py FILE...
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from forks import inherited, running
from misses import lines as objects

MILLION = 1_000_000
PARTS = ("input", "cached", "written", "written_1h", "output", "units", "further")
DAY = "2026-11-12"
"""Of requests without a time."""


class Price(NamedTuple):
    """US dollars for a million tokens from some day on, for requests up to some size."""

    family: str
    """A pattern that begins where the name does, without vendor and path."""
    input: str
    output: str
    read: str
    write: str | None = None
    since: str = ""
    above: int = 0
    """The price of requests with more input tokens than that."""


# platform.claude.com/docs/en/about-claude/pricing, as litellm 1.109.1 and genai-prices 0.2.3 quote it.
# Writing costs 1.25 times the input for five minutes and twice for an hour.
ANTHROPIC = (
    Price("opus-5-5", "4", "20", "0.2"),
    Price("opus-(5|4-5|4-6|4-7|4-8)", "5", "25", "0.5"),
    Price("opus-4-6", "10", "37.5", "1", above=200_000),  # until 2026-03-13
    Price("opus-4-6", "5", "25", "0.5", above=200_000, since="2026-03-13"),
    Price("(opus-4|3-opus)", "15", "75", "1.5"),
    Price("sonnet-5-5", "2", "10", "0.1"),
    Price("sonnet-5", "2", "10", "0.2"),
    Price("(sonnet|3-5-sonnet|3-7-sonnet|3-sonnet)", "3", "15", "0.3"),
    Price("sonnet-4-5", "6", "22.5", "0.6", above=200_000),
    Price("haiku-5-5", "0.1", "0.5", "0.01"),
    Price("haiku-5-5", "0.5", "2.5", "0.05", above=100_000),
    Price("haiku-4-5", "1", "5", "0.1"),
    Price("3-5-haiku", "0.8", "4", "0.08"),
    Price("3-haiku", "0.25", "1.25", "0.03", write="0.3"),
    Price("(fable|mythos)-5-1", "10", "50", "0.25"),
    Price("(fable|mythos)-5-2", "8", "40", "0.2"),
    Price("(fable|mythos)-5", "10", "50", "1"),
)
SEARCH = Decimal("0.01")
"""A web search, of Anthropic and of OpenAI."""
FILE_SEARCH = Decimal("0.0025")
"""A search in files, of OpenAI."""
# Inference that is held in the United States costs 1.1 times as much (same page, Data residency).
# developers.openai.com/api/docs/pricing, as litellm 1.109.1 and genai-prices 0.2.3 quote it.
OPENAI = (
    Price("gpt-5.6-sol", "5", "30", "0.5", write="6.25"),
    Price("gpt-5.6-sol", "4", "20", "0.4", write="5", since="2026-08-21"),
    Price("gpt-5.6-luna", "1", "6", "0.1", write="1.25"),
    Price("gpt-5.6-luna", "0.2", "1.2", "0.02", write="0.25", since="2026-07-30"),
    Price("gpt-5.5", "5", "30", "0.5"),
    Price("gpt-5.5", "10", "45", "1", above=272_000),
    Price("gpt-5.4-mini", "0.75", "4.5", "0.075"),
    Price("gpt-5.4", "2.5", "15", "0.25"),
    Price("gpt-5.4", "5", "22.5", "0.5", above=272_000),
    Price("gpt-5.[23]", "1.75", "14", "0.175"),
    Price("gpt-5([.]1)?-(codex-)?mini", "0.25", "2", "0.025"),
    Price("gpt-5([.]1)?", "1.25", "10", "0.125"),
    Price("o4-mini", "1.1", "4.4", "0.275"),
    Price("o3-mini", "1.1", "4.4", "0.55"),
    Price("gpt-4.1-mini", "0.4", "1.6", "0.1"),
    Price("gpt-4.1", "2", "8", "0.5"),
    Price("gpt-4o-mini", "0.15", "0.6", "0.075"),
    Price("gpt-4o-2024-05-13", "5", "15", "5"),
    Price("gpt-4o", "2.5", "10", "1.25"),
    Price("gpt-3.5-turbo-0613", "1.5", "2", "1.5"),
    Price("gpt-3.5-turbo", "0.5", "1.5", "0.5"),
)
# ai.google.dev/gemini-api/docs/pricing, as litellm 1.109.1 and genai-prices 0.2.3 quote it.
GOOGLE = (
    Price("gemini-2.5-pro", "1.25", "10", "0.125"),
    Price("gemini-2.5-pro", "2.5", "15", "0.25", above=200_000),
    Price("gemini-2.5-flash", "0.3", "2.5", "0.03"),
    Price("gemini-3-pro", "2", "12", "0.2"),
    Price("gemini-3-pro", "4", "18", "0.4", above=200_000),
    Price("gemini-3-flash", "0.5", "3", "0.05"),
)


class Bill(NamedTuple):
    """One request, as the provider billed it; `input` is neither read from a cache nor written to one."""

    ident: str
    model: str
    day: str
    input: int
    cached: int
    written: int
    written_1h: int
    output: int
    searches: int = 0
    file_searches: int = 0
    geo: str = ""
    """Where Anthropic's inference was held."""

    @property
    def size(self) -> int:
        return self.input + self.cached + self.written + self.written_1h


def price_of(bill: Bill) -> Price | None:
    """The last price of the longest pattern that fits; None: this list does not know the model."""
    name = bill.model.lower().rpartition("/")[2].replace("[1m]", "")
    claude = "claude" in name
    name = name.partition("claude-")[2].replace(".", "-") if claude else name
    fits = [
        (len(match[0]), price.above, price.since, price)
        for price in (ANTHROPIC if claude else (*OPENAI, *GOOGLE))
        if (match := re.match(price.family + r"(?![0-9.])", name))
        and (not price.above or bill.size > price.above)
        and bill.day >= price.since
    ]
    return max(fits, key=lambda fit: fit[:3])[3] if fits else None


def dollars(bill: Bill) -> dict[str, Decimal] | None:
    """By part; None where the price is not known."""
    price = price_of(bill)
    if price is None:
        return None
    plain = Decimal(price.input)
    writing = (
        Decimal(price.write) if price.write else plain * Decimal("1.25") if "claude" in bill.model else plain
    )
    rates = (plain, Decimal(price.read), writing, plain * 2, Decimal(price.output))
    counts = (bill.input, bill.cached, bill.written, bill.written_1h, bill.output)
    if bill.geo == "us":
        rates = tuple(rate * Decimal("1.1") for rate in rates)
    made = {name: rate * n / MILLION for name, rate, n in zip(PARTS, rates, counts, strict=False)}
    return {**made, "units": SEARCH * bill.searches + FILE_SEARCH * bill.file_searches}


def number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def anthropic(ident: str, model: str, day: str, usage: dict[str, Any], output: int | None = None) -> Bill:
    """A bill of Anthropic's: its input leaves the cache out."""
    written = number(usage.get("cache_creation_input_tokens"))
    hour = min(written, number(table(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")))
    made = number(usage.get("output_tokens")) if output is None else output
    searched = number(table(usage.get("server_tool_use")).get("web_search_requests"))
    return Bill(
        ident, model, day, number(usage.get("input_tokens")), number(usage.get("cache_read_input_tokens")),
        written - hour, hour, made, searched, 0, str(usage.get("inference_geo")),
    )  # fmt: skip


def openai(ident: str, model: str, day: str, usage: dict[str, Any]) -> Bill:
    """A bill of OpenAI's: its input holds the cache."""
    asked = number(usage.get("prompt_tokens")) or number(usage.get("input_tokens"))
    details = table(usage.get("prompt_tokens_details")) or table(usage.get("input_tokens_details"))
    read = number(details.get("cached_tokens")) or number(usage.get("cached_input_tokens"))
    written = number(details.get("cache_write_tokens")) or number(usage.get("cache_write_input_tokens"))
    made = number(usage.get("completion_tokens")) or number(usage.get("output_tokens"))
    searched = number(usage.get("searches"))
    files = number(usage.get("file_searches"))
    return Bill(ident, model, day, asked - read - written, read, written, 0, made, searched, files)


def google(ident: str, model: str, day: str, usage: dict[str, Any]) -> Bill:
    """A bill of Gemini's: its input holds the cache, its answer not what was thought."""
    read = number(usage.get("cachedContentTokenCount"))
    asked = number(usage.get("promptTokenCount")) + number(usage.get("toolUsePromptTokenCount"))
    made = number(usage.get("candidatesTokenCount")) + number(usage.get("thoughtsTokenCount"))
    return Bill(ident, model, day, asked - read, read, 0, 0, made)


def claude_code(path: Path) -> Iterator[Bill]:
    """A transcript and those of its agents: the lines of a message repeat its bill; the output grows.

    What the client wrote itself (`<synthetic>`) nobody billed.
    """
    for part in (path, *agents(path)):
        calls: dict[str, list[dict[str, Any]]] = {}
        for line in objects(part):
            message = table(line.get("message"))
            usage = message.get("usage")
            ident = message.get("id")
            if message.get("model") == "<synthetic>" or line.get("type") != "assistant":
                continue
            if isinstance(ident, str) and isinstance(usage, dict):
                calls.setdefault(ident, []).append(line)
        for ident, told in calls.items():
            usages = [line["message"]["usage"] for line in told]
            output = max(number(usage.get("output_tokens")) for usage in usages)
            searched = max(number(table(u.get("server_tool_use")).get("web_search_requests")) for u in usages)
            model, day = str(told[0]["message"].get("model")), str(told[0].get("timestamp") or DAY)[:10]
            bill = anthropic(ident, model, day, usages[0], output)._replace(searches=searched)
            if bill.input or bill.cached or bill.written or bill.written_1h:  # no input: nobody billed it
                yield bill


def agents(path: Path) -> Iterator[Path]:
    """Transcripts of a session's agents: beside it or below its folder, with its id in each line."""
    sessions = {line["sessionId"] for line in objects(path) if isinstance(line.get("sessionId"), str)}
    for other in sorted(path.parent.rglob("agent-*.jsonl")):
        held = {str(line.get("sessionId")).partition("#")[0] for line in objects(other)}
        if other != path and path.stem in sessions & held:
            yield other


def codex(path: Path) -> Iterator[Bill]:
    """A rollout: each `token_count` with another running total is a request.

    Where the total grew by more than that, there was another one, whose own event was not written.  What a
    fork repeats of its parent was the parent's to pay.
    """
    model, total = "", None
    copied = inherited(path, objects)
    for n, line in enumerate(objects(path)):
        payload = table(line.get("payload"))
        if line.get("type") == "turn_context":
            model = str(payload.get("model") or model)
        info = table(payload.get("info"))
        last, now = info.get("last_token_usage"), info.get("total_token_usage")
        if payload.get("type") != "token_count" or not isinstance(last, dict) or now == total:
            continue
        day = str(line.get("timestamp") or DAY)[:10]
        before, total = table(total), table(now)
        if running(line) in copied:
            continue
        grown = {
            name: number(count) - number(before.get(name)) - number(last.get(name))
            for name, count in total.items()
        }
        if before and grown.get("input_tokens", 0) > 0:
            yield openai(f"{n}, unlogged", model, day, grown)
        bill = openai(str(n), model, day, last)
        if bill.size or bill.output:
            yield bill


def claude_stream(path: Path) -> Iterator[tuple[str, Decimal]]:
    """By model, what the client says that a run cost: `costUSD` of its result, by its own price list."""
    for line in objects(path):
        if line.get("type") == "result":
            for model, told in table(line.get("modelUsage")).items():
                yield model, Decimal(str(told.get("costUSD")))


def answers(path: Path) -> Iterator[Bill]:
    """Recorded answers of APIs, wherever a file holds them: a response, or a stream of events."""
    for n, (model, usage) in enumerate(found for one in _whole(path) for found in _answers(one)):
        if "promptTokenCount" in usage:
            yield google(str(n), model, DAY, usage)
            continue
        asks = "prompt_tokens" in usage or "input_tokens_details" in usage
        yield (openai if asks else anthropic)(str(n), model, DAY, usage)
        for one in usage.get("iterations") or ():
            if one.get("type") == "compaction":  # which the totals leave out
                yield anthropic(f"{n}, compaction", model, DAY, one)


def _whole(path: Path) -> list[Any]:
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix in (".yaml", ".yml"):
        import yaml

        return [yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))]
    try:
        return [json.loads(text)]
    except ValueError:
        return list(objects(path))


def _answers(value: Any, asked: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Model and usage of each answer, in the order of the file; a recording in text is read too.

    `asked`: the model of the request, for answers that name none.
    """
    if isinstance(value, list):
        for one in value:
            yield from _answers(one, asked)
    elif isinstance(value, str) and "\ndata:" in f"\n{value}" and '"usage"' in value:
        yield from _streamed(value)
    elif isinstance(value, str) and value[:1] == "{" and '"usage"' in value:
        try:
            yield from _answers(json.loads(value), asked)
        except ValueError:
            return
    elif isinstance(value, dict):
        usage = value.get("usageMetadata") or value.get("usage")
        model = value.get("modelVersion") or value.get("model") or asked
        counted = {"input_tokens", "prompt_tokens", "promptTokenCount"}
        if isinstance(usage, dict) and isinstance(model, str) and counted & usage.keys():
            yield model, usage | _calls(value)
            return
        request = table(value.get("request"))
        body = request.get("parsed_body") or request.get("body")
        asked = table(body).get("model") or asked
        for one in value.values():
            yield from _answers(one, asked)


def _calls(answer: dict[str, Any]) -> dict[str, int]:
    """Calls of its tools that OpenAI bills, out of an answer: searches, not the opening of a page found."""
    made = {"searches": 0, "file_searches": 0}
    output = answer.get("output")
    for item in map(table, output if isinstance(output, list) else ()):
        opened = table(item.get("action")).get("type") not in (None, "search")
        made["searches"] += item.get("type") == "web_search_call" and not opened
        made["file_searches"] += item.get("type") == "file_search_call"
    return {name: count for name, count in made.items() if count}


def _streamed(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The bill of a stream: what its events say, the later ones over the earlier."""
    usage: dict[str, Any] = {}
    model = ""
    for line in text.splitlines():
        if not line.startswith("data:"):
            continue
        try:
            event = table(json.loads(line[5:]))
        except ValueError:
            continue
        for held in (event, table(event.get("message")), table(event.get("response"))):
            model = str(held.get("model") or model)
            usage |= {name: told for name, told in table(held.get("usage")).items() if told is not None}
            usage |= _calls(held)
    if usage:
        yield model, usage


def summed(bills: Iterator[Bill]) -> tuple[dict[str, Decimal], dict[str, int]]:
    """Dollars by part, and by model the requests that this list does not price."""
    money, unknown = dict.fromkeys(PARTS, Decimal(0)), {}
    for bill in bills:
        told = dollars(bill)
        if told is None:
            unknown[bill.model] = unknown.get(bill.model, 0) + 1
            continue
        for name, amount in told.items():
            money[name] += amount
    return money, unknown


def main() -> None:
    """Print what each file was billed."""
    for name in sys.argv[1:]:
        path = Path(name)
        kind = {"codex": codex, "claude-code": claude_code}
        reader = next((read for part, read in kind.items() if part in path.parts), answers)
        money, unknown = summed(reader(path))
        told = ", ".join(f"{part} {amount}" for part, amount in money.items() if amount)
        print(f"{path}: {sum(money.values())} ({told}){f'; not known: {unknown}' if unknown else ''}")


if __name__ == "__main__":
    main()
