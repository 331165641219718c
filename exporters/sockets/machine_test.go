package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// burn keeps every processor busy with two goroutines' work, so some of them wait.
func burn(duration time.Duration) {
	end := time.Now().Add(duration)
	workers := 2 * runtime.NumCPU()
	runtime.GOMAXPROCS(workers)
	defer runtime.GOMAXPROCS(runtime.NumCPU())
	done := make(chan struct{})
	for range workers {
		go func() {
			for time.Now().Before(end) {
			}
			done <- struct{}{}
		}()
	}
	for range workers {
		<-done
	}
}

func TestProcessorTimeByModeAddsUp(t *testing.T) {
	started := time.Now()
	before := sample(t)
	burn(time.Second)
	after := sample(t)
	elapsed := time.Since(started).Seconds()

	gained := func(mode string) float64 {
		name := fmt.Sprintf("machine_cpu_seconds_total{mode=%q}", mode)
		return after[name] - before[name]
	}
	total := 0.0
	for _, mode := range []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"} {
		total += gained(mode)
	}
	if expected := elapsed * after["machine_cpus"]; total < 0.8*expected || total > 1.2*expected {
		t.Errorf("all modes gained %.2f s in %.2f s, expected about %.2f s", total, elapsed, expected)
	}
	// The tests may run at a lower priority.
	if busy := gained("user") + gained("nice"); busy < 0.5 {
		t.Errorf("user and nice gained %.2f s while every processor was busy for 1 s", busy)
	}

	_, err := os.Stat("/proc/pressure/cpu")
	const stalled = `machine_stalled_seconds_total{resource="cpu"}`
	if _, found := after[stalled]; found != (err == nil) {
		t.Errorf("%s is there: %v, /proc/pressure/cpu: %v", stalled, found, err)
	} else if waited := after[stalled] - before[stalled]; found && waited <= 0 {
		t.Errorf("%s gained %v while tasks waited for a processor", stalled, waited)
	}
}

func TestMemoryOfTheMachine(t *testing.T) {
	var known unix.Sysinfo_t
	if err := unix.Sysinfo(&known); err != nil {
		t.Fatal(err)
	}
	samples := sample(t)
	total, available := samples["machine_memory_bytes"], samples["machine_memory_available_bytes"]
	if expected := float64(known.Totalram) * float64(known.Unit); total != expected {
		t.Errorf("machine_memory_bytes is %v, expected %v", total, expected)
	}
	if available <= 0 || available >= total {
		t.Errorf("machine_memory_available_bytes is %v of %v", available, total)
	}
}

// Other programs open and close files meanwhile, so one of several attempts has to agree.
func TestOpenFilesOfTheMachine(t *testing.T) {
	const opened = 2000
	eventually(t, func() error {
		before := sample(t)["machine_open_files"]
		for range opened {
			file, err := os.Open(os.DevNull)
			if err != nil {
				return err
			}
			defer file.Close()
		}
		if gained := sample(t)["machine_open_files"] - before; gained < 0.9*opened || gained > 1.1*opened {
			return fmt.Errorf("machine_open_files gained %v, expected about %v", gained, opened)
		}
		return nil
	})
}

func TestBytesByDevice(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	const sent = 10 << 20
	before := sample(t)
	go func() {
		if client, err := net.Dial("tcp", listener.Addr().String()); err == nil {
			_, _ = client.Write(make([]byte, sent))
			_ = client.Close()
		}
	}()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	received, err := io.Copy(io.Discard, server)
	if err != nil || received != sent {
		t.Fatalf("received %d bytes (%v), the test needs %d", received, err, sent)
	}
	_ = server.Close()
	after := sample(t)
	for _, direction := range []string{"receive", "transmit"} {
		name := fmt.Sprintf("sockets_network_%s_bytes_total{device=\"lo\"}", direction)
		if gained := after[name] - before[name]; gained < sent || gained > 1.1*sent {
			t.Errorf("%s gained %v, expected a little over %v", name, gained, sent)
		}
	}
}
