// Command sockets-exporter serves the accept queues, established connections
// and listen drops of the network namespace it runs in as Prometheus metrics.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const version = "0.1.0"

const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("sockets-exporter: ")
	os.Exit(run(os.Args[1:]))
}

// run does what the arguments ask for and returns the exit code.
func run(arguments []string) int {
	options, err := parseOptions(arguments, os.Getenv)
	switch {
	case err != nil:
		log.Print(err)
		return exitUsage
	case options.help:
		fmt.Print(usage)
		return 0
	case options.version:
		fmt.Println("sockets-exporter", version)
		return 0
	case options.healthCheck:
		err = checkHealth(options.listen)
	default:
		err = serve(options)
	}
	if err != nil {
		log.Print(err)
		return exitFailure
	}
	return 0
}

// serve answers scrapes until SIGTERM or SIGINT.
func serve(options options) error {
	stopping, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	listener, err := net.Listen("tcp", options.listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w (choose another address with --listen or SOCKETS_LISTEN)",
			options.listen, rootCause(err))
	}
	server := &http.Server{Handler: newHandler(options.ports), ReadHeaderTimeout: 5 * time.Second}
	log.Printf("listening on http://%s/metrics", listener.Addr())

	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("server on %s stopped: %w", options.listen, err)
	case <-stopping.Done():
	}
	deadline, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if server.Shutdown(deadline) != nil {
		// A client that is still being answered after a second is not waited for.
		_ = server.Close()
	}
	return nil
}

// newHandler serves /metrics for ports (none = every listening port) and /healthz.
func newHandler(ports []uint16) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		newCollector(ports),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: log.Default()}))
	mux.HandleFunc("GET /healthz", func(answer http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(answer, "ok\n")
	})
	return mux
}

// checkHealth asks the exporter that serves the address listen for its health.
// It exists for container images without a shell.
func checkHealth(listen string) error {
	host, port, _ := net.SplitHostPort(listen)
	if address := net.ParseIP(host); host == "" || address != nil && address.IsUnspecified() {
		host = "127.0.0.1"
	}
	url := "http://" + net.JoinHostPort(host, port) + "/healthz"
	client := http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return fmt.Errorf("unhealthy: no answer from %s: %w", url, rootCause(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("unhealthy: %s answered %s", url, answer.Status)
	}
	return nil
}

// rootCause strips the address and operation that net wraps around an error,
// which our own message already names.
func rootCause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
