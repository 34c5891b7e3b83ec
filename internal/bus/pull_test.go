package bus

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// pulled opens a bus whose leases last longer than the test, with a consumer of the batches of publish.
func pulled(t *testing.T) (*Bus, func() *pull) {
	t.Helper()
	b := open(t, Options{Lease: time.Hour})
	consumer, err := b.batches.CreateConsumer(t.Context(), b.consumerConfig(batchesSubject(7, fanfare.Bulk)))
	if err != nil {
		t.Fatal(err)
	}
	return b, func() *pull {
		t.Helper()
		p, err := newPull(b.conn, consumer)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

func ask(t *testing.T, p *pull, n int) {
	t.Helper()
	if err := p.request(n); err != nil {
		t.Fatal(err)
	}
}

// brings makes sure that a pull receives messages, in any order.
func brings(t *testing.T, p *pull, want ...string) {
	t.Helper()
	var got []string
	limit := time.After(2 * time.Minute)
	for len(got) < len(want) {
		select {
		case msg := <-p.messages:
			isMessage, err := p.take(msg)
			if err != nil {
				t.Fatal(err)
			}
			if isMessage {
				got = append(got, string(msg.Data))
			}
		case <-limit:
			t.Fatalf("received %q of %q", got, want)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
}

// A queue that gives up a request makes another one. The server may answer both.
func TestAPullReceivesTheMessagesOfARequestThatWasGivenUp(t *testing.T) {
	b, open := pulled(t)
	p := open()
	ask(t, p, 3)
	ask(t, p, 3)
	var texts []string
	for i := range 6 {
		texts = append(texts, fmt.Sprint(i))
	}
	publish(t, b, texts...)
	brings(t, p, texts...)
	if p.expected != 0 {
		t.Errorf("%d messages are expected after all", p.expected)
	}
}

func TestTheEndOfAPullReturnsWhatHasArrived(t *testing.T) {
	b, open := pulled(t)
	p := open()
	ask(t, p, 5)
	publish(t, b, "1", "2", "3")
	brings(t, p, "1", "2", "3") // held; the next ones are on their way or have arrived
	publish(t, b, "4", "5")
	p.end()
	next := open()
	ask(t, next, 2)
	brings(t, next, "4", "5")
}
