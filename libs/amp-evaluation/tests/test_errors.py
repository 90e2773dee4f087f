"""The error tree: what each class says to do next, and that its texts are whole."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from amp_evaluation import errors
from amp_evaluation.errors import (
    AmpEvaluationError,
    ConfigError,
    DataNotAvailableError,
    PeerError,
    RefusedError,
    TransientError,
)


def test_every_error_is_one_of_this_package_and_is_listed() -> None:
    classes = {name: kind for name, kind in vars(errors).items() if inspect.isclass(kind)}
    assert sorted(classes) == sorted(errors.__all__)
    assert all(issubclass(kind, AmpEvaluationError) for kind in classes.values())


def test_a_config_error_is_a_value_error() -> None:
    assert issubclass(ConfigError, ValueError)


def test_what_may_be_repeated_and_what_may_not_exclude_each_other() -> None:
    assert not issubclass(TransientError, RefusedError)
    assert not issubclass(RefusedError, TransientError)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PeerError("traces API", "HTTP 503", status=503), "traces API: HTTP 503"),
        (
            RefusedError("publisher", "HTTP 404", status=404, hint="check the ids"),
            "publisher: HTTP 404 (check the ids)",
        ),
        (RefusedError("publisher", "HTTP 409"), "publisher: HTTP 409"),
        (DataNotAvailableError("task"), "task is not available in this run"),
    ],
)
def test_the_text_says_who_and_what(error: Exception, text: str) -> None:
    assert str(error) == text


@pytest.mark.parametrize(
    "error",
    [
        TransientError("a", "b", status=503, retry_after=2.0),
        RefusedError("a", "b", hint="c"),
        DataNotAvailableError("f"),
    ],
)
def test_an_error_survives_copying_and_pickling(error: Exception) -> None:
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)
