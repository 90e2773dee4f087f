"""CrewAI's own attributes: crews, tasks and agents.

A crew's token sums (`crewai.crew.token_usage`, `usage_metrics`) are wrong where a crew runs twice, so nothing reads
them; its `tasks_output` is no input. OpenInference's instrumentation writes `crew_inputs` and `flow_inputs`.
"""

from __future__ import annotations

from typing import Any

from amp_evaluation.trace.conventions._attrs import Attrs
from amp_evaluation.trace.conventions._facts import Convention, Kind, first, tool_definitions
from amp_evaluation.trace.conventions._values import printed, printed_members, structured


def kind(a: Attrs) -> Kind | None:
    if a.has("crewai.agent.role", "crewai.agent.id"):
        return Kind("agent", True)
    return Kind("chain", True) if a.has(*_CHAIN_MARKS) else None


_CHAIN_MARKS = ("crewai.task.description", "crewai.task.id", "crewai.crew.id", "crewai.crew.tasks", "crewai.flow.name")


def asked(a: Attrs) -> Any:
    """What the crew was started with; where that is nothing, what its first task says."""
    given = first(a, "crew_inputs", "flow_inputs", "crewai.crew.inputs", "crewai.task.description")
    if given or "crew_tasks" not in a.raw:
        return given
    tasks = a.data("crew_tasks")
    task = tasks[0] if isinstance(tasks, list) and tasks else None
    return task.get("description") if isinstance(task, dict) else None


def result(a: Attrs) -> Any:
    """The crew's result; one that was printed as an object is the text that the object was made from."""
    text = a.get("crewai.crew.result")
    if isinstance(text, str) and printed_members(text) is not None:
        outputs = printed(a.text("crewai.crew.tasks_output"))
        last = outputs[-1] if isinstance(outputs, list) and outputs else None
        return (last.get("raw") if isinstance(last, dict) else None) or text
    return text


def system_prompt(a: Attrs) -> str:
    parts = [(name, a.text(f"crewai.agent.{name}").strip()) for name in ("role", "goal", "backstory")]
    return "\n".join(f"{name}: {text}" for name, text in parts if text)


def tools(a: Attrs) -> list[Any]:
    for key in ("crewai.agent.tools", "crewai.task.tools"):
        value = structured(a.get(key))
        if isinstance(value, str):
            value = printed(value)
        if found := tool_definitions(value):
            return found
    return []


CONVENTION = Convention(
    "crewai",
    frozenset({"crewai.agent.role", "crewai.agent.id", *_CHAIN_MARKS, "crew_inputs", "flow_inputs"}),
    {
        "kind": kind,
        "input": asked,
        "output": result,
        "agent_name": lambda a: a.text("crewai.agent.role").strip() or a.text("crewai.crew.name"),
        "framework": lambda a: "crewai",
        "system_prompt": system_prompt,
        "tools": tools,
        "max_iterations": lambda a: a.get("crewai.agent.max_iter"),
    },
)
