package smtp

import (
	"slices"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// otherwise is a queue that gives messages which this relay refuses to another one.
type otherwise struct {
	*testQueue
	passed []string
}

func (d *otherwise) Failover(message *driver.Message, o driver.Outcome) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if released, taken := d.out[message]; !taken || released || o.Verdict != driver.Temporary || o.Relay == "" || o.At.IsZero() {
		d.wrong("%s passed on, but taken=%v released=%v, %+v", message.To, taken, released, o)
	}
	delete(d.out, message)
	d.passed = append(d.passed, message.To+" "+o.Text)
	return true
}

// Five messages are sent. The peer's reply to the third makes it fail over if nothing of
// its body was written and the refusal is temporary.
func TestOnlyTemporarilyRefusedEnvelopesFailOver(t *testing.T) {
	for name, c := range map[string]struct {
		at, answer, person string
		passed             []string
	}{
		"RCPT refused for now":  {atRcpt, "451 4.3.2 too busy", "r2", []string{"r2@example.com 4.3.2 too busy"}},
		"RCPT answered 421":     {atRcpt, "421 4.3.2 going down", "r2", []string{"r2@example.com 4.3.2 going down"}},
		"DATA refused for now":  {atData, "451 4.3.2 too busy", "r2", []string{"r2@example.com 4.3.2 too busy"}},
		"RCPT refused for good": {atRcpt, "550 5.1.1 no such person", "r2", nil},
		"body refused for now":  {atBody, "451 4.3.0 later", "r2", nil},
	} {
		t.Run(name, func(t *testing.T) {
			hook := about(c.at, c.person, c.answer)
			if c.at == atData {
				hook = dataOf(c.person, c.answer)
			}
			p := startPeer(t, hook)
			all := messages(5)
			d := &otherwise{testQueue: newQueue(t, all...)}
			d.watch(p)
			if err := New(patient(p.addr)).Serve(t.Context(), d); err != nil {
				t.Error(err)
			}
			d.done()
			if !slices.Equal(d.passed, c.passed) {
				t.Errorf("passed on %q, want %q", d.passed, c.passed)
			}
			if n := len(d.outcomes) + len(d.passed); n != len(all) {
				t.Errorf("%d messages were settled, want %d", n, len(all))
			}
		})
	}
}
