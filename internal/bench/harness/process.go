package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopPatience is how long a process may take to end after it was asked to.
const stopPatience = 60 * time.Second

// A Process is a child process of the run.
type Process struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	log    string // file with its standard error
	ended  bool
	Final  ProcessUsage // of its whole life, once it has ended
}

// Spawn starts a program. Its standard error goes to a file in the folder of the run.
func (l *Env) Spawn(name string, env []string, program string, args ...string) (*Process, error) {
	c := &Process{name: name, log: filepath.Join(l.Dir, fmt.Sprintf("%02d-%s.log", len(l.children), name))}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()                                    //nolint:errcheck // nothing was written here: the child has its own
	c.cmd = exec.CommandContext(l.Ctx, program, args...) //nolint:gosec // our own binary, or what the caller named
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	c.cmd.WaitDelay = stopPatience
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stderr = log
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.stdout = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l.children = append(l.children, c)
	return c, nil
}

// ReadLine reads one line of the standard output of the process.
func (c *Process) ReadLine() ([]byte, error) {
	b, err := c.stdout.ReadBytes('\n')
	if err != nil {
		return nil, c.WithLog(fmt.Errorf("the process ended without a result: %w", err))
	}
	return b, nil
}

// ReadJSON decodes one line of the standard output of the process.
func (c *Process) ReadJSON(into any) error {
	line, err := c.ReadLine()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, into); err != nil {
		return c.WithLog(err)
	}
	return nil
}

// WithLog adds the last lines that the process has logged to err.
func (c *Process) WithLog(err error) error {
	said, _ := os.ReadFile(c.log) // without a log err alone is returned
	if len(said) > 2000 {
		said = said[len(said)-2000:]
	}
	return fmt.Errorf("%s: %w\n%s", c.name, err, said)
}

// CloseInput tells the process that it may end.
func (c *Process) CloseInput() error { return c.stdin.Close() }

// Wait closes the input of the process and returns when the process has ended.
func (c *Process) Wait() error {
	if c.ended {
		return nil
	}
	c.ended = true
	_ = c.stdin.Close() // an early end is found by Wait
	err := c.cmd.Wait()
	c.Final = usageOf(c.cmd.ProcessState)
	if err != nil {
		return c.WithLog(err)
	}
	return nil
}

// Stop asks the process to end, and kills it if it does not end in time.
func (c *Process) Stop() error {
	if c.ended {
		return nil
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.AfterFunc(stopPatience, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	return c.Wait()
}

// WaitForLog reads the log of the process until find accepts a line.
func (c *Process) WaitForLog(ctx context.Context, find func(line string) bool) error {
	f, err := os.Open(c.log)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	lines, partial := bufio.NewReader(f), ""
	for {
		line, err := lines.ReadString('\n')
		partial += line
		if err == nil {
			if find(partial) {
				return nil
			}
			partial = ""
			continue
		}
		select {
		case <-ctx.Done():
			return c.WithLog(ctx.Err())
		case <-tick.C:
			if !isRunning(c.cmd.Process) {
				return c.WithLog(errors.New("the process ended before it was ready"))
			}
		}
	}
}
