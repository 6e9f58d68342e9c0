"""One opened trace, as every view asks it: the façade (`Inspector`) and what it is made of."""

from ctxctl.session.facade import Inspector, Progress
from ctxctl.session.params import Params
from ctxctl.session.results import FrameDiff, Outline

__all__ = ["FrameDiff", "Inspector", "Outline", "Params", "Progress"]
