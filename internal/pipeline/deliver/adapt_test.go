package deliver

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
)

// TestAChannelThatAdaptsComesBackToAllItsConnections has a next hop that asks for
// less for ten seconds and takes everything from then on. Each connection has one
// message at a time, so that none asks for more than its lane may have.
func TestAChannelThatAdaptsComesBackToAllItsConnections(t *testing.T) {
	for _, lane := range fanfare.Lanes {
		for _, reserve := range []Reserve{{}, {Urgent: 0.1, Normal: 0.1}} {
			t.Run(fmt.Sprintf("%v, %+v", lane, reserve), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := settings(nil)
					s.Adapt, s.Connections, s.Reserve, s.Retry = true, 20, reserve, Retry{time.Hour}
					calm := time.Now().Add(10 * time.Second)
					w := newTown(t, s, func(_ string, now time.Time) reply {
						if now.Before(calm) {
							return reply{250 * time.Millisecond, refusing(fanfare.ClassBusy)}
						}
						return reply{250 * time.Millisecond, taken}
					})
					w.send(lane, make([]string, 30_000))
					<-time.After(2 * time.Minute)
					w.mu.Lock()
					w.most[""] = 0
					w.mu.Unlock()
					<-time.After(time.Second)
					w.mu.Lock()
					most := w.most[""]
					w.mu.Unlock()
					if want := reserve.most(lane, s.Connections); most < want-1 {
						t.Errorf("%d at most are under way two minutes later, want %d", most, want)
					}
					w.Stop()
				})
			})
		}
	}
}
