"""Evaluators that ask a model: a prompt for each item, one verdict back.

A subclass writes `build_prompt`. The prompt is built here or elsewhere (a template, a child process); `_judge_prompt`
takes it from there: it frames it, asks the model and reads the verdict.
"""

from __future__ import annotations

import importlib
import inspect
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from amp_evaluation._retry import RetryPolicy
from amp_evaluation.config import get_config
from amp_evaluation.errors import TransientError
from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.evaluators._items import EvaluationItem
from amp_evaluation.evaluators.params import Param, ParamSpec
from amp_evaluation.judge._habits import JudgeReply, Request
from amp_evaluation.judge.faults import BadReplyError, JudgeError, JudgeStoppedError
from amp_evaluation.judge.fence import clean
from amp_evaluation.judge.frame import HEAD, framed, with_correction
from amp_evaluation.judge.usage import UsageMeter
from amp_evaluation.judge.verdict import JudgeOutput, read_verdict
from amp_evaluation.judge.views import built, noted, sealed, unfenced, view
from amp_evaluation.models import EvalResult, EvaluatorReport, EvaluatorScore, RunError
from amp_evaluation.trace.models import AgentTrace, LLMSpan, Trace

if TYPE_CHECKING:
    from amp_evaluation.config import Config
    from amp_evaluation.judge.client import JudgeClient

__all__ = ["JudgeOutput", "LLMAsJudgeEvaluator"]

NOT_CAPTURED = "content not captured: the trace holds no text to judge"
NO_RESPONSE = "no response to judge"
NO_REPLY = "no reply to judge in this LLM call"
CUT_OFF = "cut off: the judge's reply ended at its token limit"
MORE_ROOM = 4  # a reply that was cut off is asked for again with so many times the tokens


class ModelLine(Protocol):
    """Somebody who asks models for this process."""

    default_model: str

    def ask(self, request: Request, *, again: bool) -> JudgeReply: ...


class _ModelParam(ParamSpec):
    """The judge's model: as given, else as the class says, else the default of the run's settings."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        value = super().__get__(instance, owner)
        return value if instance is None or value else instance._default_model()


class LLMAsJudgeEvaluator(BaseEvaluator):
    """An evaluator whose score a model gives.

    Subclasses write `build_prompt(self, trace: Trace, task: Task | None = None) -> str`, with the hints of `evaluate`:
    the first parameter is the level, the second the task. What it reads of the trace is fenced where it stands in the
    prompt, as material that the model judges and doesn't obey. The form of the reply is added here.

    Where a class has the attribute `criteria` (a text) and no `build_prompt`, the response is judged by them.

    The model is the argument, else the class attribute `model`, else `AMP_LLM_JUDGE_DEFAULT_MODEL`, else gpt-4o-mini.
    An item without a response is skipped before any call, at trace and LLM level; `_requires_response_output` says
    otherwise. Overriding `_call_llm_with_retry(prompt) -> EvalResult` replaces the model; such a judge runs one item at
    a time.
    """

    model: str = cast(
        Any, _ModelParam(default="", required=True, description="The model that judges, as provider/model.")
    )
    temperature: float = Param(default=0.0, min=0.0, max=2.0, description="Randomness of the judge's replies.")
    max_tokens: int = Param(default=1024, min=1, description="The most tokens that a reply of the judge may have.")
    max_retries: int = Param(default=2, min=0, description="How often an unusable reply is asked for again.")

    is_concurrent = True
    _requires_response_output: ClassVar[bool] = True
    _retry_policy: ClassVar[RetryPolicy] = RetryPolicy()
    _client: JudgeClient | None = None
    _meter: UsageMeter | None = None
    _config: Config | None = None
    _stopped: JudgeStoppedError | None = None
    _line: ClassVar[ModelLine | None] = None
    """How models are reached where this process has no keys; None: by its own client."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if isinstance(vars(cls).get("criteria"), str) and cls.build_prompt is LLMAsJudgeEvaluator.build_prompt:
            cls.build_prompt = _prompt_of_criteria  # type: ignore[method-assign]
        if "_call_llm_with_retry" in vars(cls) and "is_concurrent" not in vars(cls):
            cls.is_concurrent = False

    def __init__(self, **config: Any) -> None:
        if isinstance(getattr(type(self), "criteria", None), str) and "criteria" in config:
            criteria = self.__dict__["criteria"] = config.pop("criteria")  # an argument, though no parameter
            if not isinstance(criteria, str):
                raise TypeError(f"{self.name}: criteria must be a text, not {criteria!r}")
        super().__init__(**config)

    @abstractmethod
    def build_prompt(self, *args: Any, **kwargs: Any) -> str | None:
        """The question about one item; None skips it."""

    def evaluate(self, *args: Any, **kwargs: Any) -> EvalResult:
        """Judge one item: `evaluate(trace)`, or with the task after it."""
        target, *rest = args
        ready = self._before_asking(target, kwargs.get("task", rest[0] if rest else None))
        if ready is not None:
            return ready
        return self._judge_prompt(built(self.build_prompt, target, *rest, **kwargs))

    def _hinted(self) -> Callable[..., Any]:
        return self.build_prompt

    def _asks_in_its_own_way(self) -> bool:
        """A subclass does something around the call to the model: it needs the verdict while it runs."""
        own_call = type(self)._call_llm_with_retry is not LLMAsJudgeEvaluator._call_llm_with_retry
        return own_call or self._has_own_evaluate()

    def _has_own_evaluate(self) -> bool:
        return type(self).evaluate is not LLMAsJudgeEvaluator.evaluate

    def _evaluate_target(self, target: Any, task: Any) -> Any:
        if not self._has_own_evaluate():
            return super()._evaluate_target(target, task)
        with noted():  # an `evaluate` of the subclass's own calls its builder by itself
            if _takes(self.evaluate, target, task):
                return unfenced(super()._evaluate_target(view(target), task))
            return unfenced(self.evaluate(view(target)))  # the builder alone takes the task

    def _plan(self, trace: Trace) -> Sequence[EvaluationItem | EvaluatorScore]:
        steps = super()._plan(trace)
        if trace.content_captured or not isinstance(steps[0], EvaluationItem):
            return steps
        return [self._skip(trace, NOT_CAPTURED)]

    def _before_asking(self, target: Any, task: Any) -> EvalResult | None:
        """The result that needs no model, if there is one: here a skip without a response."""
        wanted = self._requires_response_output
        if isinstance(target, AgentTrace):  # a run without an answer can be judged for its path
            wanted = wanted and _asks_for_response(type(self))
        if not wanted or str(getattr(target, "output", "") or "").strip():
            return None
        return EvalResult.skip(NO_REPLY if isinstance(target, LLMSpan) else NO_RESPONSE)

    def _judge_prompt(self, prompt: object) -> EvalResult:
        """The verdict on a prompt, wherever it was built. A result that a builder gives instead of one is taken."""
        if isinstance(prompt, EvalResult):
            return prompt
        if prompt is None:
            return EvalResult.skip(f"{self.name}: its prompt builder returned no prompt for this item")
        if not isinstance(prompt, str):
            raise TypeError(f"{self.name}: its prompt builder returned {type(prompt).__name__}, not text")
        return self._call_llm_with_retry(framed(f"{prompt}"))

    def _call_llm_with_retry(self, prompt: str) -> EvalResult:
        """Ask until a reply holds a verdict, `max_retries` times again at most; else a skip with the reason."""
        if not prompt.startswith(HEAD):  # a subclass calls this with words of its own
            prompt = framed(sealed(f"{prompt}"))
        fault, room, asks = "", 1, 0
        while asks <= self.max_retries:
            question = with_correction(prompt, fault) if fault else prompt
            asks += 1
            try:
                result, fault, cut_off = self._read(self._ask(question, room, again=asks > 1))
            except BadReplyError as error:
                result, fault, cut_off = None, str(error), False
                asks = self.max_retries + 1 if error.final else asks
            except JudgeStoppedError as stop:
                self._stopped = self._stopped or stop.again()
                return EvalResult.skip(str(stop))
            except JudgeError as error:
                return EvalResult.skip(str(error))
            except TransientError as error:
                return EvalResult.skip(f"the judge's model could not be asked: {error.detail}, after its retries")
            if result is not None:
                return result
            if cut_off and room > 1:
                break  # more room didn't help
            room = MORE_ROOM if cut_off else room
        return EvalResult.skip(fault)

    def _ask(self, prompt: str, room: int, *, again: bool) -> JudgeReply:
        request = Request(
            model=self.model,
            prompt=prompt,
            temperature=self.temperature,
            max_tokens=self.max_tokens * room,
        )
        if self._line is not None:
            return self._line.ask(request, again=again)
        client, meter = self._connection()
        return client.complete(request, meter, again=again)

    def _read(self, reply: JudgeReply) -> tuple[EvalResult | None, str, bool]:
        result, fault = self._parse_and_validate(reply.content)
        if result is None and reply.cut_off:
            return None, CUT_OFF, True
        return result, fault or "", False

    def _parse_and_validate(self, content: str) -> tuple[EvalResult | None, str | None]:
        """The verdict in a reply, or what is wrong with the reply."""
        output, fault = read_verdict(content)
        if output is None:
            return None, fault
        explanation = f"{clean(output.explanation).strip()} [model={self.model}]".strip()
        return EvalResult(output.score, explanation), None

    def _default_model(self) -> str:
        if self._line is not None:
            return self._line.default_model
        return (self._config or get_config()).llm_judge.default_model

    def _connection(self) -> tuple[JudgeClient, UsageMeter]:
        """The run's client; outside a run one by the shared settings, kept from then on."""
        if self._client is None or self._meter is None:
            self._connect(self._config or get_config())
        return cast("tuple[JudgeClient, UsageMeter]", (self._client, self._meter))

    def _connect(self, config: Config) -> None:
        self._disconnect()
        self._config, self._meter, self._stopped = config, UsageMeter(), None
        self._client = _shared_clients().take(config, self._retry_policy)

    def _disconnect(self) -> None:
        if self._client is not None:
            _shared_clients().give_back(self._client)
        self._client = self._meter = self._config = None

    def _configure(self, config: Config) -> None:
        super()._configure(config)
        if self._config is not config:
            self._disconnect()
            self._config = config

    def _begin_run(self, config: Config) -> None:
        super()._begin_run(config)
        self._connect(config)

    def _end_run(self) -> EvaluatorReport:
        """Usage and cost, and why the model gave nothing if it didn't."""
        report = super()._end_run()
        client, meter, stopped = self._client, self._meter, self._stopped
        if client is not None and meter is not None:
            usage = meter.read(self.model)
            report.usage += [usage] if usage else []
            stopped = client.outage(self.model) if stopped is None and usage else stopped
        if stopped is not None:
            text = f"{self.name}: {stopped}"
            report.errors.append(RunError(text, repeat_may_help=stopped.repeat_may_help, is_logged=True))
        self._disconnect()
        return report


def _shared_clients() -> Any:
    """The judge client's side of things, asyncio with it, is imported when a judge first needs it."""
    return importlib.import_module("amp_evaluation.judge.shared")


def _takes(function: Callable[..., Any], *args: Any) -> bool:
    try:
        inspect.signature(function).bind(*args)
    except TypeError:
        return False
    return True


def _prompt_of_criteria(self: Any, trace: Trace) -> str:
    """The question of a judge that gives its criteria alone."""
    return f"""Does the response meet these criteria? {self.criteria}

The request:
{trace.input}

The response:
{trace.output}"""


def _asks_for_response(kind: type) -> bool:
    """A class below the base says itself whether a response is needed."""
    return any("_requires_response_output" in vars(base) for base in kind.__mro__ if base is not LLMAsJudgeEvaluator)
