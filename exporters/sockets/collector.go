package main

import (
	"fmt"
	"log"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// portState is what one TCP port looks like at the moment of a scrape, added up
// over all listening sockets of that port (addresses, families, SO_REUSEPORT).
type portState struct {
	listeners   int              // listening sockets
	queueDepth  uint64           // connections waiting to be accepted
	queueLimit  uint64           // min(backlog, net.core.somaxconn) of each listener
	limitKnown  bool             // the files under /proc do not tell the limit
	connections connectionCounts // the server's ends only
}

// connectionCounts counts connections by the kernel's number of their state.
type connectionCounts [stateClosing + 1]int

func (c *connectionCounts) add(state uint64) {
	if state < uint64(len(c)) {
		c[state]++
	}
}

// transitionalStates are those of a connection that is being made or ended. TIME_WAIT
// is not among them: short connections leave tens of thousands, which the kernel
// has counted already.
var transitionalStates = map[uint8]string{
	stateSynReceived: "syn_received",
	stateFinWait1:    "fin_wait1",
	stateFinWait2:    "fin_wait2",
	stateCloseWait:   "close_wait",
	stateLastAck:     "last_ack",
	stateClosing:     "closing",
}

// connectionStates has a bit for each state that a scrape asks for.
const connectionStates = 1<<stateEstablished | 1<<stateSynReceived | 1<<stateFinWait1 |
	1<<stateFinWait2 | 1<<stateCloseWait | 1<<stateLastAck | 1<<stateClosing

var (
	queueDepthMetric = perPort("sockets_accept_queue_depth",
		"Connections that wait to be accepted.")
	queueLimitMetric = perPort("sockets_accept_queue_limit",
		"Effective limit of the accept queue: min(backlog, net.core.somaxconn) at the time of listen(). The kernel holds one more per listening socket.")
	establishedMetric = perPort("sockets_established",
		"Established connections of the port, the server's ends only, those waiting to be accepted included.")
	transitionalMetric = perPort("sockets_transitional",
		"Connections of the port that are being made or ended, by TCP state, the server's ends only.", "state")
	listeningMetric = perPort("sockets_listening",
		"Listening sockets of the port: 0 = none, more than one with SO_REUSEPORT or an address family or address each.")
	overflowsMetric = inNamespace("sockets_listen_overflows_total",
		"Times a full accept queue turned a SYN or a finished handshake away (TcpExt ListenOverflows), retries included, all ports of the namespace.")
	dropsMetric = inNamespace("sockets_listen_drops_total",
		"SYNs and finished handshakes dropped at listening sockets for any reason (TcpExt ListenDrops), all ports of the namespace.")
	openedMetric = inNamespace("sockets_passive_opens_total",
		"Connections that clients began and a listening socket took up (Tcp PassiveOpens), all ports of the namespace.")
	scrapeDurationMetric = inNamespace("sockets_scrape_duration_seconds",
		"Time this scrape took to read the kernel.")
	scrapeErrorMetric = inNamespace("sockets_scrape_error",
		"1 if this scrape could not read everything, else 0; the log says why.")
)

func perPort(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"port"}, labels...), nil)
}

func inNamespace(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// collector reads the kernel anew at each scrape and remembers only which
// problem it logged last, so that a lasting one is logged once.
type collector struct {
	ports []uint16 // empty = every listening port

	mutex   sync.Mutex
	problem string
}

func newCollector(ports []uint16) *collector { return &collector{ports: ports} }

// Describe implements prometheus.Collector.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{
		queueDepthMetric, queueLimitMetric, establishedMetric, transitionalMetric, listeningMetric,
		overflowsMetric, dropsMetric, openedMetric, timeWaitMetric, receivedMetric, sentMetric,
		cpuMetric, cpusMetric, memoryMetric, availableMetric, openFilesMetric, stalledMetric,
		scrapeDurationMetric, scrapeErrorMetric,
	} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	started := time.Now()
	ports, degraded, portsErr := readPorts(c.ports)
	arrived, arrivedErr := readArrivals()
	traffic, trafficErr := readTraffic()
	machine, machineErr := readMachine()
	duration := time.Since(started)

	failed := 0.0
	failure := firstError(portsErr, arrivedErr, trafficErr, machineErr)
	if failure != nil {
		failed = 1
	}
	c.logChange(firstError(failure, degraded))

	if portsErr == nil {
		c.sendPorts(metrics, ports)
	}
	if arrivedErr == nil {
		metrics <- counter(overflowsMetric, arrived.overflows)
		metrics <- counter(dropsMetric, arrived.drops)
		metrics <- counter(openedMetric, arrived.opened)
	}
	if trafficErr == nil {
		traffic.send(metrics)
	}
	if machineErr == nil {
		machine.send(metrics)
	}
	metrics <- gauge(scrapeDurationMetric, duration.Seconds())
	metrics <- gauge(scrapeErrorMetric, failed)
}

func (c *collector) sendPorts(metrics chan<- prometheus.Metric, ports map[uint16]*portState) {
	for _, port := range c.ports {
		if ports[port] == nil {
			metrics <- gauge(listeningMetric, 0, strconv.Itoa(int(port)))
		}
	}
	for port, state := range ports {
		label := strconv.Itoa(int(port))
		metrics <- gauge(listeningMetric, float64(state.listeners), label)
		metrics <- gauge(queueDepthMetric, float64(state.queueDepth), label)
		metrics <- gauge(establishedMetric, float64(state.connections[stateEstablished]), label)
		for number, name := range transitionalStates {
			metrics <- gauge(transitionalMetric, float64(state.connections[number]), label, name)
		}
		if state.limitKnown {
			metrics <- gauge(queueLimitMetric, float64(state.queueLimit), label)
		}
	}
}

// readPorts returns the state of the listening ones among ports (empty = all).
// Where the kernel refuses NETLINK_SOCK_DIAG it reads the slower files under
// /proc, which know no queue limit, and returns the reason as degraded.
func readPorts(ports []uint16) (states map[uint16]*portState, degraded, err error) {
	states, diagErr := readSockDiag(ports)
	if diagErr == nil {
		return states, nil, nil
	}
	states, procErr := readProcTables(ports)
	if procErr != nil {
		return nil, nil, fmt.Errorf("cannot read sockets: %w; %w", diagErr, procErr)
	}
	return states, fmt.Errorf("%w; reading /proc/net/tcp instead, without sockets_accept_queue_limit", diagErr), nil
}

func (c *collector) logChange(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if problem == c.problem {
		return
	}
	c.problem = problem
	if problem == "" {
		problem = "reading everything again"
	}
	log.Print(problem)
}

func gauge(description *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
}

func counter(description *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(description, prometheus.CounterValue, value, labels...)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
