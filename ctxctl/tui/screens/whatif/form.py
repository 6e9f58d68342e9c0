"""What is supposed, as it is being typed: one line for each field.  Plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from ctxctl.model.whatif import Supposition, parse_tokens
from ctxctl.tui.lineedit import Line

LABELS: Final = {
    "window": "window",
    "reserve": "reserve",
    "max_input": "max input",
    "model": "model",
    "policy": "policy",
    "encoding": "encoding",
}
"""Fields in the order in which the keys go through them: down one column, then the other."""

_LEAST: Final = {"window": 1, "reserve": 0, "max_input": 1}

HELP: Final = {
    "model": "a model's name: tokens are counted with its encoding; its window is not known here",
    "window": "the model's window in tokens: 128000, 128k, 1m",
    "policy": "←/→: what decides what is sent",
    "reserve": "tokens of the window kept for the answer",
    "encoding": "←/→: what tokens are counted with",
    "max_input": "a separate limit on the prompt",
}
"""What a field takes, in a phrase."""


_NOTHING: Final = Line()


@dataclass(frozen=True, slots=True)
class Field:
    """One field.  An empty line means: as recorded."""

    name: str
    line: Line = _NOTHING
    recorded: str = ""
    """What the trace records, for where nothing is typed; may be text of the trace."""
    choices: tuple[str, ...] = ()
    """Values to choose from; none: anything can be typed."""
    error: str = ""

    @property
    def value(self) -> str:
        """What was typed, without blanks around it."""
        return self.line.text.strip()


@dataclass(frozen=True, slots=True)
class Form:
    """All fields, and the one that takes the keys."""

    fields: tuple[Field, ...] = tuple(Field(name) for name in LABELS)
    at: int = 0

    @property
    def field(self) -> Field:
        """The field that takes the keys."""
        return self.fields[self.at]

    def of(self, name: str) -> str:
        """What was typed into a field."""
        return next(field.value for field in self.fields if field.name == name)


def recorded(form: Form, values: Mapping[str, str], choices: Mapping[str, tuple[str, ...]]) -> Form:
    """What the trace records, and what there is to choose from, is known by now."""
    fields = (
        replace(
            field,
            recorded=values.get(field.name, field.recorded),
            choices=choices.get(field.name, field.choices),
        )
        for field in form.fields
    )
    return replace(form, fields=tuple(fields))


def filled(form: Form, supposition: Supposition) -> Form:
    """The form as if this had been typed."""
    given = supposition.given
    return replace(
        form, fields=tuple(replace(f, line=Line.of(str(given.get(f.name, "")))) for f in form.fields)
    )


def edited(form: Form, change: Callable[[Line], Line]) -> Form:
    """The field's line after a key; a choice cannot be edited, only cleared."""
    field = form.field
    line = change(field.line)
    if field.choices and line.text:
        line = field.line if len(line.text) >= len(field.line.text) else _NOTHING
    return _changed(form, line)


def typed(form: Form, text: str) -> Form:
    """Type or paste; in a choice, go to the next value that begins so."""
    field = form.field
    if not field.choices:
        return _changed(form, field.line.insert(text))
    at = field.choices.index(field.value) if field.value in field.choices else -1
    order = (*field.choices[at + 1 :], *field.choices[: at + 1])
    found = next((c for c in order if c.lower().startswith(text.strip().lower())), None)
    if found is None:
        return refused(form, field.name, f"none begins with {text!r}: ←/→ steps through the choices")
    return _changed(form, Line.of(found))


def sideways(form: Form, by: int) -> Form:
    """Left or right: the cursor in a line, the next value of a choice; before the first is "as recorded"."""
    field = form.field
    if not field.choices:
        return _changed(form, field.line.move(by))
    values = ("", *field.choices)
    at = values.index(field.value) if field.value in values else 0
    return _changed(form, Line.of(values[(at + by) % len(values)]))


def to_field(form: Form, at: int) -> Form:
    """Another field takes the keys."""
    return replace(form, at=min(max(at, 0), len(form.fields) - 1))


def _changed(form: Form, line: Line) -> Form:
    """The field with another line; a complaint stays only as long as the text that it is about."""
    field = form.field
    error = field.error if line.text == field.line.text else ""
    fields = (*form.fields[: form.at], replace(field, line=line, error=error), *form.fields[form.at + 1 :])
    return replace(form, fields=fields)


def refused(form: Form, name: str, error: str) -> Form:
    """A field's value is wrong; the keys go there."""
    fields = tuple(replace(f, error=error if f.name == name else f.error) for f in form.fields)
    at = next((n for n, field in enumerate(fields) if field.name == name), form.at)
    return replace(form, fields=fields, at=at)


def read(form: Form) -> tuple[Form, Supposition | None]:
    """What is supposed; None, and the form with its errors, where a field cannot be read."""
    values: dict[str, str | int] = {}
    wrong = ""
    fields = []
    for field in form.fields:
        error = ""
        if field.value and field.name in _LEAST:
            try:
                values[field.name] = parse_tokens(field.value, least=_LEAST[field.name])
            except ValueError as found:
                error = f"must be {found}"
                wrong = wrong or field.name
        elif field.value:
            values[field.name] = field.value
        fields.append(replace(field, error=error))
    form = replace(form, fields=tuple(fields))
    if wrong:
        return to_field(form, list(LABELS).index(wrong)), None
    return form, Supposition(**values)  # type: ignore[arg-type]
