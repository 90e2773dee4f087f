"""The Argo template: strict against Argo's schema, true to the job's flags, and nothing arrives altered."""

from __future__ import annotations

import copy
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import argo
import jsonpatch
import pytest
import yaml

ROOT = Path(__file__).parent.parent
TEMPLATE = ROOT / "deploy" / "cluster-workflow-template.yaml"
DOCUMENT: dict[str, Any] = yaml.safe_load(TEMPLATE.read_text())

SENT_BY_THE_PLATFORM = {
    "monitor-name": "nightly",
    "organization": "acme",
    "project": "shop",
    "agent": "assistant",
    "environment": "prod",
    "evaluators": "[]",
    "trace-start": "2026-01-15T00:00:00Z",
    "trace-end": "2026-01-16T00:00:00Z",
    "traces-api-endpoint": "http://traces.example:8080",
    "monitor-id": "00000000-0000-4000-8000-000000000001",
    "run-id": "00000000-0000-4000-8000-000000000002",
    "publisher-endpoint": "http://manager.example:8080",
    "idp-token-url": "http://idp.example/token",
    "idp-client-id": "monitor",
    "publisher-secret-name": "publisher",
}
SECRETS = {"publisher/client-secret": "s3cret"}


@pytest.fixture(scope="module")
def usage() -> str:
    run = subprocess.run(
        [sys.executable, ROOT / "main.py", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "200"},
    )
    return run.stdout


@pytest.fixture(scope="module")
def flags(usage: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", usage))


@pytest.fixture(scope="module")
def required(usage: str) -> set[str]:
    head = re.sub(r"\[[^\]]*\]", "", usage.split("\n\n")[0])
    return set(re.findall(r"--[a-z][a-z-]+", head))


def test_the_template_has_no_fault(flags: set[str], required: set[str]) -> None:
    assert len(required) >= 12
    assert argo.faults(DOCUMENT, flags=flags, required=required) == []


def every_key(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(node, dict):
        for key, child in node.items():
            yield (*path, key)
            yield from every_key(child, (*path, key))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from every_key(child, (*path, index))


@pytest.mark.parametrize("path", list(every_key(DOCUMENT)), ids=lambda path: ".".join(map(str, path)))
def test_a_one_letter_misspelling_of_any_key_is_a_fault(
    path: tuple[Any, ...], flags: set[str], required: set[str]
) -> None:
    document = copy.deepcopy(DOCUMENT)
    parent: Any = document
    for step in path[:-1]:
        parent = parent[step]
    key = path[-1]
    misspelt = key[:-1] + ("x" if key[-1] != "x" else "y")
    parent[misspelt] = parent.pop(key)
    assert argo.faults(document, flags=flags, required=required) != []


def changed(*operations: dict[str, Any]) -> dict[str, Any]:
    patched: dict[str, Any] = jsonpatch.apply_patch(copy.deepcopy(DOCUMENT), list(operations))
    return patched


CONTAINER = "/spec/templates/0/container"
FAULTS = {
    "an unknown parameter is referred to": (
        {
            "op": "replace",
            "path": f"{CONTAINER}/args/0",
            "value": "--monitor-name={{workflow.parameters.monitr-name}}",
        },
        "{{workflow.parameters.monitr-name}} is not declared",
    ),
    "command is missing": (
        {"op": "remove", "path": f"{CONTAINER}/command"},
        "command is not set",
    ),
    "an input has no value": (
        {"op": "remove", "path": "/spec/templates/0/inputs/parameters/3/value"},
        "input agent has no value",
    ),
    "an input artifact comes from nowhere": (
        {"op": "remove", "path": "/spec/templates/0/inputs/artifacts/0/raw"},
        "input artifact evaluators comes from nowhere",
    ),
    "a flag the job doesn't know": (
        {"op": "add", "path": f"{CONTAINER}/args/-", "value": "--sample=1"},
        "--sample is no flag of the job",
    ),
    "a required flag isn't given": (
        {"op": "remove", "path": f"{CONTAINER}/args/7"},
        "--trace-start is required",
    ),
    "the entrypoint names nothing": (
        {"op": "replace", "path": "/spec/entrypoint", "value": "run"},
        "names no template",
    ),
    "a volume isn't there": (
        {"op": "remove", "path": "/spec/templates/0/volumes/1"},
        "volume tmp does not exist",
    ),
    "a namespace on a cluster's resource": (
        {"op": "add", "path": "/metadata/namespace", "value": "argo"},
        "a cluster-scoped resource has no namespace",
    ),
    "another kind": (
        {"op": "replace", "path": "/kind", "value": "Workflow"},
        "is no ClusterWorkflowTemplate",
    ),
}


@pytest.mark.parametrize(("operation", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_what_nobody_else_reports_is_a_fault(
    operation: dict[str, Any], words: str, flags: set[str], required: set[str]
) -> None:
    found = argo.faults(changed(operation), flags=flags, required=required)
    assert any(words in fault for fault in found), found


def test_only_what_the_platform_does_not_send_has_a_default() -> None:
    defaults = {p["name"]: p["value"] for p in DOCUMENT["spec"]["arguments"]["parameters"] if "value" in p}
    assert defaults == {
        "sampling-rate": "1.0",
        "llm-proxy-secret-name": "no-llm-proxy-configured",
        "llm-api-base": "",
        "image": "amp-monitor-evaluation:latest",
    }
    assert {p["name"] for p in DOCUMENT["spec"]["arguments"]["parameters"]} == {
        *SENT_BY_THE_PLATFORM,
        *defaults,
    }


HARD_TEXT = "\"quoted\" 'single' $(IDP_CLIENT_SECRET) $$5 \\n\nnewline 🏴󠁧󠁢󠁳󠁣󠁴󠁿 {{braces}} % ` ~"


def hard_evaluators() -> str:
    entry = {
        "identifier": "latency_performance",
        "displayName": HARD_TEXT,
        "config": {},
    }
    return json.dumps([entry], ensure_ascii=False, indent=1)


def test_the_evaluators_arrive_byte_for_byte_and_secrets_never_in_arguments() -> None:
    container = argo.render(DOCUMENT, {**SENT_BY_THE_PLATFORM, "evaluators": hard_evaluators()}, SECRETS)
    assert container.files == {"/in/evaluators.json": hard_evaluators()}
    assert container.env["IDP_CLIENT_SECRET"] == "s3cret"
    assert "LLM_API_KEY" not in container.env
    assert not [word for word in (*container.command, *container.args) if "s3cret" in word or "quoted" in word]


def test_the_rendered_command_runs_and_hard_names_reach_the_publisher(
    tmp_path: Path,
) -> None:
    sent = {
        **SENT_BY_THE_PLATFORM,
        "evaluators": hard_evaluators(),
        "traces-api-endpoint": f"file:{ROOT / 'examples' / 'traces.json'}",
        "publisher-endpoint": f"file:{tmp_path / 'scores.json'}",
    }
    container = argo.render(DOCUMENT, sent, SECRETS)
    for number, (path, content) in enumerate(container.files.items()):
        (tmp_path / str(number)).write_text(content, encoding="utf-8", newline="")
        container.args = [arg.replace(path, str(tmp_path / str(number))) for arg in container.args]
    args = [arg.replace("=/out", f"={tmp_path}") for arg in container.args]
    run = subprocess.run(
        [sys.executable, ROOT / "main.py", *args],
        env={"PATH": os.environ["PATH"], **container.env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    posted = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    assert [a["evaluatorName"] for a in posted["aggregatedScores"]] == [HARD_TEXT]


RETRY = DOCUMENT["spec"]["templates"][0]["retryStrategy"]


def expr(text: str, *, exit_code: str, status: str, message: str = "") -> bool:
    """Argo's expression in Python's words; only the few operators that the template uses."""
    python = text.replace("||", " or ").replace("&&", " and ").replace("asInt(lastRetry.exitCode)", exit_code)
    python = re.sub(
        r"lastRetry\.message matches ('[^']*')",
        r"bool(re.search(r\1, message))",
        python,
    )
    return bool(
        eval(
            python.replace("lastRetry.status", "status"),
            {"re": re, "message": message, "status": status},
        )
    )


@pytest.mark.parametrize(
    ("exit_code", "status", "message", "repeats"),
    [
        pytest.param("1", "Failed", "Error (exit code 1)", True, id="exit 1: a repeat may help"),
        pytest.param("2", "Failed", "Error (exit code 2)", False, id="exit 2: wrong request"),
        pytest.param(
            "3",
            "Failed",
            "Error (exit code 3)",
            False,
            id="exit 3: done as far as possible",
        ),
        pytest.param("2", "Error", "", False, id="exit 2 in a pod that then broke"),
        pytest.param("-1", "Error", "pod deleted", True, id="lost pod"),
        pytest.param("-1", "Error", "", True, id="lost pod of which nothing is known"),
        pytest.param("143", "Error", "", True, id="ended by a signal"),
        pytest.param("0", "Failed", "The node was low on resource: memory. Evicted", True, id="evicted, exit 0"),
        pytest.param("0", "Error", "You need to configure artifact storage", False, id="stored, the report not kept"),
        pytest.param(
            "-1",
            "Failed",
            "Preempted by a more important pod",
            True,
            id="preempted pod",
        ),
        pytest.param(
            "137",
            "Failed",
            "The node was low on memory: Evicted",
            True,
            id="evicted pod",
        ),
        pytest.param(
            "137",
            "Failed",
            "OOMKilled (exit code 137)",
            False,
            id="out of memory: it would be again",
        ),
    ],
)
def test_only_what_a_repeat_may_help_is_repeated(exit_code: str, status: str, message: str, repeats: bool) -> None:
    assert expr(RETRY["expression"], exit_code=exit_code, status=status, message=message) == repeats
    assert (RETRY["limit"], RETRY["retryPolicy"]) == ("2", "Always")


def test_the_pod_is_restricted() -> None:
    template = argo.entry_template(DOCUMENT)
    inside = template["container"]["securityContext"]
    assert template["securityContext"]["runAsNonRoot"] is True
    assert template["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert inside["readOnlyRootFilesystem"] is True
    assert inside["allowPrivilegeEscalation"] is False
    assert inside["capabilities"] == {"drop": ["ALL"]}
    assert template["container"]["resources"] == {
        "requests": {"cpu": "100m", "memory": "256Mi"},
        "limits": {"cpu": "500m", "memory": "512Mi"},
    }


def test_the_report_is_one_unarchived_file_and_the_figures_are_output_parameters() -> None:
    outputs = argo.entry_template(DOCUMENT)["outputs"]
    assert outputs["artifacts"] == [
        {
            "name": "report",
            "path": "/out/report.html",
            "optional": True,
            "archive": {"none": {}},
        }
    ]
    assert [p["name"] for p in outputs["parameters"]] == [
        "traces-evaluated",
        "scores-stored",
        "means",
    ]


OPTIONS = sorted(path.name for path in (ROOT / "deploy" / "options").iterdir())


def patched_by(*options: str) -> dict[str, Any]:
    operations = [yaml.safe_load((ROOT / "deploy/options" / option / "patch.yaml").read_text()) for option in options]
    return changed(*itertools.chain(*operations))


@pytest.mark.parametrize("options", [(option,) for option in OPTIONS] + [tuple(OPTIONS)], ids=" ".join)
def test_options_alone_and_together_leave_a_template_without_fault(
    options: tuple[str, ...], flags: set[str], required: set[str]
) -> None:
    patched = patched_by(*options)
    assert patched != DOCUMENT
    assert argo.faults(patched, flags=flags, required=required) == []


def test_each_option_does_what_it_is_named_for() -> None:
    assert patched_by("no-service-account-token")["spec"]["automountServiceAccountToken"] is False
    without = argo.entry_template(patched_by("no-report"))
    assert "artifacts" not in without["outputs"]
    assert not [arg for arg in without["container"]["args"] if "report" in arg]
    volumes = argo.entry_template(patched_by("evaluators-from-configmap"))["volumes"]
    assert {"name": "evaluators", "configMap": {"name": "{{workflow.parameters.evaluators}}"}} in volumes


def test_the_executors_account_has_its_token_and_only_its_right() -> None:
    file = ROOT / "deploy" / "options" / "no-service-account-token" / "executor.yaml"
    found = {document["kind"]: document for document in yaml.safe_load_all(file.read_text())}
    name = patched_by("no-service-account-token")["spec"]["executor"]["serviceAccountName"]
    assert found["ServiceAccount"]["metadata"]["name"] == name
    assert found["Secret"]["metadata"]["name"] == f"{name}.service-account-token"  # where Argo looks for it
    assert found["Secret"]["metadata"]["annotations"] == {"kubernetes.io/service-account.name": name}
    assert found["Secret"]["type"] == "kubernetes.io/service-account-token"
    (rule,) = found["Role"]["rules"]
    assert rule == {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]}
    assert found["RoleBinding"]["roleRef"]["name"] == found["Role"]["metadata"]["name"]
    assert found["RoleBinding"]["subjects"] == [{"kind": "ServiceAccount", "name": name}]
    assert not [document for document in found.values() if "namespace" in document["metadata"]]


KUBECTL = shutil.which("kubectl")


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_kustomize_builds_the_template_with_and_without_the_options(tmp_path: Path) -> None:
    folder = tmp_path / "deploy"
    shutil.copytree(ROOT / "deploy", folder, ignore=shutil.ignore_patterns("__pycache__"))
    assert built(folder) == DOCUMENT
    kustomization = folder / "kustomization.yaml"
    told = kustomization.read_text().partition("# components:")
    kustomization.write_text(told[0] + "components:" + told[2].replace("#  ", " "))  # as README says: uncomment them
    assert built(folder) == patched_by(*OPTIONS)


def built(folder: Path) -> Any:
    run = subprocess.run([str(KUBECTL), "kustomize", folder], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return yaml.safe_load(run.stdout)


def test_the_kustomization_names_the_template() -> None:
    kustomization = yaml.safe_load((ROOT / "deploy" / "kustomization.yaml").read_text())
    assert kustomization["resources"] == [TEMPLATE.name]
    assert "components" not in kustomization
