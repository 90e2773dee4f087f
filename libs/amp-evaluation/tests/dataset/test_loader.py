"""Datasets as files: what is read, what is refused and how it is named, and that writing and reading agree."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.dataset import (
    Constraints,
    Dataset,
    Task,
    TrajectoryStep,
    generate_id,
    load_dataset_from_csv,
    load_dataset_from_json,
    save_dataset_to_json,
)
from amp_evaluation.errors import ConfigError


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def full_dataset() -> Dataset:
    task = Task(
        task_id="t1",
        input={"question": "Wo ist mein Päckchen?"},
        name="parcel",
        expected_output="at the depot",
        expected_trajectory=[TrajectoryStep(tool="track", args={"id": 7}), TrajectoryStep(tool="reply")],
        expected_outcome={"asked": True},
        success_criteria=["names the depot"],
        prohibited_content=["refund"],
        constraints=Constraints(max_latency_ms=0, max_tokens=1, max_iterations=1, max_cost=0),
        difficulty="expert",
        tags=["post"],
        dataset_id="d1",
    )
    return Dataset(dataset_id="d1", name="post office", tasks=[task])


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    dataset = full_dataset()
    path = tmp_path / "deep" / "dataset.json"
    save_dataset_to_json(dataset, path)
    assert "Päckchen" in path.read_text(encoding="utf-8")
    assert load_dataset_from_json(path) == dataset


@given(st.text(), st.lists(st.text()), st.sampled_from(["easy", "medium", "hard", "expert"]))
def test_any_text_survives_saving(
    tmp_path_factory: pytest.TempPathFactory, text: str, tags: list[str], level: Any
) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    dataset = Dataset(
        dataset_id="d", tasks=[Task(task_id="t", input=text, tags=tags, difficulty=level, dataset_id="d")]
    )
    path = tmp_path_factory.mktemp("sets") / "d.json"
    save_dataset_to_json(dataset, path)
    assert load_dataset_from_json(str(path)) == dataset


def test_a_bare_list_of_tasks_is_a_dataset_named_after_its_file(tmp_path: Path) -> None:
    dataset = load_dataset_from_json(write(tmp_path / "capitals.json", [{"id": "a", "input": "France?"}]))
    assert (dataset.name, dataset.task_count, dataset.tasks[0].task_id) == ("capitals", 1, "a")
    assert dataset.tasks[0].dataset_id == dataset.dataset_id
    assert dataset.get_task("a") is dataset.tasks[0]
    assert dataset.get_task("b") is None


def test_id_is_read_as_the_datasets_id(tmp_path: Path) -> None:
    assert load_dataset_from_json(write(tmp_path / "d.json", {"id": "d9", "tasks": []})).dataset_id == "d9"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("3", "an object or a list of tasks is wanted, not int"),
        ({"tasks": [{"input": "x", "expected": "y"}]}, r"tasks.0.expected: Extra inputs"),
        ({"tasks": [{"task_id": "a"}]}, r"tasks.0.input: Field required"),
        ({"tasks": ["a"]}, r"tasks.0: Input should be"),
        ({"tasks": "a"}, r"tasks: Input should be"),
        ({"nmae": "x"}, "nmae: Extra inputs"),
        ({"tasks": [{"input": "x", "difficulty": "mild"}]}, "difficulty"),
        ({"tasks": [{"input": "x", "constraints": {"max_tokens": 0}}]}, "max_tokens"),
        ({"tasks": [{"id": "a", "input": "x"}, {"id": "a", "input": "y"}]}, "'a' stands twice"),
    ],
    ids=lambda value: None if not isinstance(value, str) else value[:20],
)
def test_what_is_no_dataset_is_refused_with_file_and_place(tmp_path: Path, content: Any, words: str) -> None:
    path = write(tmp_path / "bad.json", content)
    with pytest.raises(ConfigError, match=words) as caught:
        load_dataset_from_json(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.json"):
        load_dataset_from_json(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        load_dataset_from_csv(tmp_path / "none.csv")


CSV = """\ufeffid,input,expected_output,tags,prohibited_content,success_criteria,\
constraints,expected_trajectory,expected_outcome
a,Where?,Here,x|y,"[""no, never""]","[""short"", ""kind""]","{""max_tokens"": 5}","[{""tool"": ""find""}]",found
b,"{""q"": 1}",,,,polite,,,"{""ok"": true}"
c,{not json,,,,"{""odd"": 1}",,,
"""


def test_csv_cells_become_the_types_of_their_columns(tmp_path: Path) -> None:
    dataset = load_dataset_from_csv(write(tmp_path / "set.csv", CSV), dataset_id="d")
    first, second, third = dataset.tasks
    assert (first.task_id, first.input, first.expected_output, first.tags) == ("a", "Where?", "Here", ["x", "y"])
    assert first.prohibited_content == ["no, never"]
    assert first.success_criteria == ["short", "kind"]
    assert first.constraints == Constraints(max_tokens=5)
    assert first.expected_trajectory == [TrajectoryStep(tool="find")]
    assert first.expected_outcome == "found"
    assert (second.input, second.success_criteria, second.expected_output) == ({"q": 1}, "polite", None)
    assert second.expected_outcome == {"ok": True}
    assert (third.input, third.success_criteria) == ("{not json", '{"odd": 1}')
    assert (dataset.name, dataset.dataset_id, first.dataset_id) == ("set", "d", "d")
    assert load_dataset_from_csv(tmp_path / "set.csv", name="other").name == "other"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("id,input\na,b,c\n", "line 2: more cells"),
        ("id,input,colour\na,b,red\n", "line 2: colour: Extra inputs"),
        ("id,input\na,b\na,c\n", "'a' stands twice"),
        ('id,input,constraints\na,b,"{"\n', "line 2: constraints: JSON is wanted"),
        ('id,input,tags\na,b,"[1"\n', "line 2: "),
        ("id,input\nx,y\na,\n", "line 3: input: Field required"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_dataset_from_csv(write(tmp_path / "bad.csv", content))


def test_a_csv_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes(b"id,input\na,\xff\xfe\n")
    with pytest.raises(ConfigError, match="utf-8"):
        load_dataset_from_csv(path)


def test_ids_are_new_each_time_and_tasks_added_belong_to_the_dataset() -> None:
    assert generate_id("x_").startswith("x_")
    assert len({generate_id() for _ in range(100)}) == 100
    dataset = Dataset(name="n")
    task = Task(input="a")
    dataset.add_task(task)
    assert (task.dataset_id, dataset.task_count) == (dataset.dataset_id, 1)


def test_tasks_that_name_no_dataset_survive_saving_too(tmp_path: Path) -> None:
    dataset = Dataset(dataset_id="d", tasks=[Task(task_id="t", input="q")])
    save_dataset_to_json(dataset, tmp_path / "d.json")
    assert load_dataset_from_json(tmp_path / "d.json") == dataset


def test_fields_can_be_given_by_position() -> None:
    assert Task("t", "q", "parcel") == Task(task_id="t", input="q", name="parcel")
    assert Constraints(3000).max_latency_ms == 3000
    assert TrajectoryStep("track", {"id": 7}).args == {"id": 7}
    with pytest.raises(TypeError, match="'tool' by position and by keyword"):
        TrajectoryStep("track", tool="track")
    with pytest.raises(TypeError, match="takes 4 values at most, not 5"):
        Constraints(1, 2, 3, 4, 5)
