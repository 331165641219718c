package main

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

var (
	timeWaitMetric = inNamespace("sockets_time_wait",
		"Connections in state TIME_WAIT, all ports of the namespace, clients' ends included.")
	receivedMetric = inNamespace("sockets_network_receive_bytes_total",
		"Bytes that a network device of the namespace has received.", "device")
	sentMetric = inNamespace("sockets_network_transmit_bytes_total",
		"Bytes that a network device of the namespace has sent.", "device")
)

// trafficState is what went over the devices of this process's network namespace, and
// the connections that are over.
type trafficState struct {
	devices  procfs.NetDev
	timeWait int
}

func readTraffic() (trafficState, error) {
	files, err := procfs.NewDefaultFS()
	if err != nil {
		return trafficState{}, fmt.Errorf("/proc: %w", err)
	}
	devices, err := files.NetDev()
	if err != nil {
		return trafficState{}, fmt.Errorf("/proc/net/dev: %w", err)
	}
	sockets, err := files.NetSockstat()
	if err != nil {
		return trafficState{}, fmt.Errorf("/proc/net/sockstat: %w", err)
	}
	for _, protocol := range sockets.Protocols {
		if protocol.Protocol == "TCP" && protocol.TW != nil {
			return trafficState{devices: devices, timeWait: *protocol.TW}, nil
		}
	}
	return trafficState{}, errors.New("/proc/net/sockstat: no tw of TCP")
}

func (t trafficState) send(metrics chan<- prometheus.Metric) {
	metrics <- gauge(timeWaitMetric, float64(t.timeWait))
	for name, device := range t.devices {
		metrics <- counter(receivedMetric, float64(device.RxBytes), name)
		metrics <- counter(sentMetric, float64(device.TxBytes), name)
	}
}
