"""Writes retrieval-agent.jsonl: an agent that answers from documents, with less room than it would like.

Each turn records the whole road from what was found to what was sent: surface, selection with scores and
omissions, budget with what was cut and dropped, assembly, injection, bill.  In turn 6 the policy pins more
than fits, and the request goes out over budget.

Run as ``python -m traces.make_retrieval_agent``.
"""

from __future__ import annotations

from traces import retrieval_texts as texts
from traces.kit import Data, Piece, Scribe, count, tokens

MODEL = "gpt-4.1-mini"
LIMIT = 1600
RESERVED = 400
HIDDEN = 61
"""The schema of the answer, which the request holds beside the recorded items."""
PER_MESSAGE = 4
CACHE_FROM = 1024
CACHE_UNIT = 128


class Agent:
    """The conversation so far and the documents the model has in front of it."""

    def __init__(self, scribe: Scribe) -> None:
        self.scribe = scribe
        self.messages: list[Piece] = []
        self._said = 0
        self.known: set[str] = set()
        self.sent: list[Piece] = []
        self.open: str | None = None
        """Id of the missing context that nobody has answered yet."""
        scribe.item("system", "system_prompt", texts.SYSTEM, title="Answering rules")
        scribe.item("style", "policy_note", texts.STYLE, title="Tone")
        self.head = [
            Piece("system", texts.SYSTEM, segment="system", role="system"),
            Piece("style", texts.STYLE, segment="system", role="system"),
        ]

    def message(self, kind: str, text: str) -> Piece:
        """Record a message."""
        self._said += 1
        ref = f"message-{self._said}"
        self.scribe.item(ref, kind, text)
        self.messages.append(Piece(ref, text, role="user" if kind == "user_message" else "assistant"))
        return self.messages[-1]

    def document(self, doc: str, cut: int | None = None) -> Piece:
        """A document as the model reads it, cut to its first lines where the budget asks for it."""
        text = texts.DOCS[doc]
        left = None
        if cut is not None:
            left = "\n".join(text.splitlines()[:cut]) + "\n[cut]"
        return Piece(doc, text, f'<doc id="{doc}">\n', "\n</doc>", "context", "user", cut=left)

    def found(self, turn: texts.Turn) -> str:
        """Record what the search found: the new documents, and the surface that offers them."""
        scribe = self.scribe
        for hit in turn.hits:
            if hit.doc in self.known or hit.doc not in texts.DOCS:
                continue
            self.known.add(hit.doc)
            booking = hit.doc.startswith("booking:")
            more: Data = {"sensitivity": "personal", "redaction_state": "masked"} if booking else {}
            scribe.item(
                hit.doc, "external_resource" if booking else "retrieval_result", texts.DOCS[hit.doc],
                title=texts.TITLES[hit.doc], trust_level="first_party",
                source_refs=[{"schema_version": "0.1.1", "source_id": hit.doc.partition("#")[0],
                              "uri": f"saltline://{hit.doc}",
                              "source_kind": "database_row" if booking else "document"}],
                **more,
            )  # fmt: skip
            if booking:
                scribe.event("context.redaction.applied", {
                    "item_id": hit.doc, "redaction_state": "masked", "redaction_method": "card_number",
                    "policy_refs": ["policy:payment-data"],
                })  # fmt: skip
        return scribe.record(
            "context.surface.created", "surface",
            {"scope": "turn", "surface_kind": "retrieval_surface",
             "available_source_refs": ["saltline://site", "saltline://conditions", "saltline://bookings"],
             "available_item_refs": [hit.doc for hit in turn.hits]},
        )  # fmt: skip

    def select(self, turn: texts.Turn, surface: str) -> list[str]:
        """Record the selection; returns the kept documents in order of their scores."""
        kept = [hit for hit in turn.hits if hit.reason is None]
        ident = self.scribe.number("selection")
        self.scribe.event("context.selection.started", {
            "selection_id": ident, "surface_id": surface, "query": turn.query,
            "created_at": self.scribe.now(),
        })  # fmt: skip
        self.scribe.wait(0.21)
        self.scribe.event("context.selection.completed", {
            "selection_id": ident, "surface_id": surface, "query": turn.query, "intent": "answer_question",
            "candidate_item_refs": [hit.doc for hit in turn.hits],
            "selected_item_refs": [
                {"item_ref": hit.doc, "rank": n, "score": hit.score} for n, hit in enumerate(kept, 1)
            ],
            "omitted_item_refs": [
                {"item_ref": hit.doc, "reason": hit.reason, "score": hit.score}
                for hit in turn.hits if hit.reason is not None
            ],
            "ranking_signals": {hit.doc: {"relevance": hit.score} for hit in turn.hits},
            "selection_policy": "best scores, four documents at most unless pinned",
            "rationale": turn.rationale, "created_at": self.scribe.now(),
        })  # fmt: skip
        return [hit.doc for hit in kept]

    def fit(self, turn: texts.Turn, kept: list[str]) -> tuple[list[Piece], str]:
        """Record the budget; returns the window and the budget's id."""
        records: list[Data] = []
        past = [piece for piece in self.messages[:-1] if piece.ref not in turn.drop]
        self.messages[:-1] = past
        docs = []
        for doc in kept:
            whole = self.document(doc)
            if doc in turn.drop:
                continue
            docs.append(self.document(doc, turn.cut.get(doc)))
            if doc in turn.cut:
                records.append({
                    "item_ref": doc, "action": "truncated", "reason": "too_large",
                    "tokens_before": count(whole.rendered), "tokens_after": count(docs[-1].rendered),
                })  # fmt: skip
        records += [{"item_ref": ref, "action": "dropped", "reason": "budget_limit"} for ref in turn.drop]
        window = [*self.head, *past, *docs, self.messages[-1]]
        segments = [
            ("system", self.head),
            ("history", past),
            ("context", docs),
            ("user", [self.messages[-1]]),
        ]
        budget = self.scribe.record(
            "context.budget.applied", "budget",
            {
                "target": "model", "max_tokens": LIMIT, "reserved_tokens": RESERVED,
                "actual_tokens": tokens(window), "actual_items": len(window),
                "overflow_strategy": "truncate_tail", "truncation_records": records,
                "window_segments": [
                    {"segment_id": name, "role": name, "order": n, "actual_tokens": tokens(pieces),
                     "item_refs": [p.ref for p in pieces]}
                    for n, (name, pieces) in enumerate(segments)
                ],
                "metadata": {"pinned": list(turn.pinned)},
            },
        )  # fmt: skip
        return window, budget

    def send(self, window: list[Piece], budget: str, answer: str) -> None:
        """Record assembly and injection, and what was billed."""
        scribe = self.scribe
        assembly = scribe.record(
            "context.assembly.created", "assembly",
            {"target": "model", "ordered_blocks": [p.block(n) for n, p in enumerate(window)],
             "separator_policy": "\n\n", "visibility": ["model"], "budget_ref": budget,
             "metadata": {"ctxctl": {"mode": "window", "model": MODEL}}},
        )  # fmt: skip
        scribe.inject(assembly, "message_history")
        scribe.wait(0.9 + count(answer) / 80)
        shared = 0
        for old, new in zip(self.sent, window, strict=False):
            if old != new:
                break
            shared += count(new.rendered)
        scribe.usage(
            model=MODEL, provider="openai",
            input_tokens=tokens(window) + HIDDEN + PER_MESSAGE * len(window),
            cached_tokens=shared // CACHE_UNIT * CACHE_UNIT if shared >= CACHE_FROM else 0,
            output_tokens=count(answer),
        )  # fmt: skip
        self.sent = window

    def miss(self, turn: texts.Turn) -> None:
        """Record what was missing, or that it has come."""
        scribe = self.scribe
        if turn.missing is not None:
            question, severity, status = turn.missing
            self.open = scribe.number("missing")
            data: Data = {
                "missing_id": self.open, "scope": "turn", "question": question, "severity": severity,
                "needed_for": "rebooking and refund", "blocked_actions": ["look up booking"],
            }  # fmt: skip
            scribe.event("context.missing.detected", {**data, "status": status, "created_at": scribe.now()})
            scribe.event("context.missing.requested", {
                **data, "status": "requested", "requested_from": "passenger", "created_at": scribe.now(),
            })  # fmt: skip
        if turn.resolves is not None and self.open is not None:
            scribe.event("context.missing.resolved", {
                "missing_id": self.open, "scope": "turn", "question": "Which booking is this about?",
                "severity": "info", "status": "resolved", "resolution_refs": [turn.resolves],
                "created_at": scribe.now(),
            })  # fmt: skip
            self.open = None


def main() -> None:
    """Write the trace."""
    scribe = Scribe("saltline-desk/0.9", "chat-58121", "2026-06-14T06:10:03", "retrieval")
    agent: Agent | None = None
    answer = ""
    for turn in texts.TURNS:
        scribe.turn, scribe.step = scribe.number("turn"), scribe.number("request")
        scribe.wait(38.0)
        if agent is None:
            agent = Agent(scribe)
        else:
            agent.message("assistant_message", answer)
        agent.message("user_message", turn.question)
        surface = agent.found(turn)
        agent.miss(turn)
        window, budget = agent.fit(turn, agent.select(turn, surface))
        agent.send(window, budget, turn.answer)
        answer = turn.answer
    scribe.write("retrieval-agent.jsonl")


if __name__ == "__main__":
    main()
