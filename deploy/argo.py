"""What Argo and the kubelet do with a one-container template, and the faults that neither of them would report.

For the tests beside it: `render` gives the container as it would be started, `faults` the reasons why a manifest would
fail or silently do less than it says.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hera.workflows import models
from jsonschema import Draft202012Validator

Node = Any  # a YAML document is a tree of dicts, lists and scalars

REFERENCE = re.compile(r"\{\{\s*([^}]*?)\s*\}\}")
RESOURCES = {"cpu", "memory", "ephemeral-storage"}
KUBELET = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


@dataclass(slots=True)
class Container:
    """A container as the kubelet starts it."""

    image: str
    command: list[str]
    args: list[str]
    env: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)
    """path → content of each raw artifact"""
    writable: list[str] = field(default_factory=list)
    """mount paths of emptyDir volumes"""
    memory: str = ""
    cpu: str = ""


def entry_template(document: Mapping[str, Node]) -> dict[str, Node]:
    """The template that the entrypoint names. Raises KeyError when there is none."""
    spec = document["spec"]
    for template in spec["templates"]:
        if template.get("name") == spec["entrypoint"]:
            return dict(template)
    raise KeyError(f"entrypoint {spec['entrypoint']!r} names no template")


def render(
    document: Mapping[str, Node],
    parameters: Mapping[str, str],
    secrets: Mapping[str, str],
) -> Container:
    """The entrypoint's container with parameters filled in.

    `secrets` maps "name/key" to a value. Raises KeyError for a parameter or a needed secret without a value.
    """
    scope = {f"workflow.parameters.{n}": v for n, v in _arguments(document, parameters).items()}
    template = entry_template(document)
    for entry in template["inputs"]["parameters"]:
        scope[f"inputs.parameters.{entry['name']}"] = _fill(entry["value"], scope)
    artifacts = {a["path"]: _fill(a["raw"]["data"], scope) for a in template["inputs"]["artifacts"]}
    container = _fill(template["container"], scope)
    env = _expanded_env(container["env"], secrets)
    limits = container["resources"]["limits"]
    return Container(
        image=container["image"],
        command=[_expand(word, env) for word in container["command"]],
        args=[_expand(word, env) for word in container["args"]],
        env=env,
        files=artifacts,
        writable=[mount["mountPath"] for mount in container["volumeMounts"]],
        memory=limits["memory"],
        cpu=limits["cpu"],
    )


def _arguments(document: Mapping[str, Node], parameters: Mapping[str, str]) -> dict[str, str]:
    declared = {p["name"]: p.get("value") for p in document["spec"]["arguments"]["parameters"]}
    if unknown := set(parameters) - set(declared):
        raise KeyError(f"no such workflow parameter: {sorted(unknown)}")
    values = {name: parameters.get(name, value) for name, value in declared.items()}
    if missing := [name for name, value in values.items() if value is None]:
        raise KeyError(f"no value for: {missing}")
    return values


def _fill(node: Node, scope: Mapping[str, str]) -> Node:
    if isinstance(node, dict):
        return {key: _fill(value, scope) for key, value in node.items()}
    if isinstance(node, list):
        return [_fill(value, scope) for value in node]
    return REFERENCE.sub(lambda match: scope[match.group(1)], node) if isinstance(node, str) else node


def _expanded_env(entries: list[dict[str, Node]], secrets: Mapping[str, str]) -> dict[str, str]:
    env: dict[str, str] = {}
    for entry in entries:
        if "value" in entry:
            env[entry["name"]] = _expand(entry["value"], env)
            continue
        reference = entry["valueFrom"]["secretKeyRef"]
        value = secrets.get(f"{reference['name']}/{reference['key']}")
        if value is not None:
            env[entry["name"]] = value
        elif not reference.get("optional"):
            raise KeyError(f"secret {reference['name']}/{reference['key']} has no value")
    return env


def _expand(text: str, env: Mapping[str, str]) -> str:
    """$(NAME) is replaced, $$ halved, as the kubelet does in command, args and env."""
    return KUBELET.sub(lambda m: "$" if m.group(0) == "$$" else env.get(m.group(1), m.group(0)), text)


def faults(document: dict[str, Node], *, flags: set[str], required: set[str]) -> list[str]:
    """Why the manifest would fail, or do less than it says: unknown keys, dangling references, unbound inputs, ….

    `flags` are all flags that the job knows, `required` those that it can't do without.
    """
    found = list(_schema_faults(document))
    if found:
        return found
    try:
        template = entry_template(document)
    except KeyError as error:
        return [str(error)]
    faulty = [*_reference_faults(document), *_binding_faults(document, template)]
    return [*faulty, *_flag_faults(template, flags, required)]


@cache
def _validator() -> Draft202012Validator:
    schema = copy.deepcopy(models.ClusterWorkflowTemplate.model_json_schema(by_alias=True))
    _forbid_unknown_keys(schema)
    return Draft202012Validator(schema)


def _forbid_unknown_keys(node: Node) -> None:
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    if isinstance(node, dict) and "properties" in node:
        node.setdefault("additionalProperties", False)
    for child in children:
        _forbid_unknown_keys(child)


def _schema_faults(document: dict[str, Node]) -> Iterator[str]:
    for error in _validator().iter_errors(document):
        yield f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
    for key in ("apiVersion", "kind", "metadata", "spec"):
        if key not in document:
            yield f"{key} is missing"


def _strings(node: Node) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _strings(child)


def _reference_faults(document: dict[str, Node]) -> Iterator[str]:
    spec = document["spec"]
    known = {f"workflow.parameters.{p['name']}" for p in (spec.get("arguments") or {}).get("parameters", [])}
    inputs = {p["name"] for t in spec["templates"] for p in (t.get("inputs") or {}).get("parameters", [])}
    known |= {f"inputs.parameters.{name}" for name in inputs}
    used = {match for text in _strings(document) for match in REFERENCE.findall(text)}
    yield from (f"{{{{{name}}}}} is not declared" for name in sorted(used - known))
    yield from (f"{name} is declared and never used" for name in sorted(known - used))


def _binding_faults(document: dict[str, Node], template: dict[str, Node]) -> Iterator[str]:
    if document.get("kind") != "ClusterWorkflowTemplate" or document.get("apiVersion") != "argoproj.io/v1alpha1":
        yield f"{document.get('apiVersion')}/{document.get('kind')} is no ClusterWorkflowTemplate"
    if "namespace" in document["metadata"]:
        yield "a cluster-scoped resource has no namespace"
    inputs = template.get("inputs") or {}
    for parameter in inputs.get("parameters", []):
        if "value" not in parameter and "default" not in parameter:
            yield f"input {parameter['name']} has no value"
    for artifact in inputs.get("artifacts", []):
        if "raw" not in artifact:
            yield f"input artifact {artifact['name']} comes from nowhere"
    container = template.get("container") or {}
    if not container.get("command"):
        yield "command is not set: Argo would ask the image's registry"
    asked = {name for amounts in (container.get("resources") or {}).values() for name in amounts}
    yield from (f"{name} is no resource" for name in sorted(asked - RESOURCES))
    volumes = {volume["name"] for volume in template.get("volumes", [])}
    mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
    yield from (f"volume {name} does not exist" for name in sorted(mounted - volumes))
    yield from (f"volume {name} is not mounted" for name in sorted(volumes - mounted))


def _flag_faults(template: dict[str, Node], flags: set[str], required: set[str]) -> Iterator[str]:
    given = [arg.partition("=")[0] for arg in template["container"].get("args", [])]
    yield from (f"{flag} is no flag of the job" for flag in given if flag not in flags)
    yield from (f"{flag} is required and not given" for flag in sorted(required - set(given)))
    yield from (f"{flag} is given twice" for flag in sorted({f for f in given if given.count(f) > 1}))
