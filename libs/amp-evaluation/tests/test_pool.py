"""The worker pool: bounds, order of service, failures, and that nothing keeps a process alive."""

import gc
import subprocess
import sys
import threading
import time
import weakref

import pytest

from amp_evaluation._pool import WorkerPool, released_slot


class Gauge:
    """Counts calls at once, and holds them until it is opened."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = self.most = self.total = 0
        self.door = threading.Event()

    def __call__(self) -> None:
        with self.lock:
            self.now += 1
            self.total += 1
            self.most = max(self.most, self.now)
        self.door.wait(10)
        with self.lock:
            self.now -= 1


def until(condition, seconds: float = 5.0) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.002)


def test_as_many_as_allowed_run_at_once_and_never_more() -> None:
    gauge = Gauge()
    pool = WorkerPool(4, backlog=100)
    for _ in range(40):
        pool.submit(gauge)
    until(lambda: gauge.now == 4)
    assert (pool.in_flight, pool.unfinished) == (4, 40)
    gauge.door.set()
    pool.drain()
    assert (gauge.most, gauge.total, pool.in_flight, pool.unfinished) == (4, 40, 0, 0)
    pool.stop()


def test_submit_waits_while_the_queue_is_full_and_ticks_meanwhile() -> None:
    gauge = Gauge()
    ticks: list[int] = []
    pool = WorkerPool(1, backlog=1, on_tick=lambda: (ticks.append(pool.unfinished), gauge.door.set())[0])
    for _ in range(3):
        pool.submit(gauge)
    assert ticks  # the door was opened by the tick, else the third call had no room
    pool.drain()
    assert gauge.total == 3


def test_threads_are_made_only_for_work_that_waits() -> None:
    pool = WorkerPool(8)
    before = threading.active_count()
    for _ in range(20):
        pool.submit(lambda: None)
        pool.drain()
    assert threading.active_count() - before <= 2
    pool.stop()
    until(lambda: threading.active_count() <= before)


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(3)], ids=["an exception", "sys.exit"])
def test_what_a_call_raises_comes_out_in_the_callers_thread(error: BaseException) -> None:
    def fail() -> None:
        raise error

    pool = WorkerPool(2)
    pool.submit(fail)
    with pytest.raises(type(error)):
        pool.drain()


def test_a_call_that_only_waits_lets_another_run() -> None:
    gauge = Gauge()
    waiting = threading.Event()

    def patient() -> None:
        with released_slot():
            waiting.set()
            gauge.door.wait(10)
        gauge()

    pool = WorkerPool(2, backlog=10)
    pool.submit(patient)
    pool.submit(patient)
    assert waiting.wait(5)
    for _ in range(4):
        pool.submit(gauge)
    until(lambda: gauge.now == 2)
    gauge.door.set()
    pool.drain()
    assert (gauge.most, gauge.total) == (2, 6)


def test_a_call_takes_its_slot_back_only_when_one_is_free() -> None:
    order: list[str] = []
    started, go = threading.Event(), threading.Event()

    def patient() -> None:
        with released_slot():
            started.wait(5)
        order.append("patient")

    def busy() -> None:
        started.set()
        go.wait(5)
        order.append("busy")

    pool = WorkerPool(1, backlog=10)
    pool.submit(patient)
    pool.submit(busy)
    pool.submit(lambda: order.append("last"))
    assert started.wait(5)
    until(lambda: pool._returning == 1)
    go.set()
    pool.drain()
    assert order == ["busy", "patient", "last"]


def test_outside_a_pool_a_released_slot_is_nothing() -> None:
    with released_slot():
        pass


def test_an_idle_worker_holds_nothing_of_its_last_call() -> None:
    class Page:
        pass

    page = Page()
    gone = weakref.ref(page)
    pool = WorkerPool(1)

    def call(held: Page = page) -> None:
        assert held

    pool.submit(call)
    del call, page
    pool.drain()
    gc.collect()
    assert gone() is None
    pool.stop()


def test_calls_in_flight_never_keep_the_process_alive() -> None:
    code = """
import sys, time
from amp_evaluation._pool import WorkerPool
pool = WorkerPool(4)
for _ in range(6): pool.submit(lambda: time.sleep(60))
sys.exit(7)
"""
    begin = time.monotonic()
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 7
    assert time.monotonic() - begin < 10
