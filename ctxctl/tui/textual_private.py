"""Everything of Textual that is private and used here, each with what is done where a version lacks it.

Nothing else in `ctxctl.tui` imports a private module of Textual or reads a private name of it, but `Canvas`,
which is only used where its names are there.  Methods that override private ones (`Painted._set_dirty`,
`Board._compose`, `CtxApp._fatal_error`) stand where they belong: where Textual does not call them, what they
do is either not needed or switched off here.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from textual._compositor import ChopsUpdate as ChopsUpdate
    from textual._compositor import Compositor as Compositor
    from textual.message import Message
    from textual.scrollbar import ScrollBar
else:
    try:
        from textual._compositor import ChopsUpdate, Compositor
    except ImportError:
        ChopsUpdate = Compositor = object


def _has(owner: object, *names: str) -> bool:
    return all(hasattr(owner, name) for name in names)


REPORTS_CHANGES: Final = _has(Widget, "_set_dirty")
"""Whether widgets learn which of their lines have changed; else they keep no painted lines."""
REPORTS_ERRORS: Final = _has(App, "_handle_exception", "_fatal_error")
"""Whether errors come to the application, which shows their place only; else see `without_tracebacks`."""
PAINTS_SPANS: Final = _has(Compositor, "_regions_to_spans", "visible_widgets", "cuts")
"""Whether a screen can be painted line by line; else it is painted as Textual does."""
STARTS_WIDGETS: Final = _has(App, "_start_widget")
"""Whether a scroll bar of our own can take the place of Textual's."""


def is_present(node: Widget) -> bool:
    """Whether a widget's screen is open, or installed, in an application that does not end."""
    app = node.app
    return node.is_attached and (node.screen in app.screen_stack or app.is_screen_installed(node.screen))


def while_present(node: Widget, message: Message, found: Iterable[Any]) -> Iterable[Any]:
    """The handlers of a message that may still be called: none of ours once a widget's screen is gone.

    Keys, messages and timers may still be under way then.  Textual's own handlers still run, because they
    take the widget away.
    """
    if is_present(node):
        return found
    late = isinstance(message, events.Timer | events.Callback) and is_ours(message.callback)
    return () if late else [(kind, method) for kind, method in found if not is_ours(kind)]


def is_ours(what: object) -> bool:
    """Whether a class or a function, with arguments or without, is of this package."""
    return str(getattr(getattr(what, "func", what), "__module__", "")).startswith("ctxctl.")


def resume_only_what_was_suspended(app: App[Any]) -> None:
    """Let a SIGCONT that follows no SIGTSTP change nothing; Textual would start a second reader of keys.

    Programs that slow others down (cpulimit) send SIGSTOP and SIGCONT many times a second.
    """
    driver: Any = app._driver
    number = getattr(signal, "SIGCONT", None)
    if number is None or not _has(driver, "_must_signal_resume", "_sigcont_application"):
        return

    def resume(*_: object) -> None:
        if driver._must_signal_resume:
            driver._sigcont_application()

    signal.signal(number, resume)


def replace_compositor(screen: Screen[Any], make: Callable[[], Compositor]) -> None:
    """Have a screen painted by another compositor, where that can work."""
    own = getattr(screen, "_compositor", None)
    if PAINTS_SPANS and _has(own, "_dirty_regions"):
        screen._compositor = make()


def style_key(node: DOMNode) -> object:
    """What of a node's state, such as focus or a dark theme, its styles depend on beside its classes."""
    key = getattr(node, "_pseudo_classes_cache_key", None)
    return node.pseudo_classes if key is None else key


def vertical_scrollbar(widget: Widget, make: Callable[[], ScrollBar]) -> ScrollBar | None:
    """The scroll bar of a widget, made when it is first asked for; None where Textual has to make its own."""
    if not (STARTS_WIDGETS and _has(widget, "_vertical_scrollbar")):
        return None
    if widget._vertical_scrollbar is None:
        bar = widget._vertical_scrollbar = make()
        bar.display = False
        widget.app._start_widget(widget, bar)
    return widget._vertical_scrollbar


def set_virtual_size(widget: Widget, size: Size) -> None:
    """Say how large the content of a widget is, without laying out the screen anew where that can be."""
    if _has(widget, "_scroll_update"):
        widget.set_reactive(Widget.virtual_size, size)
        widget._scroll_update(size)
    else:
        widget.virtual_size = size


def note_error(app: App[Any], error: Exception) -> None:
    """Tell whoever drives the application in a test which error has ended it."""
    if _has(app, "_exception", "_exception_event") and app._exception is None:
        app._exception = error
        app._exception_event.set()


def end(app: App[Any], code: int) -> None:
    """End an application after an error, with this exit code, and as soon as can be."""
    if _has(app, "_return_code", "_close_messages_no_wait"):
        app._return_code = code
        app._close_messages_no_wait()
    else:
        app.exit(return_code=code)


@contextmanager
def without_tracebacks() -> Iterator[None]:
    """Keep Textual from printing errors where they do not come to the application.

    What it prints holds local variables, and with them the trace.  The UI is not drawn on `sys.stderr`.
    """
    if REPORTS_ERRORS:
        yield
    else:
        with redirect_stderr(StringIO()):
            yield


def has_no_application(error: RuntimeError) -> bool:
    """Whether a message could not be sent because its thread belongs to no application any more."""
    return type(error).__name__ == "NoActiveAppError"
