//go:build crashsteps

package crash

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/smtp"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"

	"fanfare.dev/fanfare/internal/sink"
)

// The environment that makes the test binary a capture server.
const (
	sinkRecord = "FANFARE_CRASH_SINK_RECORD" // path of its record
	sinkInject = "FANFARE_CRASH_SINK_INJECT" // a sink.Inject as JSON
)

// sinkMain says its address on standard output, takes mail until standard input
// ends, and says what it has seen.
func sinkMain(path string) (err error) {
	var inject sink.Inject
	if err := json.Unmarshal([]byte(os.Getenv(sinkInject)), &inject); err != nil {
		return err
	}
	record, err := os.Create(path)
	if err != nil {
		return err
	}
	s := sink.New(sink.Config{Inject: inject, Record: record, RecordSync: true})
	address, err := s.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	answers := json.NewEncoder(os.Stdout)
	if err := answers.Encode(address.String()); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return errors.Join(s.Close(), <-served, record.Close(), answers.Encode(s.Stats()))
}

// capture is a capture server in a process of its own, which outlives all kills.
type capture struct {
	t       *teller
	address string
	record  string
	stdin   io.Closer
	answers *json.Decoder
	wait    func() error
	verdict map[string]bool // refused for good, by address
}

func startSink(t *teller, inject sink.Inject) *capture {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	asked, err := json.Marshal(inject)
	if err != nil {
		t.Fatal(err)
	}
	c := &capture{t: t, record: filepath.Join(t.TempDir(), "record"), verdict: map[string]bool{}}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), sinkRecord+"="+c.record, sinkInject+"="+string(asked))
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.stdin, c.answers, c.wait = stdin, json.NewDecoder(stdout), cmd.Wait
	if err := c.answers.Decode(&c.address); err != nil {
		t.Fatal(err)
	}
	return c
}

// refuses asks the capture server whether it refuses an address for good. Its
// own word counts, not the share that it was told. An address that is deferred
// once is asked again.
func (c *capture) refuses(address string) (bool, error) {
	if no, known := c.verdict[address]; known {
		return no, nil
	}
	conn, err := smtp.Dial(c.address)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if err := conn.Mail("asks@example.org"); err != nil {
		return false, err
	}
	for range 2 {
		err = conn.Rcpt(address)
		if code, ok := errors.AsType[*textproto.Error](err); !ok || code.Code/100 != 4 {
			break
		}
	}
	code, ok := errors.AsType[*textproto.Error](err)
	switch {
	case err == nil:
		c.verdict[address] = false
	case ok && code.Code/100 == 5:
		c.verdict[address] = true
	default:
		return false, fmt.Errorf("the capture server on %s: %w", address, err)
	}
	return c.verdict[address], nil
}

// close ends the capture server and returns what it saw.
func (c *capture) close() sink.Summary {
	c.t.Helper()
	c.stdin.Close()
	var s sink.Summary
	if err := c.answers.Decode(&s); err != nil {
		c.t.Fatal(err)
	}
	if err := c.wait(); err != nil {
		c.t.Fatal(err)
	}
	return s
}

// sizeBytes grows with each mail that the capture server takes.
func (c *capture) sizeBytes() (int64, error) {
	record, err := os.Stat(c.record)
	if err != nil {
		return 0, err
	}
	return record.Size(), nil
}

// taken counts what the capture server took so far.
func (c *capture) taken() int {
	c.t.Helper()
	record, err := os.ReadFile(c.record)
	if err != nil {
		c.t.Fatal(err)
	}
	return bytes.Count(record, []byte{'\n'})
}

// arrivals reads what the capture server took so far.
func (c *capture) arrivals() []Arrival {
	c.t.Helper()
	f, err := os.Open(c.record)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	all, err := ReadArrivals(f)
	if err != nil {
		c.t.Fatal(err)
	}
	return all
}
