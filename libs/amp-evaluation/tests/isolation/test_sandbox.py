"""The child process itself: how it starts, what happens when it dies, and that it never outlives its parent."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from loopback.kernel import WITHOUT_LANDLOCK

from amp_evaluation.errors import ConfigError
from amp_evaluation.isolation import Remote, Sandbox
from amp_evaluation.isolation._process import ChildLost, ChildProcess
from amp_evaluation.isolation.confine import FIXED_VARIABLES, child_environment, readable_paths
from amp_evaluation.isolation.protocol import Failed, Scored
from amp_evaluation.trace.models import Trace

GOOD = "def f(trace: Trace): return 1"


def load(sandbox: Sandbox, source: str = GOOD, name: str = "custom") -> Remote:
    return sandbox.load("code", source, name=name, config={}, level=None)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_running(pid)


def test_no_process_is_started_before_a_source_needs_one() -> None:
    with Sandbox() as sandbox:
        assert sandbox.child_pid is None


def test_one_child_serves_all_and_ends_when_it_is_closed() -> None:
    with Sandbox() as sandbox:
        first, second = load(sandbox), load(sandbox)
        pid = sandbox.child_pid
        assert pid is not None
        for remote in (first, second):
            assert isinstance(remote.ask(Trace("t"), Trace("t")), Scored)
        assert sandbox.child_pid == pid
    assert wait_until_gone(pid) and sandbox.child_pid is None
    sandbox.close()


def test_a_prepared_child_is_the_one_that_is_used() -> None:
    with Sandbox() as sandbox:
        sandbox.prepare()
        pid = sandbox.child_pid
        sandbox.prepare()
        load(sandbox)
        assert sandbox.child_pid == pid


def test_a_child_that_died_between_two_items_is_replaced_without_blame() -> None:
    with Sandbox() as sandbox:
        remote = load(sandbox)
        pid = sandbox.child_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert wait_until_gone(pid)
        assert isinstance(remote.ask(Trace("t"), Trace("t")), Scored)
        assert remote.losses_in_a_row == 0


def test_what_cannot_be_loaded_again_is_stopped_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Sandbox() as sandbox:
        sandbox.prepare()
        first = sandbox.child_pid
        assert first is not None
        # each child is another process: by its id a source finds out that it is loaded again
        once = load(sandbox, f"import os\nassert os.getpid() == {first}, 'again'\n{GOOD}", "once")
        killer = load(sandbox, f"import os\nif os.getpid() != {first}: os._exit(3)\n{GOOD}", "killer")
        other = load(sandbox, name="other")
        os.kill(first, signal.SIGKILL)
        assert wait_until_gone(first)
        assert isinstance(other.ask(Trace("t"), Trace("t")), Scored)
        for stopped in (once, killer):
            answer = stopped.ask(Trace("t"), Trace("t"))
            assert isinstance(answer, Failed) and "could not be loaded again" in answer.reason
            assert stopped.read("x") == answer
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert ["'once'" in errors[0], "'killer'" in errors[1], len(errors)] == [True, True, 2]


COUNTING = """
import amp_evaluation.isolation.child as child
arrivals, real = [], child.unpack_trace
def counting(*packed):
    arrivals.append(1)
    return real(*packed)
child.unpack_trace = counting
def f(trace: Trace): return EvalResult(1, str(len(arrivals)))
"""


def test_the_trace_travels_once_for_all_evaluators() -> None:
    """Evaluators of one list share the child: that is documented, and how this one counts."""
    reading = "import custom_evaluator_0\ndef g(trace: Trace): return custom_evaluator_0.f(trace)"
    with Sandbox() as sandbox:
        remotes = [load(sandbox, COUNTING), load(sandbox, reading), load(sandbox, reading)]
        said = [remote.ask(trace, trace) for trace in (Trace("a"), Trace("b")) for remote in remotes]
    assert [answer.explanation for answer in said if isinstance(answer, Scored)] == ["1", "1", "1", "2", "2", "2"]


WRITING = """
import os, stat
def say(what):
    for number in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode): os.write(number, len(what).to_bytes(8, "big") + what)
        except OSError:
            pass
"""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        pytest.param(b"{}", "it sent what is no reply", id="an object of no kind"),
        pytest.param(b'{"type":"ready","landlock_abi":1}', "gave no sensible answer", id="a reply to something else"),
    ],
)
def test_a_child_that_talks_nonsense_gives_a_skip(said: bytes, reason: str) -> None:
    with Sandbox() as sandbox:
        answer = load(sandbox, WRITING + f"def f(trace: Trace): say({said!r})").ask(Trace("t"), Trace("t"))
    assert isinstance(answer, Failed) and reason in answer.reason


def test_a_reply_without_end_is_refused_before_it_is_read() -> None:
    endless = WRITING.replace('len(what).to_bytes(8, "big")', "b'\\xff' * 8")
    with Sandbox() as sandbox:
        answer = load(sandbox, endless + "def f(trace: Trace): say(b'x')").ask(Trace("t"), Trace("t"))
    assert isinstance(answer, Failed) and "its reply is larger than 16 MB" in answer.reason


@pytest.mark.parametrize("pause", ["", "import time; time.sleep(0.2)"], ids=["at once", "later"])
def test_an_answer_that_nobody_asked_for_is_never_taken_for_another(pause: str) -> None:
    forged = b'{"type":"scored","score":0.25}'
    source = WRITING + f"def f(trace: Trace):\n    say({forged!r})\n    {pause}\n    return 1"
    with Sandbox() as sandbox:
        forger, other = load(sandbox, source), load(sandbox)
        forger.ask(Trace("t"), Trace("t"))
        time.sleep(0.5)
        child = sandbox.child_pid
        assert other.ask(Trace("t"), Trace("t")) == Scored(score=1.0, passed=True)
        assert sandbox.child_pid != child  # the one that spoke without being asked has been replaced


def test_nonsense_while_a_source_is_loaded_refuses_it() -> None:
    source = WRITING + 'say(b\'{"type":"ready","landlock_abi":1}\')\n' + GOOD
    with Sandbox() as sandbox, pytest.raises(ConfigError, match="no sensible answer"):
        load(sandbox, source)


def test_a_large_trace_and_a_large_prompt_pass() -> None:
    with Sandbox() as sandbox:
        remote = load(sandbox, "def f(trace: Trace): return EvalResult(1, trace.output)")
        trace = Trace("t", output="x" * 5_000_000)
        answer = remote.ask(trace, trace)
        assert isinstance(answer, Scored) and answer.explanation == trace.output


def test_a_child_that_does_not_start_is_a_config_error() -> None:
    script = "import sys; sys.executable = '/bin/false'\n" + PARENT
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert "ConfigError: the process for custom code did not start: it ended with exit code 1" in done.stderr


def test_printing_without_end_is_cut_short(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), Sandbox() as sandbox:
        many = "def f(trace: Trace):\n    for n in range(10_100): print(n)\n    return 1"
        load(sandbox, many).ask(Trace("t"), Trace("t"))
    lines = [record.getMessage() for record in caplog.records if record.name == "amp_evaluation.custom"]
    assert lines[-2:] == ["9999", "more than 10000 lines were printed: the rest is left out"]


def test_a_child_that_closes_its_output_still_answers() -> None:
    with Sandbox() as sandbox:
        remote = load(sandbox, "import os\ndef f(trace: Trace):\n    os.close(1); os.close(2)\n    return 1")
        assert isinstance(remote.ask(Trace("t"), Trace("t")), Scored)


def test_an_exception_in_the_parent_kills_the_child() -> None:
    child = ChildProcess(256)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    child.wait_for_greeting(limit_s=60, resident_limit=1 << 40)
    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            child.call(b"", limit_s=30, resident_limit=1 << 40)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert not child.is_alive
    with pytest.raises((ChildLost, OSError, ValueError)):
        child.call(b"x", limit_s=1, resident_limit=1 << 40)


PARENT = """
import os, signal, sys, time
from amp_evaluation.isolation import Sandbox
from amp_evaluation.trace.models import Trace
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
sandbox = Sandbox(time_limit_s=60)
remote = sandbox.load("code", "def f(trace: Trace):\\n    while True: pass", name="x", config={}, level=None)
print(sandbox.child_pid, flush=True)
remote.ask(Trace("t"), Trace("t"))
"""


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)], ids=["SIGTERM ends it politely", "SIGKILL kills it"]
)
def test_the_parent_ends_at_once_and_takes_a_busy_child_with_it(sent: signal.Signals, code: int) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child_pid = int(parent.stdout.readline())
        time.sleep(0.3)
        began = time.monotonic()
        parent.send_signal(sent)
        assert parent.wait(20) == code
        assert time.monotonic() - began < 3  # a call in flight would be waited for a minute
        assert wait_until_gone(child_pid)


def test_the_parent_cannot_be_dumped_any_more_once_a_child_runs() -> None:
    script = PARENT.replace(
        "remote.ask", "print(__import__('ctypes').CDLL(None).prctl(3, 0, 0, 0, 0)); 0 and remote.ask"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split()[1] == "0"


def test_without_landlock_one_warning_says_what_is_not_protected() -> None:
    script = (
        WITHOUT_LANDLOCK
        + "hide_landlock()\nimport logging; logging.basicConfig(format='%(levelname)s %(message)s')\n"
        + PARENT.replace("while True: pass", "return EvalResult(1, str(len(open('/etc/hosts').read()) > 0))")
        + "print(remote.ask(Trace('t'), Trace('t')).explanation)\nos.kill(sandbox.child_pid, 9); time.sleep(0.2)\n"
        + "print(remote.ask(Trace('t'), Trace('t')).explanation)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split()[1:] == ["True", "True"], done.stderr
    warnings = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert len(warnings) == 1 and "no Landlock" in warnings[0] and "mounted secrets" in warnings[0]


def test_only_what_is_listed_passes_and_empty_is_unset() -> None:
    given = {"PATH": "/bin", "TZ": "", "HTTPS_PROXY": "http://p", "IDP_CLIENT_SECRET": "s", "PYTHONPATH": "/x"}
    assert child_environment(given) == {"PATH": "/bin", "HTTPS_PROXY": "http://p", **FIXED_VARIABLES}


def test_a_directory_of_certificates_gives_its_certificates_only(tmp_path: Path) -> None:
    for name in ("ca.crt", "token", "a1b2.0"):
        (tmp_path / name).write_text("x")
    granted = set(readable_paths({"SSL_CERT_FILE": str(tmp_path / "ca.crt"), "REQUESTS_CA_BUNDLE": str(tmp_path)}))
    assert {tmp_path / "ca.crt", tmp_path / "a1b2.0"} <= granted
    assert not {tmp_path, tmp_path / "token", Path("/"), Path("/proc"), Path("/etc"), Path("/usr")} & granted
    assert set(readable_paths({"SSL_CERT_FILE": str(tmp_path / "absent")})) < granted | {tmp_path / "absent"}


def test_an_ended_child_uses_no_memory_and_a_missing_interpreter_leaves_no_descriptor_open() -> None:
    child = ChildProcess(256)
    assert child.resident_bytes > 0
    child.kill()
    child.kill()
    assert child.resident_bytes == 0
    script = (
        "import os, sys; sys.executable = '/does/not/exist'\n"
        "from amp_evaluation.isolation._process import ChildProcess\n"
        "before = os.listdir('/proc/self/fd')\n"
        "try: ChildProcess(256)\n"
        "except FileNotFoundError: print(len(os.listdir('/proc/self/fd')) - len(before))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "0"


def test_a_child_that_greets_with_something_else_is_not_trusted() -> None:
    said = b'{"type":"failed","reason":"x"}'
    boot = f"import os, sys; os.write(int(sys.argv[1]), {len(said).to_bytes(8, 'big') + said!r})"
    script = (
        "import amp_evaluation.isolation._process as process\n"
        "from amp_evaluation.isolation import Sandbox\n"
        f"process._BOOT = {boot!r}\n"
        "try: Sandbox().load('code', 'x', name='x', config={}, level=None)\n"
        "except ValueError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert "did not start: it gave no sensible answer" in done.stdout, done.stderr


SABOTAGE = {
    "a builtin taken away": "import builtins; builtins.len = None",
    "modules thrown out": "import sys; sys.modules.clear()",
    "pickle taken away": "import pickle; pickle.loads = None",
    "a thread that ends the process later": (
        "import os, threading; threading.Timer(0.05, os._exit, (3,)).start()\n    import time; time.sleep(0.04)"
    ),
    "an answer that nobody asked for": (
        "import os\n    for d in range(3, 9):\n        try: os.write(d, b'x')\n        except OSError: pass"
    ),
}


@pytest.mark.parametrize("body", SABOTAGE.values(), ids=SABOTAGE.keys())
def test_what_one_evaluator_leaves_behind_costs_no_other_its_score(body: str) -> None:
    source = f"def f(trace: Trace):\n    {body}\n    return 1"
    with Sandbox() as sandbox:
        bad, good = load(sandbox, source), load(sandbox)
        for number in range(4):
            trace = Trace(f"t{number}")
            bad.ask(trace, trace)
            assert isinstance(good.ask(trace, trace), Scored)
        assert good.stopped is None and good.losses_in_a_row == 0


def test_what_dies_in_a_fresh_child_too_is_its_own_fault() -> None:
    with Sandbox() as sandbox:
        good, bad = load(sandbox), load(sandbox, "import os\ndef f(trace: Trace):\n    os._exit(4)")
        trace = Trace("t")
        assert isinstance(good.ask(trace, trace), Scored)
        lost = bad.ask(trace, trace)
        assert isinstance(lost, Failed) and "exit code 4" in lost.reason
        assert (bad.losses_in_a_row, good.losses_in_a_row) == (1, 0)
