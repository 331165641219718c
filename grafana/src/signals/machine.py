"""What runs short: processor, memory, open files, sockets and network, and the target's JVM.

`machine_…` and `sockets_…` come from the sockets exporter, which runs beside the target: the
first are of the whole machine, the second of the target's network namespace.
"""

from dataclasses import replace
from functools import partial

from grafana.src.signals import load, tomcat
from grafana.src.signals.tomcat import increase_per_second
from spikelab import signals
from spikelab.signals import TARGET, Colour, Signal, Unit, peak

_TARGET_EVERY = "2s"
# Prometheus, InfluxDB and Grafana are scraped every 5 s, so a rate needs twice that: the data
# source's interval is 1 s, from which Grafana takes $__rate_interval.
_LAB_EVERY = "5s"
_LAB_RATE_EVERY = "10s"
_LAB_COLOURS = {
    "lab (prometheus)": Colour.P99,
    "lab (influxdb)": Colour.P95,
    "lab (grafana)": Colour.P90,
    "lab (exporter)": Colour.P50,
}


_shown = partial(Signal, every=_TARGET_EVERY)


def _of_target(series: str, selector: str = "") -> str:
    return f"sum by (target) ({series}{{{TARGET}{selector}}})"


# How much of each limit is used.

_BUSY = increase_per_second("machine_cpu_seconds_total", ', mode!~"idle|iowait"')
_CPUS = _of_target("machine_cpus")
_MEMORY = _of_target("machine_memory_bytes")
_AVAILABLE = _of_target("machine_memory_available_bytes")
_HEAP = _of_target("jvm_memory_used_bytes", ', area="heap"')
_OPEN_FILES = _of_target("process_files_open_files")

CPU_SHARE = _shown(
    "cpu_share",
    "processor",
    Unit.SHARE,
    "of the whole machine, whoever uses it",
    Colour.WORKING,
    f"{_BUSY} / {_CPUS}",
)
MEMORY_SHARE = _shown(
    "memory_share",
    "memory",
    Unit.SHARE,
    "of the whole machine, without what programs can still have",
    Colour.P95,
    f"1 - {_AVAILABLE} / {_MEMORY}",
)
HEAP_SHARE = _shown(
    "heap_share",
    "heap",
    Unit.SHARE,
    "of the most that the target's JVM may take; garbage included",
    Colour.PREDICTED,
    # A pool without a limit of its own reports -1.
    f'{_HEAP} / sum by (target) (jvm_memory_max_bytes{{{TARGET}, area="heap"}} > 0)',
)
OPEN_FILES_SHARE = _shown(
    "open_files_share",
    "open files",
    Unit.SHARE,
    "of the target's process, sockets included, of the most it may have",
    Colour.WAITING,
    f"{_OPEN_FILES} / {_of_target('process_files_max_files')}",
)
CONNECTIONS_SHARE = _shown(
    "connections_share",
    "connections",
    Unit.SHARE,
    "established ones, of the target's predicted capacity",
    Colour.CONNECTED,
    f"{signals.CONNECTIONS_ESTABLISHED.query} / ({signals.CONNECTIONS_PREDICTED.query})",
)


# The processor.


def _mode(title: str, modes: str, about: str, colour: Colour) -> Signal:
    return _shown(
        f"cpu_{title.replace(' ', '_')}",
        title,
        Unit.COUNT,
        about,
        colour,
        increase_per_second("machine_cpu_seconds_total", f', mode=~"{modes}"'),
    )


CPU_USER = _mode("programs", "user|nice", "cores that run programs", Colour.WORKING)
CPU_SYSTEM = _mode("kernel", "system", "cores that run the kernel for programs", Colour.CONNECTED)
CPU_INTERRUPTS = _mode(
    "interrupts", "irq|softirq", "cores that serve devices, packets mostly", Colour.PREDICTED
)
CPU_STOLEN = _mode(
    "stolen", "steal", "cores that the hypervisor gave to other machines", Colour.TURNED_AWAY
)
CPU_DISK = _mode("disk", "iowait", "cores with nothing to do but wait for a disk", Colour.WAITING)
CPUS = _shown(
    "cpus",
    "machine",
    Unit.COUNT,
    "cores of the machine",
    Colour.LIMIT,
    _CPUS,
    limit=True,
)

CPU_TARGET = replace(
    tomcat.CPU_USED, name="cpu_target", title="target", about="cores that the target uses"
)
# Beside the others of the machine it is one component.
CPU_DRIVER = replace(
    load.DRIVER_CPU, name="cpu_driver", title="driver ({{driver}})", colour=Colour.PREDICTED
)


def _of_lab(before: str, after: str = "") -> str:
    """Of the lab's own programs: its stores and dashboards, and the exporter beside the target.

    `before` ends in the series' name, `after` is what follows its labels.
    """
    return (
        f'sum by (component) ({before}{{job="lab"}}{after}) or label_replace('
        f'sum({before}{{job="sockets"}}{after}), "component", "exporter", "", "")'
    )


CPU_LAB = _shown(
    "cpu_lab",
    "lab ({{component}})",
    Unit.COUNT,
    "cores that the lab itself uses",
    Colour.OTHER,
    _of_lab("rate(process_cpu_seconds_total", "[$__rate_interval])"),
    every=_LAB_RATE_EVERY,
    colours=_LAB_COLOURS,
)
STALLED = _shown(
    "stalled",
    "waits ({{resource}})",
    Unit.SHARE,
    "share of the time in which at least one task of the machine waited",
    Colour.WAITING,
    "sum by (target, resource) "
    f"(rate(machine_stalled_seconds_total{{{TARGET}}}[$__rate_interval]))",
    colours={
        "waits (cpu)": Colour.WORKING,
        "waits (memory)": Colour.P95,
        "waits (io)": Colour.WAITING,
    },
)
# Memory.

MEMORY_USED = _shown(
    "memory_used",
    "used",
    Unit.BYTES,
    "what the machine's programs have and would not give back",
    Colour.P95,
    f"{_MEMORY} - {_AVAILABLE}",
)
MEMORY_TOTAL = _shown(
    "memory_total", "machine", Unit.BYTES, "all there is", Colour.LIMIT, _MEMORY, limit=True
)
MEMORY_TARGET = _shown(
    "memory_target",
    "target",
    Unit.BYTES,
    "what the target's JVM has claimed; threads' stacks come on top",
    Colour.WORKING,
    _of_target("jvm_memory_committed_bytes"),
)
MEMORY_LAB = _shown(
    "memory_lab",
    "lab ({{component}})",
    Unit.BYTES,
    "resident memory of the lab's own programs",
    Colour.OTHER,
    _of_lab("process_resident_memory_bytes"),
    every=_LAB_EVERY,
    colours=_LAB_COLOURS,
)
HEAP_USED = _shown(
    "heap_used", "used", Unit.BYTES, "objects, garbage included", Colour.WORKING, _HEAP
)
HEAP_COMMITTED = _shown(
    "heap_committed",
    "claimed",
    Unit.BYTES,
    "what the JVM has from the machine for its heap",
    Colour.LIMIT,
    _of_target("jvm_memory_committed_bytes", ', area="heap"'),
    limit=True,
)
NON_HEAP_CODE = _shown(
    "non_heap_code",
    "code",
    Unit.BYTES,
    "compiled methods",
    Colour.WORKING,
    _of_target("jvm_memory_used_bytes", ', area="nonheap", id=~"Code.*"'),
)
NON_HEAP_CLASSES = _shown(
    "non_heap_classes",
    "classes",
    Unit.BYTES,
    "what the JVM knows of its classes",
    Colour.P95,
    _of_target("jvm_memory_used_bytes", ', area="nonheap", id!~"Code.*"'),
)
NON_HEAP_BUFFERS = _shown(
    "non_heap_buffers",
    "buffers",
    Unit.BYTES,
    "direct buffers, of connections mostly",
    Colour.CONNECTED,
    _of_target("jvm_buffer_memory_used_bytes"),
)
# Garbage collections; their series begin with the first one.

_NONE_YET = f"0 * {_of_target('jvm_threads_live_threads')}"

PAUSED_SHARE = _shown(
    "gc_paused_share",
    "stopped",
    Unit.SHARE,
    "share of the time in which a collection stopped all of the target's threads",
    Colour.TURNED_AWAY,
    f"{increase_per_second('jvm_gc_pause_seconds_sum')} or {_NONE_YET}",
)
LONGEST_PAUSE = _shown(
    "gc_longest_pause",
    "longest",
    Unit.SECONDS,
    "the longest stop of the last minutes",
    Colour.P99,
    f"max by (target) (jvm_gc_pause_seconds_max{{{TARGET}}}) or {_NONE_YET}",
)
COLLECTIONS_RATE = _shown(
    "gc_rate",
    "collections",
    Unit.COUNT_PER_SECOND,
    "collections that stopped the target, a second",
    Colour.TURNED_AWAY,
    f"{increase_per_second('jvm_gc_pause_seconds_count')} or {_NONE_YET}",
)
ALLOCATED_RATE = _shown(
    "allocated_rate",
    "allocated",
    Unit.BYTES_PER_SECOND,
    "bytes of new objects a second, counted at each collection",
    Colour.WORKING,
    increase_per_second("jvm_gc_memory_allocated_bytes_total"),
)
THREADS = _shown(
    "threads_by_state",
    "threads ({{state}})",
    Unit.COUNT,
    "threads of the target's JVM",
    Colour.OTHER,
    f'sum by (target, state) (jvm_threads_states_threads{{{TARGET}, state!~"new|terminated"}})',
    colours={
        "threads (runnable)": Colour.WORKING,
        "threads (blocked)": Colour.FAILED,
        "threads (waiting)": Colour.WAITING,
        "threads (timed-waiting)": Colour.P50,
    },
)
# Files, sockets, network.

OPEN_FILES = _shown(
    "open_files",
    "target",
    Unit.COUNT,
    "files and sockets that the target's process has open",
    Colour.WORKING,
    _OPEN_FILES,
)
OPEN_FILES_MACHINE = _shown(
    "open_files_machine",
    "machine",
    Unit.COUNT,
    "files and sockets of all processes together",
    Colour.P95,
    _of_target("machine_open_files"),
)
OPEN_FILES_LAB = _shown(
    "open_files_lab",
    "lab",
    Unit.COUNT,
    "of the lab's own programs together",
    Colour.OTHER,
    'sum(process_open_fds{job="lab"}) + sum(process_open_fds{job="sockets"})',
    every=_LAB_EVERY,
)


def _connections(state: str, states: str, about: str, colour: Colour) -> Signal:
    return _shown(
        f"sockets_{state}",
        state,
        Unit.COUNT,
        about,
        colour,
        f"sum by (target) (max_over_time("
        f'sockets_transitional{{{TARGET}, state=~"{states}"}}[$__interval]))',
        every="1s",
    )


SOCKETS_OPENING = _connections(
    "syn_received",
    "syn_received",
    "connections of the traffic port whose handshake is not done",
    Colour.WAITING,
)
SOCKETS_LEFT = _connections(
    "close_wait",
    "close_wait",
    "connections that the client has closed and the server has not",
    Colour.FAILED,
)
SOCKETS_CLOSING = _connections(
    "closing",
    "fin_wait1|fin_wait2|last_ack|closing",
    "connections that the server has closed and the client has not confirmed",
    Colour.TURNED_AWAY,
)
SOCKETS_TIME_WAIT = _shown(
    "sockets_time_wait",
    "time_wait",
    Unit.COUNT,
    "connections that are over, of the whole network namespace, kept for a minute by whichever "
    "end closed first",
    Colour.OTHER,
    peak("sockets_time_wait"),
    every="1s",
)


def _network(direction: str) -> str:
    return (
        "sum by (target, device) "
        f"(rate(sockets_network_{direction}_bytes_total{{{TARGET}}}[$__rate_interval])) > 0"
    )


RECEIVED = _shown(
    "network_received",
    "in ({{device}})",
    Unit.BYTES_PER_SECOND,
    "bytes received a second",
    Colour.CONNECTED,
    _network("receive"),
    every="1s",
)
SENT = _shown(
    "network_sent",
    "out ({{device}})",
    Unit.BYTES_PER_SECOND,
    "bytes sent a second",
    Colour.WORKING,
    _network("transmit"),
    every="1s",
)
