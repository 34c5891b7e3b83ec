package pgtest

import (
	"context"
	"io"
	"os/exec"
	"syscall"
)

// A janitor is a process that briefly outlives the process that started it. When its input ends without a message, it
// stops the server of a directory; in any case it removes the directory. It ignores processes that it may not signal.
type janitor struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

const janitorScript = `
read -r told || {
	pid=$(head -n 1 "$1/data/postmaster.pid") && kill -QUIT "$pid"
	for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$pid" || break; sleep 1; done
}
rm -rf "$1"`

func engage(dir string, as *syscall.Credential) (*janitor, error) {
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", janitorScript, "janitor", dir) //nolint:gosec // a constant
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as, Setpgid: true}
	cmd.Dir = "/"
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &janitor{cmd, input}, cmd.Start()
}

// dismiss has it remove the directory of a server that was stopped.
func (j *janitor) dismiss() error {
	if _, err := io.WriteString(j.input, "stopped\n"); err != nil {
		return err
	}
	return j.cmd.Wait()
}
