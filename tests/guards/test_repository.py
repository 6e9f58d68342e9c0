"""The repository's own files: nothing of one machine in them, versions locked, promised commands there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.guards.sources import nodes

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


def hygiene(*names: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "hygiene.py"), *names]
    return subprocess.run(command, capture_output=True, text=True)


def test_no_file_holds_a_machine_path_or_a_registry_host() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: nothing says which files are the project's")
    done = hygiene()
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.md", "see /wo" + "rk/main/x\n", "a path of a machine"),
        ("a.md", "in /ro" + "ot/.cache\n", "a path of a machine"),
        ("a.toml", 'index = "pypi' + '.org"\n', "the host of a package registry"),
        ("requirements.txt", "a @ https" + "://host/a.whl\n", "an address in a file of locked versions"),
        ("a.py", "x = 1\r\n", "CR at the end of the line"),
        ("a.py", "x = 1", "no newline at the end"),
        ("a.py", "<" * 7 + " HEAD\n", "a conflict mark"),
    ],
)
def test_hygiene_finds_what_it_is_for(tmp_path: Path, name: str, text: str, what: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode())
    done = hygiene(str(path))
    assert what in done.stdout
    assert done.returncode == 1


def test_hygiene_lets_urls_and_relative_paths_be(tmp_path: Path) -> None:
    path = tmp_path / "fine.md"
    path.write_text("see https://example.com/wo" + "rk/x, src/wo" + "rk/y and ~/wo" + "rk/z\n")
    assert hygiene(str(path)).stdout == ""


def locked(name: str) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in PIN.findall((ROOT / name).read_text())}


def test_the_lock_fits_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    run, dev = locked("requirements.txt"), locked("requirements-dev.txt")
    assert run.items() <= dev.items()
    groups = project["dependency-groups"]
    asked = (
        project["project"]["dependencies"]
        + groups["build"]
        + project["project"]["optional-dependencies"]["zstd"]
    )
    named = [name for name in groups["dev"] if isinstance(name, str)]
    for where, names in [(run, asked), (dev, named), (locked("requirements-site.txt"), groups["site"])]:
        for requirement in map(Requirement, names):
            assert requirement.specifier.contains(where[canonicalize_name(requirement.name)]), requirement


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt", "requirements-site.txt"])
def test_every_locked_package_has_a_hash(name: str) -> None:
    entries = re.split(r"\n(?=[a-z0-9])", (ROOT / name).read_text())
    bare = [
        entry.split()[0]
        for entry in entries
        if "==" in entry.split("\n")[0] and "--hash=sha256:" not in entry
    ]
    assert bare == []


def workflows() -> dict[str, dict[Any, Any]]:
    return {
        path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")
    }


def used_by(workflow: dict[Any, Any]) -> dict[str, str]:
    """Return the actions that a workflow uses, with the commit each is pinned to."""
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return dict(step["uses"].split("@") for step in steps if "uses" in step)


@pytest.mark.parametrize("name", ["ci.yml", "release.yml"])
def test_every_action_is_pinned_to_a_commit(name: str) -> None:
    used = used_by(workflows()[name])
    assert used
    assert {action: at for action, at in used.items() if not re.fullmatch("[0-9a-f]{40}", at)} == {}


def test_what_runs_without_a_network_cannot_be_skipped_in_ci() -> None:
    steps = workflows()["ci.yml"]["jobs"]["check"]["steps"]
    (suite,) = (number for number, step in enumerate(steps) if step.get("run") == "bash .ci/run")
    assert "runner.os == 'Linux' && '1'" in steps[suite]["env"]["CTXCTL_NEEDS_NAMESPACES"]
    allowed = [
        step for step in steps[:suite] if "apparmor_restrict_unprivileged_userns=0" in step.get("run", "")
    ]
    assert [step["if"] for step in allowed] == ["runner.os == 'Linux'"]


def test_workflows_use_one_commit_of_an_action() -> None:
    pins = {pin for workflow in workflows().values() for pin in used_by(workflow).items()}
    assert len(pins) == len(dict(pins))


def test_a_release_is_tested_before_it_is_published() -> None:
    jobs = workflows()["release.yml"]["jobs"]
    needs = {name: job.get("needs") for name, job in jobs.items()}
    assert needs == {
        "publish": "attest", "attest": ["test", "elsewhere"], "test": "build", "elsewhere": "build",
        "build": None,
    }  # fmt: skip


def test_a_release_is_installed_and_run_on_arm64_and_on_alpine() -> None:
    job = workflows()["release.yml"]["jobs"]["elsewhere"]
    assert job["strategy"]["matrix"]["os"] == ["ubuntu-latest", "ubuntu-24.04-arm"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert [command.split("try_wheel.sh ")[1] for command in commands] == ["none-any", "musllinux"]
    assert "-alpine sh " in commands[1]


def test_no_job_of_a_release_may_more_than_it_does() -> None:
    release = workflows()["release.yml"]
    assert release["permissions"] == {}
    assert {name: set(job["permissions"]) for name, job in release["jobs"].items()} == {
        "build": {"contents"},
        "test": {"contents"},
        "elsewhere": {"contents"},
        "attest": {"attestations", "id-token"},
        "publish": {"id-token"},
    }
    assert {job["permissions"].get("contents", "read") for job in release["jobs"].values()} == {"read"}
    # Steps of a project's own code run in no job that can sign or publish.
    assert all("run" not in step for name in ("attest", "publish") for step in release["jobs"][name]["steps"])
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text()


@pytest.mark.parametrize("name", ["bug", "format", "question"])
def test_each_form_for_an_issue_asks_for_the_version(name: str) -> None:
    form = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text())
    assert {"name", "description", "body"} <= form.keys()
    asked = {part["id"]: part for part in form["body"] if part["type"] != "markdown"}
    assert "ctxctl --version" in asked["version"]["attributes"]["description"]
    assert any(part.get("validations", {}).get("required") for part in asked.values())


@pytest.mark.parametrize(
    "target", ["demo", "test", "slow", "quick", "check", "bench", "goldens", "lock", "dist", "help"]
)
def test_make_knows_the_promised_targets(target: str) -> None:
    assert re.search(rf"^{target}:.*## \S", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme


def test_what_the_suite_leaves_out_ci_runs_too() -> None:
    """Each test runs there: `make test` leaves out what is slow, `make slow` all else."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    chosen = re.findall(r"^(\w+): .*\n.* -m pytest .*-m '([^']+)' \$\(ARGS\)$", makefile, re.MULTILINE)
    assert chosen == [("test", "not slow"), ("slow", "slow and not corpus")]
    steps = re.findall(r"^ *step (?:env \S+ )?(make \w+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert {"make test", "make slow", "make corpus"} <= set(steps)


def test_ci_is_executable() -> None:
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_the_demo_prints_the_report_of_a_trace_that_is_here() -> None:
    found = re.search(r"^DEMO \?= (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found
    command = [sys.executable, "-m", "ctxctl", "replay", found.group(1)]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) > 10


def frameworks() -> set[str]:
    """What hooks stand in, which is there or its hook is not used: as the type checker is told."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    told = [one["module"] for one in project["tool"]["mypy"]["overrides"] if "litellm.*" in one["module"]]
    return {name.partition(".")[0] for name in told[0]}


@cache
def imported() -> set[str]:
    """Return the top-level names of everything the package imports, wherever it does; hooks' own left out."""
    names = set()
    for path in (ROOT / "ctxctl").rglob("*.py"):
        hooked = frameworks() if path.parent.name == "hooks" else set()
        names |= _imported_by(path) - hooked
    found = names - sys.stdlib_module_names - {"ctxctl", "__future__"}
    # protobuf's module comes with opentelemetry-proto, which is made of it.
    owners = {"yaml": "PyYAML", "opentelemetry": "opentelemetry-proto", "google": "opentelemetry-proto",
              "re2": "google-re2"}  # fmt: skip
    return {owners.get(name, name) for name in found}


def _imported_by(path: Path) -> set[str]:
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def test_what_is_imported_is_what_is_asked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [name for names in project["optional-dependencies"].values() for name in names]
    asked = {canonicalize_name(Requirement(name).name) for name in project["dependencies"] + extras}
    # rich is textual's: the two are only fit for each other in the version that textual asks for.
    # pytest imports its plugin, and nobody else does.
    asked |= {"rich", "pytest"}
    assert imported()
    assert {name for name in imported() if canonicalize_name(name) not in asked} == set()
    assert asked - {canonicalize_name(name) for name in imported()} == set()
