"""nodes.limits: work in threads that are used again, and that no exit, no fork and no other call waits for."""

import os
import threading
from contextvars import ContextVar
from queue import SimpleQueue

import pytest

from nodes.limits import MOST_IDLE, OverTime, idle, in_thread, limited

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


def test_a_thread_is_used_again_and_keeps_nothing_of_the_call_before():
    def named() -> tuple[str, int]:
        WHO.set("left behind")
        return threading.current_thread().name, threading.get_ident()

    seen = {limited(named, 30) for _ in range(20)}
    assert len(seen) < 20
    assert limited(WHO.get, 30) == "nobody"
    WHO.set("ann")
    assert limited(WHO.get, 30) == "ann"


def test_a_call_that_hangs_holds_up_no_other():
    blocked = threading.Event()
    try:
        assert all(isinstance(limited(blocked.wait, 0.01), OverTime) for _ in range(3))
        assert limited(lambda: "at once", 30) == "at once"
    finally:
        blocked.set()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), ValueError("no")])
def test_what_a_call_raises_ends_no_thread(error: BaseException):
    def fail() -> None:
        raise error

    assert limited(fail, 30) is error
    assert limited(lambda: 1, 30) == 1


def test_not_more_threads_wait_than_are_kept():
    ended: SimpleQueue[object] = SimpleQueue()
    barrier = threading.Barrier(MOST_IDLE + 8)
    for _ in range(MOST_IDLE + 8):
        in_thread(barrier.wait, ended.put)
    assert all(isinstance(ended.get(timeout=30), int) for _ in range(MOST_IDLE + 8))
    assert len(idle) <= MOST_IDLE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_starts_threads_of_its_own():
    limited(lambda: None, 30)
    if not (child := os.fork()):
        os._exit(0 if limited(lambda: "done", 30) == "done" else 1)
    assert os.waitpid(child, 0)[1] == 0
