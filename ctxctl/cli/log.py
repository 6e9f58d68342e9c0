"""``ctxctl log``: the life of one item."""

from __future__ import annotations

from ctxctl.cli import options as opt


@opt.takes(opt.PAGED, "oneline thread", opt.COUNTED, opt.READ)
def log(
    options: opt.CommonOptions,
    trace: opt.NewestArg = None,
    item: opt.ItemArg = None,
) -> None:
    """Show the history of an item: when it was added, updated, skipped, compacted, removed."""
    from ctxctl.analysis.by_name import life_by_name
    from ctxctl.analysis.frame_pair import several_sessions
    from ctxctl.cli.run import begin, header, reported
    from ctxctl.cli.selection import whole_trace
    from ctxctl.cli.sessions import trace_and_item
    from ctxctl.item_names import ItemNames
    from ctxctl.report import jsonout
    from ctxctl.report.heading import header_lines
    from ctxctl.report.life import life_lines, life_spans, to_json
    from ctxctl.report.oneline import life_line
    from ctxctl.session.item_words import directory_of, names_at
    from ctxctl.text import pasted

    run = begin(options)
    trace, item = trace_and_item(trace, item, run)
    trace = whole_trace(trace, f"`ctxctl why {{}} {pasted(item)}` covers one turn")
    out = run.out
    with reported(trace, run, "replaying") as inspector:
        found = life_by_name(inspector, item, options.thread)
        if options.json:
            out.json(jsonout.trace(header(inspector, thread=options.thread)))
            for span in life_spans(found.lives):
                out.json(to_json(found.item, span))
        elif options.oneline:
            several = several_sessions(inspector)
            spans = life_spans(found.lives)
            out.rows(life_line(trace, one.first, one.last, several=several) for one in spans)
        else:
            out.lines(header_lines(header(inspector, thread=options.thread), out.width))
            into = next((life.ordinal for life in reversed(found.lives) if life.into), None)
            names, titles = ItemNames(directory_of(inspector)), dict[str, str | None]()
            if into is not None:
                names = names_at(inspector, into)
                titles = {p.item: p.title for p in inspector.frame(into).placements}
            name = names.of("", found.title)
            lines = life_lines(found.item, found.lives, out.width, out.paint, name, names, titles)
            out.lines(["", *lines])
