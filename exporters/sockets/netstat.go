package main

import (
	"errors"
	"fmt"

	"github.com/prometheus/procfs"
)

// arrivals counts connection attempts since the network namespace was made.
type arrivals struct {
	overflows float64 // TcpExt ListenOverflows: the accept queue was full
	drops     float64 // TcpExt ListenDrops: any reason, overflows included
	opened    float64 // Tcp PassiveOpens: SYNs that listening sockets have taken
}

// readArrivals reads the counters of this process's own network namespace.
func readArrivals() (arrivals, error) {
	self, err := procfs.Self()
	if err != nil {
		return arrivals{}, fmt.Errorf("/proc/self: %w", err)
	}
	netstat, err := self.Netstat()
	if err != nil {
		return arrivals{}, fmt.Errorf("/proc/self/net/netstat: %w", err)
	}
	if netstat.ListenOverflows == nil || netstat.ListenDrops == nil {
		return arrivals{}, errors.New("/proc/self/net/netstat: no ListenOverflows or ListenDrops in TcpExt")
	}
	snmp, err := self.Snmp()
	if err != nil {
		return arrivals{}, fmt.Errorf("/proc/self/net/snmp: %w", err)
	}
	if snmp.PassiveOpens == nil {
		return arrivals{}, errors.New("/proc/self/net/snmp: no PassiveOpens in Tcp")
	}
	return arrivals{
		overflows: *netstat.ListenOverflows,
		drops:     *netstat.ListenDrops,
		opened:    *snmp.PassiveOpens,
	}, nil
}
