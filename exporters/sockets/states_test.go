package main

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// connect opens a blocking connection to port.
func connect(t *testing.T, port uint16) (client int) {
	t.Helper()
	client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(client, loopback4(port)); err != nil {
		t.Fatal(err)
	}
	return client
}

// acceptOne takes one connection; the test closes it.
func acceptOne(t *testing.T, listener int) (server int) {
	t.Helper()
	server, _, err := unix.Accept(listener)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// eventually repeats attempt, as a closing connection passes its states by itself.
func eventually(t *testing.T, attempt func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = attempt(); err == nil {
			return
		}
	}
	t.Error(err)
}

// Both ways to read the kernel's sockets see the same states.
func TestConnectionsThatAreMadeOrEnded(t *testing.T) {
	_, unused := listen(t, dualStack(), 10)
	listener, port := listen(t, dualStack(), 10)
	// A listener that waits for data leaves a connection without any in SYN_RECV.
	deferred, deferredPort := listen(t, dualStack(), 10)
	if err := unix.SetsockoptInt(deferred, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 60); err != nil {
		t.Fatal(err)
	}
	beginConnections(t, loopback4(deferredPort), 3)

	// The client has closed and the server has not.
	for range 2 {
		client := connect(t, port)
		server := acceptOne(t, listener)
		t.Cleanup(func() { unix.Close(server) })
		unix.Close(client)
	}
	// The server has closed and the client has not.
	client := connect(t, port)
	t.Cleanup(func() { unix.Close(client) })
	unix.Close(acceptOne(t, listener))
	beginConnections(t, loopback4(port), 1)

	expected := map[uint16]map[uint8]int{
		port:         {stateEstablished: 1, stateCloseWait: 2, stateFinWait2: 1},
		deferredPort: {stateSynReceived: 3},
		unused:       {},
	}
	ports := []uint16{port, deferredPort, unused}
	readers := map[string]func() (map[uint16]*portState, error){
		"sock_diag": func() (map[uint16]*portState, error) { return readSockDiag(ports) },
		"proc":      func() (map[uint16]*portState, error) { return readProcTables(ports) },
	}
	for name, read := range readers {
		t.Run(name, func(t *testing.T) {
			eventually(t, func() error {
				states, err := read()
				if err != nil {
					return err
				}
				for port, counts := range expected {
					for state := range uint8(len(states[port].connections)) {
						if got := states[port].connections[state]; got != counts[state] {
							return fmt.Errorf("port %d has %d connections in state %d, expected %d",
								port, got, state, counts[state])
						}
					}
				}
				return nil
			})
		})
	}

	samples := sample(t, ports...)
	for series, value := range map[string]float64{
		fmt.Sprintf("sockets_transitional{port=\"%d\",state=\"close_wait\"}", port):           2,
		fmt.Sprintf("sockets_transitional{port=\"%d\",state=\"fin_wait2\"}", port):            1,
		fmt.Sprintf("sockets_transitional{port=\"%d\",state=\"last_ack\"}", port):             0,
		fmt.Sprintf("sockets_transitional{port=\"%d\",state=\"syn_received\"}", deferredPort): 3,
	} {
		if got, found := samples[series]; !found || got != value {
			t.Errorf("%s is %v (there: %v), expected %v", series, got, found, value)
		}
	}
}

func TestTimeWait(t *testing.T) {
	const connections = 20
	listener, port := listen(t, dualStack(), 10)
	before := sample(t, port)["sockets_time_wait"]
	for range connections {
		client := connect(t, port)
		unix.Close(acceptOne(t, listener)) // whoever closes first waits
		unix.Close(client)
	}
	eventually(t, func() error {
		samples := sample(t, port)
		if gained := samples["sockets_time_wait"] - before; gained != connections {
			return fmt.Errorf("sockets_time_wait gained %v, expected %v", gained, connections)
		}
		return nil
	})
	expect(t, sample(t, port), port, map[string]float64{"established": 0})
}
