"""All sections, in the order of the page."""

from __future__ import annotations

from tools.bench.section import Section
from tools.bench.sections import (
    again,
    diff,
    first,
    fleet,
    grow,
    hostile,
    importers,
    record,
    sessions,
    start,
    ui,
    watch,
    whatif,
)  # fmt: skip

SECTIONS: tuple[Section, ...] = tuple(
    module.SECTION
    for module in (
        start,
        first,
        again,
        grow,
        fleet,
        sessions,
        importers,
        whatif,
        ui,
        watch,
        record,
        diff,
        hostile,
    )
)


def chosen(names: str | None) -> tuple[Section, ...]:
    """The sections of these names, with commas between; all without any.  Raises ValueError."""
    if names is None:
        return SECTIONS
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    known = {section.name: section for section in SECTIONS}
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise ValueError(f"no section {', '.join(unknown) or 'named'}; there are {', '.join(known)}")
    return tuple(section for section in SECTIONS if section.name in wanted)
