"""A spike's prediction with its tolerances: the model at every pace that a machine may have."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from spikelab.prediction.model import Outcome, Server, Spike, simulate
from spikelab.record import Prediction, Wave

# What a wave of answers takes longer than the requests' own time, while hundreds of threads wake
# on few cores; with START_SECONDS it holds the ladder's runs (docs/connections.md, section 8).
PACES = (1.0, 1.02, 1.04, 1.06, 1.08)
# Users do not begin in one moment, and a burst that fills the accept queue comes back with the
# first retries, at 1, 2 and 3 s.
START_SECONDS = 3.0
# Tomcat looks for connections that were idle too long once a second.
_IDLE_LATE_SECONDS = 1.0
# An accept queue that holds less than this share of the users loses so many of their SYNs, again
# and again, that it may not be full before the first answers: 1,204 of 1,223 were seen.
_SHORT_QUEUE_SHARE = 0.01
_SHORT_QUEUE_FILLED = 0.9
# A peak that lasts shorter may be over before all users are there, or between two scrapes.
_SEEN_SECONDS = 5.0
_MOST_WAVES = 100


def predict(server: Server, spike: Spike) -> Prediction:
    """Each figure as settings give it, from the least to the most that the tolerances allow."""
    nominal = simulate(server, spike)
    outcomes = [
        _outcome(server, spike, pace, half_open)
        for pace, half_open in product(PACES, (False, True))
    ]
    outcomes.append(nominal)
    least = nominal.established_peak
    if server.accept_queue_limit + 1 < _SHORT_QUEUE_SHARE * spike.users:
        least = int(_SHORT_QUEUE_FILLED * least)
        outcomes.append(simulate(server, replace(spike, users=least)))
    lasts = [o.last_answer_seconds for o in outcomes if o.last_answer_seconds is not None]
    goods = [outcome.good for outcome in outcomes]
    waves = nominal.waves if len(nominal.waves) <= _MOST_WAVES else []
    lasting = min(outcome.held_seconds for outcome in outcomes) >= _SEEN_SECONDS
    return Prediction(
        established_peak=nominal.established_peak,
        established_least=least if lasting else 0,
        established_most=min(spike.users, server.capacity),
        good=nominal.good,
        good_least=min(goods),
        good_most=max(goods),
        failed=spike.users - nominal.good,
        failure_classes=_classes(outcomes),
        waves=[Wave(answers=users, at_seconds=round(at, 3)) for at, users in waves],
        last_answer_seconds=_rounded(nominal.last_answer_seconds),
        last_answer_least_seconds=_rounded(min(lasts, default=None)),
        last_answer_most_seconds=_rounded(
            max(lasts) + START_SECONDS if lasts else None,
        ),
    )


def _outcome(server: Server, spike: Spike, pace: float, half_open: bool) -> Outcome:
    late = _IDLE_LATE_SECONDS if pace == PACES[-1] and server.idle_seconds else 0.0
    return simulate(
        replace(server, idle_seconds=server.idle_seconds + late),
        replace(spike, service_seconds=spike.service_seconds * pace),
        half_open,
    )


def _classes(outcomes: Sequence[Outcome]) -> list[str]:
    """In one of which each failed request should be: section 3."""
    classes = []
    if any(outcome.unanswered for outcome in outcomes):
        if any(outcome.outside for outcome in outcomes):
            classes.append("dial_timeout")
        classes.append("request_timeout")
    if any(outcome.rejected for outcome in outcomes):
        classes.append("other")
    return classes


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
