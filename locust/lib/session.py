"""What happens once a process: its plan, its listeners, its verdict. Read by every locustfile here.

In a distributed run the master (or the only process) writes the phases and judges; workers are
told what to do and send it their tallies. From the web page a process has several runs.
"""

import logging
import os
import signal
import sys
import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar, cast

import gevent
from gevent.event import Event
from locust import __version__, events
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from lib import hosts, lateness, otel, series
from lib.client import watch_requests
from lib.events import Region, Regions
from lib.options import add_options
from lib.plan import Phase, Plan, PlanError, read_plan
from lib.slo import MISSED, Objective, missed, objectives_by_phase, spare_seconds
from lib.statuses import judge_statuses
from lib.stretch import Stretch
from lib.summary import write_summary
from lib.tally import Tally, bucket_of
from lib.timing import Timing

_MESSAGE = "spikelab"
_log = logging.getLogger("spikelab")
T = TypeVar("T")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Session:
    """State of this process, and of the run that is going or was last."""

    def __init__(self, script: str, plan: Plan) -> None:
        self.script = script
        self.plan = plan
        self.testid = self._first_testid = otel.set_defaults(os.environ, plan.testid)
        self.stretch = Stretch(script)
        self.stretch_since = 0.0  # seconds of time.perf_counter: when this process was told of it
        self.tallies: defaultdict[str, Tally] = defaultdict(Tally)
        self._objectives: dict[str, list[Objective]] = {}  # by phase, or a run by hand's
        self.regions = Regions(plan.events_url, plan.events_database)
        self.finished = False  # the shape says when the last phase has ended
        self._runs = 0
        self._running = False
        self._begun: list[Region] = []  # the run's phases so far
        self.phase: Phase | None = None  # the plan's, while it lasts
        self._lost_workers: set[str] = set()
        self.gave_up = False
        self._environment: Environment
        self._ready = Event()  # Locust has started; a worker may be told to begin before that
        self._changed = Event()
        self._warned = False

    # What users and the shape ask for

    @property
    def options(self) -> Namespace:
        """Locust's command line, or what the web page changed of it."""
        return cast(Namespace, self._environment.parsed_options)

    @property
    def _runner(self) -> Any:
        return self._environment.runner

    @property
    def throughput(self) -> float:
        """Requests a second of one user; 0 for a closed loop."""
        return float(self.options.throughput or 0)

    def enter(self, phase: Phase | None) -> bool:
        """The phase that it is time for, None between and after phases; False if it was before."""
        if phase is self.phase:
            return False
        self._begin_run()
        self.phase = phase
        if phase is None:
            self._end_phase()
        else:
            self._begin_phase(phase.name, phase.kind, phase.text, phase.duration_seconds)
            spare = spare_seconds(self._objectives[phase.name])
            self._tell(Stretch.of(phase, self.throughput or 1, time.time(), spare))
        return True

    def give_up(self, why: str) -> None:
        """Ends the run, with exit code 1: something is missing without which it means nothing."""
        if self.gave_up:
            return
        self.gave_up = True
        _log.error("%s", why)
        # Counts as a mistake in the script does; a worker tells its master.
        events.user_error.fire(user_instance=None, exception=RuntimeError(why), tb=None)
        stays = not self.options.headless and not isinstance(self._runner, WorkerRunner)
        gevent.spawn(self._runner.stop if stays else self._runner.quit)

    # Locust's events

    def listen(self) -> None:
        events.init_command_line_parser.add_listener(add_options)
        events.init.add_listener(self._on_init)
        events.test_start.add_listener(self._on_test_start)
        events.request.add_listener(self._on_request)
        events.report_to_master.add_listener(self._on_report)
        events.worker_report.add_listener(self._on_worker_report)
        events.test_stop.add_listener(self._on_test_stop)
        events.quitting.add_listener(self._on_quitting)

    def _on_init(self, environment: Environment, runner: Any, **_: Any) -> None:
        self._environment = environment
        environment.host = environment.host or self.plan.url
        self._objectives = _or_exit(self._read_objectives)
        self._push_response_time = series.response_times()
        if not isinstance(runner, MasterRunner):
            runner.register_message(_MESSAGE, self._on_told)
            gevent.spawn(lateness.watch, self._on_tick)
        if not isinstance(runner, WorkerRunner):
            gevent.spawn(self._attend)
            if "LAB_PLAN" not in os.environ:
                series.add_gauges(self._offered_rate, lambda: self.regions.pending)
            if self.plan.phases:
                # While a shape runs, Locust has no handler of its own: end as after Ctrl-C.
                signal.signal(signal.SIGTERM, signal.default_int_handler)
        if self.plan.phases and not environment.stop_timeout:
            # The shape lets the last requests of a phase end; a failed one ends by its timeout.
            environment.stop_timeout = self.plan.timeout_seconds
        self._ready.set()

    def _on_test_start(self, **_: Any) -> None:
        self._ready.wait()
        self._begin_run()
        if isinstance(self._runner, WorkerRunner):
            self._follow(vars(self.options)[_MESSAGE])
            return
        if self.plan.phases:
            return
        limit = self.options.run_time
        text = f"{self.options.num_users or 1} users"
        self._begin_phase(self.script, "users", text, float(limit) if limit else None)
        period = 1 / self.throughput if self.throughput else 0.0
        self._tell(Stretch(self.script, period_seconds=period, spread_seconds=period))

    def _on_request(
        self,
        response_time: float | None,
        response_length: int | None,
        response: Any = None,
        context: Any = None,
        exception: BaseException | None = None,
        start_time: float | None = None,
        **_: Any,
    ) -> None:
        context, seconds = context or {}, (response_time or 0) / 1000
        stretch: Stretch = context.get("stretch", self.stretch)
        tally = self.tallies[stretch.name]
        started = time.time() - seconds if start_time is None else start_time
        ended = started + seconds
        tally.when(started, ended, first=context.get("first", False))
        if context.get("late") is not None:
            tally.late_starts[bucket_of(context["late"])] += 1
        if exception is None:
            tally.completed_after += ended > stretch.ends_at
            tally.late_answers += ended > stretch.late_from
            timing: Timing | None = context.get("timing")
            if timing is not None:
                seconds = timing.seconds
            tally.answer(seconds, response_length or 0, timing)
            self._push_response_time(seconds, stretch.name)
            for objective in self._objectives.get(stretch.name, ()):
                if objective.is_missed_by(seconds):
                    tally.slow[objective.text] += 1
            return
        status = getattr(response, "status_code", 0) or 0
        tally.completed_after += status > 0 and ended > stretch.ends_at
        tally.failure(status, exception)
        if status:
            tally.keep_body(status, lambda: cast(str | None, response.text))

    def _on_tick(self, due: float, late: float) -> None:
        """Of this process's own clock, while it makes load."""
        if self._running and 0 <= due - self.stretch_since < self.stretch.duration_seconds:
            self.tallies[self.stretch.name].late_ticks[bucket_of(late)] += 1

    def _on_report(self, data: dict[str, Any], **_: Any) -> None:
        data[_MESSAGE] = {name: tally.to_message() for name, tally in self.tallies.items()}
        self.tallies.clear()

    def _on_worker_report(self, data: dict[str, Any], **_: Any) -> None:
        for name, message in data.get(_MESSAGE, {}).items():
            self.tallies[name].add(Tally.from_message(message))

    def _on_test_stop(self, **_: Any) -> None:
        self._running = False
        self.phase = None
        if not isinstance(self._runner, WorkerRunner):
            self._end_phase()

    def _on_quitting(self, environment: Environment, **_: Any) -> None:
        worker = isinstance(self._runner, WorkerRunner)
        if not worker:
            self._runner.quit()  # after an interrupt workers have not reported yet
            if not self.regions.write(_now_ms()):
                problem = self.regions.problem
                _log.warning("%d phases not annotated: %s", self.regions.pending, problem)
        # A mistake in the script keeps Locust's own exit code.
        if (self._runs or self.options.headless) and not self._runner.exceptions:
            environment.process_exit_code = 0 if worker else self._judge()

    # The beginning of a run, of a phase, and their end

    def _begin_run(self) -> None:
        """Called by whatever comes first: a plan's first phase, or the start of Locust's test."""
        if self._running:
            return
        self._running = True
        self._runs += 1
        self.tallies.clear()
        self.finished = not self.plan.phases
        self._begun.clear()
        self._lost_workers.clear()
        self.gave_up = False
        try:
            self._objectives = self._read_objectives()  # the web page may have changed them
        except PlanError as error:
            self.give_up(str(error))
        if not isinstance(self._runner, WorkerRunner):
            again = f"-{self._runs}" if self._runs > 1 else ""
            self._rename(self._first_testid + again)
            _log.info("testid %s", self.testid)

    def _rename(self, testid: str) -> None:
        if testid != self.testid:
            self.testid = testid
            series.rename(testid)

    def _begin_phase(self, name: str, kind: str, text: str, seconds: float | None) -> None:
        now_ms = _now_ms()
        planned_ms = None if seconds is None else now_ms + round(seconds * 1000)
        region = Region(self.testid, name, kind, text, now_ms, planned_ms)
        self._begun.append(region)
        self.regions.begin(region)
        self._changed.set()

    def _end_phase(self) -> None:
        self.regions.end(_now_ms())
        self._changed.set()

    # Between the master and its workers, or within the only process

    def _tell(self, stretch: Stretch) -> None:
        told = {"testid": self.testid, "stretch": asdict(stretch)}
        # Locust hands its options to a worker before it starts users there: also to one that comes
        # late, which gets a message before it can take it.
        vars(self.options)[_MESSAGE] = told
        self._runner.send_message(_MESSAGE, told)

    def _on_told(self, msg: Any, **_: Any) -> None:
        self._follow(msg.data)

    def _follow(self, told: dict[str, Any]) -> None:
        self._rename(told["testid"])
        self.stretch = Stretch(**told["stretch"])
        self.stretch_since = time.perf_counter()

    # The master's, or the only process's, work

    def _attend(self) -> None:
        """Writes the phases in a greenlet of its own, where a slow store is in nobody's way."""
        while True:
            self._changed.wait(timeout=1)
            self._changed.clear()
            if not self.regions.write(_now_ms()) and not self._warned:
                self._warned = True
                _log.warning("phases wait to be annotated: %s", self.regions.problem)
            if self._running and isinstance(self._runner, MasterRunner):
                self._lost_workers.update(client.id for client in self._runner.clients.missing)

    def _offered_rate(self) -> tuple[str, float] | None:
        """A run by hand: its one phase, and the rate that its users are to make of it."""
        if not self._begun or not self.throughput:
            return None
        users = self._runner.user_count if self._running else 0
        return self.script, users * self.throughput

    def _read_objectives(self) -> dict[str, list[Objective]]:
        return objectives_by_phase(self.plan, self.script, self.options.slo)

    def _judge(self) -> int:
        """The exit code: 0 within the objectives, 99 missed, 1 if a part of the run is unknown."""
        wrong = [
            (name, objective)
            for name in {region.phase: None for region in self._begun} or self._objectives
            for objective in missed(self._objectives[name], self.tallies[name])
        ]
        if self.plan.summary:
            write_summary(
                self.plan.summary,
                __version__,
                self.testid,
                self._begun,
                self.tallies,
                self._objectives,
                [objective.text for _, objective in wrong],
                self.regions.pending,
            )
        for name, objective in wrong:
            was = objective.measured(self.tallies[name])
            _log.error("missed in %s: %s (was %.6g)", name, objective.text, was)
        if self._lost_workers:
            _log.error(
                "%d workers lost, with requests uncounted: run again", len(self._lost_workers)
            )
            return 1
        if not self.finished:
            _log.error("stopped before its end")
            return 1
        return MISSED if wrong else 0


def _or_exit(work: Callable[[], T]) -> T:
    """A mistake of the user's gets one line, not a traceback."""
    try:
        return work()
    except PlanError as error:
        sys.exit(str(error))


def begin(script: str, path: str = Plan.path) -> Session:
    """Reads the plan and listens; called once, by the locustfile that is run.

    `path` is what a run by hand asks for.
    """
    session = Session(script, _or_exit(lambda: read_plan(script, path)))
    hosts.pin(session.plan.hosts)
    otel.fix_bucket_width()
    judge_statuses(session.plan.expect)
    watch_requests()
    session.listen()
    return session
