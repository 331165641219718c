"""A small discrete-event model of one spike on one Tomcat: docs/connections.md, section 8.

All users begin in one moment and are alike, so the model moves numbers of users, not users: from
outside (their SYN dropped) into the accept queue, to an accepted connection, to a worker, to their
answer, and, when their connection closes, out. Times are in seconds since the start.
"""

import heapq
from dataclasses import dataclass, field
from enum import IntEnum

# k6's dialer gives up after 30 s (section 3).
DIAL_TIMEOUT_SECONDS = 30.0
# Linux: the kernel sends a SYN again after a second, `tcp_syn_linear_timeouts` + 1 times, and then
# after twice the time of before; and its timers run late, 19 s at 19.4 s (section 3).
_LATE = 1.02
# Users at a time whose handshake the kernel can begin and not finish, beyond those of the accept
# queue's own length: SYN cookies. Measured: 7 of 7 on a limit of 1, 104 and 135 on one of 100.
_COOKIES = 32


@dataclass(frozen=True)
class Server:
    """A Tomcat as far as a spike meets it; None: unlimited.

    `accept_queue_limit`: min(accept-count, net.core.somaxconn); the kernel queues one more.
    `idle_seconds`: how long it keeps a connection without a request; 0: it closes each.
    """

    threads: int | None
    max_connections: int
    accept_queue_limit: int
    idle_seconds: float
    worker_queue_limit: int | None = None

    @property
    def capacity(self) -> int:
        """Connections that are established at most: section 1."""
        return self.max_connections + self.accept_queue_limit + 1


@dataclass(frozen=True)
class Spike:
    """`users` begin at once, with a request each that takes `service_seconds` of a worker.

    `timeout_seconds`: after which a user gives up. `syn_linear_timeouts`: the client's kernel's;
    0 before Linux 6.5.
    """

    users: int
    service_seconds: float
    timeout_seconds: float
    keep_alive: bool = True
    syn_linear_timeouts: int = 4

    def retries(self) -> list[float]:
        """When a user whose SYN was dropped tries again: 1, 2, 3, 4, 5, 7, 11, 19 s."""
        end = min(DIAL_TIMEOUT_SECONDS, self.timeout_seconds)
        at, wait, times = 0.0, 1.0, []
        while (at + wait) * _LATE < end:
            at += wait
            times.append(at * _LATE)
            if len(times) > self.syn_linear_timeouts:
                wait *= 2
        return times


@dataclass
class Outcome:
    """What came of it. `waves`: (seconds, good answers); `held_seconds`: from the start until the
    first connection that was there at the peak left; `busy_peak`, `waiting_peak`: the most workers
    at work, and the most requests that waited for one; `busy_seconds`: from the start until the
    first of so many workers had nothing to do."""

    established_peak: int = 0
    busy_peak: int = 0
    waiting_peak: int = 0
    busy_seconds: float | None = None
    held_seconds: float = 0.0
    good: int = 0
    rejected: int = 0
    unanswered: int = 0
    outside: bool = False
    waves: list[tuple[float, int]] = field(default_factory=list)

    @property
    def last_answer_seconds(self) -> float | None:
        return self.waves[-1][0] if self.waves else None


class _Kind(IntEnum):
    """Of events; of one moment the first of these comes first."""

    ANSWERED = 0
    IDLE_OVER = 1
    RETRY = 2


def simulate(server: Server, spike: Spike, half_open: bool = False) -> Outcome:
    """The spike until its users give up.

    half_open: some of those outside are not dropped but half-open, and come in as soon as there is
    a place, not only at their next SYN. Which of the two it is, a race decides (section 3).
    """
    return _Simulation(server, spike, half_open).run()


class _Simulation:
    def __init__(self, server: Server, spike: Spike, half_open: bool) -> None:
        self._server = server
        self._spike = spike
        self._threads = spike.users if server.threads is None else server.threads
        limit = server.worker_queue_limit
        self._worker_queue_limit = spike.users if limit is None else limit
        self._most_half_open = 2 * (server.accept_queue_limit + 1) + _COOKIES if half_open else 0
        self._idle = server.idle_seconds if spike.keep_alive else 0.0
        self._outcome = Outcome()
        self._events: list[tuple[float, _Kind, int]] = []
        # Each user is in one of these, or done.
        self._dropped = spike.users
        self._half_open = 0
        self._queued = 0
        self._accepted = 0
        self._waiting = 0
        self._busy = 0

    def run(self) -> Outcome:
        self._dropped -= self._enter(self._dropped, 0.0)
        self._become_half_open()
        outcome = self._outcome
        outcome.outside = self._dropped + self._half_open > 0
        outcome.held_seconds = self._spike.timeout_seconds
        self._note_peaks()
        for at in self._spike.retries():
            self._plan(at, _Kind.RETRY, 0)
        while self._events and self._events[0][0] <= self._spike.timeout_seconds:
            at = self._events[0][0]
            self._happen(*heapq.heappop(self._events))
            self._note_peaks()
            if self._busy < outcome.busy_peak and outcome.busy_seconds is None:
                outcome.busy_seconds = at
        outcome.unanswered = self._spike.users - outcome.good - outcome.rejected
        return outcome

    def _happen(self, at: float, kind: _Kind, users: int) -> None:
        if kind is _Kind.RETRY:
            entered = self._enter(self._dropped, at)
            self._dropped -= entered
            if entered:
                self._become_half_open()
            return
        if kind is _Kind.ANSWERED:
            self._answer(at, users)
            if self._idle > 0:
                self._plan(at + self._idle, _Kind.IDLE_OVER, users)
                return
        self._outcome.held_seconds = min(self._outcome.held_seconds, at)
        self._accepted -= users
        self._accept(at)
        self._half_open -= self._enter(self._half_open, at)

    def _answer(self, at: float, users: int) -> None:
        """They have their answers; their workers turn to those who wait."""
        waves = self._outcome.waves
        before = waves.pop()[1] if waves and waves[-1][0] == at else 0
        waves.append((at, before + users))
        self._outcome.good += users
        next_ones = min(self._waiting, users)
        self._waiting -= next_ones
        self._busy -= users
        self._work(next_ones, at)

    def _enter(self, users: int, at: float) -> int:
        """As many of these as there is room for are established; how many that were."""
        entered = 0
        while entered < users:
            room = self._server.capacity - self._accepted - self._queued
            if room <= 0:
                break
            now = min(room, users - entered)
            self._queued += now
            entered += now
            # It turns some away when its worker queue is full, and so makes room for more.
            self._accept(at)
        return entered

    def _accept(self, at: float) -> None:
        """Tomcat accepts while it may, reads the requests and hands them to its workers."""
        while users := min(self._queued, self._server.max_connections - self._accepted):
            self._queued -= users
            self._accepted += users
            started = min(users, self._threads - self._busy)
            self._work(started, at)
            waiting = min(users - started, self._worker_queue_limit - self._waiting)
            self._waiting += waiting
            rejected = users - started - waiting
            self._outcome.rejected += rejected
            self._accepted -= rejected

    def _work(self, users: int, at: float) -> None:
        if users:
            self._busy += users
            self._plan(at + self._spike.service_seconds, _Kind.ANSWERED, users)

    def _become_half_open(self) -> None:
        users = min(self._dropped, self._most_half_open)
        self._dropped -= users
        self._half_open += users

    def _note_peaks(self) -> None:
        established = self._accepted + self._queued
        self._outcome.established_peak = max(self._outcome.established_peak, established)
        self._outcome.busy_peak = max(self._outcome.busy_peak, self._busy)
        self._outcome.waiting_peak = max(self._outcome.waiting_peak, self._waiting)

    def _plan(self, at: float, kind: _Kind, users: int) -> None:
        heapq.heappush(self._events, (at, kind, users))
