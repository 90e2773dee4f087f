"""A custom evaluator that looks for the job's secrets gets none of them, as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from amp_evaluation.isolation import landlock

HERE = Path(__file__).parent
SECRETS = {"IDP_CLIENT_SECRET": "secret-of-the-idp", "LLM_API_KEY": "secret-of-the-model", "AMP_OTHER": "secret-other"}
FILE_SECRET = "secret-of-the-service-account"
ORDINARY_USER = "65534"

# An ordinary user may not reach this interpreter where it lies below /root: show it from a place that is open.
OPEN_ROOT = """
set -e
mkdir -p "$1"; mount -t tmpfs none "$1"; chmod 755 "$1"
for top in $(ls -A /root); do
  if [ -d "/root/$top" ]; then mkdir "$1/$top"; mount --rbind "/root/$top" "$1/$top"; fi
done
mount --rbind "$1" /root
shift
exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$@"
"""

pytestmark = pytest.mark.skipif(landlock.abi_version() == 0, reason="this kernel has no Landlock")


def as_ordinary_user(command: list[str], scratch: Path) -> list[str]:
    """The command with root's rights given up, when there are any."""
    if os.getuid() != 0:
        return command
    return ["unshare", "--mount", "sh", "-c", OPEN_ROOT, "sh", str(scratch), *command]


def has_a_way_down(scratch: Path) -> bool:
    tried = subprocess.run(as_ordinary_user([sys.executable, "-c", ""], scratch), capture_output=True, timeout=60)
    return tried.returncode == 0


@pytest.fixture(params=["root", "ordinary user"])
def user(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "root" and os.getuid() != 0:
        pytest.skip("needs root")
    if request.param != "root" and not has_a_way_down(tmp_path / "scratch"):
        pytest.skip("no way to become an ordinary user here")
    return str(request.param)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """Readable for all, as far as permissions go: what refuses it is not its mode."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    for parent in list(tmp_path.parents)[:3]:
        if parent.owner() == Path(sys.prefix).owner() and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    tmp_path.chmod(0o755)
    file = folder / "token"
    file.write_text(FILE_SECRET)
    file.chmod(0o644)
    return file


def run_job(user: str, token_file: Path, *options: str) -> dict[str, str]:
    command = [sys.executable, str(HERE / "job.py"), str(HERE / "attacker.py"), str(token_file), *options]
    if user != "root":
        command = as_ordinary_user(command, token_file.parent.parent / "scratch")
    environment = {**os.environ, **SECRETS}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


SEEN_BY_THE_FREE = (
    *("environment", "parent's environment", "parent's memory", "service account token"),
    *("token by a program", "an abstract socket"),
)


def test_what_there_is_to_find_is_found_without_the_sandbox(token_file: Path) -> None:
    """The control: the attempts below would succeed, if nothing stood against them."""
    found = run_job("root", token_file, "--free")
    for name in SEEN_BY_THE_FREE:
        assert "secret" in found[name] or "token-in-memory" in found[name], (name, found[name])


def test_no_attempt_finds_a_secret(user: str, token_file: Path) -> None:
    found = run_job(user, token_file)
    assert set(SEEN_BY_THE_FREE) <= set(found)
    everything = json.dumps(found)
    for secret in (*SECRETS.values(), FILE_SECRET, "token-in-memory", "secret-behind-a-socket"):
        assert secret not in everything
    assert not token_file.with_name("token.written").exists()


REFUSED = (
    *("parent's environment", "first process's environment", "own environment file", "parent's memory"),
    *("parent's memory by system call", "parent's descriptors", "debugging the parent", "service account token"),
    *("token by a program", "token by a link", "capabilities", "writing a file", "core files"),
)


def test_each_way_out_is_refused(user: str, token_file: Path) -> None:
    found = run_job(user, token_file)
    assert [name for name in REFUSED if not found[name].startswith("refused")] == []
    if landlock.abi_version() >= 6:
        assert found["signalling the parent"].startswith("refused")
        assert found["an abstract socket"].startswith("refused")


def test_the_child_has_only_the_variables_that_are_listed(user: str, token_file: Path) -> None:
    known = {"PATH", "LANG", "TZ", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "OPENBLAS_NUM_THREADS"}
    known |= {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "no_proxy"}
    assert set(json.loads(run_job(user, token_file)["environment"])) <= known
