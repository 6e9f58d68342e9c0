"""The façade between traces and views."""

from ctxctl.session.facade import Inspector, Progress
from ctxctl.session.params import Params
from ctxctl.session.results import FrameDiff, Outline

__all__ = ["FrameDiff", "Inspector", "Outline", "Params", "Progress"]
