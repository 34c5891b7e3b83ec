//go:build unix && !linux

package agent

import "syscall"

// endWithAgent does nothing: only Linux can end a process with its parent.
func endWithAgent(*syscall.SysProcAttr) {}

func residentBytes(int) (size int64, exists bool) { return 0, false }
