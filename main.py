r"""Evaluate the traces of one time window and store the scores: one run of a monitor.

Reads   traces from a traces API or a file, evaluators as JSON, secrets and settings from the environment.
Writes  scores to a score publisher or a file, with --report a page for people, and its log to standard error: JSON
        lines, readable ones on a terminal. --dry-run and --check only print what would be done, and whether it can be.

Environment
  IDP_TOKEN_URL IDP_CLIENT_ID IDP_CLIENT_SECRET   OAuth2 client; required when an endpoint is http(s)
  LLM_API_BASE LLM_API_KEY                        gateway that all judges go through; both or neither
  LOG_LEVEL                                       DEBUG, INFO (default), WARN or ERROR
  AMP_*                                           settings of the SDK, see amp_evaluation.config

Exit codes
  0  everything was evaluated and stored, or there was no trace; also after SIGTERM
  1  something failed and a repeat may help
  2  the flags, the environment or the evaluators are wrong; nothing was sent
  3  done as far as possible, and a repeat can't help
  130  interrupted by Ctrl-C

Usage
  python main.py --monitor-name=quality --organization=acme --project=shop --agent=assistant --environment=prod \
    --evaluators=@evaluators.json --trace-start=2026-01-15T00:00:00Z --trace-end=2026-01-16T00:00:00Z \
    --traces-api-endpoint=file:traces.json --publisher-endpoint=file:scores.json \
    --monitor-id=00000000-0000-4000-8000-000000000001 --run-id=00000000-0000-4000-8000-000000000002
"""

from __future__ import annotations

import argparse
import glob
import importlib
import io
import logging
import math
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, TextIO, TypeVar, cast
from urllib.parse import urlencode, urlsplit

from amp_evaluation._collector import keep_all  # isort: skip - first: the others are imported under its rule
from amp_evaluation import config as sdk_settings
from amp_evaluation._json_log import LOG_LEVELS, JsonLines, secrets_of
from amp_evaluation._oauth import (
    IDENTITY_PROVIDER,
    Credentials,
    IdpConfig,
    credential_readings,
    may_be_misread,
    named_refusal,
    parse_token,
    split_url,
)
from amp_evaluation._outputs import write_files
from amp_evaluation._publish_plan import PublishPlan
from amp_evaluation._publisher import PUBLISHER, post_scores
from amp_evaluation._run_log import log_result
from amp_evaluation._time import format_rfc3339, parse_rfc3339
from amp_evaluation._url import is_http_url
from amp_evaluation.errors import AmpEvaluationError, ConfigError, RefusedError, TraceSourceError
from amp_evaluation.evaluators._base import BaseEvaluator
from amp_evaluation.evaluators._entries import EvaluatorEntry, parse_entry, read_entries
from amp_evaluation.evaluators.builtin import builtin, builtin_evaluator_catalog
from amp_evaluation.evaluators.code import code_evaluator, template_judge
from amp_evaluation.http import RETRY_DELAYS_S, HttpClient, RetryPolicy
from amp_evaluation.isolation import Sandbox
from amp_evaluation.models import RunError
from amp_evaluation.publish import storable
from amp_evaluation.run_result import Progress, RunResult
from amp_evaluation.runner import Monitor
from amp_evaluation.trace.fetcher import TraceFetcher
from amp_evaluation.trace.loader import TraceLoader

if TYPE_CHECKING:
    from amp_evaluation.config import Config
    from amp_evaluation.terminal import TerminalView

TRACE_FETCH_PAGE_SIZE = 10
"""Traces asked for at once. A trace can weigh megabytes, and at most two pages are in memory."""

TOKEN_RENEWAL_MARGIN_S = 30.0
"""A token is renewed this long before it expires, so that it doesn't expire on its way."""

PROGRESS_INTERVAL_S = 10.0
MAX_LISTED = 10
"""Scores that can't be stored which the log names; the rest is counted."""

EXIT_OK, EXIT_REPEAT, EXIT_WRONG_INPUT, EXIT_REFUSED = 0, 1, 2, 3
EXIT_INTERRUPTED = 130
"""What shells expect after Ctrl-C: 128 and the signal's number."""

STDERR_FD = 2

JUDGE_MODULE = "llm_judge"
"""What the catalogue calls the module of the built-in judges."""

log = logging.getLogger("amp_evaluation.job")

T = TypeVar("T")


# --- errors -----------------------------------------------------------------------------------------------------------


class InputError(ConfigError):
    """Flags, environment or evaluators are wrong; `faults` has a line for each fault."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = list(faults)


class NotReadyError(AmpEvaluationError):
    """Something that the run needs isn't there yet, and may be at the next try."""


class Faults(list[str]):
    """Collects what is wrong with a run's inputs, so that one run reports all of it."""

    def check(self, parse: Callable[..., T], *args: Any) -> T | None:
        """The parsed value; None when it is wrong, which is noted."""
        try:
            return parse(*args)
        except InputError as error:
            self.extend(error.faults)
        except (ValueError, TypeError) as error:
            self.append(str(error))
        return None

    def raise_if_any(self) -> None:
        if self:
            raise InputError(self)


# --- log --------------------------------------------------------------------------------------------------------------


def set_up_logging(env: Mapping[str, str], stream: BinaryIO) -> TerminalView | None:
    """The job and the SDK log from LOG_LEVEL up, other libraries from WARNING up. The view is for a terminal only."""
    root = logging.getLogger()
    for handler in root.handlers[:]:
        root.removeHandler(handler)
    view = open_view(stream, secrets_of(env)) if stream.isatty() else None
    root.addHandler(view or JsonLines(stream, secrets_of(env)))
    root.setLevel(logging.WARNING)
    level = LOG_LEVELS.get((env.get("LOG_LEVEL") or "INFO").strip().upper(), logging.INFO)
    logging.getLogger("amp_evaluation").setLevel(level)
    logging.captureWarnings(True)
    return view


def open_stderr() -> BinaryIO:
    """Standard error, unbuffered. Where it is closed its number goes to nothing: a socket or file would get the log."""
    while (fd := os.open(os.devnull, os.O_RDWR)) < STDERR_FD:
        pass
    if fd > STDERR_FD:
        os.close(fd)
    return io.FileIO(STDERR_FD, "wb", closefd=False)


def open_view(stream: BinaryIO, secrets: Sequence[str]) -> TerminalView:
    """Its library is imported only where there is a terminal."""
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", write_through=True)
    return cast("TerminalView", importlib.import_module("amp_evaluation.terminal").TerminalView(text, secrets))


# --- inputs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Window:
    """The traces that start in [start, end)."""

    start: datetime
    end: datetime


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where traces come from or scores go to: exactly one of a URL without a slash at its end, and a file."""

    url: str | None = None
    path: str | None = None


@dataclass(frozen=True, kw_only=True)
class JobConfig:
    """Everything about the run that was given; checked once, here."""

    monitor_name: str
    window: Window
    sample_rate: float
    traces: Endpoint
    publisher: Endpoint
    monitor_id: str
    run_id: str
    report: Path | None
    outputs: Path | None
    idp: IdpConfig | None
    sdk: Config

    @classmethod
    def from_inputs(cls, args: argparse.Namespace, env: Mapping[str, str]) -> JobConfig:
        """Raises InputError with all that is wrong."""
        faults = Faults()
        start = faults.check(parse_time, "--trace-start", args.trace_start)
        end = faults.check(parse_time, "--trace-end", args.trace_end)
        if start and end and start >= end:
            faults.append(f"--trace-start={args.trace_start!r} must be before --trace-end={args.trace_end!r}")
        rate = faults.check(parse_rate, args.sampling_rate)
        traces = faults.check(parse_source, args.traces_api_endpoint)
        publisher = faults.check(parse_target, args.publisher_endpoint)
        monitor_id = faults.check(parse_uuid, "--monitor-id", args.monitor_id)
        run_id = faults.check(parse_uuid, "--run-id", args.run_id)
        report = faults.check(parse_report, args.report)
        outputs = faults.check(parse_outputs, args.outputs)
        faults.check(check_files_differ, args, traces, publisher, report)
        faults.check(check_texts, args)
        faults.check(check_log_level, env)
        idp = faults.check(parse_idp, env, any(e and e.url for e in (traces, publisher)))
        sdk = faults.check(sdk_config, args, env)
        faults.raise_if_any()
        assert start and end and rate and traces and publisher and monitor_id and run_id and sdk
        return cls(
            monitor_name=args.monitor_name,
            window=Window(start=start, end=end),
            sample_rate=rate,
            traces=traces,
            publisher=publisher,
            monitor_id=monitor_id,
            run_id=run_id,
            report=report,
            outputs=outputs,
            idp=idp,
            sdk=sdk,
        )


MONITORED = ("organization", "project", "agent", "environment")
"""What names the monitored agent: in flags, settings and the traces API's query."""

REQUIRED_FLAGS = (
    ("--monitor-name", "NAME", "the monitor's unique name"),
    ("--organization", "NAME", "what is monitored: its organization"),
    ("--project", "NAME", "… its project"),
    ("--agent", "NAME", "… its name"),
    ("--environment", "NAME", "… where it runs"),
    ("--evaluators", "JSON|@PATH", "JSON array of evaluators, or @ and the path of a file that has it"),
    ("--trace-start", "TIME", "ISO 8601, UTC where it has no zone; traces that start from here on"),
    ("--trace-end", "TIME", "ISO 8601, UTC where it has no zone; traces that start before it"),
    ("--traces-api-endpoint", "URL|file:PATH", "where traces come from"),
    ("--monitor-id", "UUID", "the monitor's id"),
    ("--run-id", "UUID", "this run's id"),
    ("--publisher-endpoint", "URL|file:PATH", "where scores go to"),
)


def parse_args(argv: Sequence[str]) -> argparse.Namespace:
    """The flags as texts. Missing and unknown ones end the process with 2, as argparse does."""
    description, _, epilog = (__doc__ or "").partition("\n\n")
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "main.py", description=description, epilog=epilog, allow_abbrev=False, formatter_class=style
    )
    for flag, metavar, text in REQUIRED_FLAGS:
        parser.add_argument(flag, required=True, metavar=metavar, help=text)
    parser.add_argument("--sampling-rate", default="1.0", metavar="RATE", help="in (0, 1]; default 1.0")
    parser.add_argument("--report", metavar="PATH", help="also write an HTML page, and its figures beside it as .json")
    parser.add_argument("--outputs", metavar="FOLDER", help="also write traces-evaluated, scores-stored and means.json")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--dry-run", action="store_true", help="check all inputs, print the plan, send nothing")
    instead.add_argument("--check", action="store_true", help="try each peer once, print what to do, evaluate nothing")
    return parser.parse_args(argv)


def parse_time(flag: str, text: str) -> datetime:
    moment = parse_rfc3339(text)
    if moment is None:
        raise ConfigError(f"{flag}={text!r}: an ISO 8601 time is wanted, such as 2026-01-15T10:00:00Z")
    return moment


def parse_rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0.0 < rate <= 1.0:
        raise ConfigError(f"--sampling-rate={text!r}: a number above 0 and at most 1 is wanted")
    return rate


def parse_uuid(flag: str, text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise ConfigError(f"{flag}={text!r}: a UUID is wanted") from None


def check_texts(args: argparse.Namespace) -> None:
    """The texts that identify the monitored agent mustn't be empty, and must be text: a shell passes any bytes on."""
    texts = {f"--{name.replace('_', '-')}": getattr(args, name) for name in ("monitor_name", *MONITORED)}
    faults = [f"{flag} is empty" for flag, text in texts.items() if not text.strip()]
    faults += [f"{flag}={text!r} is not valid UTF-8" for flag, text in texts.items() if storable(text) != text]
    if faults:
        raise InputError(faults)


def check_log_level(env: Mapping[str, str]) -> None:
    level = env.get("LOG_LEVEL") or "INFO"
    if level.strip().upper() not in LOG_LEVELS:
        raise ConfigError(f"LOG_LEVEL={level!r}: one of DEBUG, INFO, WARN and ERROR is wanted")


def parse_source(text: str) -> Endpoint:
    endpoint = _parse_endpoint("--traces-api-endpoint", text)
    path = endpoint.path
    if path is not None and not glob.has_magic(path) and not Path(path).exists():
        raise ConfigError(f"--traces-api-endpoint={text!r}: there is no such file or folder")
    return endpoint


def parse_target(text: str) -> Endpoint:
    endpoint = _parse_endpoint("--publisher-endpoint", text)
    if endpoint.path is not None:
        path = Path(endpoint.path)
        if path.is_dir() or not path.parent.is_dir():
            raise ConfigError(f"--publisher-endpoint={text!r}: a file in a folder that exists is wanted")
    return endpoint


def parse_report(text: str | None) -> Path | None:
    """A page in a folder that exists."""
    if text is None:
        return None
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir() or path.suffix == ".json":
        raise ConfigError(f"--report={text!r}: a page (.html) in a folder that exists is wanted; the .json is its twin")
    return path


def check_files_differ(
    args: argparse.Namespace, traces: Endpoint | None, publisher: Endpoint | None, report: Path | None
) -> None:
    """No file that is written is one that is read, or written twice."""
    rules = args.evaluators[1:] if args.evaluators.startswith("@") else None
    read = {"--traces-api-endpoint": traces and traces.path, "--evaluators": rules}
    written = {"--publisher-endpoint": publisher and publisher.path, "--report": report}
    if report is not None:
        written["--report's figures"] = report.with_suffix(".json")
    seen = {Path(path).resolve(): flag for flag, path in read.items() if path}
    for flag, path in written.items():
        other = seen.setdefault(Path(path).resolve(), flag) if path else flag
        if other != flag:
            raise ConfigError(f"{flag} would overwrite {str(path)!r}, which is {other} too: give another path")


def parse_outputs(text: str | None) -> Path | None:
    if text is not None and not Path(text).is_dir():
        raise ConfigError(f"--outputs={text!r}: a folder that exists is wanted")
    return None if text is None else Path(text)


def _parse_endpoint(flag: str, text: str) -> Endpoint:
    if text.startswith("file:") and len(text) > len("file:"):
        return Endpoint(path=text.removeprefix("file:"))
    if "?" in text or "#" in text:
        raise ConfigError(f"{flag}={text!r}: a URL without query is wanted, paths are put behind it")
    return Endpoint(url=check_url(flag, text))


def check_url(name: str, text: str) -> str:
    """A URL of a peer, without blanks around it and a slash at its end."""
    text = text.strip()
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{name} holds credentials: leave them out, they would get into logs")
    if not is_http_url(text):
        what = "an http:// or https:// URL" + (" or file:PATH" if name.startswith("--") else "")
        raise ConfigError(f"{name}={text!r}: {what} is wanted")
    return text.rstrip("/")


def parse_idp(env: Mapping[str, str], is_needed: bool) -> IdpConfig | None:
    """The OAuth2 client; None when both endpoints are files. Empty variables count as unset."""
    if not is_needed:
        return None
    names = ("IDP_TOKEN_URL", "IDP_CLIENT_ID", "IDP_CLIENT_SECRET")
    missing = [name for name in names if not env.get(name)]
    if missing:
        raise InputError([f"{name} is not set: it is needed for http(s) endpoints" for name in missing])
    token_url, client_id, client_secret = (env[name] for name in names)
    check_url("IDP_TOKEN_URL", token_url)
    return IdpConfig(token_url=token_url.strip(), client_id=client_id, client_secret=client_secret)


def sdk_config(args: argparse.Namespace, env: Mapping[str, str]) -> Config:
    """The SDK's settings: `AMP_*` variables, the agent from the flags, the judges' gateway from `LLM_API_*`."""
    base, key = env.get("LLM_API_BASE") or "", env.get("LLM_API_KEY") or ""
    faults = Faults()
    if base:
        faults.check(check_url, "LLM_API_BASE", base)
    elif key:
        faults.append("LLM_API_KEY is set and LLM_API_BASE is not: set both, or neither")
    given: dict[str, dict[str, Any]] = {
        "agent": {name: getattr(args, name) for name in MONITORED},
        "llm_judge": {"api_base": base, "api_key": key} if base else {},
    }
    config = faults.check(lambda: sdk_settings.Config.from_env(env, **given))
    faults.raise_if_any()
    assert config is not None
    return config


def require_gateway_key(env: Mapping[str, str]) -> None:
    """Raises NotReadyError when judges have a gateway and its key isn't there: the secret may not be synced yet."""
    if env.get("LLM_API_BASE") and not env.get("LLM_API_KEY"):
        raise NotReadyError("LLM_API_BASE is set and LLM_API_KEY is not: its secret may not be there yet")


# --- evaluators -------------------------------------------------------------------------------------------------------


def build_evaluators(text: str, sandbox: Sandbox) -> dict[str, tuple[EvaluatorEntry, BaseEvaluator]]:
    """Evaluators by display name, from the flag's JSON. Raises InputError with the faults of all entries."""
    faults = Faults()
    built: dict[str, tuple[EvaluatorEntry, BaseEvaluator]] = {}
    places: dict[str, int] = {}
    for index, entry in enumerate(read_entries(text)):
        try:
            spec = parse_entry(entry)
            if spec.display_name in places:
                raise ConfigError(f"entry {places[spec.display_name]} has the same displayName: each must be its own")
            places[spec.display_name] = index
            built[spec.display_name] = (spec, make_evaluator(spec, sandbox))
        except (ValueError, TypeError) as error:
            name = entry.get("displayName") if isinstance(entry, dict) else None
            faults.append(f"--evaluators: entry {index}{f' ({name!r:.100})' if name else ''}: {error}")
    faults.raise_if_any()
    return built


def make_evaluator(spec: EvaluatorEntry, sandbox: Sandbox) -> BaseEvaluator:
    """The evaluator of one entry, named as displayed. Raises ValueError or TypeError with what is wrong."""
    name, config, level = spec.display_name, spec.config, spec.level
    if spec.kind == "code":
        return code_evaluator(spec.source, name=name, config=config, level=level, sandbox=sandbox)
    if spec.kind == "llm_judge" and spec.source and not is_builtin_judge(spec.identifier, level):
        return template_judge(
            spec.source, name=name, config=config, level=level, schema_keys=spec.schema_keys, sandbox=sandbox
        )
    evaluator = builtin(spec.identifier, **({**config, "level": level} if level else config))
    evaluator.name = name
    return evaluator


def is_builtin_judge(identifier: str, level: str | None) -> bool:
    """The platform sends the SDK's own judges with their prompt as source: then the built-in's own rules hold."""
    return any(
        info.name == identifier and info.module == JUDGE_MODULE and level in (None, info.level)
        for info in builtin_evaluator_catalog()
    )


# --- credentials ------------------------------------------------------------------------------------------------------


class OAuth2TokenManager:
    """The current access token, fetched when it is first needed and renewed before it expires.

    Call it for the token; tell it by `invalidate` of one that a peer refused. Threads that need a token at the same
    time wait for one request. A token that lives shorter than the margin is fetched for each call.
    """

    def __init__(self, idp: IdpConfig, *, retry: RetryPolicy | None = None) -> None:
        base, self._path = split_url(idp.token_url)
        self._client = HttpClient(IDENTITY_PROVIDER, base, retry=retry)
        self._clock = self._client.retry.clock
        self._readings = credential_readings(idp)
        self._lock = threading.Lock()
        self._token: str | None = None
        self._renew_at = 0.0

    def __call__(self) -> str:
        with self._lock:
            if self._token is None or self._clock() >= self._renew_at:
                self._token = self._fetch()
            return self._token

    def invalidate(self, token: str) -> None:
        """Forget `token`; a newer one that another thread fetched meanwhile stays."""
        with self._lock:
            if token == self._token:
                self._token = None

    def close(self) -> None:
        self._client.close()

    def _fetch(self) -> str:
        """Try the readings in order until one is accepted, and stay with it for the rest of the run."""
        first_refusal: RefusedError | None = None
        for reading in self._readings:
            begin = self._clock()
            try:
                reply = self._ask(reading)
            except RefusedError as refusal:
                first_refusal = first_refusal or refusal
                if not may_be_misread(refusal):
                    break
                continue
            self._readings = [reading]
            token, life_s = parse_token(reply)
            self._renew_at = begin + life_s - TOKEN_RENEWAL_MARGIN_S
            return token
        assert first_refusal is not None
        raise named_refusal(first_refusal) from first_refusal

    def _ask(self, reading: Credentials) -> bytes:
        form = urlencode({"grant_type": "client_credentials", **reading.form})
        return self._client.post(
            self._path, body=form.encode(), content_type="application/x-www-form-urlencoded", headers=reading.headers
        ).body


# --- evaluate ---------------------------------------------------------------------------------------------------------


class RunState:
    """How far the run is, for the log's progress lines and for the line that a SIGTERM leaves behind."""

    def __init__(self) -> None:
        self.evaluated = 0
        self.stored = 0
        self.view: TerminalView | None = None
        self._next_line_s = PROGRESS_INTERVAL_S

    def on_progress(self, progress: Progress) -> None:
        """Take note; move the terminal's bar, or log a line every ten seconds."""
        self.evaluated = progress.evaluated
        if self.view is not None:
            self.view.on_progress(progress)
        elif self._line_is_due(progress):
            log_progress(progress)

    def on_stored(self, stored: int) -> None:
        self.stored = stored

    def _line_is_due(self, progress: Progress) -> bool:
        if progress.seconds < self._next_line_s:
            return False
        self._next_line_s = progress.seconds + PROGRESS_INTERVAL_S
        return True


def log_progress(progress: Progress) -> None:
    counts = (progress.found, progress.sampled, progress.evaluated)
    log.info("%d traces found, %d sampled, %d evaluated after %.0f s", *counts, progress.seconds)


STATE = RunState()
"""The state of this process's run: a signal handler gets no argument of its own."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run whose inputs all hold; nothing was sent yet. `identifiers` are by display name."""

    config: JobConfig
    identifiers: Mapping[str, str]
    evaluators: Sequence[BaseEvaluator]
    monitor: Monitor
    tokens: OAuth2TokenManager | None
    retry: RetryPolicy


@contextmanager
def prepare(args: argparse.Namespace, env: Mapping[str, str], retry: RetryPolicy) -> Iterator[Job]:
    """Check all inputs and make what the run needs; at the end, whatever it is, close that again."""
    faults = Faults()
    config = faults.check(JobConfig.from_inputs, args, env)
    with ExitStack() as resources:
        limits = config.sdk.code_evaluator if config else sdk_settings.CodeEvaluatorConfig()
        sandbox = resources.enter_context(Sandbox(limits.timeout_seconds, limits.memory_mb))
        built = faults.check(build_evaluators, args.evaluators, sandbox)
        faults.raise_if_any()
        assert config is not None and built is not None
        require_gateway_key(env)
        tokens = OAuth2TokenManager(config.idp, retry=retry) if config.idp else None
        if tokens is not None:
            resources.callback(tokens.close)
        evaluators = [evaluator for _, evaluator in built.values()]
        yield Job(
            config=config,
            identifiers={name: spec.identifier for name, (spec, _) in built.items()},
            evaluators=evaluators,
            monitor=make_monitor(config, evaluators, tokens, retry),
            tokens=tokens,
            retry=retry,
        )


def make_monitor(
    config: JobConfig, evaluators: Sequence[BaseEvaluator], tokens: OAuth2TokenManager | None, retry: RetryPolicy
) -> Monitor:
    try:
        return Monitor(evaluators, config=config.sdk, trace_fetcher=open_traces(config, tokens, retry))
    except ValueError as error:  # none of them can run in a monitor
        raise InputError([f"--evaluators: {error}"]) from error


def open_traces(config: JobConfig, tokens: OAuth2TokenManager | None, retry: RetryPolicy) -> TraceFetcher | TraceLoader:
    """The traces of the monitored agent, from the traces API or a file."""
    if config.traces.path is not None:
        return TraceLoader(config.traces.path)
    assert config.traces.url is not None and tokens is not None
    agent = config.sdk.agent
    return TraceFetcher(
        config.traces.url,
        agent.organization,
        agent.project,
        agent.agent,
        agent.environment,
        tokens,
        page_size=TRACE_FETCH_PAGE_SIZE,
        window_margin_s=config.sdk.trace.window_margin_seconds,
        retry=retry,
    )


def evaluate_window(job: Job, state: RunState) -> RunResult:
    config, window = job.config, job.config.window
    log.info(
        "monitor %r, run %s: %d evaluators on traces from %s to %s, sampling rate %r",
        config.monitor_name,
        config.run_id,
        job.monitor.evaluator_count,
        format_rfc3339(window.start),
        format_rfc3339(window.end),
        config.sample_rate,
    )
    result = job.monitor.run(window.start, window.end, sample_rate=config.sample_rate, on_progress=state.on_progress)
    result.run_id = config.run_id  # the platform's name for this run, not one that the SDK made up
    return result


# --- publish ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What became of the scores: `missing` counts by evaluator what isn't stored."""

    stored: int = 0
    total: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    errors: Sequence[RunError] = ()


def publish(job: Job, result: RunResult, state: RunState) -> Publication:
    """Send the scores, or write them to a file."""
    summaries = {name: summary for name, summary in result.scores.items() if summary.individual_scores}
    if not summaries:
        return Publication()
    plan = PublishPlan(summaries, {name: job.identifiers[name] for name in summaries})
    if job.config.publisher.path is not None:
        errors = write_scores(plan, job.config.publisher.path)
    else:
        errors = send_scores(plan, job, state)
    return Publication(
        stored=plan.stored, total=plan.total, missing=plan.missing, errors=[*errors, *refusals(plan.refused)]
    )


def scores_path(config: JobConfig) -> str:
    return f"/api/v1/publisher/monitors/{config.monitor_id}/runs/{config.run_id}/scores"


def send_scores(plan: PublishPlan, job: Job, state: RunState) -> list[RunError]:
    config = job.config
    assert config.publisher.url is not None and job.tokens is not None
    with closing(HttpClient(PUBLISHER, config.publisher.url, retry=job.retry)) as client:
        return post_scores(plan, client, scores_path(config), job.tokens, state.on_stored)


def refusals(lines: Sequence[str]) -> list[RunError]:
    """What can't be stored, however often it is sent: the first ones by name."""
    shown = list(lines[:MAX_LISTED])
    if len(lines) > MAX_LISTED:
        shown.append(f"{len(lines) - MAX_LISTED} other scores")
    return [RunError(f"can't be stored: {line}", repeat_may_help=False) for line in shown]


def write_scores(plan: PublishPlan, path: str) -> list[RunError]:
    """Write what would have been posted, as one body: a file has no size limit."""
    try:
        with Path(path).open("wb") as file:
            file.writelines(plan.one_body())
    except OSError as error:
        plan.take_back()
        return [RunError(f"the scores can't be written: {error}", repeat_may_help=True)]
    return []


def write_extras(config: JobConfig, result: RunResult, publication: Publication) -> list[RunError]:
    """The page and the small files that were asked for."""
    counts = {"stored": publication.stored, "total": publication.total}
    return write_files(result, report=config.report, outputs=config.outputs, title=config.monitor_name, **counts)


# --- dry run and check ------------------------------------------------------------------------------------------------


def show_plan(job: Job, out: TextIO) -> int:
    """What would be done, with the judges' prompts for one trace where traces come from a file."""
    config, window = job.config, job.config.window
    refuse_defects(job.evaluators)
    preview = importlib.import_module("amp_evaluation._preview")  # as for a check: other runs start without it
    mapping = preview.mapping_at(config.sdk.trace.mapping_path)
    plan = preview.plan_lines(
        f"monitor {config.monitor_name!r}, run {config.run_id}",
        window=(window.start, window.end),
        sample_rate=config.sample_rate,
        traces=config.traces.url or config.traces.path,
        publisher=config.publisher.url or config.publisher.path,
        evaluators=job.evaluators,
    )
    out.writelines(f"{line}\n" for line in plan)
    if config.traces.path is not None:
        traces = TraceLoader(config.traces.path).iter_traces(window.start, window.end)
        lines = preview.file_lines(traces, mapping, job.evaluators)
        out.writelines(f"{line}\n" for line in lines)
    return EXIT_OK


def refuse_defects(evaluators: Iterable[BaseEvaluator]) -> None:
    """In a run a broken template costs its own scores; a dry run is there to find it."""
    defects = [f"{e.name}: {defect}" for e in evaluators if (defect := getattr(e, "defect", None))]
    if defects:
        raise InputError(defects)


def check_peers(job: Job, out: TextIO) -> int:
    """Try each peer once and print a table; 1 when one failed."""
    config = job.config
    checking = importlib.import_module("amp_evaluation._peer_check")
    checks = list(checking.check_judges(job.monitor.evaluators, config.sdk))
    if job.tokens is not None:
        checks[:0] = checking.check_services(
            job.tokens,
            traces_url=config.traces.url,
            query=page_query(config),
            publisher_url=config.publisher.url,
            scores_path=scores_path(config),
            retry=job.retry,
        )
    out.writelines(f"{line}\n" for line in checking.table_lines(checks))
    return EXIT_OK if all(check.passed for check in checks) else EXIT_REPEAT


def page_query(config: JobConfig) -> dict[str, str]:
    """What names the monitored agent and the window in a request for traces."""
    agent = config.sdk.agent
    named = {name: getattr(agent, name) for name in MONITORED}
    return named | {"startTime": format_rfc3339(config.window.start), "endTime": format_rfc3339(config.window.end)}


# --- main -------------------------------------------------------------------------------------------------------------


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    log_stream: BinaryIO | None = None,
    out: TextIO | None = None,
    state: RunState = STATE,
) -> int:
    """The whole job; returns its exit code. `clock` and `sleep` (seconds) are those of all waits for peers."""
    args = parse_args(argv)
    state.view = set_up_logging(env, log_stream or open_stderr())
    delays = () if args.check else RETRY_DELAYS_S
    try:
        with prepare(args, env, RetryPolicy(delays=delays, clock=clock, sleep=sleep)) as job:
            if args.dry_run:
                return show_plan(job, out or sys.stdout)
            if args.check:
                return check_peers(job, out or sys.stdout)
            result = evaluate_window(job, state)
            log_result(result)
            publication = publish(job, result, state)
        errors = [*result.errors, *publication.errors, *write_extras(job.config, result, publication)]
        show_results(result, state)
        return conclude(errors, publication)
    except Exception as error:
        return exit_code_of(error)


def show_results(result: RunResult, state: RunState) -> None:
    if state.view is not None:
        state.view.show_results(result)


def conclude(errors: Sequence[str], publication: Publication) -> int:
    """The last lines of the log, and the exit code: 1 goes before 3."""
    for error in errors:
        if not getattr(error, "is_logged", False):
            log.error("%s", error)
    complete = publication.stored == publication.total
    missing = ", ".join(f"{count} of {name!r}" for name, count in publication.missing.items())
    log.log(
        logging.INFO if complete else logging.WARNING,
        "stored %d of %d scores%s",
        publication.stored,
        publication.total,
        f"; missing: {missing}" if missing else "",
    )
    if not errors:
        return EXIT_OK
    # A plain text is an error that somebody's own code reported: nothing says that it stays.
    return EXIT_REPEAT if any(getattr(error, "repeat_may_help", True) for error in errors) else EXIT_REFUSED


def exit_code_of(error: Exception) -> int:
    """Log what ended the run before there was a result, and tell what a repeat would bring."""
    if isinstance(error, ConfigError):
        for fault in error.faults if isinstance(error, InputError) else [str(error)]:
            log.error("%s", fault)
        return EXIT_WRONG_INPUT
    if isinstance(error, NotReadyError):
        log.error("%s", error)
        return EXIT_REPEAT
    if isinstance(error, TraceSourceError):
        log.error("%s", error)
        return EXIT_REFUSED
    log.error("the run failed in a way that nobody foresaw", exc_info=error)
    return EXIT_REPEAT


def handle_sigterm(signum: int, frame: FrameType | None) -> NoReturn:
    """Log how far the run came, and end at once: what runs beside this thread is daemons and children."""
    fate = f"{STATE.stored} of their scores were published" if STATE.stored else "none of their scores was published"
    log.warning("SIGTERM: the run ends early; %d traces were evaluated and %s", STATE.evaluated, fate)
    keep_all()  # else the interpreter goes through all that judges' libraries made once more: a second
    sys.exit(EXIT_OK)


def log_thread_error(failed: threading.ExceptHookArgs) -> None:
    """A thread's end is a line of the log like any other, and not text beside it."""
    log.error("a thread ended in a way that nobody foresaw", exc_info=failed.exc_value)


def main() -> NoReturn:
    signal.signal(signal.SIGTERM, handle_sigterm)
    threading.excepthook = log_thread_error
    keep_all()
    try:
        sys.exit(run(sys.argv[1:], os.environ))
    except KeyboardInterrupt:
        log.warning("interrupted: the run ends early")
        keep_all()  # as after a SIGTERM
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
