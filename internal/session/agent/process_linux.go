package agent

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// endWithAgent has the kernel kill the process when the agent dies.
func endWithAgent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }

// residentBytes returns the memory that a process uses (proc(5), statm: the second field has pages).
func residentBytes(pid int) (size int64, exists bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
