package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkScrape measures a whole scrape (HTTP handler to text) with idle
// connections open, beside reading /proc/net/tcp6 to its end in the same loop.
// Server and clients are processes of their own, because each connection takes
// an open file at either end. CPU is user and system time of this process, in
// whose name the kernel walks the sockets.
//
//	go test -run '^$' -bench Scrape -benchtime 200x
func BenchmarkScrape(b *testing.B) {
	for _, connections := range []int{0, 8293, 19000} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			port := openConnections(b, connections)
			handler := newHandler([]uint16{port})
			request := httptest.NewRequest("GET", "/metrics", nil)
			expected := fmt.Sprintf("sockets_established{port=\"%d\"} %d\n", port, connections)

			var scrapes, files measurement
			for b.Loop() {
				answer := httptest.NewRecorder()
				scrapes.add(func() { handler.ServeHTTP(answer, request) })
				if !strings.Contains(answer.Body.String(), expected) {
					b.Fatalf("the scrape does not contain %s", expected)
				}
				files.add(func() { readToEnd(b, "/proc/self/net/tcp6") })
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(milliseconds(scrapes.time, b.N), "scrape-ms")
			b.ReportMetric(milliseconds(scrapes.cpu, b.N), "scrape-cpu-ms")
			b.ReportMetric(milliseconds(files.time, b.N), "tcp6-ms")
			b.ReportMetric(milliseconds(files.cpu, b.N), "tcp6-cpu-ms")
			b.ReportMetric(float64(files.time)/float64(scrapes.time), "tcp6/scrape")
		})
	}
}

type measurement struct{ time, cpu time.Duration }

func (m *measurement) add(work func()) {
	cpu, started := processCPU(), time.Now()
	work()
	m.time += time.Since(started)
	m.cpu += processCPU() - cpu
}

func milliseconds(total time.Duration, times int) float64 {
	return float64(total.Microseconds()) / 1000 / float64(times)
}

func processCPU() time.Duration {
	var usage unix.Rusage
	must("getrusage", unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func readToEnd(b *testing.B, path string) {
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	// The buffer's size makes no difference: the kernel hands out a page at a time.
	if _, err := io.Copy(io.Discard, file); err != nil {
		b.Fatal(err)
	}
}

// openConnections has a server process accept and hold connections to a client
// process, both ends in this namespace, and returns the server's port.
func openConnections(b *testing.B, connections int) uint16 {
	b.Helper()
	server := startHelper(b, "server")
	port, err := strconv.ParseUint(server, 10, 16)
	if err != nil {
		b.Fatal(err)
	}
	if opened := startHelper(b, "clients", server, strconv.Itoa(connections)); opened != strconv.Itoa(connections) {
		b.Fatalf("%s of %d connections opened", opened, connections)
	}
	return uint16(port)
}

// startHelper returns the first line that a role prints; it ends with the benchmark.
func startHelper(b *testing.B, role string, arguments ...string) string {
	b.Helper()
	command := roleCommand(b, role, arguments...)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		b.Fatalf("%s ended: %v", role, err)
	}
	return strings.TrimSpace(line)
}

// runConnectionServer prints its port and accepts without end.
func runConnectionServer() {
	socket, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	must("socket", err)
	must("bind", unix.Bind(socket, dualStack()))
	must("listen", unix.Listen(socket, 4096))
	bound, err := unix.Getsockname(socket)
	must("getsockname", err)
	fmt.Println(bound.(*unix.SockaddrInet6).Port)
	for {
		_, _, err := unix.Accept(socket)
		must("accept", err)
	}
}

// runConnectionClients opens the connections to a port and waits to be ended.
func runConnectionClients() {
	port, err := strconv.ParseUint(os.Args[1], 10, 16)
	must("port", err)
	connections, err := strconv.Atoi(os.Args[2])
	must("connections", err)
	for range connections {
		socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		must("socket", err)
		must("connect", unix.Connect(socket, loopback4(uint16(port))))
	}
	fmt.Println(connections)
	select {}
}
