"""What is measured. Each case gives rows for the table: a figure, the bar it has to keep and the aim."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from _measure import CODE, JOB, JUDGES, RULE, RULES, Cost, json_cost, judge_variables, run, run_job
from _platform import ENVIRONMENT, platform, state

BEST_OF = 3


@dataclass(frozen=True)
class Row:
    """A figure; lower is better. Without a bar it is for information."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    aim: float | None = None

    @property
    def passed(self) -> bool:
        return self.bar is None or self.value <= self.bar


def rules(kind: str, traces: int) -> Iterator[Row]:
    """The whole job over traces of one convention, seven rules, against `json.loads` of the same bytes."""
    costs: list[Cost] = []
    unit: list[float] = []
    size = 0.0
    with platform(kind, traces) as told:
        for _ in range(BEST_OF):  # in turn, so that a slow spell of the machine hits both
            found = json_cost(kind, traces)
            unit.append(found["cpu_s"])
            size = found["bytes"]
            costs.append(run_job(told, RULES))
        _all_stored(state(told), traces * len(RULES) * BEST_OF)
    cpu = min(cost.cpu_s for cost in costs)
    wall = min(cost.wall_s for cost in costs)
    label = f"{kind}, {traces:,} traces"
    yield Row(f"{label}: CPU / json.loads", cpu / min(unit), "x", 5.0, 4.0)
    yield Row(f"{label}: peak memory", min(cost.peak_mb for cost in costs), "MB", 75.0, 65.0)
    yield Row(f"{label}: CPU", cpu, "s")
    yield Row(f"{label}: wall", wall, "s")
    yield Row(f"{label}: json.loads of {size / 1e6:.0f} MB", min(unit), "s")
    yield Row(f"{label}: scores per second", traces * len(RULES) / wall, "/s")


def growth(kind: str, few: int, many: int) -> Iterator[Row]:
    """How much more memory a run over many traces takes than one over few."""
    peaks = []
    for traces in (few, many):
        with platform(kind, traces) as told:
            peaks.append(min(run_job(told, RULES).peak_mb for _ in range(2)))
    yield Row(
        f"growth from {few:,} to {many:,} traces", (peaks[1] - peaks[0]) * 1024 / (many - few), "kB/trace", 2.5, 1.5
    )
    yield Row(f"peak memory at {many:,} traces", peaks[1], "MB")


def heavy(traces: int) -> Iterator[Row]:
    """Few traces of 20 MB each, at the default page size."""
    unit = min(json_cost("heavy", traces, page_size=2)["cpu_s"] for _ in range(2))
    with platform("heavy", traces) as told:
        costs = [run_job(told, RULES) for _ in range(2)]
        _all_stored(state(told), traces * len(RULES) * 2)
    yield Row(f"heavy, {traces} x 20 MB: peak memory", min(cost.peak_mb for cost in costs), "MB", 300.0, 150.0)
    yield Row(f"heavy, {traces} x 20 MB: CPU / json.loads", min(cost.cpu_s for cost in costs) / unit, "x", 2.5)


def judges(traces: int, delay_s: float, at_once: int) -> Iterator[Row]:
    """Two judges a trace with a slow model, against the time that the model alone takes."""
    limit = traces * len(JUDGES) * delay_s / at_once
    with platform("gen_ai", 1) as told:
        start_up = min(run_job(told, JUDGES, **judge_variables(told)).wall_s for _ in range(2))
    with platform("gen_ai", traces, judge_delay=delay_s) as told:
        variables = judge_variables(told) | {"AMP_MONITOR_MAX_CONCURRENCY": str(at_once)}
        costs = [run_job(told, JUDGES, **variables) for _ in range(BEST_OF)]
        seen = state(told)
        _all_stored(seen, traces * len(JUDGES) * BEST_OF)
        if seen["model_calls"] != seen["items"]:
            raise SystemExit(f"every judge should ask the model once a trace: {seen}")
    label = f"judges, {traces} traces x {len(JUDGES)}, {delay_s * 1000:.0f} ms"
    yield Row(f"{label}: wall less start-up / limit", (min(c.wall_s for c in costs) - start_up) / limit, "x", 1.5)
    yield Row(f"{label}: start-up", start_up, "s")
    yield Row(f"{label}: most calls in flight", seen["max_in_flight"], "", at_once)
    yield Row(f"{label}: peak memory", min(cost.peak_mb for cost in costs), "MB", 160.0)


def slow_observer(traces: int, delay_s: float) -> Iterator[Row]:
    """Rules over a traces API that takes its time for each page."""
    with platform("gen_ai", 1) as told:
        start_up = min(run_job(told, RULES).wall_s for _ in range(BEST_OF))
    with platform("gen_ai", traces, page_delay=delay_s) as told:
        wall = min(run_job(told, RULES).wall_s for _ in range(BEST_OF))
        pages = state(told)["pages"] / BEST_OF
    label = f"slow observer, {traces:,} traces, {delay_s * 1000:.0f} ms a page"
    yield Row(f"{label}: wall less start-up / pages x delay", (wall - start_up) / (pages * delay_s), "x", 1.15)
    yield Row(f"{label}: wall", wall, "s")


def start_up() -> Iterator[Row]:
    """`main.py --help` against importing the two libraries that it can't do without."""
    plain = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONPATH"}
    shown, unit = [], []
    for _ in range(2 * BEST_OF):
        unit.append(run([sys.executable, "-c", "import requests, pydantic"], plain).cpu_s)
        shown.append(run([sys.executable, str(JOB), "--help"], plain).cpu_s)
    yield Row("start-up: CPU of --help / import requests, pydantic", min(shown) / min(unit), "x", 2.0)
    yield Row("start-up: CPU of --help", min(shown), "s")


def code(traces: int) -> Iterator[Row]:
    """One evaluator sent as code against one built-in rule, over the same traces; the child's start counts apart."""
    few = _added_by_code(1)
    many = _added_by_code(traces)
    label = f"code evaluator, {traces:,} traces"
    yield Row(f"{label}: wall / built-in rule", many.custom_s / many.rule_s, "x", 2.0)
    yield Row(f"{label}: added a trace", (many.added_s - few.added_s) * 1000 / (traces - 1), "ms", 0.5)
    yield Row(f"{label}: start of the child", few.added_s, "s")


@dataclass(frozen=True)
class _Pair:
    rule_s: float
    custom_s: float

    @property
    def added_s(self) -> float:
        return self.custom_s - self.rule_s


def _added_by_code(traces: int) -> _Pair:
    with platform("gen_ai", traces) as told:
        pairs = [(run_job(told, RULE).wall_s, run_job(told, CODE).wall_s) for _ in range(BEST_OF)]
    return _Pair(min(rule for rule, _ in pairs), min(custom for _, custom in pairs))


def _all_stored(seen: dict[str, object], wanted: int) -> None:
    if seen["items"] != wanted or seen["refusals"]:
        raise SystemExit(f"{wanted} scores should be stored: {seen}")


CASES: dict[str, Callable[[], Iterator[Row]]] = {
    "start-up": start_up,
    "rules": lambda: rules("gen_ai", 5_000),
    "rules-openinference": lambda: rules("openinference", 5_000),
    "growth": lambda: growth("gen_ai", 1_000, 20_000),
    "heavy": lambda: heavy(24),
    "slow-observer": lambda: slow_observer(1_000, 0.05),
    "judges": lambda: judges(100, 0.2, 16),
    "code": lambda: code(1_000),
}
