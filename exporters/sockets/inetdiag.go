package main

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// From the kernel's include/uapi/linux/inet_diag.h and include/net/tcp_states.h,
// which golang.org/x/sys does not carry.
const (
	stateEstablished = 1
	stateSynReceived = 3
	stateFinWait1    = 4
	stateFinWait2    = 5
	stateCloseWait   = 8
	stateLastAck     = 9
	stateListen      = 10
	stateClosing     = 11

	attributeBytecode = 1 // INET_DIAG_REQ_BYTECODE

	opJump            = 1  // INET_DIAG_BC_JMP
	opSourcePortEqual = 11 // INET_DIAG_BC_S_EQ
	opLength          = 4

	requestLength = 56 // struct inet_diag_req_v2
	rowLength     = 72 // struct inet_diag_msg
)

const (
	// The kernel hands out at most 32 KiB of rows at a time.
	receiveBufferBytes = 32 << 10
	dumpTimeout        = 5 * time.Second
	// Each port costs the kernel a comparison per socket; beyond this many, rows
	// of all ports are fetched and told apart here.
	maximumFilterPorts = 64
)

// socketRow is what a scrape needs of one row of a dump. On a listening socket
// receiveQueue is the accept queue's depth and sendQueue its limit.
type socketRow struct {
	state        uint8
	sourcePort   uint16
	receiveQueue uint32
	sendQueue    uint32
}

// readSockDiag asks the kernel through NETLINK_SOCK_DIAG, which needs no
// privilege. It returns the listening ones among ports (empty = all).
func readSockDiag(ports []uint16) (map[uint16]*portState, error) {
	connection, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, &netlink.Config{MessageBufferSize: receiveBufferBytes})
	if err != nil {
		return nil, fmt.Errorf("sock_diag: %w", err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(dumpTimeout)); err != nil {
		return nil, fmt.Errorf("sock_diag: %w", err)
	}

	states := make(map[uint16]*portState)
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		listening, err := addListeners(connection, family, ports, states)
		if err != nil {
			return nil, err
		}
		// A connection has its listener's family, also an IPv4 one to a dual-stack
		// listener. Walking all sockets for the other family would find nothing.
		if err := addConnections(connection, family, listening, states); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// addListeners adds the family's listening sockets on ports to states and
// returns the ports they listen on.
func addListeners(connection *netlink.Conn, family uint8, ports []uint16, states map[uint16]*portState) ([]uint16, error) {
	var listening []uint16
	err := dumpSockets(connection, family, 1<<stateListen, ports, func(row socketRow) {
		if len(ports) > 0 && !slices.Contains(ports, row.sourcePort) {
			return
		}
		state := states[row.sourcePort]
		if state == nil {
			state = &portState{limitKnown: true}
			states[row.sourcePort] = state
		}
		state.listeners++
		state.queueDepth += uint64(row.receiveQueue)
		state.queueLimit += uint64(row.sendQueue)
		listening = append(listening, row.sourcePort)
	})
	slices.Sort(listening)
	return slices.Compact(listening), err
}

// addConnections counts the family's connections to the listening ports by state.
func addConnections(connection *netlink.Conn, family uint8, listening []uint16, states map[uint16]*portState) error {
	if len(listening) == 0 {
		return nil
	}
	return dumpSockets(connection, family, connectionStates, listening, func(row socketRow) {
		if state := states[row.sourcePort]; state != nil {
			state.connections.add(uint64(row.state))
		}
	})
}

// dumpSockets visits every TCP socket of the namespace in the given family and
// one of the states (a bit each) whose source port is one of ports; with no
// ports or more than maximumFilterPorts it visits all, and visit has to choose.
func dumpSockets(connection *netlink.Conn, family uint8, states uint32, ports []uint16, visit func(socketRow)) error {
	request, err := dumpRequest(family, states, ports)
	if err != nil {
		return err
	}
	if _, err := connection.Send(request); err != nil {
		return fmt.Errorf("sock_diag: %w", err)
	}
	for message, err := range connection.ReceiveIter() {
		if err != nil {
			return fmt.Errorf("sock_diag: %w", err)
		}
		row, err := parseRow(message.Data)
		if err != nil {
			return err
		}
		visit(row)
	}
	return nil
}

func dumpRequest(family uint8, states uint32, ports []uint16) (netlink.Message, error) {
	data := make([]byte, requestLength)
	data[0] = family
	data[1] = unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(data[4:], states)
	if len(ports) > 0 && len(ports) <= maximumFilterPorts {
		attributes, err := netlink.MarshalAttributes([]netlink.Attribute{
			{Type: attributeBytecode, Data: sourcePortFilter(ports)},
		})
		if err != nil {
			return netlink.Message{}, fmt.Errorf("sock_diag filter: %w", err)
		}
		data = append(data, attributes...)
	}
	return netlink.Message{
		Header: netlink.Header{Type: unix.SOCK_DIAG_BY_FAMILY, Flags: netlink.Request | netlink.Dump},
		Data:   data,
	}, nil
}

// sourcePortFilter compiles "source port is one of ports" (at least one) to the
// bytecode of inet_diag. An operation is {code u8, yes u8, no u16} where yes and
// no are the bytes to move on by; ending exactly behind the last operation
// accepts the socket, ending one operation further rejects it.
//
// Source port and not destination: the client's end of a connection on the same
// machine has the port as its destination and must not be counted.
func sourcePortFilter(ports []uint16) []byte {
	const (
		comparison = 2 * opLength // the port stands in an operation of its own
		step       = comparison + opLength
	)
	var code []byte
	for index, port := range ports {
		if index > 0 {
			stepsLeft := len(ports) - index
			code = appendOperation(code, opJump, opLength, uint16(stepsLeft*step))
		}
		code = appendOperation(code, opSourcePortEqual, comparison, step)
		code = appendOperation(code, 0, 0, port)
	}
	return code
}

func appendOperation(code []byte, operation, yes uint8, no uint16) []byte {
	return binary.NativeEndian.AppendUint16(append(code, operation, yes), no)
}

// parseRow reads a struct inet_diag_msg: four bytes of family, state and timer,
// the socket's identity beginning with its source port in network order, a
// timer, then the two queues.
func parseRow(data []byte) (socketRow, error) {
	if len(data) < rowLength {
		return socketRow{}, fmt.Errorf("sock_diag: row of %d bytes, expected at least %d", len(data), rowLength)
	}
	return socketRow{
		state:        data[1],
		sourcePort:   binary.BigEndian.Uint16(data[4:]),
		receiveQueue: binary.NativeEndian.Uint32(data[56:]),
		sendQueue:    binary.NativeEndian.Uint32(data[60:]),
	}, nil
}
