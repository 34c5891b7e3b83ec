//go:build unix

package agent

import (
	"os"
	"os/exec"
	"syscall"
)

// separate gives a command its own process group, and its user.
func separate(cmd *exec.Cmd, run *identity) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if run != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: run.uid, Gid: run.gid, Groups: run.groups}
	}
	endWithAgent(cmd.SysProcAttr)
}

func terminateProcess(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// killGroup kills a process and the children that are in its group.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL) // the group may have ended
}
