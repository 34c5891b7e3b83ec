package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

// A Sink is a sink in a process of its own.
type Sink struct {
	*Process   // nil where it runs already
	Addr       string
	Port       string // for requests, at all of 127.0.0.0/8; "" where it takes none
	Builtin    bool
	lastOutput chan string // of smtp-sink: its last words
}

// A SinkOptions says how a built-in sink behaves, and what it writes down.
type SinkOptions struct {
	Inject sink.Inject
	Above  int      // messages it takes in any one second, 0 for all
	Hosts  []string // rules of single hosts; see sink.ParseHostRule
	Web    bool     // it takes requests too, and tells its summary while it runs

	Record string // file of what came, "" for none
	Only   string // pattern of whom it records, "" for all
}

// OpenSink starts the sink that was asked for. The spec is for the built-in one.
func (l *Env) OpenSink(spec SinkOptions) (*Sink, error) {
	switch l.Sink {
	case "builtin":
		return l.openBuiltinSink(spec)
	case "smtp-sink":
		return l.openSMTPSink()
	}
	return &Sink{Addr: l.Sink}, nil
}

// openBuiltinSink starts fanfare sink.
func (l *Env) openBuiltinSink(spec SinkOptions) (*Sink, error) {
	in := spec.Inject
	args := []string{"sink", "--smtp", "127.0.0.1:0", "--seed", fmt.Sprint(in.Seed),
		"--temp-fail", fmt.Sprint(in.TempFail), "--perm-fail", fmt.Sprint(in.PermFail),
		"--delay", in.Delay.String(), "--above", fmt.Sprint(spec.Above)}
	if l.TLS {
		args = append(args, "--tls")
	}
	if spec.Record != "" {
		args = append(args, "--record", spec.Record, "--record-only", spec.Only)
	}
	for _, rule := range spec.Hosts {
		args = append(args, "--host", rule)
	}
	if spec.Web {
		args = append(args, "--http", loopback+":0")
	}
	c, err := l.Spawn("sink", nil, l.Binary, args...)
	if err != nil {
		return nil, err
	}
	p := &Sink{Process: c, Builtin: true}
	ctx, cancel := context.WithTimeout(l.Ctx, 10*time.Second)
	defer cancel()
	return p, c.WaitForLog(ctx, func(line string) bool {
		if _, rest, found := strings.Cut(line, "sink takes mail at "); found {
			p.Addr, _, _ = strings.Cut(rest, " ")
		}
		if _, rest, found := strings.Cut(line, "sink takes requests at http://"); found {
			_, p.Port, _ = strings.Cut(strings.Fields(rest)[0], ":")
		}
		return p.Addr != "" && (p.Port != "" || !spec.Web)
	})
}

// openSMTPSink starts the one of Postfix.
func (l *Env) openSMTPSink() (*Sink, error) {
	program, err := LookPostfix("smtp-sink")
	if err != nil {
		return nil, err
	}
	addr, err := freeAddress(l.Ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"-c", addr, "1000"}
	if os.Geteuid() == 0 {
		args = append([]string{"-u", "nobody"}, args...)
	}
	c, err := l.Spawn("smtp-sink", nil, program, args...)
	if err != nil {
		return nil, err
	}
	p := &Sink{Process: c, Addr: addr, lastOutput: make(chan string, 1)}
	go func() { p.lastOutput <- readLastOutput(c.stdout) }()
	return p, awaitListener(l.Ctx, addr)
}

// readLastOutput reads to the end of what prints its counters over and over.
func readLastOutput(r io.Reader) string {
	var last []byte
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		last = append(last, buf[:n]...)
		last = last[max(0, len(last)-256):]
		if err != nil {
			return string(last)
		}
	}
}

// LookPostfix finds a program of Postfix, which is not in everybody's PATH.
func LookPostfix(name string) (string, error) {
	program, err := exec.LookPath(name)
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		return "", fmt.Errorf("%s is not installed (package postfix)", name)
	}
	return program, nil
}

// freeAddress returns one that nobody listens on just now.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// awaitListener returns when somebody listens on addr.
func awaitListener(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nobody listens on %s: %w", addr, err)
		case <-tick.C:
		}
	}
}

// loopback is the host at which a sink takes requests for all of 127.0.0.0/8.
const loopback = "loopback"

// Summary asks a sink that takes requests what it has seen.
func (p *Sink) Summary(ctx context.Context) (sum sink.Summary, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+p.Port+"/", nil)
	if err != nil {
		return sum, err
	}
	answer, err := (&http.Client{Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return sum, err
	}
	defer answer.Body.Close()
	return sum, json.NewDecoder(answer.Body).Decode(&sum)
}

var mailCounter = regexp.MustCompile(`mesg=\s*(\d+)`)

// Finish ends the sink and returns what it saw. Where only the number of mails is
// known, only that is set.
func (p *Sink) Finish() (sink.Summary, error) {
	var sum sink.Summary
	if p.Process == nil {
		return sum, nil
	}
	if !p.Builtin {
		_ = p.cmd.Process.Kill() // the only way it ends
		said := <-p.lastOutput
		var exit *exec.ExitError
		if err := p.Wait(); err != nil && !errors.As(err, &exit) {
			return sum, err
		}
		if all := mailCounter.FindAllStringSubmatch(said, -1); len(all) > 0 {
			sum.Messages, _ = strconv.ParseInt(all[len(all)-1][1], 10, 64)
		}
		return sum, nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return sum, err
	}
	if err := json.NewDecoder(p.stdout).Decode(&sum); err != nil {
		return sum, p.WithLog(err)
	}
	return sum, p.Wait()
}

// Usage returns what the sink's process has taken so far.
func (p *Sink) Usage() processUsage {
	if p.Process == nil {
		return processUsage{}
	}
	return p.Used()
}
