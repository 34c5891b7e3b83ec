//go:build !unix

package agent

import (
	"os"
	"os/exec"
)

// separate does nothing: this system has no process groups and no users with numbers.
func separate(*exec.Cmd, *identity) {}

func terminateProcess(p *os.Process) error { return p.Kill() }

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // it may have ended
	}
}

func residentBytes(int) (size int64, exists bool) { return 0, false }
