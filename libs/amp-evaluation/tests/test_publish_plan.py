"""The plan of a publication: parts under the cap, and what becomes of a part that is refused."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amp_evaluation._publish_plan import MAX_REFUSED_IN_A_ROW, Part, PublishPlan, Verdict
from amp_evaluation.models import EvaluationLevel, EvaluatorScore, EvaluatorSummary
from amp_evaluation.publish import PublishBody

START = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)


def summaries(names: list[str], traces: int, text: str = "fine") -> dict[str, EvaluatorSummary]:
    return {
        name: EvaluatorSummary(
            name,
            traces,
            EvaluationLevel.TRACE,
            0,
            {"mean": 0.5},
            [EvaluatorScore(f"t{i}", START, score=0.5, explanation=text) for i in range(traces)],
        )
        for name in names
    }


def plan_for(made: dict[str, EvaluatorSummary], **settings: int) -> PublishPlan:
    return PublishPlan(made, {name: f"id of {name}" for name in made}, **settings)


class Store:
    """A publisher as strict as the platform's: it stores all of a body or nothing, and upserts."""

    def __init__(
        self,
        *,
        max_bytes: int = 1 << 20,
        bad_item: Callable[[dict], bool] | None = None,
        bad_names: tuple[str, ...] = (),
        down_after: int = 1 << 30,
    ) -> None:
        self.scores: dict[tuple[str, str], dict] = {}
        self.aggregates: dict[str, dict] = {}
        self.sizes: list[int] = []
        self.max_bytes = max_bytes
        self.bad_item = bad_item or (lambda item: False)
        self.bad_names = bad_names
        self.down_after = down_after

    def post(self, part: Part) -> Verdict:
        self.sizes.append(len(part.body))
        body = json.loads(part.body)
        items, aggregates = body["individualScores"], body["aggregatedScores"]
        assert items or aggregates
        if len(self.sizes) > self.down_after:
            return Verdict.REFUSED
        if len(part.body) > self.max_bytes:
            return Verdict.TOO_LARGE
        names = self.aggregates.keys() | {each["evaluatorName"] for each in aggregates}
        if any(self.bad_item(item) or item["evaluatorName"] not in names for item in items):
            return Verdict.REFUSED
        if any(each["evaluatorName"] in self.bad_names for each in aggregates):
            return Verdict.REFUSED
        self.scores |= {(item["evaluatorName"], item["traceId"]): item for item in items}
        self.aggregates |= {each["evaluatorName"]: each for each in aggregates}
        return Verdict.STORED

    def publish(self, plan: PublishPlan) -> None:
        for part in plan:
            plan.settle(part, self.post(part))


def test_a_small_run_is_one_body_with_all_of_it() -> None:
    store, plan = Store(), plan_for(summaries(["A", "B"], 100))
    store.publish(plan)
    assert len(store.sizes) == 1
    assert (plan.stored, plan.total, plan.refused) == (200, 200, [])
    assert store.aggregates["B"]["identifier"] == "id of B"


def test_ten_thousand_long_explanations_go_in_parts_under_the_cap() -> None:
    made = summaries(["A", "B"], 5000, text="x" * 500)
    store, plan = Store(max_bytes=900_000), plan_for(made)
    store.publish(plan)
    assert (plan.stored, plan.total) == (10_000, 10_000)
    assert max(store.sizes) < 900_000
    assert len(store.sizes) <= 12
    once = Store(max_bytes=1 << 30)
    once.publish(plan_for(made, max_part_bytes=1 << 30))
    assert store.scores == once.scores
    assert store.aggregates == once.aggregates


def test_every_part_names_all_evaluators() -> None:
    plan = plan_for(summaries(["A", "B"], 50, text="x" * 100), max_part_bytes=5_000)
    parts = []
    for part in plan:
        parts.append(json.loads(part.body))
        plan.settle(part, Verdict.STORED)
    assert len(parts) > 3
    assert all(len(part["aggregatedScores"]) == 2 for part in parts)


def test_a_413_halves_the_part_and_the_limit_is_remembered() -> None:
    store, plan = Store(max_bytes=65_536), plan_for(summaries(["A"], 6000, text="x" * 100))
    store.publish(plan)
    assert plan.stored == plan.total == 6000
    too_large = [size for size in store.sizes if size > 65_536]
    assert len(too_large) <= 5


def test_one_huge_explanation_loses_its_middle_with_a_mark() -> None:
    made = summaries(["A"], 3)
    made["A"].individual_scores[1].explanation = "begin " + "é\n" * 1_000_000 + " end"
    store, plan = Store(max_bytes=900_000), plan_for(made)
    store.publish(plan)
    assert plan.stored == plan.total == 3
    text = store.scores["A", "t1"]["explanation"]
    assert text.startswith("begin ")
    assert text.endswith(" end")
    assert "characters left out" in text
    assert store.scores["A", "t0"]["explanation"] == "fine"


def test_a_publisher_that_takes_no_body_at_all_is_given_up_on() -> None:
    store, plan = Store(max_bytes=10), plan_for(summaries(["A"], 500))
    store.publish(plan)
    assert plan.hopeless
    assert plan.stored == 0
    assert len(store.sizes) < 200


def test_aggregates_too_many_for_one_body_are_sent_in_bodies_of_their_own() -> None:
    store, plan = Store(max_bytes=3_000), plan_for(summaries([f"evaluator {i}" for i in range(100)], 2))
    store.publish(plan)
    assert plan.stored == plan.total == 200
    assert len(store.aggregates) == 100
    assert len(store.sizes) < 50


def test_a_single_bad_item_is_found_and_all_others_are_stored() -> None:
    store = Store(bad_item=lambda item: item["traceId"] == "t37")
    plan = plan_for(summaries(["A"], 1000))
    store.publish(plan)
    assert plan.stored == 999
    assert len(plan.refused) == 1
    assert "'A', trace 't37'" in plan.refused[0]
    assert not plan.hopeless
    assert len(store.sizes) < 30


def test_only_the_first_try_of_a_part_has_retries_to_spend() -> None:
    store = Store(bad_item=lambda item: item["traceId"] == "t3")
    plan = plan_for(summaries(["A"], 10))
    probes = []
    for part in plan:
        probes.append(part.is_probe)
        plan.settle(part, store.post(part))
    assert probes[0] is False
    assert all(probes[1:])


def test_a_refused_evaluator_costs_its_own_scores_only() -> None:
    store, plan = Store(bad_names=("B",)), plan_for(summaries(["A", "B", "C"], 400))
    store.publish(plan)
    assert plan.stored == 800
    assert len(plan.refused) == 400
    assert all("'B'" in line for line in plan.refused)
    assert set(store.aggregates) == {"A", "C"}


def test_parts_that_hold_only_a_refused_evaluator_are_not_sent() -> None:
    store, plan = Store(bad_names=("B",)), plan_for(summaries(["A", "B"], 100), max_part_bytes=4_000)
    store.publish(plan)
    assert plan.stored == 100
    assert len(plan.refused) == 100


def test_names_that_are_refused_one_by_one_take_their_items_with_them() -> None:
    made = summaries([f"evaluator {number}" for number in range(60)], 40)
    bad_names = ("evaluator 7", "evaluator 59")
    store, plan = Store(max_bytes=3_000, bad_names=bad_names), plan_for(made, max_part_bytes=3_000)
    store.publish(plan)
    assert plan.stored == 58 * 40
    assert plan.missing == {"evaluator 7": 40, "evaluator 59": 40}
    assert len(plan.refused) == 80


def test_what_is_missing_is_counted_by_evaluator() -> None:
    store = Store(bad_item=lambda item: item["traceId"] == "t3" and item["evaluatorName"] == "B")
    plan = plan_for(summaries(["A", "B"], 10))
    assert plan.missing == {"A": 10, "B": 10}
    store.publish(plan)
    assert plan.missing == {"B": 1}


def test_one_body_for_a_target_without_a_limit_holds_what_the_parts_would() -> None:
    made = summaries(["A", "B"], 3000)
    plan = plan_for(made, max_part_bytes=20_000)
    body = json.loads(b"".join(plan.one_body()))
    assert len(body["individualScores"]) == plan.stored == plan.total == 6000
    assert [each["evaluatorName"] for each in body["aggregatedScores"]] == ["A", "B"]
    PublishBody.model_validate(body)


def test_a_body_that_breaks_off_counts_as_nothing_stored() -> None:
    plan = plan_for(summaries(["A", "B"], 3000))
    pieces = plan.one_body()
    while plan.stored == 0:
        next(pieces)
    plan.take_back()
    assert (plan.stored, plan.missing) == (0, {"A": 3000, "B": 3000})


def test_one_body_of_nothing_scored_is_json_too() -> None:
    assert json.loads(b"".join(plan_for(summaries(["A"], 0)).one_body()))["individualScores"] == []


def test_an_item_whose_text_is_not_what_makes_it_large_is_reported() -> None:
    made = summaries(["A"], 2)
    made["A"].individual_scores[0].trace_id = "t" * 250
    store, plan = Store(max_bytes=300), plan_for(made)
    store.publish(plan)
    assert plan.stored == 1
    assert "too large" in plan.refused[0]


def test_an_unknown_run_is_given_up_on_without_asking_for_every_score() -> None:
    store = Store(bad_names=tuple("ABCDEFG"))
    plan = plan_for(summaries(list("ABCDEFG"), 5000))
    store.publish(plan)
    assert plan.hopeless
    assert plan.stored == 0
    assert len(store.sizes) < 20


def test_an_outage_in_the_middle_is_not_taken_for_thousands_of_bad_scores() -> None:
    store, plan = Store(down_after=2), plan_for(summaries(["A"], 20_000))
    store.publish(plan)
    assert plan.hopeless
    assert plan.stored >= 2000
    assert len(store.sizes) < 60
    assert len(plan.refused) <= MAX_REFUSED_IN_A_ROW


@pytest.mark.parametrize(
    ("bad_item", "refused"),
    [
        pytest.param(lambda item: item["evaluatorName"] == "A", 300, id="of one evaluator"),
        pytest.param(lambda item: 100 <= int(item["traceId"][1:]) < 150, 150, id="of fifty traces in a row"),
    ],
)
def test_many_bad_items_in_a_row_leave_all_others_stored(bad_item: Callable[[dict], bool], refused: int) -> None:
    store, plan = Store(bad_item=bad_item), plan_for(summaries(["A", "B", "C"], 300))
    store.publish(plan)
    assert not plan.hopeless
    assert (plan.stored, len(store.scores), len(plan.refused)) == (900 - refused, 900 - refused, refused)


def test_evaluators_without_a_single_item_still_publish_their_aggregates() -> None:
    store, plan = Store(), plan_for(summaries(["A"], 0))
    store.publish(plan)
    assert set(store.aggregates) == {"A"}
    assert (plan.stored, plan.total) == (0, 0)


def test_no_evaluator_is_no_part() -> None:
    assert list(plan_for({})) == []


@settings(deadline=None)
@given(
    traces=st.integers(1, 60),
    bad=st.sets(st.integers(0, 59), max_size=8),
    max_bytes=st.integers(2_000, 20_000),
    cap=st.integers(2_000, 20_000),
)
def test_all_but_the_bad_items_are_stored_whatever_the_limits(
    traces: int, bad: set[int], max_bytes: int, cap: int
) -> None:
    store = Store(max_bytes=max_bytes, bad_item=lambda item: int(item["traceId"][1:]) in bad)
    plan = plan_for(summaries(["A", "B"], traces), max_part_bytes=cap)
    store.publish(plan)
    expected = {(name, f"t{i}") for name in "AB" for i in range(traces) if i not in bad}
    assert set(store.scores) == expected
    assert plan.stored == len(expected)
    assert plan.stored + len(plan.refused) == plan.total


def test_the_plan_holds_one_part_at_a_time() -> None:
    made = summaries(["A"], 20_000, text="x" * 200)
    tracemalloc.start()
    plan = plan_for(made)
    for part in plan:
        plan.settle(part, Verdict.STORED)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert plan.stored == 20_000
    assert peak < 16_000_000


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_brings_the_plan_to_an_end(verdict: Verdict) -> None:
    plan = plan_for(summaries(["A", "B"], 30))
    for posts, part in enumerate(plan, start=1):
        plan.settle(part, verdict)
        assert posts < 200
