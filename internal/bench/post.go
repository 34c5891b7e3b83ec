package bench

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

// A post is a sink in a process of its own.
type post struct {
	*child  // nil where it runs already
	addr    string
	port    string // for requests, at all of 127.0.0.0/8; "" where it takes none
	builtin bool
	said    chan string // of smtp-sink: its last words
}

// A postSpec says how a built-in sink behaves, and what it writes down.
type postSpec struct {
	inject sink.Inject
	above  int      // messages it takes in any one second, 0 for all
	hosts  []string // rules of single hosts; see sink.ParseHostRule
	web    bool     // it takes requests too, and tells its summary while it runs

	record string // file of what came, "" for none
	only   string // pattern of whom it records, "" for all
}

// openPost starts the sink that was asked for. The spec is for the built-in one.
func (l *lab) openPost(spec postSpec) (*post, error) {
	switch l.Sink {
	case "builtin":
		return l.openBuiltin(spec)
	case "smtp-sink":
		return l.openSMTPSink()
	}
	return &post{addr: l.Sink}, nil
}

// openBuiltin starts fanfare sink.
func (l *lab) openBuiltin(spec postSpec) (*post, error) {
	in := spec.inject
	args := []string{"sink", "--smtp", "127.0.0.1:0", "--seed", fmt.Sprint(in.Seed),
		"--temp-fail", fmt.Sprint(in.TempFail), "--perm-fail", fmt.Sprint(in.PermFail),
		"--delay", in.Delay.String(), "--above", fmt.Sprint(spec.above)}
	if l.TLS {
		args = append(args, "--tls")
	}
	if spec.record != "" {
		args = append(args, "--record", spec.record, "--record-only", spec.only)
	}
	for _, rule := range spec.hosts {
		args = append(args, "--host", rule)
	}
	if spec.web {
		args = append(args, "--http", loopback+":0")
	}
	c, err := l.spawn("sink", nil, l.Binary, args...)
	if err != nil {
		return nil, err
	}
	p := &post{child: c, builtin: true}
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
	defer cancel()
	return p, c.tail(ctx, func(line string) bool {
		if _, rest, found := strings.Cut(line, "sink takes mail at "); found {
			p.addr, _, _ = strings.Cut(rest, " ")
		}
		if _, rest, found := strings.Cut(line, "sink takes requests at http://"); found {
			_, p.port, _ = strings.Cut(strings.Fields(rest)[0], ":")
		}
		return p.addr != "" && (p.port != "" || !spec.web)
	})
}

// openSMTPSink starts the one of Postfix.
func (l *lab) openSMTPSink() (*post, error) {
	program, err := lookPostfix("smtp-sink")
	if err != nil {
		return nil, err
	}
	addr, err := freeAddress(l.ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"-c", addr, "1000"}
	if os.Geteuid() == 0 {
		args = append([]string{"-u", "nobody"}, args...)
	}
	c, err := l.spawn("smtp-sink", nil, program, args...)
	if err != nil {
		return nil, err
	}
	p := &post{child: c, addr: addr, said: make(chan string, 1)}
	go func() { p.said <- lastWords(c.stdout) }()
	return p, await(l.ctx, addr)
}

// lastWords reads to the end of what prints its counters over and over.
func lastWords(r io.Reader) string {
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

// lookPostfix finds a program of Postfix, which is not in everybody's PATH.
func lookPostfix(name string) (string, error) {
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

// await returns when somebody listens on addr.
func await(ctx context.Context, addr string) error {
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

// soFar asks a sink that takes requests what it has seen.
func (p *post) soFar(ctx context.Context) (sum sink.Summary, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+p.port+"/", nil)
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

// end ends the sink and returns what it saw. Where only the number of mails is
// known, only that is set.
func (p *post) end() (sink.Summary, error) {
	var sum sink.Summary
	if p.child == nil {
		return sum, nil
	}
	if !p.builtin {
		_ = p.cmd.Process.Kill() // the only way it ends
		said := <-p.said
		var exit *exec.ExitError
		if err := p.wait(); err != nil && !errors.As(err, &exit) {
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
		return sum, p.failed(err)
	}
	return sum, p.wait()
}

// usage returns what the sink's process has taken so far.
func (p *post) usage() usage {
	if p.child == nil {
		return usage{}
	}
	return p.now()
}
