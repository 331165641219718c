package main

import (
	"errors"
	"log"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

const somaxconnFile = "/proc/sys/net/core/somaxconn"

// rerunInNamespace runs this test binary again in a new network namespace, and
// where that needs privileges we lack in a new user namespace as well.
func rerunInNamespace() (exitCode int) {
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Env = append(os.Environ(), roleVariable+"=tests")
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		command.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	// The parent's death signal follows the thread that started the child.
	runtime.LockOSThread()
	if err := command.Run(); err != nil {
		var exited *exec.ExitError
		if errors.As(err, &exited) {
			return exited.ExitCode()
		}
		log.Printf("cannot make a network namespace: %v (run the tests as root, or allow user namespaces)", err)
		return 1
	}
	return 0
}

func setLoopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

// setSomaxconn sets the limit of the tests' namespace and restores it afterwards.
func setSomaxconn(t *testing.T, limit int) {
	t.Helper()
	before, err := os.ReadFile(somaxconnFile)
	if err == nil {
		err = os.WriteFile(somaxconnFile, []byte(strconv.Itoa(limit)), 0)
	}
	if err != nil {
		t.Fatalf("cannot set somaxconn in a namespace of our own: %v (run the tests as root)", err)
	}
	t.Cleanup(func() { _ = os.WriteFile(somaxconnFile, before, 0) })
}

// runConfinedExporter becomes an exporter without any capability. With
// SOCKETS_TEST_REFUSE=sock_diag the kernel refuses it netlink sockets as well,
// as a container's seccomp profile may.
func runConfinedExporter() {
	// From include/uapi/linux/securebits.h: an exec as root gives no capabilities.
	const noRoot, noRootLocked = 1 << 0, 1 << 1
	runtime.LockOSThread()
	must("securebits", unix.Prctl(unix.PR_SET_SECUREBITS, noRoot|noRootLocked, 0, 0, 0))
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	none := [2]unix.CapUserData{}
	must("capset", unix.Capset(&header, &none[0]))
	must("no_new_privs", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	if os.Getenv("SOCKETS_TEST_REFUSE") == "sock_diag" {
		must("seccomp", refuseNetlink())
	}
	os.Setenv(roleVariable, "exporter")
	must("exec", unix.Exec("/proc/self/exe", os.Args, os.Environ()))
}

// runExporterWithoutProc becomes an exporter that sees only an empty directory.
func runExporterWithoutProc() {
	must("chroot", unix.Chroot(os.Getenv("SOCKETS_TEST_ROOT")))
	main()
}

// refuseNetlink makes socket(AF_NETLINK, …) fail with EPERM for this thread.
func refuseNetlink() error {
	const systemCall, firstArgument = 0, 16 // offsets in struct seccomp_data
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	skipUnless := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
	}
	result := func(value uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
	}
	filter := []unix.SockFilter{
		load(systemCall), skipUnless(unix.SYS_SOCKET, 3),
		load(firstArgument), skipUnless(unix.AF_NETLINK, 1),
		result(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)),
		result(unix.SECCOMP_RET_ALLOW),
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

func must(step string, err error) {
	if err != nil {
		log.Fatalf("%s: %v", step, err)
	}
}

// effectiveCapabilities returns a process's capability mask.
func effectiveCapabilities(t *testing.T, process int) string {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(process) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "CapEff:")
	mask, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	return mask
}
