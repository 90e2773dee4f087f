"""Prices of models in US dollars, from the kept lists of genai-prices; unknown stays unknown."""

from __future__ import annotations

import importlib
from decimal import Decimal
from functools import cache
from typing import Any

from amp_evaluation.judge.gateway import PROVIDERS

__all__ = ["price_of"]


def price_of(provider: str, model: str, input_tokens: int, output_tokens: int) -> Decimal | None:
    """What a call cost, or None where the provider, the model or the library isn't known."""
    row = PROVIDERS.get(provider)
    prices = _library()
    if row is None or prices is None:
        return None
    usage = prices.Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        found = prices.calc_price(usage, model_ref=model, provider_id=row.prices)
    except LookupError:
        return None
    return Decimal(found.total_price)


@cache
def _library() -> Any:
    """genai-prices comes with the extra for judges; without it no price is known."""
    try:
        return importlib.import_module("genai_prices")
    except ImportError:
        return None
