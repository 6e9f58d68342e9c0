"""The façade between traces and views."""

from ctxctl.inspector.facade import Inspector, Progress
from ctxctl.inspector.found import FrameDiff, Outline
from ctxctl.inspector.params import Params

__all__ = ["FrameDiff", "Inspector", "Outline", "Params", "Progress"]
