"""The demo: a spike whose fate one Tomcat setting decides."""

from collections.abc import Iterator

from spikelab.console import say
from spikelab.experiments.engine import run_all
from spikelab.plans.load import open_plan
from spikelab.record import RunRecord
from spikelab.run import RunOptions
from spikelab.runtime import Runtime


def run(runtime: Runtime) -> Iterator[RunRecord]:
    """Both runs of plans/demo.yaml."""
    source = open_plan("demo")
    say(f"demo: {source.plan().about}")
    return run_all(runtime, source, RunOptions())
