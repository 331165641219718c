"""Wakes users up when their requests are due. gevent counts in whole milliseconds, so it wakes them
1 ms late in the mean, and all those of a millisecond together; Linux' timerfd is finer."""

import ctypes
import heapq
import itertools
import os
import time
from typing import Any

import gevent
from gevent.hub import Waiter

_CLOCK_MONOTONIC = 1  # that of time.perf_counter on Linux
_ABSOLUTE = 1


class _Itimerspec(ctypes.Structure):
    """See timerfd_settime(2)."""

    _fields_ = tuple(
        (name, ctypes.c_long) for name in ("every_s", "every_ns", "first_s", "first_ns")
    )


class Alarm:
    """One of a process, made by the first who sleeps (after Locust has forked)."""

    def __init__(self) -> None:
        self._sleepers: list[tuple[float, int, Waiter]] = []
        self._numbers = itertools.count()
        self._libc = ctypes.CDLL(None, use_errno=True)
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self._timer = self._libc.timerfd_create(_CLOCK_MONOTONIC, flags)
        if self._timer < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._watcher: Any = gevent.get_hub().loop.io(self._timer, 1)
        self._watcher.start(self._ring)

    def sleep(self, until: float) -> None:
        """Sleeps until this moment of time.perf_counter."""
        waiter = Waiter()
        sleeper = (until, next(self._numbers), waiter)
        heapq.heappush(self._sleepers, sleeper)
        if self._sleepers[0] is sleeper:
            self._set(until)
        waiter.get()

    def _set(self, until: float) -> None:
        whole = int(until)
        # 0 would switch it off.
        when = _Itimerspec(0, 0, whole, max(1, int((until - whole) * 1e9)))
        self._libc.timerfd_settime(self._timer, _ABSOLUTE, ctypes.byref(when), None)

    def _ring(self) -> None:
        """In gevent's hub."""
        try:
            os.read(self._timer, 8)
        except BlockingIOError:
            return
        while self._sleepers and self._sleepers[0][0] <= time.perf_counter():
            # One who was stopped meanwhile takes no notice.
            heapq.heappop(self._sleepers)[2].switch(None)
        if self._sleepers:
            self._set(self._sleepers[0][0])


_alarm: Alarm | None = None
_finer = True  # than gevent.sleep; not where there is no timerfd


def sleep(until: float) -> None:
    """Sleeps until this moment of time.perf_counter, or lets others have a turn if it has gone."""
    global _alarm, _finer  # noqa: PLW0603  # one for all users of a process
    seconds = until - time.perf_counter()
    if seconds > 0 and _finer and _alarm is None:
        try:
            _alarm = Alarm()
        except (OSError, AttributeError):
            _finer = False
    if seconds > 0 and _alarm is not None:
        _alarm.sleep(until)
    else:
        gevent.sleep(max(0.0, seconds))
