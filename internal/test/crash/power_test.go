//go:build crashsteps && powerloss

package crash

import (
	"path/filepath"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/powerloss/mount"
)

// withPower puts the data directory of a server that has not started yet on a disk that forgets. From then on, the power is cut
// between two lives of the server. One loss in three drops everything that was not synced; the others keep a random part.
func (s *server) withPower(seed uint64) *mount.Mount {
	s.t.Helper()
	m := mount.Start(s.t)
	s.dir = filepath.Join(m.Dir, "data")
	losses := uint64(0)
	s.losePower = func() {
		s.t.Helper()
		if losses++; losses%3 == 0 {
			m.LosePower(0)
		} else {
			m.LosePower(seed + losses)
		}
	}
	return m
}

func TestNothingAcknowledgedIsLostWhenThePowerFails(t *testing.T) {
	t.Parallel()
	of := tell(t)
	w := &world{t: of, seed: seedOf(of), server: newServer(of, "fsync", "")}
	m := w.server.withPower(w.seed)
	w.begin(document, sink.Inject{TempFail: 0.02, PermFail: 0.01, DropBeforeData: 0.001, DropInData: 0.001, DropBeforeReply: 0.001})
	w.subscribe(setting(t, "CRASH_PEOPLE", 3000), 20)
	losses := setting(t, "CRASH_POWER_LOSSES", 15)
	all := 0
	w.during(func() {
		random := w.random(1)
		for hits := 0; hits < losses && w.given.Err() == nil; all++ {
			if w.killSoon(random, func() {}) {
				hits++
			}
			w.server.start()
		}
		w.server.awaitReady(w.server.current())
	})
	w.check(all)
	t.Logf("%d losses of power, %+v", all, m.Counts())
}
