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

// A Sink is a capture server in a process of its own.
type Sink struct {
	*Process   // nil if the sink was running before
	Addr       string
	Port       string // for requests to all of 127.0.0.0/8; "" if it accepts none
	Builtin    bool
	lastOutput chan string // of smtp-sink, after its end
}

// SinkOptions say how the built-in sink behaves and what it records.
type SinkOptions struct {
	Inject sink.Inject
	Above  int      // messages that it accepts in a second; 0 sets no limit
	Hosts  []string // rules of single hosts; see sink.ParseHostRule
	Web    bool     // it also accepts requests, and serves its summary while it runs

	Record string // file to record messages in; "" for none
	Only   string // pattern of the recipients to record; "" for all
}

// OpenSink starts the sink of the run. The options apply to the built-in one.
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
	ctx, cancel := context.WithTimeout(l.Ctx, startPatience)
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

// openSMTPSink starts the smtp-sink of Postfix.
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
	return p, AwaitListener(l.Ctx, addr)
}

// readLastOutput reads the output of a program that prints its counters repeatedly, and
// returns the end of it.
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

// LookPostfix finds a program of Postfix, also if it is not in PATH.
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

// freeAddress returns an address on which no process listens at the moment.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// AwaitListener returns when a process listens on addr.
func AwaitListener(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
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
			return fmt.Errorf("no process listens on %s: %w", addr, err)
		case <-tick.C:
		}
	}
}

// loopback is the host on which a sink accepts requests to all of 127.0.0.0/8.
const loopback = "loopback"

// Summary asks a sink that accepts requests for its counters.
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

// Finish stops the sink and returns its counters. If only the number of mails is known,
// the others are zero.
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

// Usage returns the CPU time and memory that the sink has taken so far.
func (p *Sink) Usage() ProcessUsage {
	if p.Process == nil {
		return ProcessUsage{}
	}
	return p.Used()
}
