"""placeholder."""
from __future__ import annotations
from collections.abc import Iterator
from typing import Any
from ctxctl.formats.lines import Readable, Report
class Sanqian:
    """placeholder."""
    name: str = "sanqian"
    title: str = "sanqian provider calls"
    default_policy: str = "sanqian"
    def detect(self, head: bytes) -> int:
        """p."""
        return 0
    def events(self, source: Readable, report: Report) -> Iterator[dict[str, Any]]:
        """p."""
        return iter(())
