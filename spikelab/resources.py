"""What the lab's own target used during a step: processor, memory, open files, worker threads."""

from collections.abc import Sequence

from spikelab.record import Resources, Step
from spikelab.signals.core import OF_LAB_TARGET
from spikelab.stores.prometheus import Prometheus
from spikelab.usage import Usage

_SELECTOR = f'job="target", {OF_LAB_TARGET}'
_TARGET = f"{{{_SELECTOR}}}"
# A JVM's metrics count nanoseconds, those of most other programs seconds.
_CPU = (
    f"sum(rate(process_cpu_time_ns_total{_TARGET}[WINDOW])) / 1e9"
    f" or sum(rate(process_cpu_seconds_total{_TARGET}[WINDOW]))"
)
# Of each replica the lower one: a quota is infinite without a limit, and a JVM rounds it up.
_CORES = (
    f'sum(min by (instance) ({{__name__=~"system_cpu_count|cgroup_cpu_quota_cores", {_SELECTOR}}}))'
)
# What a JVM has taken from the system is the nearest that it says of itself.
_MEMORY = (
    f"max(max_over_time(sum(process_resident_memory_bytes{_TARGET})[WINDOW:1s]))"
    f" or max(max_over_time(sum(jvm_memory_committed_bytes{_TARGET})[WINDOW:1s]))"
)
_OPEN_FILES = (
    f"max(max_over_time(process_files_open_files{_TARGET}[WINDOW]))"
    f" or max(max_over_time(process_open_fds{_TARGET}[WINDOW]))"
)
# With virtual threads, or an executor of its own, Tomcat says -1.
_WORKERS = (
    f"max(max_over_time((tomcat_threads_busy_threads{_TARGET}"
    f" / (tomcat_threads_config_max_threads{_TARGET} > 0))[WINDOW:1s]))"
)


def fill_resources(
    steps: Sequence[Step], prometheus: Prometheus, targets: Sequence[Usage], cpus: int
) -> None:
    """Each step's resources, from the scrapes within it.

    `targets`: the processes, of the target and its replicas, as the lab itself sees them, which
    knows their resident memory; where it cannot be seen, their own word is taken. `cpus`: how many
    all of them share. A step needs two scrapes (4 s) to show its CPU.
    Raises LabError when Prometheus does not answer.
    """
    for step in steps:
        step.resources = _used(step, prometheus, targets, cpus)


def _used(step: Step, prometheus: Prometheus, targets: Sequence[Usage], cpus: int) -> Resources:
    window = f"{max(1, round((step.ended - step.started).total_seconds() * 1000))}ms"

    def seen(expression: str) -> float | None:
        return prometheus.value(expression.replace("WINDOW", window), step.ended)

    cpu, cores = seen(_CPU), seen(_CORES)
    memory = _resident(step, targets) or seen(_MEMORY)
    files, workers = seen(_OPEN_FILES), seen(_WORKERS)
    return Resources(
        cpu_share=None if cpu is None or not cores else round(cpu / min(cores, cpus), 4),
        memory_bytes=None if memory is None else int(memory),
        open_files=None if files is None else int(files),
        worker_threads_share=None if workers is None else round(workers, 4),
    )


def _resident(step: Step, targets: Sequence[Usage]) -> int | None:
    """The peaks of all together; None where one was not seen."""
    peaks = [usage.memory_between(step.started, step.ended) for usage in targets]
    known = [peak for peak in peaks if peak is not None]
    return sum(known) if known and len(known) == len(peaks) else None
