package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopPatience is how long a child may take to end when it is asked to.
const stopPatience = 60 * time.Second

// A child is a process that was started here.
type child struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	log    string // file with its standard error
	ended  bool
	final  usage // of its whole life, once it has ended
}

// spawn starts a program. Its standard error goes to a file of the run.
func (l *lab) spawn(name string, env []string, program string, args ...string) (*child, error) {
	c := &child{name: name, log: filepath.Join(l.dir, fmt.Sprintf("%02d-%s.log", len(l.children), name))}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()                                    //nolint:errcheck // nothing was written here: the child has its own
	c.cmd = exec.CommandContext(l.ctx, program, args...) //nolint:gosec // our own binary, or what the caller named
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

// line reads one line of the child's standard output.
func (c *child) line() ([]byte, error) {
	b, err := c.stdout.ReadBytes('\n')
	if err != nil {
		return nil, c.failed(fmt.Errorf("it ended without an answer: %w", err))
	}
	return b, nil
}

// failed adds to err what the child said last.
func (c *child) failed(err error) error {
	said, _ := os.ReadFile(c.log) // none is no reason to hide err
	if len(said) > 2000 {
		said = said[len(said)-2000:]
	}
	return fmt.Errorf("%s: %w\n%s", c.name, err, said)
}

// wait closes the child's input and returns when it has ended by itself.
func (c *child) wait() error {
	if c.ended {
		return nil
	}
	c.ended = true
	_ = c.stdin.Close() // an early end is found by Wait
	err := c.cmd.Wait()
	c.final = usageOf(c.cmd.ProcessState)
	if err != nil {
		return c.failed(err)
	}
	return nil
}

// stop asks the child to end, and ends it where it does not.
func (c *child) stop() error {
	if c.ended {
		return nil
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.AfterFunc(stopPatience, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	return c.wait()
}

// tail follows the child's log until find says yes to a line.
func (c *child) tail(ctx context.Context, find func(line string) bool) error {
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
			return c.failed(ctx.Err())
		case <-tick.C:
			if !alive(c.cmd.Process) {
				return c.failed(errors.New("it ended before it was ready"))
			}
		}
	}
}
