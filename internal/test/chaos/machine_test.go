//go:build crashsteps

package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// isolated reports whether this process has its own namespaces. Each machine then has a network namespace and a small disk.
var isolated bool

// hub is the address of the test. Its machines have the following addresses of this network, which RFC 2544 reserves for tests.
const (
	hub        = "198.18.0.1"
	network    = "198.18.0."
	namespaces = "/run/netns"
)

// here returns the address at which the test listens.
func here() string {
	if isolated {
		return hub
	}
	return "127.0.0.1"
}

// runIsolated runs this program again in namespaces of its own, in which it can change the network and mount disks. Nothing of it
// can be seen or reached from outside, and everything ends with it.
func runIsolated(dir string) (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return 0, err
	}
	if os.Getenv("CHAOS_ISOLATED") == "no" {
		return 0, errors.New("CHAOS_ISOLATED is no")
	}
	runtime.LockOSThread() // the child ends with this thread
	defer runtime.UnlockOSThread()
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	probe := exec.CommandContext(context.Background(), "true")
	probe.SysProcAttr = attributes
	if err := probe.Run(); err != nil {
		return 0, fmt.Errorf("new namespaces need root: %w", err)
	}
	cmd := exec.CommandContext(context.Background(), self, os.Args[1:]...)
	cmd.SysProcAttr = attributes
	cmd.Env = append(os.Environ(), directoryVariable+"="+dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		return 0, err
	}
	if code = cmd.ProcessState.ExitCode(); code < 0 { // a signal
		code = 1
	}
	return code, nil
}

// prepareNetwork makes this process the router of its machines.
func prepareNetwork() error {
	mount := func(kind, at string) error { return syscall.Mount(kind, at, kind, 0, "") }
	if err := errors.Join(
		syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""), mount("proc", "/proc"),
		os.MkdirAll(namespaces, 0o755), mount("tmpfs", namespaces),
		os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600),
		os.WriteFile("/proc/sys/net/ipv4/tcp_early_demux", []byte("0"), 0o600), // it would bypass the rules below
	); err != nil {
		return fmt.Errorf("prepare the namespaces: %w", err)
	}
	return errors.Join(
		ip("link", "set", "lo", "up"),
		ip("address", "add", hub, "dev", "lo"),
		ip("rule", "add", "pref", "1000", "lookup", "local"), // rules that drop packets come first
		ip("rule", "del", "pref", "0", "lookup", "local"),
	)
}

// ip runs the command of this name.
func ip(args ...string) error {
	out, err := exec.CommandContext(context.Background(), "ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// A machine has an address and a disk of its own if the test is isolated. Otherwise it has 127.0.0.1 and a directory.
type machine struct {
	t          testing.TB
	name, host string
	disk       string
	device     string // of the test, connected to the machine
	faulted    atomic.Bool
}

var machines atomic.Int32

func newMachine(t testing.TB, name string, diskBytes int) *machine {
	t.Helper()
	m := &machine{t: t, name: name, host: "127.0.0.1", disk: filepath.Join(disks, name)}
	if err := errors.Join(os.MkdirAll(m.disk, 0o755), os.Chmod(m.disk, 0o777)); err != nil { // PostgreSQL has its own account
		t.Fatal(err)
	}
	if !isolated {
		return m
	}
	number := strconv.Itoa(int(machines.Add(1)) + 1)
	m.host, m.device = network+number, "veth"+number
	for _, args := range [][]string{
		{"netns", "add", name},
		{"link", "add", m.device, "type", "veth", "peer", "name", "eth0", "netns", name},
		{"address", "add", hub, "peer", m.host, "dev", m.device},
		{"link", "set", m.device, "up"},
		{"-n", name, "address", "add", m.host, "peer", hub, "dev", "eth0"},
		{"-n", name, "link", "set", "eth0", "up"},
		{"-n", name, "link", "set", "lo", "up"},
		{"-n", name, "route", "add", "default", "via", hub},
	} {
		if err := ip(args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mount("tmpfs", m.disk, "tmpfs", 0, "mode=777,size="+strconv.Itoa(diskBytes)); err != nil {
		t.Fatalf("mount the disk of %s: %v", name, err)
	}
	return m
}

// place is where PostgreSQL runs on this machine.
func (m *machine) place() pgtest.Place {
	p := pgtest.Place{Dir: m.disk}
	if isolated {
		p.Namespace, p.Host = filepath.Join(namespaces, m.name), m.host
	}
	return p
}

// command returns a command that runs on this machine, in the process that starts it.
func (m *machine) command(program string, args ...string) *exec.Cmd {
	if isolated {
		return exec.Command("ip", append([]string{"netns", "exec", m.name, program}, args...)...)
	}
	return exec.Command(program, args...)
}

// address returns an address of this machine at which a program can listen.
func (m *machine) address(port int) string {
	if isolated {
		return net.JoinHostPort(m.host, strconv.Itoa(port))
	}
	return pgtest.Address(m.t)
}

// must reports a failed change of the network or of a disk.
func (m *machine) must(err error) {
	if err != nil {
		m.t.Errorf("%s: %v", m.name, err)
	}
}

// unplug cuts the machine off from all others, until plug.
func (m *machine) unplug() { m.must(ip("link", "set", m.device, "down")) }
func (m *machine) plug()   { m.must(ip("link", "set", m.device, "up")) }

func (m *machine) ballast() string { return filepath.Join(m.disk, "ballast") }

// fill leaves free only so many bytes of the disk, until empty.
func (m *machine) fill(leaveBytes int64) {
	f, err := os.Create(m.ballast())
	if err != nil {
		m.must(err)
		return
	}
	defer f.Close()
	for size, block := int64(0), int64(1<<20); block >= 4096; {
		if m.freeBytes()-block < leaveBytes {
			block /= 2
			continue
		}
		err := syscall.Fallocate(int(f.Fd()), 0, size, block)
		if errors.Is(err, syscall.ENOSPC) {
			block /= 2
			continue
		}
		if err != nil {
			m.must(err)
			return
		}
		size += block
	}
}

func (m *machine) freeBytes() int64 {
	var stat syscall.Statfs_t
	m.must(syscall.Statfs(m.disk, &stat))
	return int64(stat.Bavail) * stat.Bsize
}

func (m *machine) empty() { m.must(os.Remove(m.ballast())) }

// A wire is a part of a link between a machine and the test: TCP connections to a port of one of them.
type wire struct {
	machine *machine
	port    string
	inbound bool // the port is one of the machine
}

// rule returns the rule that drops the packets of a direction.
func (w wire) rule(direction int) []string {
	from, to, side := w.machine.host, hub, "dport"
	if w.inbound {
		from, to = to, from
	}
	if direction == fromServer {
		from, to, side = to, from, "sport"
	}
	return []string{"pref", "100", "from", from, "to", to, "ipproto", "tcp", side, w.port, "blackhole"}
}

// lose drops the packets of some directions, and returns a function that ends this.
func (w wire) lose(directions ...int) (end func()) {
	for _, d := range directions {
		w.machine.must(ip(append([]string{"rule", "add"}, w.rule(d)...)...))
	}
	return func() {
		for _, d := range directions {
			w.machine.must(ip(append([]string{"rule", "del"}, w.rule(d)...)...))
		}
	}
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// A machine loses packets in one direction or both, and its disk can be full.
func TestAMachineLosesPackets(t *testing.T) {
	if !isolated {
		t.Log("no namespaces")
		return
	}
	m := newMachine(t, "tested", 1<<20)
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp4", hub+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	heard := make(chan string)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			buffer := make([]byte, 10)
			for {
				n, err := conn.Read(buffer)
				if err != nil {
					break
				}
				heard <- string(buffer[:n])
			}
		}
	}()
	w := wire{machine: m, port: portOf(l.Addr().String())}
	cmd := m.command("bash", "-c", fmt.Sprintf(`exec 3>/dev/tcp/%s/%s; while read -r line; do printf '%%s' "$line" >&3; done`, hub, w.port))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	say := func(text string, arrives bool) {
		t.Helper()
		if text != "" {
			_, _ = fmt.Fprintln(in, text)
		}
		limit := patience
		if !arrives {
			limit = 300 * time.Millisecond
		}
		select {
		case got := <-heard:
			if !arrives || text != "" && got != text {
				t.Fatalf("heard %q", got)
			}
		case <-time.After(limit):
			if arrives {
				t.Fatalf("%q does not arrive", text)
			}
		}
	}
	say("one", true)
	end := w.lose(toServer)
	say("two", false)
	end()
	say("", true)
	end = w.lose(fromServer) // the data arrives, and is repeated
	say("three", true)
	end()
	m.unplug()
	say("four", false)
	m.plug()
	say("", true)

	m.fill(0)
	if err := os.WriteFile(filepath.Join(m.disk, "file"), make([]byte, 8192), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write to a full disk: %v", err)
	}
	m.empty()
	if err := os.WriteFile(filepath.Join(m.disk, "file"), make([]byte, 8192), 0o600); err != nil {
		t.Error(err)
	}
}
