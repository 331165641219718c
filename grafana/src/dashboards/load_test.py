"""Dashboard `load-test`: is it holding?"""

from grafana_foundation_sdk.builders import dashboard, heatmap, stat, timeseries

from grafana.src.board import new_dashboard
from grafana.src.panels.common import Text
from grafana.src.panels.figures import number, state
from grafana.src.panels.graphs import distribution, graph
from grafana.src.signals import load, tomcat
from spikelab import signals
from spikelab.signals import Colour, Signal

NO_RUN = "No run in the time shown: start one, or widen the time range"
NO_SOCKETS = "No sockets exporter: is it running beside the target?"
NO_LAB = "Only ./lab run watches this; a run by hand has its driver's own summary"
NO_VERDICT = "No run in the time shown: only ./lab run judges them"
NO_FAILURE = "No request has failed in the time shown"
# What objectives judge, and what stands for it.
RESPONSE_TIME = (
    "Response times: from when a request was due or begun. Of a script without the lab's library, "
    "and of one request chosen by name, the driver's own durations (k6's http_req_duration), which "
    "lack connecting."
)
FIGURE_HEIGHT = 3
GRAPH_HEIGHT = 7


def build() -> dashboard.Dashboard:
    """The dashboard: figures; the load and its answers; the reasons; where it comes from."""
    board = new_dashboard(
        "load-test", "Load test: is it holding?", "What is asked of the target and what comes back."
    )
    # A push, a rule's evaluation and a refresh: an answer is to be seen within six seconds.
    board.refresh("2s")
    board.with_panel(_verdict())
    for text, signal in _figures():
        board.with_panel(number(text, signal, width=5, height=FIGURE_HEIGHT))
    for panel in [*_answers(), *_reasons(), *_below()]:
        board.with_panel(panel)
    return board


def _verdict() -> stat.Panel:
    return state(
        Text(
            "Verdict so far",
            "Of what the judged phases of all runs shown have answered or dropped so far; Locust's "
            "series tell no phases apart, so a warm-up is in it. Slow answers are counted by "
            "histogram, up to a bucket off. Undecided: none has missed, and one of the runs is "
            "not judged, or has too few requests yet. The run's own verdict, at its end, is exact.",
            NO_VERDICT,
        ),
        load.OBJECTIVES_MET,
        {
            1: ("holding", Colour.GOOD),
            0.5: ("undecided", Colour.INCONCLUSIVE),
            0: ("missed", Colour.FAILED),
        },
    )


def _figures() -> list[tuple[Text, Signal]]:
    return [
        (
            Text(
                "Requests ended",
                "With an answer or without; the requests of the run's summary once it has ended. "
                "Less than the users of a spike: requests are under way, or were never started.",
                NO_RUN,
            ),
            load.REQUESTS_IN_RANGE,
        ),
        (
            Text(
                "Requests failed",
                "Anything but 0 is a request without a good answer; the panel by class says why.",
                NO_RUN,
            ),
            load.FAILURES_IN_RANGE,
        ),
        (
            Text(
                "Requests never started",
                "Anything but 0: all users waited for the target when a request was due, or the "
                "driver was short of processor, which the panel about the driver shows.",
                NO_RUN,
            ),
            load.DROPPED_IN_RANGE,
        ),
        (
            Text(
                "p95 of good answers",
                f"A bucket is up to 9 % wide, so is the error. {RESPONSE_TIME}",
                NO_RUN,
            ),
            load.LATENCY_P95_IN_RANGE,
        ),
    ]


def _answers() -> list[timeseries.Panel | heatmap.Panel]:
    return [
        graph(
            Text(
                "How many requests a second are answered?",
                "Waves are batches of workers that finish together. Red is what users see as an "
                "error. A green line that falls under constant load is a target that gives way; "
                "below the dashed line of an offered rate it is a rate that is not held; started "
                "below offered is a driver that cannot keep up, or whose users all wait.",
                NO_RUN,
            ),
            [
                signals.GOOD_RATE,
                signals.FAILURE_RATE,
                signals.DROPPED_RATE,
                signals.STARTED_RATE,
                signals.OFFERED_RATE,
            ],
            width=8,
            height=GRAPH_HEIGHT,
        ),
        graph(
            Text(
                "How long do good answers take?",
                "Good answers only: a failed one is counted as failed, not as fast. Each line on "
                "the scale is ten times the one before. Steps are waiting in a queue; percentiles "
                "further apart than usual mean that some users wait and others do not. "
                f"{RESPONSE_TIME}",
                NO_RUN,
            ),
            [
                signals.LATENCY_P50,
                signals.LATENCY_P90,
                signals.LATENCY_P95,
                signals.LATENCY_P99,
                signals.LATENCY_P99_9,
            ],
            width=8,
            height=GRAPH_HEIGHT,
            logarithmic=True,
        ),
        distribution(
            Text(
                "When were answers slow, and how many?",
                "The stronger a cell, the more answers came at that moment after that time. Two "
                f"bands are two kinds of answers, which a percentile hides. {RESPONSE_TIME}",
                NO_RUN,
            ),
            load.LATENCY_DISTRIBUTION,
            width=8,
            height=GRAPH_HEIGHT,
        ),
    ]


def _reasons() -> list[timeseries.Panel]:
    return [
        graph(
            Text(
                "Why do requests fail?",
                "Stacked. Dial timeouts: the target had no room for the connection. Request "
                "timeouts: it had, and no worker in time. Resets and refusals: it was stopped, or "
                "sheds load. Statuses are its own answers.",
                NO_FAILURE,
            ),
            [signals.ERRORS_BY_CLASS],
            width=6,
            height=GRAPH_HEIGHT,
            stacked=True,
        ),
        graph(
            Text(
                "How many users, how many wait?",
                "In a spike each user leaves with its answer. Requests in flight that stay up, or "
                "grow at a constant rate, are a queue.",
                NO_RUN,
            ),
            [signals.USERS, load.UNDER_WAY],
            width=6,
            height=GRAPH_HEIGHT,
        ),
        graph(
            Text(
                "How much is outside the server?",
                "Means, for means may be subtracted and percentiles may not. The gap between "
                "driver and server is the wait for a worker, connecting, the network and what is "
                "in between; a gap that the wait does not explain is before Tomcat. "
                f"{RESPONSE_TIME}",
                NO_RUN,
            ),
            [load.CLIENT_MEAN, load.SERVER_MEAN, load.QUEUE_WAIT_MEAN],
            width=6,
            height=GRAPH_HEIGHT,
            logarithmic=True,
        ),
        graph(
            Text(
                "Is the driver the limit?",
                "Limited means that it needed processor it did not get: what was measured then is "
                "the driver, and its step is inconclusive. Locust is one core a process.",
                NO_LAB,
            ),
            [load.DRIVER_CPU, load.DRIVER_LIMITED],
            width=6,
            height=GRAPH_HEIGHT,
        ),
    ]


def _below() -> list[timeseries.Panel]:
    return [
        graph(
            Text(
                "What became of the requests?",
                "Stacked since the start of the run. In a spike the top is flat at the number of "
                "users; blue that stays is a request nobody answers, orange was never begun, and a "
                "dashed line below the top is a driver that has not started them all yet.",
                NO_RUN,
            ),
            [
                load.GOOD_TOTAL,
                load.FAILURES_TOTAL,
                load.IN_FLIGHT,
                load.DROPPED_TOTAL,
                load.STARTED_TOTAL,
            ],
            width=6,
            height=GRAPH_HEIGHT,
            stacked=True,
        ),
        graph(
            Text(
                "How many connections are opened?",
                "Users that keep their connection open one each. A line that stays up is a client "
                "that connects for every request, or a target that closes.",
                NO_SOCKETS,
            ),
            [tomcat.CONNECTIONS_OPENED],
            width=6,
            height=GRAPH_HEIGHT,
        ),
        graph(
            Text(
                "Does the target run out of room?",
                "Measured at the target's kernel. At the predicted line the target is full and "
                "further users get no connection, whatever the number of threads.",
                NO_SOCKETS,
            ),
            [signals.CONNECTIONS_ESTABLISHED, signals.CONNECTIONS_PREDICTED],
            width=6,
            height=GRAPH_HEIGHT,
        ),
        graph(
            Text(
                "Are connection attempts turned away?",
                "Anything but 0 is an attempt that has to be repeated by its client's kernel 1, 2, "
                "3 … s later: latency no server-side timer sees, then dial timeouts.",
                NO_SOCKETS,
            ),
            [tomcat.LISTEN_OVERFLOWS, tomcat.LISTEN_DROPS],
            width=6,
            height=GRAPH_HEIGHT,
        ),
    ]
