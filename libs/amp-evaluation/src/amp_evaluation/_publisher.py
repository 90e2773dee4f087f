"""Posts the parts of a plan to the score publisher."""

from __future__ import annotations

from collections.abc import Callable

from amp_evaluation._publish_plan import Part, PublishPlan, Verdict
from amp_evaluation.errors import PeerError, RefusedError, TransientError
from amp_evaluation.http import HttpClient, TokenProvider
from amp_evaluation.models import RunError

__all__ = ["PUBLISHER", "post_scores"]

PUBLISHER = "publisher"
"""Its role: what the log calls it, instead of its host."""

STORED = 201

VERDICTS: dict[int | None, Verdict] = {413: Verdict.TOO_LARGE, 500: Verdict.REFUSED}
"""What the publisher's status says about the part itself; every other failure is about the publisher."""


class NotStoredError(TransientError):
    """Another 2xx than the publisher's: from a gateway's sign-in page, say. Nothing says that the scores are stored."""


def post_scores(
    plan: PublishPlan, client: HttpClient, path: str, token: TokenProvider, on_stored: Callable[[int], None]
) -> list[RunError]:
    """Post part after part to `path`, until all are sent or the publisher fails for good: then the error says so.

    `on_stored` is told how many scores are stored so far.
    """
    try:
        for part in plan:
            plan.settle(part, _post(part, client, path, token))
            on_stored(plan.stored)
    except PeerError as error:
        return [RunError(str(error), repeat_may_help=isinstance(error, TransientError))]
    if plan.hopeless:
        text = f"{client.role}: all that was sent is refused: bad values or an unknown run are likelier than an outage"
        return [RunError(f"{text} (check --monitor-id and --run-id)", repeat_may_help=True)]
    return []


def _post(part: Part, client: HttpClient, path: str, token: TokenProvider) -> Verdict:
    """Post one part. A 500 that stays is how the publisher refuses a value, so it is a verdict and no outage."""

    def send() -> None:
        reply = client.post(path, body=part.body, content_type="application/json", token=token, retry=False)
        if reply.status != STORED:
            raise NotStoredError(client.role, f"HTTP {reply.status} instead of {STORED}", status=reply.status)

    def send_patiently() -> None:
        client.retry.run(send, role=client.role)

    try:
        if part.is_probe:
            _send_probe(send, send_patiently)
        else:
            send_patiently()
    except NotStoredError as error:
        raise RefusedError(error.role, error.detail, status=error.status, hint="check the endpoint") from error
    except PeerError as error:
        verdict = VERDICTS.get(error.status)
        if verdict is None or error.role != client.role:
            raise
        return verdict
    return Verdict.STORED


def _send_probe(send: Callable[[], None], send_patiently: Callable[[], None]) -> None:
    """Once when it is refused, since its retries were spent on the whole; as usual when something else fails."""
    try:
        send()
    except TransientError as error:
        if error.status == 500:
            raise
        send_patiently()
