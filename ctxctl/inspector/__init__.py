"""The façade between traces and views."""

from ctxctl.inspector.facade import FrameDiff, Inspector, Outline, Progress
from ctxctl.inspector.params import Params

__all__ = ["FrameDiff", "Inspector", "Outline", "Params", "Progress"]
