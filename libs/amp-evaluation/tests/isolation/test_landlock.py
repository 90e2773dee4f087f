"""Landlock: what each version takes away, and that it holds, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from loopback.kernel import WITHOUT_LANDLOCK

from amp_evaluation.isolation import landlock

needs_landlock = pytest.mark.skipif(landlock.abi_version() == 0, reason="this kernel has no Landlock")


def in_a_process(code: str) -> str:
    """What the code prints, run in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("abi", "rights", "scopes", "size"),
    [
        pytest.param(1, 13, 0, 8, id="the first version knows 13 rights"),
        pytest.param(2, 14, 0, 8, id="the second can refuse to link and rename across directories"),
        pytest.param(3, 15, 0, 8, id="the third can refuse to truncate"),
        pytest.param(4, 15, 0, 16, id="the fourth knows the network, which stays open"),
        pytest.param(5, 16, 0, 16, id="the fifth can refuse controls of devices"),
        pytest.param(6, 16, 3, 24, id="the sixth closes signals and abstract sockets"),
        pytest.param(9, 16, 3, 24, id="later versions get what the sixth gets"),
    ],
)
def test_each_version_is_asked_for_all_it_knows(abi: int, rights: int, scopes: int, size: int) -> None:
    rules = landlock.rules_of(abi)
    assert (rules.files.bit_length(), rules.files + 1, rules.scopes, rules.attribute_size) == (
        rights,
        1 << rights,
        scopes,
        size,
    )


@needs_landlock
def test_a_restricted_process_reads_what_was_granted_and_nothing_else(tmp_path: Path) -> None:
    open_file, closed_file = tmp_path / "open" / "a", tmp_path / "closed" / "b"
    for path in (open_file, closed_file):
        path.parent.mkdir()
        path.write_text("content")
    said = in_a_process(f"""
from pathlib import Path
from amp_evaluation.isolation import landlock
assert landlock.restrict([Path({str(open_file.parent)!r}), Path("/does/not/exist")], [Path("/dev/null")]) > 0
print(open({str(open_file)!r}).read())
open("/dev/null", "w").write("x")
for what in (lambda: open({str(closed_file)!r}), lambda: open({str(open_file)!r}, "w"),
             lambda: __import__("os").listdir({str(tmp_path)!r}), lambda: __import__("os").unlink({str(open_file)!r}),
             lambda: __import__("os").execv("/bin/true", ["true"])):
    try:
        what()
    except PermissionError:
        print("refused")
""")
    assert said.split() == ["content"] + ["refused"] * 5
    assert open_file.read_text() == "content"


@needs_landlock
def test_a_single_file_can_be_granted(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("content")
    (tmp_path / "b").write_text("other")
    said = in_a_process(f"""
from pathlib import Path
from amp_evaluation.isolation import landlock
landlock.restrict([Path({str(tmp_path / "a")!r})])
print(open({str(tmp_path / "a")!r}).read())
try:
    open({str(tmp_path / "b")!r})
except PermissionError:
    print("refused")
""")
    assert said.split() == ["content", "refused"]


def test_a_kernel_without_landlock_restricts_nothing_and_says_so() -> None:
    said = in_a_process(
        WITHOUT_LANDLOCK
        + """
hide_landlock()
from amp_evaluation.isolation import landlock
print(landlock.abi_version(), landlock.restrict([]), len(open("/etc/hosts").read()) > 0)
"""
    )
    assert said == "0 0 True"


def test_a_refusal_by_the_kernel_is_an_error_not_a_silent_gap() -> None:
    with pytest.raises(landlock.LandlockError, match="landlock_restrict_self failed"):
        landlock._check(-1, "landlock_restrict_self")
