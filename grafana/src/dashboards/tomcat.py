"""Dashboard `tomcat`: where do requests wait?"""

from grafana_foundation_sdk.builders import dashboard, table, timeseries
from grafana_foundation_sdk.models.dashboard import GridPos

from grafana.src.board import new_dashboard
from grafana.src.panels.common import Text
from grafana.src.panels.graphs import graph
from grafana.src.panels.tables import settings_table
from grafana.src.signals import tomcat
from spikelab import signals

NO_SOCKETS = "No sockets exporter: is it running beside the target?"
NO_TARGET = "No metrics of the target: is it running, and is its management port scraped?"
NO_REQUEST = "No request in the time shown: start a run, or widen the time range"
WIDTH = 6
HEIGHT = 6


def build() -> dashboard.Dashboard:
    """The dashboard: a column a station, from the network to the worker; below, the machine."""
    board = new_dashboard(
        "tomcat",
        "Tomcat: where do requests wait?",
        "From left to right the way of a request: accept queue, connection, worker queue, worker.",
    )
    for panel in [*_stations(), *_consequences()]:
        board.with_panel(panel)
    # Beside the two graphs the table, as high as both.
    processor, settings = _processor(), _settings()
    board.with_panel(processor.grid_pos(GridPos(x=0, y=2 * HEIGHT, w=2 * WIDTH, h=HEIGHT)))
    board.with_panel(
        settings.grid_pos(GridPos(x=2 * WIDTH, y=2 * HEIGHT, w=2 * WIDTH, h=2 * HEIGHT))
    )
    for place, panel in enumerate([_throttling(), _keep_alive()]):
        board.with_panel(panel.grid_pos(GridPos(x=place * WIDTH, y=3 * HEIGHT, w=WIDTH, h=HEIGHT)))
    return board


def _stations() -> list[timeseries.Panel]:
    """How much waits at each station."""
    return [
        graph(
            Text(
                "1 · How long is the accept queue?",
                "Above 0 Tomcat has all the connections it may have. At the limit further attempts "
                "are turned away.",
                NO_SOCKETS,
            ),
            [signals.ACCEPT_QUEUE_DEPTH, tomcat.ACCEPT_QUEUE_LIMIT],
            width=WIDTH,
            height=HEIGHT,
        ),
        graph(
            Text(
                "2 · How many connections?",
                "Above max-connections the rest sits in the accept queue. At the predicted line "
                "the target is full, whatever the number of threads.",
                NO_SOCKETS,
            ),
            [
                signals.CONNECTIONS_ESTABLISHED,
                tomcat.CONNECTIONS_MAXIMUM,
                signals.CONNECTIONS_PREDICTED,
            ],
            width=WIDTH,
            height=HEIGHT,
        ),
        graph(
            Text(
                "3 · How long is the worker queue?",
                "Accepted, but without a thread: the queue of a target with too few threads. It "
                "holds connections while it is long. After a run it must be empty again.",
                NO_TARGET,
            ),
            [signals.WORKER_QUEUE_DEPTH],
            width=WIDTH,
            height=HEIGHT,
        ),
        graph(
            Text(
                "4 · How many workers are busy?",
                "At the maximum every further request waits in the worker queue. Below it while "
                "users wait, the wait is elsewhere.",
                NO_TARGET,
            ),
            [tomcat.THREADS_BUSY, tomcat.THREADS_MAXIMUM],
            width=WIDTH,
            height=HEIGHT,
        ),
    ]


def _consequences() -> list[timeseries.Panel]:
    """What the waiting costs."""
    return [
        graph(
            Text(
                "Are connection attempts turned away?",
                "Of the target's whole network namespace. Anything but 0 is a client whose kernel "
                "tries again 1, 2, 3 … s later, and gives up in the end.",
                NO_SOCKETS,
            ),
            [tomcat.LISTEN_OVERFLOWS, tomcat.LISTEN_DROPS],
            width=WIDTH,
            height=HEIGHT,
        ),
        graph(
            Text(
                "How long do requests wait for a worker?",
                "The wait that http_server_requests does not see: it starts when a worker takes "
                "the request. Users feel this and the server's own time.",
                NO_REQUEST,
            ),
            [tomcat.WORKER_QUEUE_WAIT_P50, tomcat.WORKER_QUEUE_WAIT_P99],
            width=WIDTH,
            height=HEIGHT,
        ),
        graph(
            Text(
                "How long does the server itself take?",
                "http_server_requests: flat while users wait longer and longer means that they "
                "wait before the worker. When it rises, the work itself has become slower. It is "
                "read from buckets, so up to a bucket's width too high.",
                NO_REQUEST,
            ),
            [tomcat.SERVER_LATENCY_P50, tomcat.SERVER_LATENCY_P99],
            width=WIDTH,
            height=HEIGHT,
        ),
        graph(
            Text(
                "How many answers a second?",
                "Workers divided by the server's own time is the most it can be. Errors are "
                "answers with a status of 500 or above.",
                NO_REQUEST,
            ),
            [tomcat.SERVER_RATE, tomcat.SERVER_ERRORS],
            width=WIDTH,
            height=HEIGHT,
        ),
    ]


def _processor() -> timeseries.Panel:
    return graph(
        Text(
            "How much processor does the target use?",
            "At the dashed line more threads do not help. Low while users wait: the target waits "
            "as well, for what it calls.",
            NO_TARGET,
        ),
        [tomcat.CPU_USED, tomcat.CPU_AVAILABLE],
        width=WIDTH,
        height=HEIGHT,
    )


def _throttling() -> timeseries.Panel:
    return graph(
        Text(
            "Is the target throttled?",
            "Anything but 0 is a target that had work and was stopped by its CPU quota: latency "
            "then measures the quota. Without a quota it is 0.",
            NO_TARGET,
        ),
        [tomcat.CPU_THROTTLED],
        width=WIDTH,
        height=HEIGHT,
    )


def _keep_alive() -> timeseries.Panel:
    return graph(
        Text(
            "How many connections are kept alive?",
            "Idle ones cost no worker, but each takes one of max-connections until "
            "TOMCAT_KEEP_ALIVE_TIMEOUT closes it.",
            NO_TARGET,
        ),
        [tomcat.CONNECTIONS_HELD, tomcat.CONNECTIONS_IDLE],
        width=WIDTH,
        height=HEIGHT,
    )


def _settings() -> table.Panel:
    return settings_table(
        Text(
            "Which settings are in effect?",
            "What the target really runs with. A value that is not the one asked for was refused "
            "or capped.",
            NO_TARGET,
        ),
        tomcat.SETTINGS,
    )
