//go:build crashsteps

package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// natsVariable makes the program of the test a NATS server. Its value is a natsConfig.
const natsVariable = "CHAOS_NATS"

// members is the number of NATS servers.
const members = 3

// A natsConfig describes one server of a cluster of NATS servers.
type natsConfig struct {
	Name, Dir, Listen, ClusterListen string
	Routes                           []string
}

// A bus is a NATS server in a process of its own.
type bus struct {
	c       *cluster
	machine *machine
	config  natsConfig

	mu   sync.Mutex
	cmd  *exec.Cmd
	gone chan struct{}
}

// startBuses starts the servers.
func (c *cluster) startBuses() {
	for i := range members {
		m := newMachine(c.t, fmt.Sprint("nats-", i+1), busDiskBytes)
		c.buses = append(c.buses, &bus{c: c, machine: m, config: natsConfig{Name: m.name, Dir: filepath.Join(m.disk, "nats"), Listen: m.address(4222), ClusterListen: m.address(6222)}})
	}
	for _, b := range c.buses {
		for _, other := range c.buses {
			b.config.Routes = append(b.config.Routes, other.config.ClusterListen)
		}
		b.run()
		c.t.Cleanup(func() {
			b.signal(syscall.SIGCONT)
			b.end(syscall.SIGKILL)
		})
	}
	for _, b := range c.buses {
		c.until(b.machine.name+" listens", func() bool {
			conn, err := net.DialTimeout("tcp4", b.config.Listen, time.Second)
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		})
	}
}

func (b *bus) run() {
	b.mu.Lock()
	defer b.mu.Unlock()
	text, err := json.Marshal(b.config)
	if err != nil {
		b.c.t.Error(err)
		return
	}
	self, err := os.Executable()
	if err != nil {
		b.c.t.Error(err)
		return
	}
	log, err := os.OpenFile(filepath.Join(b.c.logs, b.machine.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		b.c.t.Error(err)
		return
	}
	defer log.Close()
	cmd := b.machine.command(self)
	cmd.Env = append(os.Environ(), natsVariable+"="+string(text))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		b.c.t.Errorf("start %s: %v", b.machine.name, err)
		return
	}
	gone := make(chan struct{})
	b.cmd, b.gone = cmd, gone
	go func() {
		_ = cmd.Wait() // it is killed
		close(gone)
	}()
}

// end ends the process by a signal, and waits for its end.
func (b *bus) end(by syscall.Signal) {
	b.signal(by)
	b.mu.Lock()
	cmd, gone := b.cmd, b.gone
	b.mu.Unlock()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		b.c.t.Errorf("%s does not stop", b.machine.name)
		_ = cmd.Process.Kill()
		<-gone
	}
}

func (b *bus) signal(s syscall.Signal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		b.c.t.Errorf("signal %s: %v", b.machine.name, err)
	}
}

// serveNATS is a NATS server that syncs each message, until SIGTERM.
func serveNATS() error {
	var c natsConfig
	if err := json.Unmarshal([]byte(os.Getenv(natsVariable)), &c); err != nil {
		return err
	}
	o := &natsserver.Options{ServerName: c.Name, JetStream: true, StoreDir: c.Dir, SyncAlways: true, JetStreamMaxStore: busDiskBytes, NoSigs: true, Logtime: true}
	split := func(address string) (host string, port int) {
		host, text, err := net.SplitHostPort(address)
		if err == nil {
			port, err = strconv.Atoi(text)
		}
		if err != nil {
			panic(err)
		}
		return host, port
	}
	o.Host, o.Port = split(c.Listen)
	o.Cluster.Name, o.Cluster.NoAdvertise = "chaos", true // clients use only the addresses that they have, which are proxies
	o.Cluster.Host, o.Cluster.Port = split(c.ClusterListen)
	for _, r := range c.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: r})
	}
	s, err := natsserver.NewServer(o)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go s.Start()
	<-stop
	s.LameDuckShutdown()
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// natsURL returns the setting nats for the proxies of a node.
func natsURL(links []*link) string {
	var all []string
	for _, l := range links {
		all = append(all, "nats://"+l.proxy.address)
	}
	return strings.Join(all, ",")
}
