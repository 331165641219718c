package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
)

const usage = `sockets-exporter: accept queues, connections and listen drops of its network namespace

  --listen ADDRESS   where /metrics and /healthz are served
                     (SOCKETS_LISTEN; default 127.0.0.1:9100)
  --port PORT        a TCP port to watch, may be repeated; none: every listening port
                     (SOCKETS_PORTS, separated by commas)
  --healthcheck      ask the exporter at the listen address: exit code 0 = healthy
  --version          print the version
  --help             print this text

A flag wins over its environment variable.
`

// options is what the command line and the environment ask for.
type options struct {
	listen      string   // host:port
	ports       []uint16 // sorted, without duplicates; empty = every listening port
	healthCheck bool
	version     bool
	help        bool
}

// parseOptions reads flags first and the environment for what no flag sets.
// Its errors are one line and mean wrong usage.
func parseOptions(arguments []string, environment func(string) string) (options, error) {
	parsed := options{listen: environment("SOCKETS_LISTEN")}
	listenSource := "SOCKETS_LISTEN"
	if parsed.listen == "" {
		parsed.listen = "127.0.0.1:9100"
	}

	flags := flag.NewFlagSet("sockets-exporter", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("listen", "", func(value string) error {
		parsed.listen, listenSource = value, "--listen"
		return nil
	})
	var portTexts []string
	flags.Func("port", "", func(value string) error {
		portTexts = append(portTexts, value)
		return nil
	})
	flags.BoolVar(&parsed.healthCheck, "healthcheck", false, "")
	flags.BoolVar(&parsed.version, "version", false, "")
	if err := flags.Parse(arguments); errors.Is(err, flag.ErrHelp) {
		return options{help: true}, nil
	} else if err != nil {
		return options{}, fmt.Errorf("%w (see --help)", err)
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q (see --help)", flags.Arg(0))
	}

	portSource := "--port"
	if list := environment("SOCKETS_PORTS"); len(portTexts) == 0 && list != "" {
		portTexts, portSource = strings.Split(list, ","), "SOCKETS_PORTS"
	}
	var err error
	if parsed.ports, err = parsePorts(portTexts); err != nil {
		return options{}, fmt.Errorf("%s: %w", portSource, err)
	}
	if err := checkListenAddress(parsed.listen); err != nil {
		return options{}, fmt.Errorf("%s: %w", listenSource, err)
	}
	return parsed, nil
}

func parsePorts(texts []string) ([]uint16, error) {
	var ports []uint16
	for _, text := range texts {
		port, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
		if err != nil || port == 0 {
			return nil, fmt.Errorf("%q must be an integer from 1 to 65535", text)
		}
		ports = append(ports, uint16(port))
	}
	slices.Sort(ports)
	return slices.Compact(ports), nil
}

func checkListenAddress(listen string) error {
	_, port, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q must be host:port such as 127.0.0.1:9100", listen)
	}
	return nil
}
