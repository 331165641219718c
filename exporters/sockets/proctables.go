package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/prometheus/procfs"
)

// readProcTables is the fallback where NETLINK_SOCK_DIAG is refused: it reads
// all of /proc/net/tcp and /proc/net/tcp6, which costs more and tells no limit.
// It returns the listening ones among ports (empty = all).
func readProcTables(ports []uint16) (map[uint16]*portState, error) {
	files, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, fmt.Errorf("/proc: %w", err)
	}
	// procfs marks these as deprecated in favour of netlink, which was tried.
	table, err := files.NetTCP()
	if err != nil {
		return nil, fmt.Errorf("/proc/net/tcp: %w", err)
	}
	table6, err := files.NetTCP6()
	// The file is missing where IPv6 is switched off.
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("/proc/net/tcp6: %w", err)
	}

	states := make(map[uint16]*portState)
	connections := make(map[uint16]*connectionCounts)
	for _, row := range append(table, table6...) {
		port := uint16(row.LocalPort)
		if len(ports) > 0 && !slices.Contains(ports, port) {
			continue
		}
		if row.St != stateListen {
			if connections[port] == nil {
				connections[port] = &connectionCounts{}
			}
			connections[port].add(row.St)
			continue
		}
		if states[port] == nil {
			states[port] = &portState{}
		}
		states[port].listeners++
		states[port].queueDepth += row.RxQueue
	}
	for port, counts := range connections {
		if state := states[port]; state != nil {
			state.connections = *counts
		}
	}
	return states, nil
}
