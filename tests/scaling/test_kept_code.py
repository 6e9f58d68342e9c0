"""Code with counters is kept from run to run, for as long as it is that of its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scaling import counting


def _result(module: Path) -> object:
    code = counting._CountingLoader("made", str(module)).get_code("made")
    assert code is not None
    counted = {f"counted_{one.__name__}": one for one in (counting.hit, counting.made, counting.turns)}
    found: dict[str, object] = dict(counted)
    exec(code, found)
    return found["result"]


def test_kept_code_is_used_until_its_source_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, module = tmp_path / "kept", tmp_path / "made.py"
    kept.mkdir()
    monkeypatch.setattr(counting._CountingLoader, "kept", kept)
    module.write_text("result = [n for n in range(3)]\n")
    assert _result(module) == [0, 1, 2]
    with monkeypatch.context() as patch:
        patch.setattr(counting, "_Counted", None)  # nothing is compiled again
        assert _result(module) == [0, 1, 2]
        module.write_text("result = [n for n in range(4)]\n")
        with pytest.raises(TypeError):
            _result(module)
    assert _result(module) == [0, 1, 2, 3]
    assert [path.name for path in kept.iterdir()] == ["made"]
    monkeypatch.setattr(counting, "_compiler", lambda: b"another")
    monkeypatch.setattr(counting, "_Counted", None)
    with pytest.raises(TypeError):
        _result(module)
