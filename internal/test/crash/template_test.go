//go:build crashsteps

package crash

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// templateSteps are passed when a template that fails pauses a broadcast, and when a
// corrected version has it go on.
var templateSteps = []string{"before-template-pause", "after-template-pause", "before-template-resume"}

// lettered is a document whose template fails for all real recipients, and not for
// those that an apply makes up.
const lettered = `
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: %d, retry: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s]}
topics:
  story:
    template: message
    lane: bulk
    rules:
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
  note: {template: message, lane: urgent}
templates:
  message:
    subject: "{{ event.title }}"
    text: "Hello {{ subscriber.address }}: {{ event.title }}\n"
`

const fails = `{% if subscriber.address != "sample@example.org" %}{{ subscriber.address | date: "long" }}{% endif %}`

// documentVersion is a version of the template, of which no two are the same.
func documentVersion(version int, more string) []byte {
	return fmt.Appendf(nil, "service: news\ntemplates:\n  message:\n    subject: \"{{ event.title }}\"\n    text: |\n      Hello {{ subscriber.address }}: {{ event.title }}\n      Version %d%s\n", version, more)
}

// TestABroadcastThatItsTemplatePausedGoesOnWhereverTheServerDies has the server die when
// a template pauses a broadcast and when a corrected version resumes it. Nobody does
// anything after the death but apply the correction.
func TestABroadcastThatItsTemplatePausedGoesOnWhereverTheServerDies(t *testing.T) {
	t.Parallel()
	w := configured(tell(t), "fsync", pgtest.Chosen(t), lettered, sink.Inject{TempFail: 0.02, PermFail: 0.01, DropBeforeData: 0.001, DropInData: 0.001, DropBeforeReply: 0.001})
	w.subscribe(1500, 1)
	apply := func(document []byte) {
		w.must(func(ctx context.Context, api *client.Client) error {
			_, err := api.Apply(ctx, document, false)
			return err
		})
	}
	for i, step := range templateSteps {
		apply(documentVersion(2*i, fails))
		resumes := strings.HasSuffix(step, "resume")
		l := w.server.current()
		if !resumes {
			w.server.stop(l)
			l = w.server.start("FANFARE_CRASH_AT=" + step + ":1")
			w.server.awaitReady(l)
		}
		id, err := w.publish(story, "of-"+step)
		if err != nil {
			w.t.Fatal(err)
		}
		paused := func(l *life) func() bool {
			return func() bool {
				b, err := l.client.Event(t.Context(), id)
				return err == nil && b.State == fanfare.SwitchPaused && b.Counts[fanfare.Failed] == 0
			}
		}
		if resumes {
			w.until(id+" is paused", paused(l))
			w.server.stop(l)
			l = w.server.start("FANFARE_CRASH_AT=" + step + ":1")
			w.server.awaitReady(l)
			apply(documentVersion(2*i+1, ""))
		}
		w.server.awaitDeath(w.given, l, "died at "+step)
		l = w.server.start()
		w.server.awaitReady(l)
		if !resumes {
			w.until(id+" is paused after a restart", paused(l))
			apply(documentVersion(2*i+1, ""))
		}
		if _, err := w.completed(id); err != nil {
			w.t.Fatalf("%s: %v", step, err)
		}
	}
	w.check(len(templateSteps))
}
