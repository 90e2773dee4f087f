"""The image for real: built from both Dockerfiles, run as a pod would run it, against the loopback platform.

Needs a container engine and a base image: AMP_TEST_PYTHON_IMAGE names one that the engine has. Skipped without.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import argo
import pytest
import yaml
from loopback import Platform, series

ROOT = Path(__file__).parent.parent
BASE = os.environ.get("AMP_TEST_PYTHON_IMAGE", "")
DOCKER = shutil.which("docker", path="/usr/bin:" + os.environ.get("PATH", "")) or "docker"

pytestmark = pytest.mark.skipif(
    not BASE, reason="no container engine with a base image: AMP_TEST_PYTHON_IMAGE is unset"
)

OPTIONS = {"full": ("Dockerfile", "full"), "small": ("Dockerfile", "small"), "dev": ("Dockerfile.dev", "small")}
POD = [
    "--network=host",
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--user=54321:54321",
    "--memory=512m",
    "--memory-swap=512m",
    "--cpus=0.5",
    "--tmpfs=/tmp:rw,mode=1777",
]


Done = subprocess.CompletedProcess[str]


def docker(*words: str | Path, env: dict[str, str] | None = None, check: bool = True) -> Done:
    environment = {**os.environ, "DOCKER_BUILDKIT": "1", **(env or {})}
    run = subprocess.run([DOCKER, *map(str, words)], capture_output=True, text=True, env=environment, check=False)
    assert not check or run.returncode == 0, f"docker {words[0]}: {run.stdout[-2000:]}\n{run.stderr[-4000:]}"
    return run


@pytest.fixture(scope="session")
def images(pytestconfig: pytest.Config) -> dict[str, str]:
    """Each image's tag, all built from this checkout; CI's log shows what they weigh."""
    capture: Any = pytestconfig.pluginmanager.get_plugin("capturemanager")
    for name, (file, flavor) in OPTIONS.items():
        started = time.monotonic()
        options = ["--network=host", f"--build-arg=PYTHON_IMAGE={BASE}", f"--build-arg=FLAVOR={flavor}"]
        docker("build", *options, "-f", ROOT / file, "-t", f"amp-test:{name}", ROOT)
        weight, took = (size(f"amp-test:{name}") - size(BASE)) / 1e6, time.monotonic() - started
        with capture.global_and_fixture_disabled():
            print(f"\nimage {name}: {weight:.0f} MB on its base, built in {took:.0f} s")  # noqa: T201
    return {name: f"amp-test:{name}" for name in OPTIONS}


def size(tag: str) -> int:
    return int(docker("image", "inspect", "--format={{.Size}}", tag).stdout)


@pytest.fixture
def platform() -> Iterator[Platform]:
    with Platform(series(25)) as running:
        yield running


def run_job(image: str, platform: Platform, *extra: str, **environment: str) -> Done:
    """The job in a container as restricted as its pod; variables go by name, so no value shows in a process list."""
    env = {**platform.env(), **environment}
    names = [word for name in env for word in ("--env", name)]
    return docker("run", "--rm", *POD, *names, image, *platform.argv(), *extra, env=env, check=False)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_restricted_container_stores_all_scores(images: dict[str, str], platform: Platform, name: str) -> None:
    run = run_job(images[name], platform)
    assert run.returncode == 0, run.stderr
    assert len(platform.publisher.scores) >= 25


PEEK = """
import glob, os
def peek(trace: Trace) -> dict:
    seen = []
    for path in ["/in/evaluators.json", "/etc/passwd", *glob.glob("/proc/*/environ")]:
        try:
            seen.append(open(path).read(1) and path)
        except OSError:
            pass
    return {"score": 1.0, "explanation": f"{seen} {[n for n in os.environ if 'SECRET' in n or 'KEY' in n]}"}
"""


def test_custom_code_is_confined_and_judges_use_the_gateway(
    images: dict[str, str], platform: Platform, tmp_path: Path
) -> None:
    judge = {"identifier": "own", "displayName": "Own", "type": "llm_judge", "level": "trace"}
    entries = [
        {"identifier": "peek", "displayName": "Peek", "type": "code", "source": PEEK},
        {"identifier": "helpfulness", "displayName": "Helpful", "config": {"model": "openai/m-1"}},
        judge | {"source": "Judge {trace.output.upper()}", "config": {"model": "openai/m-1"}},
    ]
    file = tmp_path / "evaluators.json"
    file.write_text(json.dumps(entries))
    env = {**platform.env(), "LLM_API_BASE": platform.model_url, "LLM_API_KEY": "gateway-key-1"}
    names = [word for name in env for word in ("--env", name)]
    mount = f"--volume={file}:/in/evaluators.json:ro"
    flags = [flag for flag in platform.argv() if not flag.startswith("--evaluators=")]
    words = ["run", "--rm", *POD, *names, mount, images["small"], *flags, "--evaluators=@/in/evaluators.json"]
    run = docker(*words, env=env, check=False)
    assert run.returncode == 0, run.stderr
    scores = list(platform.publisher.scores.values())
    assert {score["explanation"] for score in scores if score["evaluatorName"] == "Peek"} == {"[] []"}
    assert len([score for score in scores if "score" in score]) == 75
    assert {request.headers["api-key"] for request in platform.requests("model")} == {"gateway-key-1"}
    assert "gateway-key-1" not in run.stderr


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize(
    ("fault", "extra", "code"),
    [
        pytest.param("", ["--sampling-rate=7"], 2, id="2: a wrong flag"),
        pytest.param("refused", [], 1, id="1: no peer answers"),
        pytest.param("forbidden", [], 3, id="3: the publisher refuses for good"),
    ],
)
def test_exit_codes_pass_through(
    images: dict[str, str], platform: Platform, name: str, fault: str, extra: list[str], code: int
) -> None:
    if fault == "refused":
        platform.servers["idp"].close()
    if fault == "forbidden":
        platform.fault("publisher_403")
    assert run_job(images[name], platform, *extra).returncode == code


def test_docker_stop_ends_the_job_at_once_and_says_what_is_lost(images: dict[str, str], platform: Platform) -> None:
    platform.observer.page_delay_s = 30.0
    env = platform.env()
    names = [word for name in env for word in ("--env", name)]
    docker("run", "-d", "--name=amp-test-stop", *POD, *names, images["small"], *platform.argv(), env=env)
    try:
        deadline = time.monotonic() + 30
        while not platform.pages and time.monotonic() < deadline:
            time.sleep(0.1)
        started = time.monotonic()
        docker("stop", "--time=20", "amp-test-stop")
        assert time.monotonic() - started < 10  # the engine's own second included; it kills after 20
        assert docker("inspect", "--format={{.State.ExitCode}}", "amp-test-stop").stdout.strip() == "0"
        logged = docker("logs", "amp-test-stop").stderr.splitlines()
        warning = json.loads(logged[-1])
        assert warning["level"] == "WARN"
        assert "none of their scores was published" in warning["msg"]
    finally:
        docker("rm", "-f", "amp-test-stop")


def python(image: str, code: str, *options: str) -> str:
    words = ["run", "--rm", "--network=none", "--read-only", *options, "--entrypoint=python", image, "-c", code]
    return docker(*words).stdout.strip()


def test_the_full_image_has_what_custom_code_is_promised(images: dict[str, str]) -> None:
    code = (
        "import numpy, pandas, requests\n"
        "from any_llm import AnyLLM\n"
        "names = 'openai anthropic gemini groq mistral bedrock azureopenai azure'.split()\n"
        "print([n for n in names if AnyLLM.get_provider_class(n).MISSING_PACKAGES_ERROR])"
    )
    assert python(images["full"], code) == "[]"


def test_the_small_image_is_small(images: dict[str, str]) -> None:
    assert size(images["small"]) - size(BASE) < 200e6
    absent = "import importlib.util as u; print(u.find_spec('numpy'), u.find_spec('pandas'))"
    assert python(images["small"], absent) == "None None"


@pytest.mark.parametrize("name", OPTIONS)
def test_no_compiler_no_cache_no_root_and_bytecode_is_there(images: dict[str, str], name: str) -> None:
    code = (
        "import os, shutil, pathlib, sys\n"
        "site = pathlib.Path('/opt/amp/lib')\n"
        "print(os.getuid(), [t for t in ('gcc', 'cc', 'make') if shutil.which(t)],"
        " any(site.rglob('pip/__init__.py')),"
        " len(list(site.rglob('amp_evaluation/__pycache__/*.pyc'))) > 10)"
    )
    assert python(images[name], code) == "10001 [] False True"
    caches = "import os; print([p for p in ('/root/.cache', '/src', '/tmp/pip') if os.path.exists(p)])"
    assert python(images[name], caches, "--user=0") == "[]"
    config = json.loads(docker("image", "inspect", images[name]).stdout)[0]["Config"]
    assert config["Entrypoint"] == ["python", "main.py"]
    assert config["User"] == "10001:10001"
    assert "PYTHONUNBUFFERED=1" in config["Env"]


def test_the_template_runs_in_the_real_image(images: dict[str, str], platform: Platform, tmp_path: Path) -> None:
    name = '"q" $(IDP_CLIENT_SECRET) $$5 \\n\nline 🏴󠁧󠁢󠁳󠁣󠁴󠁿'
    document: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "cluster-workflow-template.yaml").read_text())
    evaluators = json.dumps([{"identifier": "latency_performance", "displayName": name, "config": {}}])
    flags = dict(word.removeprefix("--").split("=", 1) for word in platform.argv())
    env = platform.env()
    parameters = {key: value for key, value in flags.items() if key not in ("report", "outputs")} | {
        "evaluators": evaluators,
        "idp-token-url": env["IDP_TOKEN_URL"],
        "idp-client-id": env["IDP_CLIENT_ID"],
        "publisher-secret-name": "publisher",
        "image": images["small"],
    }
    container = argo.render(document, parameters, {"publisher/client-secret": env["IDP_CLIENT_SECRET"]})
    (tmp_path / "evaluators.json").write_text(container.files["/in/evaluators.json"], encoding="utf-8", newline="")
    out = tmp_path / "out"
    out.mkdir()
    for path in (tmp_path, *tmp_path.parents[:3], out):
        path.chmod(0o777)
    names = [word for key in container.env for word in ("--env", key)]
    mounts = [f"--volume={tmp_path}/evaluators.json:/in/evaluators.json:ro", f"--volume={out}:/out"]
    entry = [f"--entrypoint={container.command[0]}", container.image, *container.command[1:]]
    run = docker("run", "--rm", *POD, *names, *mounts, *entry, *container.args, env=container.env, check=False)
    assert run.returncode == 0, run.stderr
    assert {score["evaluatorName"] for score in platform.publisher.scores.values()} == {name}
    assert (out / "traces-evaluated").read_text() == "25"
    assert (out / "scores-stored").read_text() == "25"
    assert set(json.loads((out / "means.json").read_text())) == {name}
    assert (out / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("file", ["Dockerfile", "Dockerfile.dev"])
def test_hadolint_finds_nothing(file: str) -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    if not hadolint.exists():
        pytest.skip("hadolint is not installed")
    run = subprocess.run([hadolint, ROOT / file], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("name", OPTIONS)
def test_container_structure(images: dict[str, str], name: str) -> None:
    tool = Path(sys.executable).parent / "container-structure-test"
    if not tool.exists():
        pytest.skip("container-structure-test is not installed")
    words = [
        tool,
        "test",
        "--driver=docker",
        f"--image={images[name]}",
        f"--config={ROOT / 'deploy' / 'structure.yaml'}",
    ]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
