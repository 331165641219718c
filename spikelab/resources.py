"""What the lab's own target used during a step: processor, memory, open files, worker threads."""

from collections.abc import Sequence

from spikelab.record import Resources, Step
from spikelab.stores.prometheus import Prometheus
from spikelab.usage import Usage

_TARGET = '{job="target"}'
# A JVM's metrics count nanoseconds, those of most other programs seconds.
_CPU = (
    f"sum(rate(process_cpu_time_ns_total{_TARGET}[WINDOW])) / 1e9"
    f" or sum(rate(process_cpu_seconds_total{_TARGET}[WINDOW]))"
)
_CPUS = f"min(system_cpu_count{_TARGET})"
# Infinite without a limit.
_CPU_QUOTA = f"min(cgroup_cpu_quota_cores{_TARGET})"
# What a JVM has taken from the system is the nearest that it says of itself.
_MEMORY = (
    f"max(max_over_time(process_resident_memory_bytes{_TARGET}[WINDOW]))"
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


def fill_resources(steps: Sequence[Step], prometheus: Prometheus, target: Usage | None) -> None:
    """Each step's resources, from the scrapes within it.

    `target`: the process as the lab itself sees it, which knows its resident memory; where it
    cannot be seen, the target's own word is taken. A step needs two scrapes (4 s) to show its CPU.
    Raises LabError when Prometheus does not answer.
    """
    for step in steps:
        step.resources = _used(step, prometheus, target)


def _used(step: Step, prometheus: Prometheus, target: Usage | None) -> Resources:
    window = f"{max(1, round((step.ended - step.started).total_seconds() * 1000))}ms"

    def seen(expression: str) -> float | None:
        return prometheus.value(expression.replace("WINDOW", window), step.ended)

    cpu, cpus, quota = (seen(expression) for expression in (_CPU, _CPUS, _CPU_QUOTA))
    cores = min((each for each in (cpus, quota) if each), default=None)
    memory = (target and target.memory_between(step.started, step.ended)) or seen(_MEMORY)
    files, workers = seen(_OPEN_FILES), seen(_WORKERS)
    return Resources(
        cpu_share=None if cpu is None or cores is None else round(cpu / cores, 4),
        memory_bytes=None if memory is None else int(memory),
        open_files=None if files is None else int(files),
        worker_threads_share=None if workers is None else round(workers, 4),
    )
