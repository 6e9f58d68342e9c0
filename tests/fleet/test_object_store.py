"""A dataset in an S3 bucket: what is in a folder is there too, and of two commits of one number one counts.

Needs moto's server (`pip install 'moto[server]'`); skipped where it is not installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("moto.server", reason="moto's server is not installed")
pytest.importorskip("pyarrow", reason="needs the extra `fleet`")
pytest.importorskip("obstore", reason="needs the extra `fleet`")

from ctxctl.dataset.log import commit, fold, live
from ctxctl.dataset.opening import opened as opened_for_reading
from ctxctl.errors import CtxctlError
from ctxctl.trace import inputs
from tests.unit.dataset.fleet_kit import added, fleet, opened, rows_in, run, session, write


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    from urllib.request import Request, urlopen

    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT": f"http://{host}:{port}", "AWS_ALLOW_HTTP": "true", "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    with urlopen(Request(f"http://{host}:{port}/fleet", method="PUT")) as answer:
        assert answer.status == 200
    yield "s3://fleet/team/dataset"
    server.stop()


def test_a_bucket_holds_what_a_folder_holds(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "YOUNG", -60.0)
    logs = fleet(tmp_path / "logs")
    with pytest.raises(CtxctlError) as nothing:
        live(bucket)
    assert nothing.value.slug == "no-dataset"
    here, there = added(tmp_path / "d", logs), added(bucket, logs)
    assert {path: one.sha256 for path, one in here.files.items()} == {
        path: one.sha256 for path, one in there.files.items()
    }
    assert there.urls("steps")[0].startswith("s3://fleet/team/dataset/data/steps/")
    write(logs / "claude" / "p0" / "s-0.jsonl", session(0, 9))
    done, plan = run(opened(bucket), [logs])
    assert (done.captures, plan.unchanged) == (1, 8)
    assert rows_in(live(bucket)) == rows_in(added(tmp_path / "d", logs))
    copies = opened_for_reading(bucket)
    assert all(Path(path).is_file() for paths in copies.files.values() for path in paths)


def test_of_two_commits_one_counts(bucket: str) -> None:
    empty = opened(bucket)
    assert commit(empty, [], [], [1]) is not None
    assert commit(empty, [], [], [2]) is None
    assert fold(empty.store, empty.head).forgotten == {1}
