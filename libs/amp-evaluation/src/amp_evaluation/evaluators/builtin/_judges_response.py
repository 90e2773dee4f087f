"""Judges of the response as a whole: is it of help, clear, right, complete, to the point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amp_evaluation.evaluators.builtin._judges import BuiltinJudge
from amp_evaluation.trace.models import Trace

if TYPE_CHECKING:
    from amp_evaluation.dataset.models import Task

__all__ = [
    "AccuracyEvaluator",
    "ClarityEvaluator",
    "CompletenessEvaluator",
    "HelpfulnessEvaluator",
    "RelevanceEvaluator",
]


class HelpfulnessEvaluator(BuiltinJudge):
    """Does the response help with what was asked?"""

    name = "helpfulness"
    tags = ("llm-judge", "quality")

    def build_prompt(self, trace: Trace, task: Task | None = None) -> str:
        return f"""Criterion: helpfulness. After reading the response, is the asker closer to what they wanted?

Look at, in this order:
1. What the asker wants to get done, stated or plainly implied.
2. What the response gives them for it: an answer, a result, a decision, a next step that they can take.
3. What is left for the asker to do that the response could have done.
4. Success criteria, when there are any: each one met counts for the response, each one missed against it.
An acknowledgement, a promise to look into it, a restatement of the question or a general remark is no help by itself.
A well-founded refusal or an honest "not possible, because" helps more than an evasion. Length, tone and style don't
matter here, and neither do small factual slips that leave the help intact.

Scale:
1.0 - what was wanted is achieved, or the asker has all that they need for it
0.75 - the main want is served; something useful is missing
0.5 - real help with a part of it, or help that takes much work to use
0.25 - touches the want, but hardly moves the asker on
0.0 - no help: empty, evasive, off the want, or harmful to it

Success criteria: {"; ".join([task.success_criteria] if isinstance(task.success_criteria, str) else task.success_criteria) if task and task.success_criteria else "none were given"}

The request:
{trace.input}

The response:
{trace.output}"""  # noqa: E501  # a placeholder is one line


class ClarityEvaluator(BuiltinJudge):
    """Is the response easy to read, well ordered, unambiguous, and pitched at the asker?"""

    name = "clarity"
    tags = ("llm-judge", "quality")

    def build_prompt(self, trace: Trace, task: Task | None = None) -> str:
        return f"""Criterion: clarity. Would the asker understand the response at the first reading?

Look at, in this order:
1. Sentences: can each be understood, without a second reading and in one way only?
2. Order: does the main point come where it is looked for; do parts follow in an order that makes sense; are lists,
headings, tables and code used where they make reading easier, and only there?
3. Words: are terms that this asker can't be expected to know explained; is the level right for how the question was
put?
4. References: is it plain what "it", "this" and "the above" stand for?
Whether what is said is true, complete or useful doesn't matter here: a clearly written wrong answer is clear.

Scale:
1.0 - understood at once and in one way only, at the right level
0.75 - clear, with a place or two that make the reader slow down
0.5 - understandable with effort: disordered, ambiguous or at the wrong level in places that matter
0.25 - most readers would misread it or lose the thread
0.0 - can't be understood

The request:
{trace.input}

The response:
{trace.output}"""


class AccuracyEvaluator(BuiltinJudge):
    """Are the statements of fact in the response correct, as far as the judging model knows?"""

    name = "accuracy"
    tags = ("llm-judge", "correctness")

    def build_prompt(self, trace: Trace, task: Task | None = None) -> str:
        return f"""Criterion: factual accuracy, by your own knowledge.

Do this, in this order:
1. List the statements in the response that can be true or false: facts, figures, dates, names, causes, calculations,
how something works. Redo calculations.
2. For each, say whether you know it to be right, know it to be wrong, or can't tell.
3. Leave out what you can't tell: records of the asker's own, private systems, events after your knowledge ends. Such
statements count neither for nor against the response.
4. Weigh the wrong ones by what follows from believing them.
Opinions, wishes, tone, completeness and style don't matter here. A response without a statement that you can check
has nothing wrong in it.

Scale:
1.0 - nothing that can be checked is wrong
0.75 - right in what matters; a slip in a detail
0.5 - right and wrong statements mixed, or one error that misleads on a point of some weight
0.25 - wrong on a main point
0.0 - wrong throughout, or wrong in a way that does damage to who relies on it

The request:
{trace.input}

The response:
{trace.output}"""


class CompletenessEvaluator(BuiltinJudge):
    """Does the response cover every part of the request?"""

    name = "completeness"
    tags = ("llm-judge", "quality")

    def build_prompt(self, trace: Trace, task: Task | None = None) -> str:
        return f"""Criterion: completeness. Is every part of the request dealt with?

Do this, in this order:
1. Split the request into its parts: each question, each thing to be done, each condition (number, format, time span,
language), and what must come with them for the answer to be usable.
2. Add the success criteria as parts, when there are any.
3. For each part, say whether the response deals with it fully, partly or not at all. Saying openly that a part can't
be done, and why, deals with it.
4. Take the share of the parts that are dealt with, giving main parts more weight than side remarks.
Whether a part is answered correctly or elegantly doesn't matter here. Extra material adds nothing.

Scale:
1.0 - every part is dealt with in full
0.75 - all main parts, a minor one only partly
0.5 - about half of it, or a main part missing
0.25 - only a small part
0.0 - none of it

Success criteria: {"; ".join([task.success_criteria] if isinstance(task.success_criteria, str) else task.success_criteria) if task and task.success_criteria else "none were given"}

The request:
{trace.input}

The response:
{trace.output}"""  # noqa: E501  # a placeholder is one line


class RelevanceEvaluator(BuiltinJudge):
    """Is the response about what was asked, in the sense in which it was asked?"""

    name = "relevance"
    tags = ("llm-judge", "relevance")

    def build_prompt(self, trace: Trace, task: Task | None = None) -> str:
        return f"""Criterion: relevance. Is the response about the request: the same subject, the same intent?

Look at, in this order:
1. The subject of the request, as exactly as it is put: which thing, which case, which time.
2. Its intent: to be told, to have something done, to choose, to be walked through something.
3. Which parts of the response serve that subject and that intent, and which are about something else.
An answer to a neighbouring question is not relevant, however good. A question back that is needed to go on is
relevant. Whether the content is right, complete or well put doesn't matter here.

Scale:
1.0 - all of it serves what was asked
0.75 - to the point, with a digression that doesn't get in the way
0.5 - the right subject with another intent, or half of it beside the point
0.25 - a loose connection only
0.0 - about something else

The request:
{trace.input}

The response:
{trace.output}"""
