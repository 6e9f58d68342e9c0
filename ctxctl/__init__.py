"""ctxctl: inspect and debug context assembly, turn by turn."""

__version__ = "0.1.0"
