"""Dashboard `machine`: what runs short?"""

from grafana_foundation_sdk.builders import dashboard, timeseries

from grafana.src.board import new_dashboard
from grafana.src.panels.common import Text
from grafana.src.panels.graphs import graph
from grafana.src.signals import load, machine, tomcat
from spikelab import signals

NO_SOCKETS = "No sockets exporter: is it running beside the target?"
NO_TARGET = "No metrics of the target: is it running, and is its management port scraped?"
NO_RUN = "No run of the lab in the time shown: ./lab run, or widen the time range"
THIRD = 8
QUARTER = 6
HEIGHT = 6
TOP_HEIGHT = 7


def build() -> dashboard.Dashboard:
    """The dashboard: limits at a glance, then processor, memory, the JVM, files and network."""
    board = new_dashboard(
        "machine",
        "Machine: what runs short?",
        "Processor, memory, open files, sockets and network of the target's machine, and the "
        "target's JVM. On Docker, too, the processor and memory are those of the whole machine.",
    )
    for panel in [*_limits(), *_waiting(), *_memory(), *_garbage(), *_threads_and_files()]:
        board.with_panel(panel)
    return board


def _limits() -> list[timeseries.Panel]:
    return [
        graph(
            Text(
                "What runs short?",
                "Each line as a share of what there is: the one near 100 % is what the test "
                "measures. Heap may touch it shortly before a collection. If none is high while "
                "users wait, it is threads or a back end: see Tomcat.",
                NO_SOCKETS,
            ),
            [
                machine.CPU_SHARE,
                machine.MEMORY_SHARE,
                machine.HEAP_SHARE,
                machine.OPEN_FILES_SHARE,
                machine.CONNECTIONS_SHARE,
            ],
            width=THIRD,
            height=TOP_HEIGHT,
        ),
        graph(
            Text(
                "What does the processor do?",
                "Stacked cores of the whole machine. Much kernel and interrupts: many small "
                "packets or connections. Orange is time that this machine did not get.",
                NO_SOCKETS,
            ),
            [
                machine.CPU_USER,
                machine.CPU_SYSTEM,
                machine.CPU_INTERRUPTS,
                machine.CPU_STOLEN,
                machine.CPU_DISK,
                machine.CPUS,
            ],
            width=THIRD,
            height=TOP_HEIGHT,
            stacked=True,
        ),
        graph(
            Text(
                "Who uses the processor?",
                "Stacked cores by component. Where the driver takes what the target wants, the "
                "figures are those of both. Space below the dashed line that the panel beside "
                "shows as busy is other programs.",
                NO_TARGET,
            ),
            [machine.CPU_TARGET, machine.CPU_DRIVER, machine.CPU_LAB, machine.CPUS],
            width=THIRD,
            height=TOP_HEIGHT,
            stacked=True,
        ),
    ]


def _waiting() -> list[timeseries.Panel]:
    return [
        graph(
            Text(
                "Do programs wait for the machine?",
                "Of the kernel's own count (pressure stall information). Waiting for the processor "
                "while it is not full is a quota; for memory, it is too small; for io, a disk.",
                "No figure: no sockets exporter, or a kernel that does not count (psi=1)",
            ),
            [machine.STALLED],
            width=QUARTER,
            height=HEIGHT,
        ),
        graph(
            Text(
                "Does a quota stop the target?",
                "Anything but 0 is a target that had work and was stopped by its CPU quota: "
                "latency then measures the quota. Without a quota it is 0.",
                NO_TARGET,
            ),
            [tomcat.CPU_THROTTLED],
            width=QUARTER,
            height=HEIGHT,
        ),
        graph(
            Text(
                "Is the generator the limit?",
                "Cores of the driver. Red at 1: give it more of the machine, or ask for less; a "
                "step measured meanwhile is inconclusive.",
                NO_RUN,
            ),
            [machine.CPU_DRIVER, load.DRIVER_LIMITED],
            width=QUARTER,
            height=HEIGHT,
        ),
        graph(
            Text(
                "How much memory is used?",
                "Of the whole machine. Near the dashed line the kernel ends a process, usually the "
                "largest one: the target or the driver.",
                NO_SOCKETS,
            ),
            [machine.MEMORY_USED, machine.MEMORY_TOTAL],
            width=QUARTER,
            height=HEIGHT,
        ),
    ]


def _memory() -> list[timeseries.Panel]:
    return [
        graph(
            Text(
                "Who has the memory?",
                "The driver is not in it: 10,000 users of k6 are about 1.6 GB, which the panel "
                "before shows.",
                NO_TARGET,
            ),
            [machine.MEMORY_TARGET, machine.MEMORY_LAB],
            stacked=True,
            width=THIRD,
            height=HEIGHT,
        ),
        graph(
            Text(
                "How much heap is used?",
                "Teeth are collections. Valleys that rise through a steady load are a leak; teeth "
                "that come closer are more garbage.",
                NO_TARGET,
            ),
            [machine.HEAP_USED, machine.HEAP_COMMITTED],
            width=THIRD,
            height=HEIGHT,
        ),
        graph(
            Text(
                "How much memory beside the heap?",
                "Code and classes settle in the first minute. Buffers that grow with connections "
                "are theirs.",
                NO_TARGET,
            ),
            [machine.NON_HEAP_CODE, machine.NON_HEAP_CLASSES, machine.NON_HEAP_BUFFERS],
            stacked=True,
            width=THIRD,
            height=HEIGHT,
        ),
    ]


def _garbage() -> list[timeseries.Panel]:
    return [
        graph(
            Text(
                "How much time do collections take?",
                "All requests stand still meanwhile. Above a few percent the heap is too small for "
                "what is allocated.",
                NO_TARGET,
            ),
            [machine.PAUSED_SHARE],
            width=QUARTER,
            height=HEIGHT,
        ),
        graph(
            Text(
                "How long is the longest collection?",
                "It is a floor under the slowest answers: compare it with their p99.",
                NO_TARGET,
            ),
            [machine.LONGEST_PAUSE],
            width=QUARTER,
            height=HEIGHT,
        ),
        graph(
            Text(
                "How often does it collect?",
                "It follows what is allocated; more often at the same rate is less room.",
                NO_TARGET,
            ),
            [machine.COLLECTIONS_RATE],
            width=QUARTER,
            height=HEIGHT,
        ),
        graph(
            Text(
                "How much is allocated?",
                "It follows the requests. More at the same rate is more work a request.",
                NO_TARGET,
            ),
            [machine.ALLOCATED_RATE],
            width=QUARTER,
            height=HEIGHT,
        ),
    ]


def _threads_and_files() -> list[timeseries.Panel]:
    return [
        graph(
            Text(
                "What do the target's threads do?",
                "Stacked. Workers that sleep or wait for an answer are waiting; red is threads "
                "that stop each other at a lock.",
                NO_TARGET,
            ),
            [machine.THREADS],
            stacked=True,
            width=QUARTER,
            height=HEIGHT,
        ),
        _files(),
        _sockets(),
        graph(
            Text(
                "How much goes over the network?",
                "By device of the target's network namespace. What stays on one machine goes over "
                "lo, and in and out are the same.",
                NO_SOCKETS,
            ),
            [machine.RECEIVED, machine.SENT],
            width=QUARTER,
            height=HEIGHT,
        ),
    ]


def _files() -> timeseries.Panel:
    shown = [machine.OPEN_FILES, machine.OPEN_FILES_MACHINE, machine.OPEN_FILES_LAB]
    text = Text(
        "How many files are open?",
        "On a logarithmic axis. A connection is a file at each of its ends. How near the target is "
        "to its limit is in the first panel.",
        NO_TARGET,
    )
    return graph(text, shown, width=QUARTER, height=HEIGHT, logarithmic=True)


def _sockets() -> timeseries.Panel:
    shown = [
        signals.CONNECTIONS_ESTABLISHED,
        machine.SOCKETS_OPENING,
        machine.SOCKETS_LEFT,
        machine.SOCKETS_CLOSING,
        machine.SOCKETS_TIME_WAIT,
    ]
    text = Text(
        "In which state are the sockets?",
        "On a logarithmic axis, so 0 is not drawn. close_wait that grows is a server that forgets "
        "connections. time_wait in tens of thousands, where the driver is on the same machine, is "
        "a driver that runs out of ports.",
        NO_SOCKETS,
    )
    return graph(text, shown, width=QUARTER, height=HEIGHT, logarithmic=True)
