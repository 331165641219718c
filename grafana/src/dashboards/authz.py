"""Dashboard `authz`: what does a check cost?"""

from grafana_foundation_sdk.builders import dashboard, stat, table, timeseries

from grafana.src.board import new_dashboard
from grafana.src.panels.common import Text
from grafana.src.panels.figures import number, state
from grafana.src.panels.graphs import graph
from grafana.src.panels.tables import rows
from grafana.src.signals import authz
from spikelab.signals import Colour

NO_TARGET = "No metrics of the target: is it running, and is its management port scraped?"
NO_CHECK = "No check in the time shown: ./lab run authz, or widen the time range"
NO_REDIS = "No broker: ./lab up --with redis, and AUTHZ_BLACKLIST=local"
NO_EVENT = "No phase in the time shown: start a run, or widen the time range"
QUARTER = 6
THIRD = 8
FIGURE_HEIGHT = 3
GRAPH_HEIGHT = 7


def build() -> dashboard.Dashboard:
    """The dashboard: decisions and their times, look-ups, then revocations and who shares them."""
    board = new_dashboard(
        "authz",
        "Authorization: what does a check cost?",
        "What the target decides on bearer tokens, how long each step of it takes, and where "
        "revoked tokens are looked up.",
    )
    for panel in [*_figures(), *_checks(), *_look_ups(), *_revocations()]:
        board.with_panel(panel)
    return board.with_panel(_events())


def _events() -> table.Panel:
    columns = {
        "Time": "Began",
        "phase": "Phase",
        "text": "Load",
        "state": "State",
        "driver": "Driver",
        "testid": "Run",
    }
    return rows(
        Text(
            "What happened, and when?",
            "The newest first. A phase that is open long after its end is one whose driver was "
            "killed; the lab closes it with the run.",
            NO_EVENT,
        ),
        [authz.EVENTS],
        columns,
        width=24,
        height=6,
    )


def _figures() -> list[stat.Panel]:
    place = Text("Where is a token looked up?", "It decides what a look-up costs.", NO_TARGET)
    return [
        state(
            place,
            authz.BLACKLIST_PLACE,
            {0: ("in memory", Colour.WORKING), 1: ("in Redis", Colour.WAITING)},
        ).span(QUARTER),
        number(
            Text(
                "Revoked tokens in memory",
                "It falls by itself as tokens expire. 0 where Redis is asked.",
                NO_TARGET,
            ),
            authz.BLACKLIST_ENTRIES_NOW,
            width=QUARTER,
            height=FIGURE_HEIGHT,
        ),
        number(
            Text(
                "Targets that lost their broker",
                "Anything but 0 is a target that accepts tokens revoked elsewhere. Only targets "
                "with AUTHZ_BLACKLIST=local and a Redis have one.",
                NO_TARGET,
            ),
            authz.BROKERS_LOST,
            width=QUARTER,
            height=FIGURE_HEIGHT,
        ),
        number(
            Text(
                "What does the measurement cost?",
                "Of a time not much longer than this, most is the timer's own.",
                NO_TARGET,
            ),
            authz.TIMER_COST_NOW,
            width=QUARTER,
            height=FIGURE_HEIGHT,
        ),
    ]


def _checks() -> list[timeseries.Panel]:
    return [
        graph(
            Text(
                "How many checks a second, and what is decided?",
                "Stacked. Refusals that nobody planned are a token that has expired during "
                "the run, a key that was made anew, or a blacklist that does not answer.",
                NO_CHECK,
            ),
            [authz.ALLOWED_RATE, authz.DENIED_RATE],
            stacked=True,
            width=THIRD,
            height=GRAPH_HEIGHT,
        ),
        graph(
            Text(
                "How slow are the slowest checks, and their steps?",
                "On a logarithmic axis. Each line for itself: the slowest hundredth of one step is "
                "not that of another, so percentiles neither add nor subtract.",
                NO_CHECK,
            ),
            [authz.CHECK_P99, authz.VERIFY_P99, authz.REDIS_P99, authz.LOCAL_P99],
            width=THIRD,
            height=GRAPH_HEIGHT,
            logarithmic=True,
        ),
        graph(
            Text(
                "Where does the mean of an answer go?",
                "Stacked, from the inside out: means add, percentiles do not. The top is the mean "
                "of good answers at the driver, so it holds for runs of checks alone. Grey that "
                "grows is waiting before a worker or on the way (see Tomcat); what is too thin to "
                "see is not worth making faster.",
                NO_CHECK,
            ),
            [
                authz.VERIFY_MEAN,
                authz.LOOK_UP_MEAN,
                authz.CHECK_REST_MEAN,
                authz.SERVER_REST_MEAN,
                authz.OUTSIDE_MEAN,
            ],
            stacked=True,
            width=THIRD,
            height=GRAPH_HEIGHT,
        ),
    ]


def _look_ups() -> list[timeseries.Panel]:
    return [
        graph(
            Text(
                "How many look-ups a second, and what is found?",
                "Each token that is otherwise valid is looked up once. Fewer look-ups than checks "
                "are tokens refused before.",
                NO_CHECK,
            ),
            [authz.MISSES_RATE, authz.HITS_RATE],
            width=THIRD,
            height=GRAPH_HEIGHT,
        ),
        graph(
            Text(
                "What does a look-up cost in memory, and in Redis?",
                "On a logarithmic axis: a step of the grid is ten times as long. Memory is the "
                "lower pair of lines. At the dashed line it is the timer that is measured.",
                NO_CHECK,
            ),
            [
                authz.REDIS_P99_OF_LOOK_UP,
                authz.REDIS_P50,
                authz.LOCAL_P99_OF_LOOK_UP,
                authz.LOCAL_P50,
                authz.TIMER_COST,
            ],
            width=THIRD,
            height=GRAPH_HEIGHT,
            logarithmic=True,
        ),
        graph(
            Text(
                "How full is the blacklist?",
                "At 100 % the next revocation has no room, and from then on no token is accepted: "
                "raise TARGET_AUTHZ_BLACKLIST_MAX_ENTRIES before that.",
                NO_TARGET,
            ),
            [authz.BLACKLIST_FILLED, authz.BLACKLIST_FULL],
            width=THIRD,
            height=GRAPH_HEIGHT,
        ),
    ]


def _revocations() -> list[timeseries.Panel]:
    return [
        graph(
            Text(
                "How many tokens are revoked, and forgotten?",
                "Anything but accepted is a logout that failed. What expires makes room.",
                NO_TARGET,
            ),
            [authz.REVOCATIONS_RATE, authz.EXPIRED_RATE],
            width=THIRD,
            height=GRAPH_HEIGHT,
        ),
        graph(
            Text(
                "What comes from the broker?",
                "Received is what all targets revoke. A reconnect is a time in which nothing came; "
                "what was missed is read again after it.",
                NO_REDIS,
            ),
            [authz.RECEIVED_RATE, authz.BROKER_FAILED_RATE, authz.RECONNECTS_RATE],
            width=THIRD,
            height=GRAPH_HEIGHT,
        ),
        graph(
            Text(
                "What does the broker not have yet?",
                "Above 0 for more than a second: Redis is away or slow, and other targets accept "
                "what was revoked here.",
                NO_REDIS,
            ),
            [authz.PENDING],
            width=THIRD,
            height=GRAPH_HEIGHT,
        ),
    ]
