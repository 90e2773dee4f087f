"""Judges that hold a response against something else: evidence, retrieved documents, an expected answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amp_evaluation.evaluators.builtin._judges import ContextJudge
from amp_evaluation.trace.models import Trace

if TYPE_CHECKING:
    from amp_evaluation.dataset.models import Task

__all__ = ["ContextRelevanceEvaluator", "GroundednessEvaluator", "SemanticSimilarityEvaluator"]


class GroundednessEvaluator(ContextJudge):
    """Are the claims of the response supported by what tools and retrievals brought?"""

    name = "groundedness"
    tags = ("llm-judge", "correctness")

    def build_prompt(self, trace: Trace, task: Task | None = None) -> str:
        return f"""Criterion: groundedness. Does the response say only what the evidence of this run supports?

Evidence is what tools returned and what retrievals brought, and nothing else: not your own knowledge, and not what
the request claims.

Do this, in this order:
1. List the claims of the response: statements of fact that the asker will rely on. Leave out greetings, offers,
questions back, and what the asker said themselves.
2. For each claim, find the place in the evidence that supports it. Mark it supported, not supported, or contradicted.
A sound conclusion from supported claims is supported.
3. Weigh them: a contradicted claim is worse than one without support, and a main claim worse than a detail. A call
that failed supports nothing but the statement that it failed.
Saying that the evidence doesn't tell is no claim. Where evidence is shown shortened, a claim that the missing part
could well support counts neither way.

Scale:
1.0 - every claim is supported
0.75 - all main claims are; a detail without support
0.5 - main claims supported in part, or several details without support
0.25 - mostly without support, or a claim of weight contradicted
0.0 - contradicted on the main point, or made up throughout

The request:
{trace.input}

What tools returned:
{trace.get_tool_calls()}

What retrievals brought:
{trace.get_retrievals()}

The response:
{trace.output}"""

    def _missing_context(self, target: Any, task: Any) -> str | None:
        if target.get_tool_calls() or target.get_retrievals():
            return None
        return "no tool call and no retrieval in this trace to ground the response in"


class ContextRelevanceEvaluator(ContextJudge):
    """Are the retrieved documents of use for the request?"""

    name = "context_relevance"
    tags = ("llm-judge", "relevance")
    _requires_response_output = False

    def build_prompt(self, trace: Trace, task: Task | None = None) -> str:
        return f"""Criterion: relevance of the retrieved context. Are these documents of use to answer the request?

Do this, in this order:
1. Say what one needs to know to answer the request.
2. For each document, say whether it holds some of that, is merely about the same subject, or is beside it. Judge by
its content; a similar title or a high retrieval score proves nothing.
3. Say whether the documents together hold what is needed, and how much of them has to be read past to get at it.
What the agent made of them doesn't matter here; you don't see its response on purpose. A retrieval that brought
nothing is of no use.

Scale:
1.0 - what is needed is there, and nearly every document adds to it
0.75 - what is needed is there, among some documents that don't help
0.5 - a part of what is needed, or all of it buried under much else
0.25 - about the subject, but hardly anything to answer with
0.0 - nothing of use

The request:
{trace.input}

The retrievals, with their queries and documents:
{trace.get_retrievals()}"""

    def _missing_context(self, target: Any, task: Any) -> str | None:
        return None if target.get_retrievals() else "no retrieval in this trace"


class SemanticSimilarityEvaluator(ContextJudge):
    """Does the response mean the same as the expected one?"""

    name = "semantic_similarity"
    tags = ("llm-judge", "correctness")
    _requires_response_output = False

    def build_prompt(self, trace: Trace, task: Task) -> str:
        return f"""Criterion: sameness of meaning. Does the response say what the expected response says?

Do this, in this order:
1. List what the expected response states: each fact, figure, name, decision and condition.
2. For each, find it in the response: the same, less exact, missing, or different.
3. Look for statements of the response that the expected one doesn't make and that change the message.
Other words, another order, another format, more or less politeness and harmless additions don't count. A different
number, name, sign or decision does. An empty response states nothing.

Scale:
1.0 - the same meaning
0.75 - the same main message; a detail missing or added
0.5 - a good part of it, with something of weight missing or different
0.25 - the same subject, but another message
0.0 - nothing in common, or the opposite

The request:
{trace.input}

The expected response:
{task.expected_output}

The response:
{trace.output}"""

    def _missing_context(self, target: Any, task: Any) -> str | None:
        expected = getattr(task, "expected_output", None)
        return None if expected and str(expected).strip() else "the task has no expected output"
