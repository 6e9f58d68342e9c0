"""``ctxctl calibrate``: fit what models without a public tokenizer make of what is counted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from ctxctl.cli.run import Run
    from ctxctl.tokens.calibrate.calibration import Calibration, Outcome
    from ctxctl.tokens.calibrate.points import Lane

Traces = Annotated[
    list[str] | None,
    Argument(
        metavar="[TRACE|DIR]...",
        help="Sessions with reported usage, or directories of them. Default: show what is shipped and saved.",
        autocompletion=opt.complete_files,
    ),
]
Save = Annotated[
    bool,
    Option(
        "--save", help="Keep the calibration for later sessions; it replaces the shipped one for its models."
    ),
]
To = Annotated[str | None, Option("--to", metavar="FILE", help="Write the calibration to a file.")]
Everything = Annotated[
    bool,
    Option("--all", help="List every model that could not be fitted, and every shipped weight."),
]
OnlyModel = Annotated[
    str | None,
    Option("--model", metavar="NAME", help="Only this model, whatever date or tag its name ends in."),
]


@opt.takes(opt.PAGED, "everything encoding read_as strict color", everything=Everything)
def calibrate(
    options: opt.CommonOptions,
    traces: Traces = None,
    save: Save = False,
    to: To = None,
    model: OnlyModel = None,
) -> None:
    """Fit token counts to reported usage, and report the error on steps that were held out."""
    from ctxctl.cli.run import begin
    from ctxctl.cli.selection import whole_trace
    from ctxctl.errors import Exit, UsageError
    from ctxctl.tokens.calibrate.points import family

    run = begin(options)
    if not traces:
        if save or to is not None:
            raise UsageError("no-calibration", "--save and --to need sessions to fit to")
        _list_calibrations(run)
        raise Done(Exit.OK)
    hint = "leave the turn out; `ctxctl show {}` shows what was billed for it"
    lanes, damaged = _gathered([whole_trace(trace, hint) for trace in traces], run)
    if model is not None:
        lanes = [[lane for lane in session if lane.model == family(model)] for session in lanes]
    outcome = _fitted(lanes, run)
    _tell(outcome, len(lanes), run)
    _save(outcome.calibration, to, run, save=save)
    raise Done(Exit.FINDINGS if damaged and run.settings.strict else Exit.OK)


def _gathered(traces: list[str], run: Run) -> tuple[list[list[Lane]], bool]:
    """What each session tells, and whether anything was wrong with one; raises for a trace that was named."""
    from ctxctl.cli.fleet import fleet
    from ctxctl.cli.run import tell_problems
    from ctxctl.session import Inspector
    from ctxctl.session.calibration import sessions_of
    from ctxctl.tokens.model_encodings import DEFAULT_ENCODING

    settings, out = run.settings, run.out
    encoding = settings.encoding or DEFAULT_ENCODING
    found: list[list[Lane]] = []
    damaged = False
    for path in traces:
        with fleet(path, run, "gathering") as several:
            if several is not None:
                from ctxctl.cli.fleet_calibrate import gather_fleet

                lanes, bad = gather_fleet(several, encoding, settings.models)
                found += lanes
                damaged = damaged or bad
                continue
        with (
            out.progress("gathering"),
            Inspector.open(
                path, encoding=encoding, format=settings.read_as, own_models=settings.models
            ) as inspector,
        ):
            found += sessions_of(inspector.replay(out.progressed))
            damaged = damaged or bool(inspector.finding_count)
            tell_problems(inspector, run)
    return found, damaged


def _fitted(lanes: list[list[Lane]], run: Run) -> Outcome:
    from ctxctl.tokens.calibrate.calibration import calibrate as fit
    from ctxctl.tokens.model_encodings import DEFAULT_ENCODING

    with run.out.progress("fitting"):
        return fit(lanes, run.settings.encoding or DEFAULT_ENCODING)


def _tell(outcome: Outcome, sessions: int, run: Run) -> None:
    from ctxctl.report import calibration as report

    out = run.out
    if run.json:
        out.json(report.calibration_object(outcome.calibration, sessions))
        for fit in outcome.calibration.fits:
            out.json(report.fit_object(fit))
        for refused in outcome.refused:
            out.json(report.refused_object(refused))
    else:
        out.lines(report.outcome_lines(outcome, sessions, out.width, everything=run.everything))
    out.flush()


def _save(calibration: Calibration, to: str | None, run: Run, *, save: bool) -> None:
    """Write it where it was asked for; raises UsageError where there is nothing to write."""
    from ctxctl.cli.output import narrate
    from ctxctl.errors import UsageError
    from ctxctl.text import visible
    from ctxctl.tokens.calibrate import store

    if not save and to is None:
        return
    if not calibration.fits:
        raise UsageError(
            "no-calibration", "no model could be calibrated, so nothing was saved",
            hint="the table says why; more sessions of the same model may help",
        )  # fmt: skip
    if to is not None:
        store.write(Path(to), calibration.encode() + b"\n")
        narrate(f"ctxctl: wrote {visible(to)} ({calibration.digest})")
    if save:
        before = store.saved()
        whole = before.with_fits(calibration.fits) if before is not None else calibration
        store.save(whole)
        kept = "" if before is None else f"; {len(whole.fits)} models with those saved before"
        narrate(f"ctxctl: saved {whole.digest} for later sessions{kept}; --calibration none turns it off")


def _list_calibrations(run: Run) -> None:
    """What is shipped, and what the user saved, the one in use first."""
    from ctxctl.report import calibration as report
    from ctxctl.tokens.calibrate import store
    from ctxctl.tokens.calibrate.shipped import over_shipped, shipped_calibration

    own = store.saved()
    others = [digest for digest, _ in store.all_saved() if own is None or digest != own.digest]
    out = run.out
    if run.json:
        for calibration, origin in ((shipped_calibration(), "shipped"), (own, "saved")):
            if calibration is not None:
                out.json(report.calibration_object(calibration, None, origin))
                for fit in calibration.fits:
                    out.json(report.fit_object(fit))
    else:
        whole = shipped_calibration() if own is None else over_shipped(own)
        out.lines(
            report.kept_lines(shipped_calibration(), own, whole, others, out.width, everything=run.everything)
        )
    out.flush()
