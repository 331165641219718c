"""What is marked on every dashboard: a run's phases, and changes of the target's settings."""

from spikelab.signals import TARGET, Colour, Signal, Source, Unit

PHASES = Signal(
    name="phases",
    title="phase",
    unit=Unit.COUNT,
    about="phases of a run as its driver wrote them, from start to end",
    colour=Colour.WORKING,
    # Not $timeFilter: a phase that began left of the window is shown as well.
    query=(
        'SELECT "title", "text", "tags", "timeEnd" FROM "events" '
        'WHERE time <= ${__to}ms AND "timeEnd" >= ${__from} '
        'AND "testid" =~ /^${testid:raw}$/ AND "driver" =~ /^${driver:regex}$/'
    ),
    source=Source.INFLUXDB,
)

# Replicas change theirs one after another, and that is one change.
_EFFECTIVE = f"max by (target, name) (tomcat_setting{{{TARGET}}})"
SETTING_CHANGE = Signal(
    name="setting_change",
    title="{{name}} = {{value}}",
    unit=Unit.COUNT,
    about="a setting that differs from what it was one step before",
    colour=Colour.LIMIT,
    query=(
        'count_values by (target, name) ("value", '
        f"{_EFFECTIVE} != last_over_time({_EFFECTIVE}[10m:5s] offset $__interval))"
    ),
    every="5s",
)
