"""What happens once a run: its plan, its listeners, its verdict. Read by every locustfile here.

One process holds one session. In a distributed run the master (or the only process) writes the
phases and judges; workers send it their tallies.
"""

import logging
import os
import signal
import sys
import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import gevent
from gevent.event import Event
from locust import __version__, events
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from lib import otel
from lib.events import Region, Regions
from lib.options import add_options
from lib.plan import Phase, Plan, PlanError, read_plan
from lib.slo import MISSED, Objective, missed, parse_objective
from lib.summary import write_summary
from lib.tally import Tally

_MESSAGE = "spikelab-phase"
_log = logging.getLogger("spikelab")
T = TypeVar("T")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class Stretch:
    """The phase that users are in: `period_seconds` is 0 in a closed loop."""

    name: str
    url: str | None = None
    period_seconds: float = 0.0


class Session:
    """State of this process's run."""

    def __init__(self, script: str, plan: Plan) -> None:
        self.script = script
        self.plan = plan
        self.testid = otel.set_defaults(os.environ, plan.testid)
        self.stretch = Stretch(script)
        self.tallies: defaultdict[str, Tally] = defaultdict(Tally)
        self.regions = Regions(plan.events_url, plan.events_database, self.testid)
        self.lost_workers: set[str] = set()
        self.finished = not plan.phases  # the shape says when the last phase has ended
        self._phase: Phase | None = None
        self._environment: Environment
        self._changed = Event()
        self._warned = False
        self._started = False

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

    @property
    def period_seconds(self) -> float:
        if self.plan.phases:
            return self.stretch.period_seconds
        return 1 / self.throughput if self.throughput else 0.0

    def enter(self, phase: Phase | None) -> None:
        """The phase that it is time for; None between and after phases."""
        if phase is self._phase:
            return
        self._phase = phase
        now_ms = _now_ms()
        if phase is None:
            self.regions.end(now_ms)
        else:
            planned_ms = now_ms + round(phase.duration_seconds * 1000)
            text = f"{phase.value:g} {phase.kind}"
            self.regions.begin(Region(phase.name, phase.kind, text, now_ms, planned_ms))
        self._changed.set()

    def tell_workers(self, phase: Phase) -> None:
        """Sent with each tick, so that a worker that comes late knows it too."""
        period = phase.period_seconds(self.throughput or 1)
        self._runner.send_message(_MESSAGE, [phase.name, phase.url, period])

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
        events.quit.add_listener(self._on_quit)

    def _on_init(self, environment: Environment, runner: Any, **_: Any) -> None:
        self._environment = environment
        environment.host = environment.host or self.plan.url
        _or_exit(self._objectives)
        if not isinstance(runner, MasterRunner):
            runner.register_message(_MESSAGE, self._on_phase)
        if not isinstance(runner, WorkerRunner):
            gevent.spawn(self._attend)
            if self.plan.phases:
                # While a shape runs, Locust has no handler of its own: end as after Ctrl-C.
                signal.signal(signal.SIGTERM, signal.default_int_handler)
        if self.plan.phases and not environment.stop_timeout:
            # The shape lets the last requests of a phase end; a failed one ends by its timeout.
            environment.stop_timeout = self.plan.timeout_seconds

    def _on_phase(self, msg: Any, **_: Any) -> None:
        self.stretch = Stretch(*msg.data)

    def _on_test_start(self, **_: Any) -> None:
        self.tallies.clear()
        self._started = True
        if self.plan.phases or isinstance(self._runner, WorkerRunner):
            return
        now_ms = _now_ms()
        limit = self.options.run_time
        planned_ms = now_ms + int(limit) * 1000 if limit else None
        text = f"{self.options.num_users or 1} users"
        self.regions.begin(Region(self.script, "users", text, now_ms, planned_ms))
        self._changed.set()

    def _on_request(
        self,
        response_time: float | None,
        response_length: int | None,
        response: Any = None,
        context: Any = None,
        exception: BaseException | None = None,
        **_: Any,
    ) -> None:
        tally = self.tallies[(context or {}).get("phase", self.stretch.name)]
        if exception is None:
            tally.answer((response_time or 0) / 1000, response_length or 0)
        else:
            tally.failure(getattr(response, "status_code", 0) or 0, exception)

    def _on_report(self, data: dict[str, Any], **_: Any) -> None:
        data[_MESSAGE] = {name: tally.to_message() for name, tally in self.tallies.items()}
        self.tallies.clear()

    def _on_worker_report(self, data: dict[str, Any], **_: Any) -> None:
        for name, message in data.get(_MESSAGE, {}).items():
            self.tallies[name].add(Tally.from_message(message))

    def _on_test_stop(self, **_: Any) -> None:
        if not isinstance(self._runner, WorkerRunner):
            self.regions.end(_now_ms())
            self._phase = None
            self._changed.set()

    def _on_quitting(self, environment: Environment, **_: Any) -> None:
        worker = isinstance(self._runner, WorkerRunner)
        if not worker:
            self._runner.quit()  # after an interrupt workers have not reported yet
        # A mistake in the script keeps Locust's own exit code.
        if self._started and not self._runner.exceptions:
            environment.process_exit_code = 0 if worker else self._judge()

    def _on_quit(self, **_: Any) -> None:
        if isinstance(self._runner, WorkerRunner):
            return
        self.regions.write(_now_ms())
        if self.regions.pending:
            _log.warning("%d phases not annotated: %s", self.regions.pending, self.regions.problem)

    # The master's, or the only process's, work

    def _attend(self) -> None:
        """Writes the phases in a greenlet of its own, where a slow store is in nobody's way."""
        while True:
            self._changed.wait(timeout=1)
            self._changed.clear()
            if not self.regions.write(_now_ms()) and not self._warned:
                self._warned = True
                _log.warning("phases wait to be annotated: %s", self.regions.problem)
            if isinstance(self._runner, MasterRunner):
                self.lost_workers.update(client.id for client in self._runner.clients.missing)

    def _objectives(self) -> list[Objective]:
        given = [text.strip() for text in self.options.slo.split(",") if text.strip()]
        return [parse_objective(text) for text in given or self.plan.slo]

    def _judge(self) -> int:
        """The exit code: 0 within the objectives, 99 missed, 1 if a part of the run is unknown."""
        total = Tally()
        for tally in self.tallies.values():
            total.add(tally)
        wrong = missed(self._objectives(), total)
        if self.plan.summary:
            texts = [objective.text for objective in wrong]
            write_summary(self.plan.summary, self.testid, __version__, self.tallies, texts)
        for objective in wrong:
            _log.error("missed: %s (was %.6g)", objective.text, objective.measured(total))
        if self.lost_workers:
            _log.error(
                "%d workers lost, with requests uncounted: run again", len(self.lost_workers)
            )
            return 1
        if not self.finished:
            _log.error("stopped before the plan's end")
            return 1
        return MISSED if wrong else 0


def _or_exit(work: Callable[[], T]) -> T:
    """A mistake of the user's gets one line, not a traceback."""
    try:
        return work()
    except PlanError as error:
        sys.exit(str(error))


def begin(script: str) -> Session:
    """Reads the plan and listens; called once, by the locustfile that is run."""
    session = Session(script, _or_exit(lambda: read_plan(script)))
    otel.fix_bucket_width()
    session.listen()
    return session
