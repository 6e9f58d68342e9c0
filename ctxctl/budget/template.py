"""The plan that ``ctxctl budget --init`` writes: every key with what it means."""

from __future__ import annotations

from typing import Final

TEMPLATE: Final = """\
# What will be in the window, and how the conversation will go: `ctxctl budget THIS-FILE` (docs/budget.md).
# Sizes are tokens: 900 or "4k"; a range { from = 200, to = 800 }; or percentiles,
# { min = 10, p50 = 300, p95 = 900, max = 4000 }.

version = 1
policy = "fifo"                 # what leaves when it does not fit: `ctxctl policies` lists them
seed = 1                        # the same seed draws the same sessions
runs = 200                      # sessions that are drawn

[model]
name = "gpt-5"                  # window, limits and prices are known offline: `ctxctl models NAME`
provider = "openai"             # the same model has other limits elsewhere
reserve = 16000                 # of the window, kept for the answer
# window = 128000               # instead of what is known of the model
# max_input = 100000
# encoding = "o200k_base"
# caching = true                # the provider's prompt cache is used
# date = "2026-11-01"           # prices of this day, so that the cost does not move by itself

# Parts have one of: text, files (counted exactly), tools (JSON files of definitions), mcp, tokens (a size).
[[part]]
name = "system prompt"
text = "You are a careful assistant."
# files = ["prompts/*.md"]      # relative to this file, nothing outside its folder
# segment = "system"            # tools, system, history, or context (before the newest message)
# priority = 10                 # for policies that look at it: more is kept longer

# [[part]]
# name = "github tools"
# tools = "tools/github.json"   # as OpenAI, Anthropic or MCP have them, or an answer to tools/list
# server = "github"

# [[part]]
# name = "search tools"
# mcp = ["npx", "some-server"]  # an MCP server that is run and asked for its tools; only with --live

[[part]]
name = "git status"             # a provider that runs in each turn
tokens = { p50 = 120, p95 = 900, p99 = 2500 }
changes = 0.6                   # chance in a turn that it says something new

[[part]]
name = "search hits"            # a retrieval: so many items of that size each
items = { from = 0, to = 5 }
tokens = { p50 = 350, p95 = 800 }
# stays = true                  # what was sent stays in the history

[conversation]
turns = 40
user = { p50 = 60, p95 = 600 }
answer = { p50 = 300, p95 = 1200 }
calls = { p50 = 2, p95 = 10 }   # tool calls in a turn
parallel = 1                    # of these, so many in one answer
call = { p50 = 60, p95 = 400 }
result = { p50 = 700, p95 = 6000, p99 = 20000 }
# drift = 0.3                   # by how much all of it differs from session to session

# What `--check` demands. Bounds are tokens, or a share of what a prompt may hold: "10%".
[limits]
at = "p95"                      # held in 95 of 100 sessions: p50, p95 or p99
total = "10%"                   # all parts together
overflow_turn = 15              # the first turn that may overflow
headroom = [ { turn = 10, free = "20%" } ]
# cost_per_session = 5.00       # US dollars
# parts = { "system prompt" = 4000 }
# servers = { "github" = "8k" }
# tolerance = "2%"              # by how much a number may be worse than in the --baseline
# ratchet = false               # true: a baseline that allows more than is needed fails too
"""
