"""`docs/examples/opentelemetry_export.py`: the real SDK and instrumentation, into a receiver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.frameworks.fake import CACHED, INPUT, Fake

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "opentelemetry_export.py"
ENVIRONMENTS = ("httpx2",)


def test_a_program_that_is_instrumented_is_recorded(tmp_path: Path) -> None:
    from tests.unit.record.otlp_help import frames
    from tests.unit.record.receive_help import receiving

    out = tmp_path / "t.jsonl"
    with Fake() as fake, receiving(out, otlp=True, events=False) as receiver:
        environment = {
            **os.environ, "OPENAI_BASE_URL": fake.v1, "OPENAI_API_KEY": "none",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.port}",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, str(EXAMPLE)], env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
    sent = [[one["content"] for one in request.body["messages"]] for request in fake.received]
    assert len(sent) == 2
    found = frames(out)
    assert [len(frame["carried"]) for frame in found] == [len(texts) for texts in sent]
    assert {frame["thread"] for frame in found} == {"main"}
    assert [frame["input"] for frame in found] == [INPUT, INPUT]
    usage = [
        json.loads(line)["data"] for line in out.read_text().splitlines() if "ctxctl.usage.reported" in line
    ]
    assert [one["cached_tokens"] for one in usage] == [CACHED, CACHED]
