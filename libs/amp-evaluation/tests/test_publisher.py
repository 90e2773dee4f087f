"""Parts of a plan posted over real sockets: which failures are the parts', and which the publisher's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from loopback import MONITOR_ID, RUN_ID, Fault, Platform, Response, status

from amp_evaluation._publish_plan import MAX_REFUSED_IN_A_ROW, PublishPlan
from amp_evaluation._publisher import post_scores
from amp_evaluation.http import HttpClient, RetryPolicy
from amp_evaluation.models import EvaluatorScore, EvaluatorSummary, RunError

START = datetime(2026, 1, 15, tzinfo=UTC)
PATH = f"/api/v1/publisher/monitors/{MONITOR_ID}/runs/{RUN_ID}/scores"


@pytest.fixture
def platform() -> Iterator[Platform]:
    with Platform() as platform:
        yield platform


def plan_of(count: int, text: str = "fine") -> PublishPlan:
    scores = [EvaluatorScore(f"t{number}", START, score=0.5, explanation=text) for number in range(count)]
    return PublishPlan({"L": EvaluatorSummary("L", count, individual_scores=scores)}, {"L": "latency_performance"})


def post(platform: Platform, plan: PublishPlan) -> tuple[list[RunError], list[int]]:
    told: list[int] = []
    retry = RetryPolicy(clock=platform.clock, sleep=platform.sleep)
    client = HttpClient("publisher", platform.publisher_url, retry=retry)
    token = platform.token()
    errors = post_scores(plan, client, PATH, lambda: token, told.append)
    client.close()
    return errors, told


def test_all_parts_are_stored_and_told_as_they_are(platform: Platform) -> None:
    plan = plan_of(4000, text="x" * 300)
    errors, told = post(platform, plan)
    assert errors == []
    assert told == sorted(told)
    assert told[-1] == plan.stored == len(platform.publisher.scores) == 4000
    assert len(told) > 1


def test_a_cap_of_the_gateway_is_learned(platform: Platform) -> None:
    platform.publisher.max_body = 64 * 1024
    errors, _ = post(platform, plan_of(3000))
    assert errors == []
    assert len(platform.publisher.scores) == 3000


def test_one_refused_item_leaves_all_others_stored(platform: Platform) -> None:
    platform.publisher.poison = "t7"
    plan = plan_of(100)
    errors, _ = post(platform, plan)
    assert errors == []
    assert len(plan.refused) == 1
    assert len(platform.publisher.scores) == 99
    assert platform.naps == [2.0, 4.0, 8.0]


def test_an_outage_while_searching_for_the_refused_item_is_waited_out(platform: Platform) -> None:
    platform.publisher.poison = "t7"
    platform.interfere(Fault("publisher", status(503), after=6, times=2))
    plan = plan_of(100)
    assert post(platform, plan)[0] == []
    assert plan.stored == 99


def test_an_outage_that_ends_while_it_is_asked_about_costs_only_what_was_tried_in_it(platform: Platform) -> None:
    """The witness is sent with retries: it decides over all that is left."""
    platform.interfere(Fault("publisher", status(500), after=1, times=42))
    plan = plan_of(5000)
    assert post(platform, plan)[0] == []
    assert plan.stored == len(platform.publisher.scores) == 5000 - len(plan.refused)
    assert len(plan.refused) <= MAX_REFUSED_IN_A_ROW


@pytest.mark.parametrize("code", [200, 202, 204])
def test_only_a_201_counts_as_stored(platform: Platform, code: int) -> None:
    """A gateway's sign-in page comes with 200."""
    page = Fault("publisher", lambda platform, request, answer: Response(code, b"<html>"), times=99)
    platform.interfere(page)
    plan = plan_of(5)
    (error,) = post(platform, plan)[0]
    assert f"publisher: HTTP {code} instead of 201 (check the endpoint)" in error
    assert not error.repeat_may_help
    assert (plan.stored, platform.naps) == (0, [2.0, 4.0, 8.0])
    page.times = 1
    plan = plan_of(5)
    assert post(platform, plan)[0] == []
    assert plan.stored == len(platform.publisher.scores) == 5


@pytest.mark.parametrize(("code", "repeat_may_help"), [(503, True), (403, False), (404, False), (400, False)])
def test_a_failure_that_is_the_publishers_ends_it_with_its_status(
    platform: Platform, code: int, repeat_may_help: bool
) -> None:
    platform.interfere(Fault("publisher", status(code), times=99))
    plan = plan_of(5)
    (error,) = post(platform, plan)[0]
    assert f"publisher: HTTP {code}" in error
    assert error.repeat_may_help is repeat_may_help
    assert plan.stored == 0


def test_everything_refused_is_told_from_an_outage_as_far_as_can_be(platform: Platform) -> None:
    platform.publisher.known_runs = frozenset()
    (error,) = post(platform, plan_of(500))[0]
    assert error.repeat_may_help
    assert "--run-id" in error
