package main

import (
	"errors"
	"fmt"

	"github.com/prometheus/procfs"
)

// listenDrops counts since the network namespace was made.
type listenDrops struct {
	overflows float64 // TcpExt ListenOverflows: the accept queue was full
	drops     float64 // TcpExt ListenDrops: any reason, overflows included
}

// readListenDrops reads the counters of this process's own network namespace.
func readListenDrops() (listenDrops, error) {
	self, err := procfs.Self()
	if err != nil {
		return listenDrops{}, fmt.Errorf("/proc/self: %w", err)
	}
	netstat, err := self.Netstat()
	if err != nil {
		return listenDrops{}, fmt.Errorf("/proc/self/net/netstat: %w", err)
	}
	if netstat.ListenOverflows == nil || netstat.ListenDrops == nil {
		return listenDrops{}, errors.New("/proc/self/net/netstat: no ListenOverflows or ListenDrops in TcpExt")
	}
	return listenDrops{overflows: *netstat.ListenOverflows, drops: *netstat.ListenDrops}, nil
}
