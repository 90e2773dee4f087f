"""Datasets as JSON and CSV files.

JSON: one object with Dataset's fields, its tasks under `tasks`; or a bare list of tasks. `id` is read as `task_id` or
`dataset_id`. A key that no field has is refused.

CSV: a header, then one task a row. Columns are named like Task's fields (`id` is read as `task_id`); an empty cell is
an absent value. Objects are written as JSON; lists as JSON, or as texts joined by `|`.
"""

import csv
import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from amp_evaluation.dataset.models import Dataset, Task, generate_id
from amp_evaluation.errors import ConfigError

__all__ = ["load_dataset_from_csv", "load_dataset_from_json", "save_dataset_to_json"]

LIST_SEPARATOR = "|"
LIST_COLUMNS = frozenset({"tags", "prohibited_content"})
JSON_COLUMNS = frozenset({"constraints", "custom", "expected_trajectory", "metadata"})
MIXED_COLUMNS = {"input": dict, "expected_outcome": dict, "success_criteria": list}  # text, or JSON of this type

StrPath = str | PathLike[str]


def load_dataset_from_json(path: StrPath) -> Dataset:
    """Read a dataset. Raises OSError when the file can't be read, ConfigError (a ValueError) when it is no dataset."""
    file = Path(path)
    try:
        data = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: not JSON: {error}") from error
    if isinstance(data, list):
        data = {"name": file.stem, "tasks": data}
    if not isinstance(data, dict):
        raise ConfigError(f"{file}: an object or a list of tasks is wanted, not {type(data).__name__}")
    data = _rename_id(data, "dataset_id")
    tasks = data.get("tasks")
    if isinstance(tasks, list):
        data["tasks"] = [_rename_id(task, "task_id") if isinstance(task, dict) else task for task in tasks]
    try:
        dataset = Dataset.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{file}: {_describe(error)}") from None
    return _finish(dataset, file)


def load_dataset_from_csv(path: StrPath, name: str | None = None, *, dataset_id: str | None = None) -> Dataset:
    """Read a dataset, one task a row. Raises OSError when the file can't be read, ConfigError naming the line."""
    file = Path(path)
    with file.open(encoding="utf-8-sig", newline="") as stream:
        tasks = list(_read_rows(file, csv.DictReader(stream)))
    chosen = generate_id("dataset_") if dataset_id is None else dataset_id
    dataset = Dataset(dataset_id=chosen, name=file.stem if name is None else name, tasks=tasks, source=str(file))
    return _finish(dataset, file)


def save_dataset_to_json(dataset: Dataset, path: StrPath, *, indent: int | None = 2) -> None:
    """Write a dataset so that `load_dataset_from_json` gives an equal one. Folders on the way are made."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    data = dataset.model_dump(mode="json")
    file.write_text(json.dumps(data, indent=indent, ensure_ascii=False) + "\n", encoding="utf-8")


def _finish(dataset: Dataset, file: Path) -> Dataset:
    """Ids must be unique, since traces are paired with tasks by them."""
    seen: set[str] = set()
    for task in dataset.tasks:
        if task.task_id in seen:
            raise ConfigError(f"{file}: task_id {task.task_id!r} stands twice; each task needs an id of its own")
        seen.add(task.task_id)
    return dataset


def _rename_id(data: dict[str, Any], name: str) -> dict[str, Any]:
    if "id" not in data or name in data:
        return data
    return {name if key == "id" else key: value for key, value in data.items()}


def _describe(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)


def _read_rows(file: Path, rows: "csv.DictReader[str]") -> Iterator[Task]:
    try:
        for row in rows:
            yield _read_row(file, rows.line_num, row)
    except (csv.Error, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}, line {rows.line_num}: {error}") from error


def _read_row(file: Path, line: int, row: dict[str, Any]) -> Task:
    if None in row:
        raise ConfigError(f"{file}, line {line}: more cells than the header has columns")
    cells = {name.strip(): value.strip() for name, value in row.items() if value is not None and value.strip()}
    try:
        values = {name: _read_cell(name, text) for name, text in cells.items()}
        return Task.model_validate(_rename_id(values, "task_id"))
    except ValidationError as error:
        raise ConfigError(f"{file}, line {line}: {_describe(error)}") from None
    except ValueError as error:
        raise ConfigError(f"{file}, line {line}: {error}") from error


def _read_cell(name: str, text: str) -> Any:
    if name in LIST_COLUMNS:
        return json.loads(text) if text.startswith("[") else [part.strip() for part in text.split(LIST_SEPARATOR)]
    if name in JSON_COLUMNS:
        return _decode(name, text)
    if name in MIXED_COLUMNS and text[0] in "{[":
        return _decode_or_text(name, text)
    return text


def _decode(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: JSON is wanted: {error}") from error


def _decode_or_text(name: str, text: str) -> Any:
    """JSON of the column's type; anything else is a person's own text with a bracket in front."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, MIXED_COLUMNS[name]) else text
