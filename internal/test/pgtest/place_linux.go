package pgtest

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// enter moves the calling thread into the network namespace.
func (p *Place) enter() error {
	if p.Namespace == "" {
		return nil
	}
	f, err := os.Open(p.Namespace)
	if err != nil {
		return err
	}
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return errors.Join(fmt.Errorf("enter the network namespace %s: %w", p.Namespace, err), f.Close())
	}
	return f.Close()
}
