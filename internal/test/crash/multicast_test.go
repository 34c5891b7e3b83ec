//go:build crashsteps

package crash

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// recipients is how many a message may go to at once.
const recipients = 20

// multicastSteps are those that a message to several passes, with the passings at
// which the server dies.
var multicastSteps = []struct {
	name     string
	passings []int
}{
	{"before-body", []int{1, 20, 90}}, {"after-reply", []int{1, 20, 90}},
	{"before-outcome", []int{1, 5, 30}}, {"after-outcome", []int{1, 5, 30}},
	{"before-batch-ack", []int{1, 3}}, {"after-batch-ack", []int{1, 3}},
}

// TestNothingIsLostOfMessagesToSeveral has the server die around messages that go to
// several people, some of whom are refused, and the relay hang up behind some. Nobody
// is left out, and nobody gets one again but the recipients of one message for each
// connection and death.
func TestNothingIsLostOfMessagesToSeveral(t *testing.T) {
	t.Parallel()
	personal := "Hello {{ subscriber.address }}: {{ event.title }}"
	several := strings.NewReplacer("rate: unlimited,", "rate: unlimited, multicast: 20,", personal, "News: {{ event.title }}").Replace(document)
	if strings.Contains(several, "subscriber") || !strings.Contains(several, "multicast: 20") {
		t.Fatalf("the document is another: %s", several)
	}
	for _, durability := range []string{"relaxed", "fsync"} {
		t.Run(durability, func(t *testing.T) {
			w := configured(tell(t), durability, pgtest.Chosen(t), several, sink.Inject{TempFail: 0.02, PermFail: 0.01,
				DropBeforeData: 0.01, DropInData: 0.01, DropBeforeReply: 0.01})
			w.recipients = recipients
			w.subscribe(3000, 20)
			kills := 1
			w.during(func() {
				w.server.kill(w.server.current())
				for _, step := range multicastSteps {
					for _, passing := range step.passings {
						w.dieAt(step.name, passing)
						kills++
					}
				}
				w.server.awaitReady(w.server.start())
			})
			w.check(kills)
		})
	}
}
