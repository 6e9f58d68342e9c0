"""The rules of DESIGN that an engine can get wrong, as flags of the reference."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """The rules of DESIGN, each with the wrong rule that a flag puts in its place."""

    net_ledger: bool = False
    silent_changes: bool = False
    moved_by_index: bool = False
    prefix_by_item: bool = False
    shared_items: bool = False
    visibility_ignored: bool = False
    every_live_omitted: bool = False
    first_assembly_wins: bool = False
    position_ignored: bool = False
    version_ref_ignored: bool = False
    budget_drops_ignored: bool = False
    suffix_always_stripped: bool = False
    suffix_never_stripped: bool = False
    latest_at_the_seal: bool = False
    duplicates_kept: bool = False
    late_in_its_own_step: bool = False
    seal_ignored: bool = False
    always_window: bool = False
    declared_ignored: bool = False
    stale_dropped: bool = False
    removed_is_cut: bool = False
    carried_omitted: bool = False
    estimate_first: bool = False
    uncounted_unseen: bool = False
    wrapper_ignored: bool = False
    splices_ignored: bool = False
    summary_left_out: bool = False
    compaction_ignored: bool = False
    trace_order_prefix: bool = False
    usage_to_next: bool = False
    sessions_mixed: bool = False
    by_time: bool = False
    turn_nets: bool = False
    set_ledger: bool = False
    declared_version_ignored: bool = False
    branch_ignored: bool = False
    cause_by_selection_first: bool = False
    content_is_used: bool = False
    bill_below_content_is_doubted: bool = False
    bill_for_every_target: bool = False
    free_of_the_content: bool = False
    unrecorded_never_null: bool = False
    unrecorded_never_negative: bool = False
    unrecorded_last: bool = False
    only_texts: bool = False
    parameters_ignored: bool = False
    every_parameter_breaks_all: bool = False
    speakers_first: bool = False
    prefix_for_every_target: bool = False
