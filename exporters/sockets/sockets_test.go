package main

import (
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// listen opens a listening socket that nobody accepts from unless the test
// does. net.Listen cannot: it sets the backlog to somaxconn. Port 0 lets the
// kernel choose; set lists socket options {level, name} to switch on.
func listen(t testing.TB, address unix.Sockaddr, backlog int, set ...[2]int) (socket int, port uint16) {
	t.Helper()
	family := unix.AF_INET
	if _, isIPv6 := address.(*unix.SockaddrInet6); isIPv6 {
		family = unix.AF_INET6
	}
	socket, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(socket) })
	for _, option := range set {
		if err := unix.SetsockoptInt(socket, option[0], option[1], 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Bind(socket, address); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(socket, backlog); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	if bound6, isIPv6 := bound.(*unix.SockaddrInet6); isIPv6 {
		return socket, uint16(bound6.Port)
	}
	return socket, uint16(bound.(*unix.SockaddrInet4).Port)
}

// dualStack is the address that Java servers listen on: [::], IPv4 included.
func dualStack() unix.Sockaddr { return &unix.SockaddrInet6{} }

func loopback4(port uint16) unix.Sockaddr {
	return &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}
}

func loopback6(port uint16) unix.Sockaddr {
	return &unix.SockaddrInet6{Port: int(port), Addr: [16]byte{15: 1}}
}

// beginConnections starts connections without waiting for the handshake, as
// clients of a full accept queue would wait for minutes.
func beginConnections(t testing.TB, address unix.Sockaddr, connections int) {
	t.Helper()
	family := unix.AF_INET
	if _, isIPv6 := address.(*unix.SockaddrInet6); isIPv6 {
		family = unix.AF_INET6
	}
	for range connections {
		socket, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(socket) })
		if err := unix.Connect(socket, address); err != nil && err != unix.EINPROGRESS {
			t.Fatal(err)
		}
	}
}

// accept takes connections from the accept queue and keeps them open.
func accept(t testing.TB, listener, connections int) {
	t.Helper()
	for range connections {
		connection, _, err := unix.Accept(listener)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(connection) })
	}
}

// sample scrapes an exporter for ports inside this process.
func sample(t *testing.T, ports ...uint16) map[string]float64 {
	t.Helper()
	answer := httptest.NewRecorder()
	newHandler(ports).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	samples := parseSamples(t, answer.Body)
	if samples["sockets_scrape_error"] != 0 {
		t.Fatal("sockets_scrape_error is 1")
	}
	return samples
}

// expect compares a port's series; a series named in absent must not exist.
func expect(t *testing.T, samples map[string]float64, port uint16, expected map[string]float64, absent ...string) {
	t.Helper()
	series := func(name string) string { return fmt.Sprintf("sockets_%s{port=\"%d\"}", name, port) }
	for name, value := range expected {
		if got, found := samples[series(name)]; !found || got != value {
			t.Errorf("%s is %v (there: %v), expected %v", series(name), got, found, value)
		}
	}
	for _, name := range absent {
		if got, found := samples[series(name)]; found {
			t.Errorf("%s is %v, expected no such series", series(name), got)
		}
	}
}

// The server of this test accepts nothing, so all it can hold is the accept
// queue: the prediction is the exported limit and the kernel's one more.
func TestLimitPredictionAndMeasurementFollowSomaxconn(t *testing.T) {
	cases := []struct{ somaxconn, backlog, limit, clients int }{
		{somaxconn: 4096, backlog: 5000, limit: 4096, clients: 4300},
		{somaxconn: 128, backlog: 5000, limit: 128, clients: 200},
		{somaxconn: 4096, backlog: 100, limit: 100, clients: 200},
		{somaxconn: 4096, backlog: 5000, limit: 4096, clients: 200},
	}
	for _, test := range cases {
		t.Run(fmt.Sprintf("somaxconn %d backlog %d clients %d", test.somaxconn, test.backlog, test.clients), func(t *testing.T) {
			setSomaxconn(t, test.somaxconn)
			_, port := listen(t, dualStack(), test.backlog)
			before := sample(t, port)
			expect(t, before, port, map[string]float64{
				"accept_queue_depth": 0, "accept_queue_limit": float64(test.limit), "established": 0, "listening": 1})

			beginConnections(t, loopback4(port), test.clients)
			after := sample(t, port)

			predicted := before[fmt.Sprintf("sockets_accept_queue_limit{port=\"%d\"}", port)] + 1
			held := min(predicted, float64(test.clients))
			expect(t, after, port, map[string]float64{
				"accept_queue_depth": held, "accept_queue_limit": float64(test.limit), "established": held})
			for _, counter := range []string{"sockets_listen_overflows_total", "sockets_listen_drops_total"} {
				turnedAway := after[counter] - before[counter]
				if expectedAway := float64(test.clients) - held; turnedAway < expectedAway || expectedAway == 0 && turnedAway != 0 {
					t.Errorf("%s grew by %v, expected at least %v", counter, turnedAway, expectedAway)
				}
			}
			if opened := after["sockets_passive_opens_total"] - before["sockets_passive_opens_total"]; opened != held {
				t.Errorf("sockets_passive_opens_total grew by %v, expected %v", opened, held)
			}
		})
	}
}

func TestEstablishedCountsTheServersEndsOfBothFamilies(t *testing.T) {
	listener, port := listen(t, dualStack(), 100)
	_, other := listen(t, loopback4(0), 100)
	beginConnections(t, loopback4(port), 50) // IPv4 mapped into IPv6 at the server
	beginConnections(t, loopback6(port), 20)
	beginConnections(t, loopback4(other), 7)
	accept(t, listener, 60)

	tables, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	if clientEnds := strings.Count(string(tables), fmt.Sprintf(":%04X 01 ", port)); clientEnds != 50 {
		t.Fatalf("%d client ends in this namespace, the test needs 50", clientEnds)
	}
	expect(t, sample(t, port), port, map[string]float64{
		"established": 70, "accept_queue_depth": 10, "accept_queue_limit": 100, "listening": 1})
	expect(t, sample(t, port), other, nil, "established", "accept_queue_depth", "accept_queue_limit", "listening")
	expect(t, sample(t, port, other), other, map[string]float64{"established": 7, "accept_queue_depth": 7})
}

func TestListenersOfOnePortAreAddedUp(t *testing.T) {
	ipv6Only := [2]int{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY}
	reusePort := [2]int{unix.SOL_SOCKET, unix.SO_REUSEPORT}
	_, port := listen(t, loopback4(0), 10, reusePort)
	listen(t, loopback4(port), 20, reusePort)
	listen(t, &unix.SockaddrInet6{Port: int(port)}, 30, ipv6Only)
	beginConnections(t, loopback6(port), 3)
	beginConnections(t, loopback4(port), 4)
	expect(t, sample(t, port), port, map[string]float64{
		"accept_queue_depth": 7, "accept_queue_limit": 60, "established": 7, "listening": 3})
}

func TestPortNobodyListensOn(t *testing.T) {
	socket, port := listen(t, dualStack(), 10)
	beginConnections(t, loopback4(port), 2)
	accept(t, socket, 2)
	expect(t, sample(t, port), port, map[string]float64{"listening": 1, "established": 2})
	if err := unix.Shutdown(socket, unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	expect(t, sample(t, port), port, map[string]float64{"listening": 0},
		"accept_queue_depth", "accept_queue_limit", "established")
	expect(t, sample(t), port, nil, "listening")
}

// More ports than the kernel is asked to compare are told apart here.
func TestEveryListeningPort(t *testing.T) {
	for _, ports := range []int{3, maximumFilterPorts, maximumFilterPorts + 1} {
		t.Run(fmt.Sprint(ports, " ports"), func(t *testing.T) {
			var listening []uint16
			for range ports {
				_, port := listen(t, loopback4(0), 10)
				listening = append(listening, port)
			}
			for index, port := range listening {
				beginConnections(t, loopback4(port), index%3)
			}
			_, other := listen(t, loopback4(0), 10)
			expect(t, sample(t), other, map[string]float64{"listening": 1})
			expect(t, sample(t, listening...), other, nil, "listening", "established")
			for _, samples := range []map[string]float64{sample(t), sample(t, listening...)} {
				for index, port := range listening {
					expect(t, samples, port, map[string]float64{
						"established": float64(index % 3), "accept_queue_limit": 10, "listening": 1})
				}
			}
		})
	}
}

func TestExporterBesideAServerWithoutPrivileges(t *testing.T) {
	listener, port := listen(t, dualStack(), 50)
	beginConnections(t, loopback4(port), 5)
	accept(t, listener, 3)
	command, address, _ := startExporter(t, "confined exporter", "--port", fmt.Sprint(port))
	if mask := effectiveCapabilities(t, command.Process.Pid); strings.Trim(mask, "0") != "" {
		t.Fatalf("the exporter has capabilities %s, the test needs none", mask)
	}
	samples := scrape(t, address)
	expect(t, samples, port, map[string]float64{
		"accept_queue_depth": 2, "accept_queue_limit": 50, "established": 5, "listening": 1})
	for _, name := range []string{"process_cpu_seconds_total", "sockets_scrape_duration_seconds"} {
		if _, found := samples[name]; !found {
			t.Errorf("no series %s", name)
		}
	}
}

func TestRefusedSockDiagFallsBackToProc(t *testing.T) {
	listener, port := listen(t, dualStack(), 50)
	beginConnections(t, loopback4(port), 5)
	accept(t, listener, 3)
	t.Setenv("SOCKETS_TEST_REFUSE", "sock_diag")
	_, address, lines := startExporter(t, "confined exporter", "--port", fmt.Sprint(port))
	for range 3 {
		samples := scrape(t, address)
		expect(t, samples, port, map[string]float64{"accept_queue_depth": 2, "established": 5, "listening": 1},
			"accept_queue_limit")
		if failed, found := samples["sockets_scrape_error"]; !found || failed != 0 {
			t.Errorf("sockets_scrape_error is %v (there: %v), expected 0", failed, found)
		}
	}

	line, _ := lines.ReadString('\n')
	if !strings.Contains(line, "operation not permitted; reading /proc/net/tcp instead") {
		t.Errorf("the exporter says %q", line)
	}
	time.Sleep(50 * time.Millisecond)
	if repeated := lines.Buffered(); repeated > 0 {
		t.Errorf("the exporter repeats itself: %d more bytes", repeated)
	}
}

func TestUnreadableCountersAreAScrapeError(t *testing.T) {
	_, port := listen(t, dualStack(), 50)
	beginConnections(t, loopback4(port), 5)
	t.Setenv("SOCKETS_TEST_ROOT", t.TempDir())
	_, address, lines := startExporter(t, "exporter without proc", "--port", fmt.Sprint(port))
	samples := scrape(t, address)
	if samples["sockets_scrape_error"] != 1 {
		t.Error("sockets_scrape_error is 0, expected 1")
	}
	for _, counter := range []string{"sockets_listen_overflows_total", "sockets_listen_drops_total"} {
		if value, found := samples[counter]; found {
			t.Errorf("%s is %v, expected no such series", counter, value)
		}
	}
	expect(t, samples, port, map[string]float64{"accept_queue_depth": 5, "accept_queue_limit": 50, "established": 5})
	if line, _ := lines.ReadString('\n'); !strings.Contains(line, "/proc") || !strings.Contains(line, "no such file or directory") {
		t.Errorf("the exporter says %q", line)
	}
}

func TestServerOfTheStandardLibrary(t *testing.T) {
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := uint16(listener.Addr().(*net.TCPAddr).Port)
	beginConnections(t, loopback4(port), 4)
	for range 3 {
		connection, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
	}
	expect(t, sample(t, port), port, map[string]float64{"accept_queue_depth": 1, "established": 4, "listening": 1})
}
