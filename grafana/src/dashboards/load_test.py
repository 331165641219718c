"""Dashboard `load-test`: is it holding?"""

from grafana_foundation_sdk.builders import dashboard

from grafana.src.board import new_dashboard
from grafana.src.panels import Text, distribution, graph, number
from spikelab.signals import load, raw, tomcat

NO_RUN = "No run in the time shown: start one, or widen the time range"
NO_SOCKETS = "No sockets exporter: is it running beside the target?"
NO_RAW = "No raw samples: the run did not write to InfluxDB"
FIGURE_HEIGHT = 3
GRAPH_HEIGHT = 7


def build() -> dashboard.Dashboard:
    """The dashboard: figures, the load and its answers, connections, raw samples."""
    board = new_dashboard(
        "load-test", "Load test: is it holding?", "What is asked of the target and what comes back."
    )
    _figures(board)
    _answers(board)
    _reasons(board)
    _raw_samples(board)
    return board


def _figures(board: dashboard.Dashboard) -> None:
    figures = [
        (
            Text(
                "Requests ended",
                "With an answer or without; the requests of the run's summary once it has ended. "
                "Less than the users of a spike: requests are under way, or were never started.",
                NO_RUN,
            ),
            load.REQUESTS_IN_RANGE,
            4,
        ),
        (
            Text(
                "Requests failed",
                "Anything but 0 is a request without a good answer; the run's summary names the "
                "classes.",
                NO_RUN,
            ),
            load.FAILURES_IN_RANGE,
            5,
        ),
        (
            Text(
                "Requests never started",
                "Anything but 0 says that the driver did not do what it was asked for: the figures "
                "then measure the driver.",
                NO_RUN,
            ),
            load.DROPPED_IN_RANGE,
            5,
        ),
        (
            Text("p95 of good answers", "A bucket is up to 9 % wide, so is the error.", NO_RUN),
            load.LATENCY_P95_IN_RANGE,
            5,
        ),
        (
            Text("Users now", "0 when no test is running.", NO_RUN),
            load.USERS_NOW,
            5,
        ),
    ]
    for text, signal, width in figures:
        board.with_panel(number(text, signal, width=width, height=FIGURE_HEIGHT))


def _answers(board: dashboard.Dashboard) -> None:
    board.with_panel(
        graph(
            Text(
                "How many requests a second are answered?",
                "Waves are batches of workers that finish together. Red is what users see as an "
                "error. A green line that falls under constant load is a target that gives way; "
                "below the dashed line of an offered rate it is a rate that is not held.",
                NO_RUN,
            ),
            [
                load.GOOD_RATE,
                load.FAILURE_RATE,
                load.DROPPED_RATE,
                load.OFFERED_RATE,
            ],
            width=8,
            height=GRAPH_HEIGHT,
        )
    )
    board.with_panel(
        graph(
            Text(
                "How long do good answers take?",
                "Good answers only: a failed one is counted as failed, not as fast. Steps are "
                "waiting in a queue. Percentiles further apart than usual mean that some users "
                "wait and others do not.",
                NO_RUN,
            ),
            [load.LATENCY_P50, load.LATENCY_P95, load.LATENCY_P99],
            width=8,
            height=GRAPH_HEIGHT,
        )
    )
    board.with_panel(
        distribution(
            Text(
                "When were answers slow, and how many?",
                "The stronger a cell, the more answers came at that moment after that time. Two "
                "bands are two kinds of answers, which a percentile hides.",
                NO_RUN,
            ),
            load.LATENCY_DISTRIBUTION,
            width=8,
            height=GRAPH_HEIGHT,
        )
    )


def _reasons(board: dashboard.Dashboard) -> None:
    board.with_panel(
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
        )
    )
    board.with_panel(
        graph(
            Text(
                "How many users are running?",
                "In a spike each user leaves with its answer. A line that stays up is users who "
                "wait.",
                NO_RUN,
            ),
            [load.USERS],
            width=6,
            height=GRAPH_HEIGHT,
        )
    )
    board.with_panel(
        graph(
            Text(
                "Does the target run out of room?",
                "Measured at the target's kernel. At the predicted line the target is full and "
                "further users get no connection, whatever the number of threads.",
                NO_SOCKETS,
            ),
            [tomcat.CONNECTIONS_ESTABLISHED, tomcat.CONNECTIONS_PREDICTED],
            width=6,
            height=GRAPH_HEIGHT,
        )
    )
    board.with_panel(
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
        )
    )


def _raw_samples(board: dashboard.Dashboard) -> None:
    board.with_row(dashboard.Row("Raw samples in InfluxDB (k6 run --out influxdb=…)"))
    board.with_panel(
        graph(
            Text(
                "How many raw answers a second?",
                "From the samples k6 wrote one by one. Holes where other panels have none are "
                "samples k6 could not write.",
                NO_RAW,
            ),
            [raw.RAW_REQUESTS, raw.RAW_FAILURES],
            width=8,
            height=GRAPH_HEIGHT,
        )
    )
    board.with_panel(
        graph(
            Text(
                "How long do raw good answers take?",
                "Exact percentiles of each step's samples, in milliseconds as k6 writes them.",
                NO_RAW,
            ),
            [raw.RAW_LATENCY_P50, raw.RAW_LATENCY_P99],
            width=8,
            height=GRAPH_HEIGHT,
        )
    )
    board.with_panel(
        graph(
            Text(
                "How many users wrote raw samples?",
                "A line that stays up is users who wait for an answer.",
                NO_RAW,
            ),
            [raw.RAW_USERS],
            width=8,
            height=GRAPH_HEIGHT,
        )
    )
