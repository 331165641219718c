package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// roleVariable tells a copy of the test binary to be something else than the tests.
const roleVariable = "SOCKETS_TEST_ROLE"

var roles = map[string]func(){
	"exporter":              main,
	"confined exporter":     runConfinedExporter,
	"exporter without proc": runExporterWithoutProc,
	"server":                runConnectionServer,
	"clients":               runConnectionClients,
}

// TestMain runs the tests in a network namespace of their own: they lower
// somaxconn, count the namespace's drops and open thousands of sockets.
func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(rerunInNamespace())
	case "tests":
		if err := setLoopbackUp(); err != nil {
			log.Fatalf("cannot bring up the loopback device of the test's namespace: %v", err)
		}
		os.Exit(m.Run())
	default:
		roles[role]()
	}
}

// roleCommand is a copy of the test binary in a role, stopped with the test.
func roleCommand(t testing.TB, role string, arguments ...string) *exec.Cmd {
	command := exec.Command("/proc/self/exe", arguments...)
	command.Env = append(os.Environ(), roleVariable+"="+role)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	t.Cleanup(func() {
		if command.Process != nil && command.ProcessState == nil {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
	})
	return command
}

// startExporter starts an exporter process on a port of the kernel's choice and
// returns it with its address and the rest of its standard error.
func startExporter(t *testing.T, role string, arguments ...string) (*exec.Cmd, string, *bufio.Reader) {
	t.Helper()
	command := roleCommand(t, role, append([]string{"--listen", "127.0.0.1:0"}, arguments...)...)
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n')
	_, address, found := strings.Cut(strings.TrimSpace(line), "http://")
	if err != nil || !found {
		t.Fatalf("first line of the exporter: %q (%v)", line, err)
	}
	return command, strings.TrimSuffix(address, "/metrics"), lines
}

// scrape returns every sample of the exporter at address by its full name.
func scrape(t *testing.T, address string) map[string]float64 {
	t.Helper()
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("GET /metrics: %s", answer.Status)
	}
	return parseSamples(t, answer.Body)
}

func parseSamples(t *testing.T, text io.Reader) map[string]float64 {
	t.Helper()
	samples := make(map[string]float64)
	for lines := bufio.NewScanner(text); lines.Scan(); {
		var name string
		var value float64
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		if _, err := fmt.Sscan(lines.Text(), &name, &value); err != nil {
			t.Fatalf("sample %q: %v", lines.Text(), err)
		}
		samples[name] = value
	}
	return samples
}

// runExporter runs an exporter that is expected to end by itself.
func runExporter(t *testing.T, environment []string, arguments ...string) (exitCode int, stdout, stderr string) {
	t.Helper()
	command := roleCommand(t, "exporter", arguments...)
	command.Env = append(command.Env, environment...)
	var out, errors strings.Builder
	command.Stdout, command.Stderr = &out, &errors
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), out.String(), errors.String()
}

func TestWrongUsageIsOneLineAndExitCode2(t *testing.T) {
	cases := []struct {
		environment []string
		arguments   []string
		message     string
	}{
		{nil, []string{"--port", "0"}, `--port: "0" must be an integer from 1 to 65535`},
		{nil, []string{"--port", "65536"}, `--port: "65536" must be an integer from 1 to 65535`},
		{nil, []string{"--port"}, "flag needs an argument: -port (see --help)"},
		{nil, []string{"--prot", "80"}, "flag provided but not defined: -prot (see --help)"},
		{nil, []string{"8080"}, `unexpected argument "8080" (see --help)`},
		{nil, []string{"--listen", "9100"}, `--listen: "9100" must be host:port such as 127.0.0.1:9100`},
		{nil, []string{"--listen", ":http"}, `--listen: ":http" must be host:port such as 127.0.0.1:9100`},
		{[]string{"SOCKETS_LISTEN=x"}, nil, `SOCKETS_LISTEN: "x" must be host:port such as 127.0.0.1:9100`},
		{[]string{"SOCKETS_PORTS=80,a"}, nil, `SOCKETS_PORTS: "a" must be an integer from 1 to 65535`},
	}
	for _, test := range cases {
		t.Run(test.message, func(t *testing.T) {
			exitCode, stdout, stderr := runExporter(t, test.environment, test.arguments...)
			if expected := "sockets-exporter: " + test.message + "\n"; exitCode != 2 || stdout != "" || stderr != expected {
				t.Errorf("exit code %d, output %q, error %q; expected 2, nothing, %q", exitCode, stdout, stderr, expected)
			}
		})
	}
}

func TestOptionsComeFromFlagsThenEnvironment(t *testing.T) {
	environment := func(name string) string {
		return map[string]string{"SOCKETS_LISTEN": "127.0.0.1:1", "SOCKETS_PORTS": "8443, 8080,8443"}[name]
	}
	unset := func(string) string { return "" }
	cases := []struct {
		arguments   []string
		environment func(string) string
		expected    string
	}{
		{nil, unset, "127.0.0.1:9100 []"},
		{nil, environment, "127.0.0.1:1 [8080 8443]"},
		{[]string{"--port", "90", "--port", "80"}, environment, "127.0.0.1:1 [80 90]"},
		{[]string{"--listen", "[::1]:2"}, environment, "[::1]:2 [8080 8443]"},
	}
	for _, test := range cases {
		parsed, err := parseOptions(test.arguments, test.environment)
		if got := fmt.Sprint(parsed.listen, " ", parsed.ports); err != nil || got != test.expected {
			t.Errorf("%v: %s (%v), expected %s", test.arguments, got, err, test.expected)
		}
	}
}

func TestVersionAndHelp(t *testing.T) {
	if exitCode, stdout, _ := runExporter(t, nil, "--version"); exitCode != 0 || stdout != "sockets-exporter "+version+"\n" {
		t.Errorf("--version: exit code %d, output %q", exitCode, stdout)
	}
	if exitCode, stdout, _ := runExporter(t, nil, "--help"); exitCode != 0 || stdout != usage {
		t.Errorf("--help: exit code %d, output %q", exitCode, stdout)
	}
}

func TestTakenPortIsOneLineAndExitCode1(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	exitCode, _, stderr := runExporter(t, nil, "--listen", taken.Addr().String())
	expected := fmt.Sprintf("sockets-exporter: cannot listen on %s: address already in use (choose another address with --listen or SOCKETS_LISTEN)\n", taken.Addr())
	if exitCode != 1 || stderr != expected {
		t.Errorf("exit code %d, error %q; expected 1, %q", exitCode, stderr, expected)
	}
}

func TestHealthCheckAndStop(t *testing.T) {
	command, address, _ := startExporter(t, "exporter")
	if exitCode, _, stderr := runExporter(t, nil, "--healthcheck", "--listen", address); exitCode != 0 {
		t.Errorf("health check of a running exporter: exit code %d, %q", exitCode, stderr)
	}
	_, port, _ := net.SplitHostPort(address)
	if exitCode, _, stderr := runExporter(t, []string{"SOCKETS_LISTEN=0.0.0.0:" + port}, "--healthcheck"); exitCode != 0 {
		t.Errorf("health check with a wildcard address: exit code %d, %q", exitCode, stderr)
	}

	stopped := time.Now()
	_ = command.Process.Signal(syscall.SIGTERM)
	if err := command.Wait(); err != nil || time.Since(stopped) > 2*time.Second {
		t.Errorf("after SIGTERM: %v within %v, expected exit code 0 within 2 s", err, time.Since(stopped))
	}
	exitCode, _, stderr := runExporter(t, nil, "--healthcheck", "--listen", address)
	expected := fmt.Sprintf("sockets-exporter: unhealthy: no answer from http://%s/healthz: connection refused\n", address)
	if exitCode != 1 || stderr != expected {
		t.Errorf("health check of a stopped exporter: exit code %d, error %q; expected 1, %q", exitCode, stderr, expected)
	}
}
