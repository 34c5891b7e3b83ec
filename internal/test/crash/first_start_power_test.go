//go:build crashsteps && powerloss

package crash

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// TestThePowerFailsDuringTheFirstStart cuts the power while a server creates its files. It has acknowledged nothing, and it must start again without
// help.
func TestThePowerFailsDuringTheFirstStart(t *testing.T) {
	t.Parallel()
	for _, durability := range []string{"fsync", "relaxed"} {
		t.Run("durability="+durability, func(of *testing.T) {
			of.Parallel()
			t := tell(of)
			s := newServer(t, "fsync", "", "FANFARE_FAULT=power-lost")
			s.durability = durability
			w := &world{t: t, seed: seedOf(of), server: s}
			random, disk, shortest := w.random(1), filepath.Dir(s.dir), time.Duration(0)
			n := setting(t, "CRASH_FIRST_STARTS", 15)
			for i := range n {
				s.dir = filepath.Join(disk, fmt.Sprint("data", i))
				l := s.start()
				wait(random, max(shortest, 100*time.Millisecond))
				s.kill(l)
				l = s.start()
				s.awaitReady(l)
				if took := time.Since(l.begun); shortest == 0 || took < shortest {
					shortest = took
				}
				s.kill(l)
			}
			t.Logf("%d first starts, ready after %v", n, shortest)
		})
	}
}
