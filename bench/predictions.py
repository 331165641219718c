"""How often "as predicted" notices that a spike's target is another than its settings say, and
how often it says so of one that is as they say.

Random settings, the model's own outcome of each, its times with the noise of real runs, checked as
a run's record is. No lab and no load is needed. The same seed gives the same figures.
"""

import random
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from spikelab.measure import waves, workers_seen
from spikelab.prediction.check import checks, predict
from spikelab.prediction.model import Outcome, Server, Spike, simulate
from spikelab.results.run import (
    Connections,
    Errors,
    Host,
    Latency,
    RunRecord,
    Step,
    TargetRecord,
)

_STARTED = datetime(2026, 11, 22, tzinfo=UTC)
_LONGER, _FEWER = 1.3, 0.9
# Last answers of the ladder's 51 runs, in seconds beyond those of the model's, and the latter:
# docs/connections.md, section 8.
_EXCESS_SECONDS = [
    *((0.4, 10), (0.5, 25), (1.3, 50), (1.8, 60), (2.4, 30), (0.5, 60), (2.5, 30), (0.8, 60)),
    *((2.3, 45), (0.7, 45), (2.2, 50), (5.2, 50), (1.4, 45), (3.4, 40), (0.1, 55), (0.1, 55)),
    *((0.1, 50), (0.4, 10), (0.9, 25), (1.3, 50), (1.5, 60), (2.5, 30), (2.6, 60), (3.3, 30)),
    *((1.5, 60), (2.0, 45), (1.4, 45), (2.5, 50), (2.8, 50), (1.1, 45), (2.7, 40), (0.1, 55)),
    *((0.1, 55), (0.1, 50)),
]
# Between the first and the last start of a spike's users, of the records in tests/data/report.
_LEAST_SPREAD_SECONDS = 0.12


@dataclass(frozen=True)
class Setting:
    """A target and the spike on it, as the model takes them."""

    server: Server
    spike: Spike

    def slower(self) -> "Setting":
        """With a service time that is 30 % longer."""
        seconds = self.spike.service_seconds * _LONGER
        return replace(self, spike=replace(self.spike, service_seconds=seconds))

    def fewer_threads(self) -> "Setting | None":
        """With 10 % fewer threads, at least one; None where threads do not bind: nobody waits for
        a worker."""
        threads = self.server.threads
        if threads is None or threads < 2:
            return None
        present = min(self.spike.users, self.server.max_connections)
        if present <= threads:
            return None
        fewer = min(threads - 1, round(_FEWER * threads))
        return replace(self, server=replace(self.server, threads=fewer))


def settings(seed: int) -> Iterator[Setting]:
    """Without end, log-uniform each, as wide as the ladder and the grid; a user waits a minute."""
    draw = random.Random(seed)

    def between(least: float, most: float) -> float:
        return float(least * (most / least) ** draw.random())

    while True:
        yield Setting(
            Server(
                threads=round(between(1, 2000)),
                max_connections=round(between(1, 20_000)),
                accept_queue_limit=round(between(1, 4096)),
                idle_seconds=between(1, 60),
            ),
            Spike(
                users=round(between(10, 15_000)),
                service_seconds=between(0.5, 10),
                timeout_seconds=60,
                keep_alive=draw.random() < 0.5,
            ),
        )


@dataclass(frozen=True)
class Noise:
    """What a run does to the model's times: `pace` times as long, the users begin over
    `spread_seconds`, and whether those outside are half-open."""

    pace: float
    spread_seconds: float
    half_open: bool

    @classmethod
    def drawn(cls, draw: random.Random) -> "Noise":
        """The excess of one of the ladder's runs, a random part of it at the start."""
        excess, length = draw.choice(_EXCESS_SECONDS)
        start = draw.uniform(0, min(3.0, excess))
        spread = max(_LEAST_SPREAD_SECONDS, start)
        return cls(1 + (excess - start) / length, spread, draw.random() < 0.5)


def record_of(told: Setting, true: Setting, noise: Noise, samples: bool) -> RunRecord:
    """A run that was predicted from `told` on a target that is `true`, as the lab records it.

    `samples`: with raw ones, and with the target's own timer.
    """
    happened = simulate(
        true.server,
        replace(true.spike, service_seconds=true.spike.service_seconds * noise.pace),
        noise.half_open,
    )
    times = list(answer_times(happened, true.server.threads or 1, noise.spread_seconds))
    service, expected = told.spike.service_seconds, predict(told.server, told.spike)
    whole = happened.good == told.spike.users
    last = max(times, default=None) if samples or whole else None
    seconds = last if whole and last else told.spike.timeout_seconds
    step = Step(
        name="spike",
        phase="spike",
        started=_STARTED,
        ended=_STARTED + timedelta(seconds=seconds),
        started_rate=None,
        achieved_rate=None,
        goodput=None,
        requests=told.spike.users,
        completed=happened.good,
        dropped=0,
        failures=told.spike.users - happened.good,
        errors=errors(happened),
        response_bytes_mean=None,
        latency_seconds=Latency(),
        latency_with_failures_seconds=Latency(),
        drain_seconds=0.0,
        start_spread_seconds=noise.spread_seconds,
        last_good_seconds=last if samples else None,
        waves=waves(times, noise.spread_seconds) if samples else None,
        verdict="pass",
    )
    if samples:
        step.server_mean_seconds = true.spike.service_seconds * noise.pace
        busy = expected.workers_busy_seconds or 0.0
        step.workers_seen = workers_seen(times, service, noise.spread_seconds, busy)
    return RunRecord(
        testid="20261122T000000Z-spike-0000",
        plan="spike",
        driver="k6",
        started=_STARTED,
        target=TargetRecord(url="", settings={}, effective={}, runtime=None),
        host=Host(kernel="6", cpus=2, limits={}),
        connections=Connections(policy="close", established_peak=happened.established_peak),
        prediction=expected,
        steps=[step],
    )


def answer_times(happened: Outcome, threads: int, spread_seconds: float) -> Iterator[float]:
    """Seconds since the start: a worker that began late is late in each wave."""
    for at, answers in happened.waves:
        for number in range(answers):
            yield at + spread_seconds * ((number + 1) / max(threads, answers))


def errors(happened: Outcome) -> Errors:
    """A user who gives up was not let in, or not answered: the model does not count them apart."""
    if happened.outside:
        return Errors(dial_timeout=happened.unanswered, other=happened.rejected)
    return Errors(request_timeout=happened.unanswered, other=happened.rejected)


def noticed(count: int, seed: int, samples: bool) -> dict[str, Counter[str]]:
    """Of so many settings of each kind: how many runs (``""``) and which of their figures are not
    as predicted."""
    draw, source = random.Random(seed), settings(seed)
    found: dict[str, Counter[str]] = {name: Counter() for name in _KINDS}
    left = dict.fromkeys(_KINDS, count)
    while any(left.values()):
        told = next(source)
        for name, change in _KINDS.items():
            true = change(told)
            if true is None or not left[name]:
                continue
            left[name] -= 1
            record = record_of(told, true, Noise.drawn(draw), samples)
            wrong = [check.name for check in checks(record) if check.within is False]
            found[name].update(wrong and ["", *wrong])
    return found


_KINDS: dict[str, Callable[[Setting], Setting | None]] = {
    "as told": lambda setting: setting,
    "service time 30 % longer": Setting.slower,
    "threads 10 % fewer": Setting.fewer_threads,
}


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=400, help="of each kind, default 400")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    asked = parser.parse_args()
    for samples, told in (
        (True, "With raw samples and the target's timer"),
        (False, "With the driver's summary alone"),
    ):
        print(told)
        for name, wrong in noticed(asked.settings, asked.seed, samples).items():
            figures = ", ".join(f"{figure} {n}" for figure, n in wrong.items() if figure)
            share = wrong[""] / asked.settings
            print(f"  {name:<25} not as predicted {share:6.1%}  {figures}")


if __name__ == "__main__":
    main()
