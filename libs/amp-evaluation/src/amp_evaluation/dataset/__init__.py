"""Tasks and datasets for experiments."""

from amp_evaluation.dataset.loader import load_dataset_from_csv, load_dataset_from_json, save_dataset_to_json
from amp_evaluation.dataset.models import Constraints, Dataset, Task, TrajectoryStep, generate_id

__all__ = [
    "Constraints",
    "Dataset",
    "Task",
    "TrajectoryStep",
    "generate_id",
    "load_dataset_from_csv",
    "load_dataset_from_json",
    "save_dataset_to_json",
]
