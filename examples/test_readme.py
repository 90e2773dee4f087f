"""The README is executed: its commands run in a copy of the project, its tables name just what there is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from amp_evaluation import builtin_evaluator_catalog
from amp_evaluation.config import Config
from amp_evaluation.trace.mapping import FIELDS, KINDS, parse_mapping
from loopback import Platform

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SDK_README = (ROOT / "libs" / "amp-evaluation" / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# The environment of this test is the one that `make` would make; the tests are not run within themselves.
PRELUDE = """
set -e
make() { [ "$1" = test ] && { command make -n test >/dev/null; return; }; command make -o .venv/.installed "$@"; }
"""


def blocks(text: str, language: str) -> list[str]:
    return [body for found, _, body in FENCE.findall(text) if found == language]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as a new user has it, with the files that the README tells to write."""
    place = tmp_path_factory.mktemp("readme") / "project"
    ignored = shutil.ignore_patterns(".git", ".venv", "out", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, place, ignore=ignored)
    (place / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", "pytest"):
        (place / ".venv" / "bin" / name).write_text(f'#!/bin/sh\nexec "{Path(sys.executable).parent / name}" "$@"\n')
        (place / ".venv" / "bin" / name).chmod(0o755)
    (place / ".venv" / ".installed").touch()
    for _, name, body in FENCE.findall(README):
        if name:
            (place / name).write_text(body, encoding="utf-8")
    return place


def test_every_command_of_the_readme_runs(copy: Path) -> None:
    script = PRELUDE + "\n".join(blocks(README, "bash"))
    assert script.count("main.py") >= 2
    with Platform() as platform:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(copy),
            "LLM_API_BASE": platform.model_url,
            "LLM_API_KEY": "k-12345",
        }
        run = subprocess.run(["bash", "-c", script], cwd=copy, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert (copy / "out" / "report.html").exists()
    posted = json.loads((copy / "scores.json").read_text(encoding="utf-8"))
    scored = {a["evaluatorName"]: a["count"] - a["skippedCount"] for a in posted["aggregatedScores"]}
    assert scored == {"Names a day": 10, "Kind": 10, "Fast": 11}
    assert (copy / "report.html").exists()
    assert (copy / "report.json").exists()
    assert "A customer asked:" in run.stdout  # the dry run shows the judge's prompt


def test_the_sdks_readme_runs(copy: Path) -> None:
    for body in blocks(SDK_README, "python"):
        run = subprocess.run([sys.executable, "-c", body], cwd=copy, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        assert "latency_performance" in run.stdout


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def names_in_first_cells(text: str) -> set[str]:
    cells = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_the_flags_are_those_of_the_program() -> None:
    run = subprocess.run([sys.executable, ROOT / "main.py", "--help"], capture_output=True, text=True, check=True)
    options = run.stdout.split("options:")[1].split("\n\n")[0]
    assert names_in_first_cells(section("Flags")) == set(re.findall(r"(--[a-z-]+)", options)) - {"--help"}


def test_the_settings_are_those_of_the_sdk() -> None:
    named = {name for name in names_in_first_cells(section("Environment")) if name.startswith("AMP_")}
    known = set()
    for prefix, part in (
        ("AMP_TRACE_", Config().trace),
        ("AMP_LLM_JUDGE_", Config().llm_judge),
        ("AMP_MONITOR_", Config().monitor),
        ("AMP_CODE_EVALUATOR_", Config().code_evaluator),
    ):
        known |= {prefix + field.upper() for field in type(part).model_fields}
    # the job takes these from its flags and from LLM_API_*
    of_the_job = {"AMP_TRACE_FILE_PATH", "AMP_LLM_JUDGE_API_BASE", "AMP_LLM_JUDGE_API_KEY"}
    assert named == known - of_the_job


def test_the_evaluators_are_those_of_the_catalogue() -> None:
    named = names_in_first_cells(section("Evaluators")) - {"code", "llm_judge", "type"}
    assert named == {info.name for info in builtin_evaluator_catalog()}


def test_the_exit_codes_are_those_of_the_program() -> None:
    documented = re.findall(r"^\| (\d+) \|", section("Exit codes"), re.MULTILINE)
    run = subprocess.run([sys.executable, ROOT / "main.py", "--help"], capture_output=True, text=True, check=True)
    told = re.findall(r"^  (\d+)  ", run.stdout.split("Exit codes")[1], re.MULTILINE)
    assert documented == told == ["0", "1", "2", "3", "130"]


def test_the_commands_for_developers_are_targets() -> None:
    makefile = (ROOT / "Makefile").read_text()
    code = " ".join(re.findall(r"`(make [^`]+)`", README)) + "\n" + "\n".join(blocks(README, "bash"))
    targets = {word for line in code.split("make ")[1:] for word in line.split("\n")[0].split(" ")[0].split()}
    assert {"run", "test", "docker-build"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_what_the_readme_points_to_is_there() -> None:
    for place, anchor in re.findall(r"\]\(([^)#:]+)(?:#([^)]*))?\)", README):
        assert (ROOT / place).exists(), place
        assert not anchor or anchor in anchors((ROOT / place).read_text(encoding="utf-8")), (place, anchor)


def anchors(text: str) -> set[str]:
    """What the headings of a page can be reached by."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_mapping_of_the_readme_is_one_and_names_every_entry() -> None:
    part = SDK_README.split("## Attributes of your own")[1]
    (example,) = blocks(part, "json")
    assert parse_mapping(json.loads(example)).places.keys() < set(FIELDS)
    prose = part.split("The entries are")[1]
    assert re.findall(r"`(\w+)`", prose) == list(FIELDS)
    assert set(re.findall(r"`(\w+)`", part.split("into kinds:")[1].split("The entries")[0])) == set(KINDS)
