package main

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

var (
	cpuMetric = inNamespace("machine_cpu_seconds_total",
		"Time the machine's processors spent in a mode, all of them added up.", "mode")
	cpusMetric = inNamespace("machine_cpus",
		"Processors of the machine that are online.")
	memoryMetric = inNamespace("machine_memory_bytes",
		"Memory of the machine.")
	availableMetric = inNamespace("machine_memory_available_bytes",
		"Memory of the machine that programs can have without swapping: free, or given up on demand.")
	openFilesMetric = inNamespace("machine_open_files",
		"Open files and sockets of all processes of the machine.")
	stalledMetric = inNamespace("machine_stalled_seconds_total",
		"Time in which at least one task of the machine waited for a resource (pressure stall information); absent where the kernel does not measure it.", "resource")
)

// machineState is the whole machine, in a container too: these files know no namespace.
type machineState struct {
	cpuSeconds     map[string]float64 // by mode
	cpus           int
	memoryBytes    uint64
	availableBytes uint64
	openFiles      int
	stalledSeconds map[string]float64 // by resource; what the kernel does not measure is not in it
}

func readMachine() (machineState, error) {
	files, err := procfs.NewDefaultFS()
	if err != nil {
		return machineState{}, fmt.Errorf("/proc: %w", err)
	}
	processors, err := files.Stat()
	if err != nil {
		return machineState{}, fmt.Errorf("/proc/stat: %w", err)
	}
	memory, err := files.Meminfo()
	if err != nil {
		return machineState{}, fmt.Errorf("/proc/meminfo: %w", err)
	}
	if memory.MemTotalBytes == nil || memory.MemAvailableBytes == nil {
		return machineState{}, errors.New("/proc/meminfo: no MemTotal or MemAvailable")
	}
	// Allocated, allocated and unused (always 0), maximum.
	fileNumbers, err := files.SysctlInts("fs.file-nr")
	if err != nil {
		return machineState{}, fmt.Errorf("/proc/sys/fs/file-nr: %w", err)
	}
	return machineState{
		cpuSeconds:     secondsByMode(processors.CPUTotal),
		cpus:           len(processors.CPU),
		memoryBytes:    *memory.MemTotalBytes,
		availableBytes: *memory.MemAvailableBytes,
		openFiles:      fileNumbers[0],
		stalledSeconds: readStalls(files),
	}, nil
}

// secondsByMode leaves guests out: the kernel counts them as user and nice already.
func secondsByMode(time procfs.CPUStat) map[string]float64 {
	return map[string]float64{
		"user":    time.User,
		"nice":    time.Nice,
		"system":  time.System,
		"idle":    time.Idle,
		"iowait":  time.Iowait,
		"irq":     time.IRQ,
		"softirq": time.SoftIRQ,
		"steal":   time.Steal,
	}
}

// readStalls reads pressure stall information, which a kernel may lack
// (CONFIG_PSI) or not be started with (psi=1): that is no error.
func readStalls(files procfs.FS) map[string]float64 {
	seconds := make(map[string]float64)
	for _, resource := range []string{"cpu", "memory", "io"} {
		if stalls, err := files.PSIStatsForResource(resource); err == nil && stalls.Some != nil {
			seconds[resource] = float64(stalls.Some.Total) / 1e6
		}
	}
	return seconds
}

func (m machineState) send(metrics chan<- prometheus.Metric) {
	for mode, seconds := range m.cpuSeconds {
		metrics <- counter(cpuMetric, seconds, mode)
	}
	metrics <- gauge(cpusMetric, float64(m.cpus))
	metrics <- gauge(memoryMetric, float64(m.memoryBytes))
	metrics <- gauge(availableMetric, float64(m.availableBytes))
	metrics <- gauge(openFilesMetric, float64(m.openFiles))
	for resource, seconds := range m.stalledSeconds {
		metrics <- counter(stalledMetric, seconds, resource)
	}
}
