"""Dashboard `lab-health`: is the lab itself telling the truth?"""

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import text as text_panel
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.dashboard import GridPos

from grafana.src.board import new_dashboard
from grafana.src.panels.common import Text
from grafana.src.panels.figures import words
from grafana.src.panels.graphs import graph, timeline
from grafana.src.panels.tables import rows
from grafana.src.signals import lab_health
from spikelab.signals import Colour, Signal

NO_PROMETHEUS = "No metrics of Prometheus itself: see ./lab status"
NO_RUN = "No run in the time shown: start one, or widen the time range"
NO_EVENTS = "Only ./lab run watches this; a bare run has no phases to write"
NO_QUERY = "Nobody has asked or pushed anything in the time shown"
WIDTH = 8
HEIGHT = 6

EMPTY = """\
- **Everything is empty.** No run in the time shown: `./lab demo`, or widen the time. A finished \
run's link opens its own time.
- **Only some panels.** A choice above is of another run: set *Run* to *live*, the others to *All*.
- **A run by hand is missing.** It pushed nowhere: k6 needs `--out experimental-prometheus-rw`.
- **A rate, but no percentiles.** k6 was started without `K6_FEATURES=native-histograms`.
- **Curves in steps of 5 s.** k6's own pace: `K6_PROMETHEUS_RW_PUSH_INTERVAL=1s`.
- **No single requests.** Raw samples are written where asked for: `--sink influxdb`.
- **No phases marked.** InfluxDB was away (see *Phases late*), or the script is not the lab's.
- **No queue of the target.** It is not the lab's own, or not scraped: see the first panel.
- **No accept queue.** The sockets exporter must share the target's network.
- **No verdict, no driver.** Only `./lab run` watches them; a run by hand has k6's summary.
- **Nothing fails.** Panels of failures and alerts are rightly empty then.
- **A hole in every curve.** Prometheus stood still: scrapes are old, evaluations missed.
"""


def build() -> dashboard.Dashboard:
    """The dashboard: scrapes, pushes and rules with the list of reasons beside; the stores."""
    board = new_dashboard(
        "lab-health",
        "Lab: is it telling the truth?",
        "Whether the lab measured, received and evaluated all it shows; why a panel is empty.",
    )
    for panel in [_components(), _alerts()]:
        board.with_panel(panel)
    board.with_panel(_reasons().grid_pos(GridPos(x=2 * WIDTH, y=0, w=WIDTH, h=3 * HEIGHT)))
    for place, panel in enumerate(_truth()):
        column, row = place % 2, 1 + place // 2
        at = GridPos(x=column * WIDTH, y=row * HEIGHT, w=WIDTH, h=HEIGHT)
        board.with_panel(panel.grid_pos(at))
    for place, panel in enumerate(_means()):
        column, row = place % 3, 3 + place // 3
        at = GridPos(x=column * WIDTH, y=row * HEIGHT, w=WIDTH, h=HEIGHT)
        board.with_panel(panel.grid_pos(at))
    return board


def _components() -> statetimeline.Panel:
    return timeline(
        Text(
            "Does every part answer?",
            "Red: asked, and no answer. A proxy that was not started is red and harmless where the "
            "lab runs in containers. What is not listed is not scraped at all.",
            NO_PROMETHEUS,
        ),
        lab_health.SCRAPE_UP,
        {1: ("answers", Colour.GOOD), 0: ("does not answer", Colour.FAILED)},
        width=6,
        height=HEIGHT,
    )


def _alerts() -> table.Panel:
    columns = {
        "alertname": "Alert",
        "Value": "Firing",
        "severity": "Severity",
        "of": "Of",
    }
    return (
        rows(
            Text(
                "Which alerts have fired?",
                "In the time shown. Critical: the target does not serve, or the run decides "
                "nothing. Warning: a limit was met, which may be what the test is for.",
                "No alert has fired in the time shown",
            ),
            [lab_health.ALERTS_FIRED],
            columns,
            width=10,
            height=HEIGHT,
        )
        .override_by_name("Alert", [model.DynamicConfigValue("custom.width", 190)])
        .override_by_name("Firing", [model.DynamicConfigValue("custom.width", 80)])
        .override_by_name("Severity", [model.DynamicConfigValue("custom.width", 75)])
        .override_by_name("Of", [model.DynamicConfigValue("custom.width", 150)])
    )


def _reasons() -> text_panel.Panel:
    return words(
        "Why is my panel empty?",
        "What was seen, why, and the cure.",
        EMPTY,
        width=WIDTH,
        height=3 * HEIGHT,
    )


def _small(text: Text, *shown: Signal, logarithmic: bool = False) -> timeseries.Panel:
    return graph(text, shown, width=WIDTH, height=HEIGHT, logarithmic=logarithmic)


def _truth() -> list[timeseries.Panel]:
    """What would make a curve wrong."""
    return [
        _small(
            Text(
                "Are scrapes missing?",
                "A saw with teeth as long as the interval. Higher is scrapes that were missed: in "
                "that time curves of this part are old values.",
                NO_PROMETHEUS,
            ),
            lab_health.SCRAPE_AGE,
        ),
        _small(
            Text(
                "How old is the newest pushed sample?",
                "Up to the driver's push interval, 1 s in the lab and 5 s for k6 by hand. More is "
                "a driver that cannot push, as it is starved or Prometheus is slow; at the right "
                "edge it is how far the curves are behind.",
                NO_RUN,
            ),
            lab_health.PUSH_AGE,
        ),
        _small(
            Text(
                "Are rules evaluated in time?",
                "All loadtest:… series come from here, one value a second. Above the dashed line "
                "evaluations are missed and rates have holes.",
                NO_PROMETHEUS,
            ),
            lab_health.RULE_DURATION,
            lab_health.RULE_INTERVAL,
            logarithmic=True,
        ),
        _small(
            Text(
                "Was anything refused or left out?",
                "Anything but 0 is data that the curves lack. Not so the few out of order at a "
                "run's end: they are k6's marks that its histograms end, and nothing reads them.",
                NO_PROMETHEUS,
            ),
            lab_health.SAMPLES_REFUSED,
            lab_health.PUSHES_FAILED,
            lab_health.RULES_MISSED,
            lab_health.RULES_FAILED,
        ),
    ]


def _means() -> list[timeseries.Panel]:
    """What the lab itself does and costs."""
    graphs: Sequence[tuple[Text, list[Signal]]] = [
        (
            Text(
                "Phases late",
                "Anything but 0 for long: InfluxDB is away. The run goes on, and phases are "
                "marked when it is back.",
                NO_EVENTS,
            ),
            [lab_health.EVENTS_PENDING],
        ),
        (
            Text(
                "How much is stored?",
                "Grows with runs, requests by name and the target's metrics, not with the load.",
                NO_PROMETHEUS,
            ),
            [lab_health.SAMPLES_APPENDED],
        ),
        (
            Text(
                "How long do panels and pushes wait for Prometheus?",
                "Means. Longer than the refresh interval: panels are late. Longer than the push "
                "interval: curves are late. A dashboard over a long time is slow by itself.",
                NO_QUERY,
            ),
            [lab_health.QUERY_MEAN, lab_health.PUSH_MEAN, lab_health.EVALUATION_P99],
        ),
        (
            Text(
                "How long do scrapes take?",
                "Near its interval a scrape is cut off and missing. The target's grows when the "
                "target is starved: then its own curves are late.",
                NO_PROMETHEUS,
            ),
            [lab_health.SCRAPE_DURATION],
        ),
        (
            Text(
                "How many values has a scrape?",
                "A step is a restart or new labels; growth without end is a label that should not "
                "be one.",
                NO_PROMETHEUS,
            ),
            [lab_health.SCRAPE_SAMPLES],
        ),
        (
            Text(
                "How many series are in memory?",
                "Each run adds its own; they leave memory after two to three hours.",
                NO_PROMETHEUS,
            ),
            [lab_health.HEAD_SERIES],
        ),
        (
            Text(
                "How much memory do the stores use?",
                "Taken from the machine under test where they share it.",
                NO_PROMETHEUS,
            ),
            [lab_health.STORE_MEMORY],
        ),
        (
            Text(
                "How much disk does Prometheus use?",
                "Old samples leave after PROMETHEUS_RETENTION. InfluxDB does not state its own.",
                NO_PROMETHEUS,
            ),
            [lab_health.STORE_DISK],
        ),
    ]
    return [_small(text, *shown) for text, shown in graphs]
