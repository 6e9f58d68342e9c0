"""``ctxctl log``: the life of one item."""

from __future__ import annotations

from ctxctl.cli import options as opt


@opt.takes("plain json thread", opt.COUNTED, opt.READ)
def log(
    options: opt.CommonOptions,
    trace: opt.NewestArg = None,
    item: opt.ItemArg = None,
) -> None:
    """Tell an item's life: when it was added, updated, skipped, compacted, removed."""
    from ctxctl.analysis.by_name import life_by_name
    from ctxctl.cli.run import begin, header, reported
    from ctxctl.cli.sessions import trace_and_item
    from ctxctl.report import jsonout
    from ctxctl.report.heading import header_lines
    from ctxctl.report.life import life_lines, life_spans, to_json

    run = begin(options)
    trace, item = trace_and_item(trace, item, run)
    out = run.out
    with reported(trace, run, "replaying") as inspector:
        name, lives = life_by_name(inspector, item, options.thread)
        if options.json:
            out.json(jsonout.trace(header(inspector, thread=options.thread)))
            for span in life_spans(lives):
                out.json(to_json(name, span))
        else:
            out.lines(header_lines(header(inspector, thread=options.thread), out.width))
            out.lines(["", *life_lines(name, lives, out.width, out.paint)])
