"""ctxctl: inspect and debug context assembly, turn by turn."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxctl.hooks.capture import capture, recorded
    from ctxctl.record.recorder import Recorder

__version__ = "0.1.0"
__all__ = ["Recorder", "__version__", "capture", "recorded"]


def __getattr__(name: str) -> object:
    """What programs use, imported when somebody asks for it: the rest of the package needs none of it."""
    if name == "Recorder":
        from ctxctl.record.recorder import Recorder

        return Recorder
    if name in ("capture", "recorded"):
        from ctxctl.hooks import capture

        return getattr(capture, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
