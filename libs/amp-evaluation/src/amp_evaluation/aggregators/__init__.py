"""How an evaluator's scores over a run are brought together into single values."""

from amp_evaluation.aggregators.base import Aggregation, AggregationType, normalize_aggregations

__all__ = ["Aggregation", "AggregationType", "normalize_aggregations"]
