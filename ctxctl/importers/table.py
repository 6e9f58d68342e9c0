"""The formats by name: where each is declared, and what the first bytes of its captures hold.

One line a format.  Its declaration is imported when a file may be one of it, or when somebody asks for it by
name; opening a file loads the few that its first bytes admit, and the one reader.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ctxctl.entry_points import BUNDLED, FORMATS

_BOM: Final = b"\xef\xbb\xbf"
_SPELLED: Final = re.compile(rb"\\u00(?:[46][1-9a-fA-F]|[57][0-9aA]|5[fF]|2[eE])")
"""A letter, `_` or `.` that JSON spells by its number, as no writer does: no word is found then."""


_LONGEST: Final = 48
"""The most bytes of a word that is looked for in front of a quote, or behind one."""


class Entry(NamedTuple):
    """One format that is not loaded yet."""

    name: str
    """As `--read-as` takes it."""
    value: str
    """`module:name` of its declaration."""
    hints: tuple[str, ...]
    """What stands in the first bytes of every capture that `detect` is sure of; one of these is enough.

    A hint is words that all stand there, with ` & ` between them.  `name"` is a key or a value of JSON that
    ends so; a word of one character is what the content begins with.  Without hints `detect` is
    always asked.
    """
    most: int = 100
    """The highest score of `detect` (a test reads its source): not asked where another is surer."""
    bundled: bool = False
    """Whether it is a plug-in that comes with this package: loaded as anybody's, by `entry_points`."""


class HeadWords:
    """The first bytes of a file, to be asked for words."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._first = head[:1], head.removeprefix(_BOM).lstrip()[:1]
        self._all = _SPELLED.search(head) is not None
        parts = head.split(b'"')
        # What stands in front of a quote, each once, and what follows one: a tenth of the head, or less.
        self._ends = b'"'.join({part[-_LONGEST:] for part in parts[:-1]}) + b'"' * (len(parts) > 1)
        self._begins = b'"' * (len(parts) > 1) + b'"'.join({part[:_LONGEST] for part in parts[1:]})
        self._known: dict[str, bool] = {}

    def admit(self, entry: Entry) -> bool:
        """Whether a file may be of a format; never no where its `detect` says 50 or more."""
        return self._all or not entry.hints or any(map(self._hold, entry.hints))

    def _hold(self, hint: str) -> bool:
        return all(map(self._has, hint.split(" & ")))

    def _has(self, word: str) -> bool:
        found = self._known.get(word)
        if found is None:
            data = word.encode("latin-1")
            found = self._known[word] = data in (self._first if len(data) == 1 else self._place(data))
        return found

    def _place(self, word: bytes) -> bytes:
        """What to look for a word in: less than the head for one that ends or begins with a quote."""
        if word.count(b'"') != 1 or len(word) > _LONGEST:
            return self._head
        if word[-1:] == b'"':
            return self._ends
        return self._begins if word[:1] == b'"' else self._head


def _plugin(name: str, hints: tuple[str, ...], most: int = 100) -> Entry:
    return Entry(name, BUNDLED[FORMATS][name], hints, most, bundled=True)


TABLE: Final = (
    _plugin("agent-context", (), 95),
    _plugin("amplifier", (
        'amplifier.log"', '"session: & data"', '"prompt: & data"', '"provider: & data"', '"llm: & data"',
        '"content_block: & data"', '"tool: & data"', '"context: & data"', '"mentions: & data"',
        '"artifact: & data"', '"execution: & data"', '"orchestrator: & data"', '"thinking: & data"',
        '"cleanup: & data"', 'session_id" & context-intelligence"', 'session_id" & bundle" & turn_count"',
        'role" & content" & tool_calls" & arguments"', 'role" & content" & visibility"',
        'role" & content" & metadata"',
    ), 97),
    Entry("claude-code", "ctxctl.importers.claude_code:FORMAT", (
        'parentUuid"', 'isSidechain"', 'userType"', 'uuid" & sessionId"', 'leafUuid"',
        'file-history-snapshot"', 'queue-operation"', 'last-prompt"', 'custom-title"', 'ai-title"',
        'agent-name"', 'permission-mode"', 'mode" & sessionId"', 'agentId" & key"',
    ), 95),
    Entry("codex", "ctxctl.importers.codex:CODEX", ('payload"', 'record_type"', 'instructions" & git"'), 95),
    Entry("codex-exec", "ctxctl.importers.codex:CODEX_EXEC", (
        "thread.started", 'item"', "item\\", "cached_input_tokens",
    ), 95),
    Entry("copilot-chat", "ctxctl.importers.copilot_chat:COPILOT_CHAT", (
        'requesterUsername"', 'responderUsername"', 'kind" & requests"',
    ), 95),
    Entry("copilot-chatreplay", "ctxctl.importers.copilot_chat:COPILOT_CHATREPLAY", (
        'logs" & totalLogEntries"', 'logs" & logCount"',
    ), 95),
    Entry("copilot-cli", "ctxctl.importers.copilot_cli:FORMAT", (
        'data" & parentId"', 'session.start" & data"',
    ), 95),
    _plugin("luminarys", ('method" & skill_id"', "\xa7version", "\xa8skill_id"), 95),
    _plugin("sanqian", (
        'kind" & registration"', 'kind" & agent_id"', 'kind" & turn"', 'kind" & app"',
        'kind" & provider_id"', 'kind" & resource"', 'kind" & resourceId"',
    ), 97),
    _plugin("sibyl", (
        'goal"', "goal\\", 'sections"', "sections\\", 'memory.context_pack"', "Sibyl", "sibyl-golden",
        "dogfood", 'expect"',
    )),
    Entry("swe-agent", "ctxctl.importers.swe_agent:FORMAT", (
        'action" & observation"', 'role" & content" & agent"', 'message_type" & role"',
    ), 92),
    Entry("mini-swe-agent", "ctxctl.importers.mini_swe_agent:FORMAT", (
        "mini-swe-agent", 'mini_version"', 'action_observation_template"', 'instance_cost" & api_calls"',
        'exit_status" & submission"',
    ), 96),
    Entry("tau-bench", "ctxctl.importers.tau_bench:FORMAT", (
        'task_id" & reward"', "environment_info", 'global_simulation_guidelines"', 'task_id" & messages"',
    ), 95),
    Entry("live-mcp-bench", "ctxctl.importers.live_mcp_bench:FORMAT", (
        'question" & role"', 'Question" & role"', 'task_id" & question" & judge"',
    ), 93),
    Entry("mcp-session", "ctxctl.importers.mcp:MCP_SESSION", (
        "jsonrpc", '[ & content"', '[ & isError"', '[ & structuredContent"',
    ), 97),
    Entry("mcp-tools", "ctxctl.importers.mcp:MCP_TOOLS", (
        'name" & inputSchema"', 'name" & input_schema"', 'name" & description"',
    ), 92),
    Entry("openhands", "ctxctl.importers.openhands:FORMAT", (
        'source" & args"', 'source" & extras"', 'source" & kind" & Event"',
        'source" & kind" & Condensation"', 'source" & kind" & CondensationRequest"',
        'source" & kind" & UserRejectObservation"', 'agent_class"',
    ), 92),
    Entry("atif", "ctxctl.importers.atif:FORMAT", ('schema_version"', 'step_id" & source" & message"'), 97),
    Entry("iflow", "ctxctl.importers.iflow:FORMAT", (
        'parentUuid" & userType" & functionResponse"', 'parentUuid" & userType" & responseParts"',
        'parentUuid" & userType" & "session-',
    ), 98),
    Entry("inspect-ai", "ctxctl.importers.inspect_ai:FORMAT", ('"eval & task"', "PK\x03\x04"), 96),
    Entry("chat-messages", "ctxctl.importers.chat_messages:FORMAT", (
        'role" & content"', 'from" & value"',
    ), 52),
    Entry("claude-bodies", "ctxctl.importers.claude_bodies:FORMAT", (
        "claude_code.api_request_body", 'request_file"',
    ), 97),
    Entry("claude-sdk-log", "ctxctl.importers.claude_sdk_log:FORMAT", ('direction" & message"',), 93),
    Entry("claude-stream-json", "ctxctl.importers.claude_stream:FORMAT", (
        'stream_event" & event"', 'parent_tool_use_id"', 'role" & message" & "msg_',
        'subtype" & session_id"', 'subtype" & mcp_servers"',
    ), 94),
    Entry("claude-tap", "ctxctl.importers.claude_tap:FORMAT", (
        "__claude_tap_compact_trace__", 'request" & response" & method" & path"',
        'timestamp" & request_id" & turn"',
    ), 95),
    Entry("claude-trace", "ctxctl.importers.claude_trace:FORMAT", (
        'request" & response" & url" & headers"', 'request" & timestamp" & method"',
    ), 96),
    Entry("copilot-snapshots", "ctxctl.importers.copilot_snapshots:FORMAT", ("conversations",), 94),
    Entry("goose-recordings", "ctxctl.importers.goose_recordings:FORMAT", (
        '{ & input" & system"', '{ & input" & messages"', '{ & input" & tools"', '{ & input" & "model',
    ), 96),
    Entry("har", "ctxctl.importers.har:FORMAT", (
        'log" & entries"', 'log" & creator"', 'log" & browser"', 'log" & pages"', 'log" & _recordingName"',
    ), 94),
    Entry("http-requests", "ctxctl.importers.http_requests:FORMAT", (
        'method" & body" & url"', 'method" & body" & uri"',
    ), 93),
    Entry("lhar", "ctxctl.importers.lhar:FORMAT", (
        'lhar"', 'trace_id" & started_at"', 'entry" & trace_id"',
    ), 96),
    Entry("openhands-completions", "ctxctl.importers.openhands_completions:FORMAT", (
        '{ & messages"', '{ & llm_path"',
    ), 93),
    Entry("pi-recordings", "ctxctl.importers.pi_recordings:FORMAT", (
        'session_start"', 'agent_start"', 'before_provider_request"',
    ), 95),
    Entry("pi", "ctxctl.importers.pi:FORMAT", (
        'session" & cwd"', 'openclaw-trajectory"', 'message" & role" & timestamp"',
        'message" & role" & toolResult"', 'message" & role" & bashExecution"',
        'api" & provider" & stopReason"', 'summary" & tokensBefore"', 'branch_summary"', 'model_change"',
        'thinking_level_change"', 'custom_message"', 'message" & toolCallId"', 'message" & stopReason"',
        'message" & cacheWrite"',
    ), 95),
    Entry("pi-rpc", "ctxctl.importers.pi_rpc:FORMAT", (
        "agentv.raw_provider_log_line", "agentv.target_execution", 'agent_start"', 'turn_start"',
        'message_start"', 'message_update"', 'message_end"', 'turn_end"',
    ), 92),
    Entry("opencode", "ctxctl.importers.opencode:FORMAT", (
        "SQLite", '["event"', '"chat.message"', '"chat.params"', '"experimental.chat.', '"tool.definition"',
        '"tool.execute.', 'projectID" & directory"', 'info" & parts"', 'sessionID"',
    ), 95),
    Entry("gemini-cli", "ctxctl.importers.gemini_cli:FORMAT", (
        'sessionId" & projectHash"', 'clientHistory" & toolCall"', 'authType" & parts"', 'resultDisplay"',
        'role" & parts"', '"generateContent', '"countTokens', '"embedContent', 'gemini" & content"',
        '$rewindTo"', '$set"', 'init" & session_id" & model"', 'tool_use" & tool_name"',
        'tool_result" & tool_id"', 'user" & timestamp" & content" & id"',
        'info" & timestamp" & content" & id"', 'error" & timestamp" & content" & id"',
        'warning" & timestamp" & content" & id"',
    ), 92),
    Entry("goose", "ctxctl.importers.goose:FORMAT", (
        "SQLite", 'working_dir"', 'role" & toolRequest"', 'role" & toolResponse"',
        'role" & toolConfirmationRequest"', 'role" & redactedThinking"', 'role" & content" & created"',
    ), 92),
    Entry("swe-agent-calls", "ctxctl.importers.swe_agent_calls:FORMAT", (
        'request_params"', 'response" & outputs"', 'request" & temperature" & top_p"',
    ), 95),
    Entry("vcr", "ctxctl.importers.vcr:FORMAT", (
        "interactions", '[ & http_version"', '[ & scope"', "- & request",
    ), 94),
    Entry("roo", "ctxctl.importers.roo:ROO", (
        'files_in_context"', 'ts" & type" & say"', 'ts" & type" & ask"',
        'role" & content" & <environment_details>', 'ts" & isSummary"', 'ts" & condenseParent"',
    ), 92),
    Entry("cline", "ctxctl.importers.roo:CLINE", (
        'messages" & sessionId" & agent"', 'messages" & sessionId" & system_prompt"',
        'kind" & tokensBefore"', 'kind" & summary"',
    ), 92),
    Entry("aider", "ctxctl.importers.aider:FORMAT", (
        "# aider chat started", "TO LLM", "> Tokens:", "> Aider",
    ), 95),
    Entry("cursor", "ctxctl.importers.cursor:FORMAT", (
        "SQLite", 'evt" & payload"', 'role" & message" & content"', 'turn_ended" & status"',
    ), 95),
    Entry("ctxdiff", "ctxctl.importers.ctxdiff:FORMAT", ("SQLite",), 96),
    Entry("crush", "ctxctl.importers.crush:FORMAT", ("SQLite",), 92),
    Entry("kimi", "ctxctl.importers.kimi:FORMAT", (
        'llm.request"', 'context.append_message"', 'context.append_loop_event"', 'context.apply_compaction"',
        'llm.tools_snapshot"', 'tools.set_active_tools"', 'full_compaction.begin"', 'usage.record"',
        'metadata" & protocol_version"',
    ), 95),
    Entry("hail", "ctxctl.importers.hail:FORMAT", ('"hail-', 'event_id" & event_type"'), 95),
    Entry("qwen-code", "ctxctl.importers.qwen_code:FORMAT", (
        'uuid" & sessionId" & parts"', 'systemPayload"', 'toolCallResult"',
    ), 98),
    Entry("droid", "ctxctl.importers.droid:FORMAT", (
        'session_start"', 'compaction_state"', 'message" & visibility"',
    ), 95),
    Entry("api", "ctxctl.importers.api:FORMAT", (), 85),
    Entry("langfuse", "ctxctl.importers.langfuse:FORMAT", (
        'parentObservationId"', 'usageDetails"', 'modelParameters"', 'completionStartTime"', 'promptName"',
        'costDetails"', 'statusMessage"', 'projectId" & bookmarked"', 'success" & data"',
        'success" & error"',
    ), 96),
    Entry("langsmith", "ctxctl.importers.langsmith:FORMAT", (
        'run_type"', 'dotted_order"', 'outputs" & child_runs"', 'outputs" & lc"', 'additional_kwargs"',
    ), 95),
    Entry("openinference", "ctxctl.importers.openinference:FORMAT", (
        "openinference", "input_messages", "output_messages", "token_count",
    ), 96),
    Entry("otel", "ctxctl.importers.otel:FORMAT", (
        "attributes & ai.", 'attributes & ai"', "attributes & llm.", 'attributes & llm"',
        "attributes & traceloop", "gen_ai", '"llm & usage', 'esource & pans"', 'esource & ogs"',
        'esource & etrics"', 'span" & traceId"', 'metric" & dataPoints"', 'log" & hrTime"',
        'log" & timestamp"', 'log" & traceId"', 'log" & spanContext"', 'attributes" & panId"',
        'attributes" & pan_id"', "\n",
    ), 94),
)  # fmt: skip
