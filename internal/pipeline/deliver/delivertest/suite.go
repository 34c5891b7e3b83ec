package delivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A Behaviour is how a next hop deals with messages.
type Behaviour string

// The behaviours.
const (
	Accepts            Behaviour = "takes all"
	RefusesTemporarily Behaviour = "refuses for now"
	RefusesPermanently Behaviour = "refuses for good"
	DropsAfterBody     Behaviour = "reads a body and is gone"
	NeverReplies       Behaviour = "reads a body and says nothing"
	DripsReply         Behaviour = "answers a byte at a time without end"
	RepliesEarly       Behaviour = "answers before it reads"
	Unreachable        Behaviour = "cannot be reached"
)

// A World is a driver and a real next hop of its kind. Its time-outs are short.
type Fixture struct {
	Driver driver.Driver
	Relay  string // of outcomes, or its beginning
	// Message makes the nth message with the address and the form of its kind. Its
	// body has text in it, as it is.
	Message func(n int, text string) *driver.Message
	// Behave says how messages are dealt with from now on.
	SetBehaviour func(Behaviour)
	// Encloses says that messages of this kind may have files enclosed.
	HasAttachments bool
	// Replaces says that a message which comes twice replaces itself, so that different
	// ones may leave together.
	Idempotent bool
	// Knows lists the behaviours that a next hop of this kind can have, beside Takes.
	Behaviours []Behaviour
	// Watch has every body that is complete at the next hop told, before it answers.
	OnBody func(func(body []byte))
	// Got lists the bodies that the next hop took, as they were.
	Received func() [][]byte
}

// messages makes messages whose bodies differ, the last of them large.
func (w *Fixture) messages(n int) []*driver.Message {
	all := make([]*driver.Message, n)
	for i := range all {
		text := fmt.Sprintf("message %d ", i)
		if i == n-1 {
			text = strings.Repeat(text+"\r\n", 20_000)
		}
		all[i] = w.Message(i, text)
		all[i].Delivery = fanfare.DeliveryRef{Day: 20777, Manifest: 64, Position: uint32(i)}
	}
	return all
}

// queue has messages for the world.
func (w *Fixture) queue(messages ...*driver.Message) *Queue {
	queue := NewQueue(messages...)
	queue.AnyContent = w.Idempotent
	return queue
}

// Run runs the suite. Each test has a world of its own.
func Run(t *testing.T, open func(t *testing.T) *Fixture) {
	for _, one := range []struct {
		name string
		test func(*testing.T, *Fixture)
	}{
		{"each message arrives once and whole over any number of connections", testDelivery},
		{"nothing of a message leaves that the queue does not let go", testRelease},
		{"messages that are one message arrive by as many bodies at most, and each has its outcome", testSharedContent},
		{"no body is begun before the outcome of the one before is kept", testReportOrder},
		{"nothing leaves once outcomes cannot be kept", testReportFails},
		{"nothing is taken under a context that has ended", testEndedContext},
		{"a connection without messages ends with its context", testIdle},
		{"a panic of the queue reaches who serves", testPanic},
	} {
		t.Run(one.name, func(t *testing.T) { one.test(t, open(t)) })
	}
	if open(t).HasAttachments {
		t.Run("what is enclosed follows each message", func(t *testing.T) { testAttachments(t, open(t)) })
	}
	for _, b := range open(t).Behaviours {
		t.Run("a next hop that "+string(b), func(t *testing.T) { testBehaviour(t, open(t), b) })
	}
}

// serve runs connections until the queue has nothing more, as an outlet does: an
// error is a broken connection, and another follows.
func serve(t *testing.T, w *Fixture, queue *Queue, connections, failures int) {
	t.Helper()
	var running sync.WaitGroup
	for range connections {
		running.Go(func() {
			for failed := 0; ; failed++ {
				err := w.Driver.Serve(t.Context(), queue.Connection())
				if err == nil {
					return
				}
				if failed == failures {
					if failures == 0 {
						t.Errorf("a connection ended: %v", err)
					}
					return
				}
			}
		})
	}
	running.Wait()
	queue.Check(t)
}

func testDelivery(t *testing.T, w *Fixture) {
	messages := w.messages(60)
	want := make([]string, len(messages))
	for i, l := range messages {
		want[i] = string(l.Body)
	}
	queue := w.queue(messages...)
	w.OnBody(queue.Arrived)
	serve(t, w, queue, 4, 0)
	var got []string
	for _, body := range w.Received() {
		got = append(got, string(body))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d bodies arrived, want the %d that were sent, each once and as it was", len(got), len(want))
	}
	for _, l := range messages {
		if o := queue.Outcomes()[l.Delivery]; o.Verdict != driver.Accepted || !strings.HasPrefix(o.Relay, w.Relay) {
			t.Errorf("%s: %+v, want it taken by %s", l.Delivery, o, w.Relay)
		}
	}
}

// testAttachments sends messages that have the same files, and some that have none, and
// some more that are one message with files.
func testAttachments(t *testing.T, w *Fixture) {
	files := []byte("--=_mixed\r\n\r\n" + strings.Repeat(strings.Repeat("QUJD", 19)+"\r\n", 2_000) + "--=_mixed--\r\n")
	messages := w.messages(30)
	var want []string
	for i, l := range messages {
		if i%3 != 0 {
			l.Attachments = files
		}
		if i >= 20 {
			l.SharedContent, l.Attachments, l.Body = 1, files, []byte(string(messages[20].Body))
		}
		if i <= 20 {
			want = append(want, string(whole(l)))
		}
	}
	queue := w.queue(messages...)
	w.OnBody(queue.Arrived)
	serve(t, w, queue, 4, 0)
	var got []string
	for _, body := range w.Received() {
		got = append(got, string(body))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(slices.Compact(got), want) { // those that are one message came once or several times
		t.Errorf("%d different bodies arrived, want the %d that were sent, with what is enclosed", len(got), len(want))
	}
	if n := len(queue.Outcomes()); n != len(messages) {
		t.Errorf("%d outcomes, want %d", n, len(messages))
	}
}

func testRelease(t *testing.T, w *Fixture) {
	queue := w.queue(w.messages(20)...)
	queue.Refuses = func(l *driver.Message) bool { return l.Delivery.Position%2 == 0 }
	w.OnBody(queue.Arrived)
	serve(t, w, queue, 2, 0)
	if n := len(queue.Outcomes()); n != 10 {
		t.Errorf("%d outcomes, want one for each of the 10 messages that were let go", n)
	}
	for _, body := range w.Received() {
		for i := range 10 {
			if bytes.Contains(body, fmt.Appendf(nil, "message %d ", 2*i)) {
				t.Errorf("message %d left", 2*i)
			}
		}
	}
	if n := len(w.Received()); n != 10 {
		t.Errorf("%d bodies arrived, want 10", n)
	}
}

// testSharedContent sends messages that are two messages, of which some may not leave.
func testSharedContent(t *testing.T, w *Fixture) {
	messages := w.messages(40)
	first, second := string(messages[0].Body), string(messages[1].Body)
	for i, l := range messages {
		l.SharedContent, l.Body = 1, []byte(first)
		if i >= 20 {
			l.SharedContent, l.Body = 2, []byte(second)
		}
	}
	queue := w.queue(messages...)
	queue.Refuses = func(l *driver.Message) bool { return l.Delivery.Position%7 == 3 }
	w.OnBody(queue.Arrived)
	serve(t, w, queue, 2, 0)
	outcomes := queue.Outcomes()
	for _, l := range messages {
		o, known := outcomes[l.Delivery]
		if refused := l.Delivery.Position%7 == 3; known == refused || known && o.Verdict != driver.Accepted {
			t.Errorf("%s: %+v (%v), want it taken where it may leave", l.Delivery, o, known)
		}
	}
	if got := w.Received(); len(got) < 2 || len(got) > len(outcomes) {
		t.Errorf("%d bodies arrived for %d messages of two messages", len(got), len(outcomes))
	}
	for _, body := range w.Received() {
		if string(body) != first && string(body) != second {
			t.Errorf("a body arrived that is none of the two: %.80q", body)
		}
	}
}

// testReportOrder has the queue look at the bodies that arrive while an outcome is being kept.
func testReportOrder(t *testing.T, w *Fixture) {
	queue := w.queue(w.messages(30)...)
	arrived := 0
	var mu sync.Mutex
	w.OnBody(func(body []byte) {
		queue.Arrived(body)
		mu.Lock()
		defer mu.Unlock()
		arrived++
	})
	reported := 0
	queue.OnReport = func(*driver.Message) error {
		mu.Lock()
		defer mu.Unlock()
		if reported++; arrived > reported {
			t.Errorf("%d bodies had arrived when outcome %d was being kept", arrived, reported)
		}
		return nil
	}
	serve(t, w, queue, 1, 0)
	if reported != 30 {
		t.Errorf("%d outcomes, want 30", reported)
	}
}

func testReportFails(t *testing.T, w *Fixture) {
	queue := w.queue(w.messages(10)...)
	full := errors.New("the disk is full")
	queue.OnReport = func(*driver.Message) error { return full }
	if err := w.Driver.Serve(t.Context(), queue.Connection()); !errors.Is(err, full) {
		t.Errorf("Serve returned %v, want what the queue said", err)
	}
	if n := len(w.Received()); n > 1 && !w.Idempotent { // what left together is replaced when it comes again
		t.Errorf("%d bodies left after the queue could keep nothing", n-1)
	}
}

func testEndedContext(t *testing.T, w *Fixture) {
	ctx, end := context.WithCancel(t.Context())
	end()
	queue := w.queue(w.messages(3)...)
	if err := w.Driver.Serve(ctx, queue.Connection()); err != nil {
		t.Errorf("the end of the context is no failure: %v", err)
	}
	if n := queue.Waiting(); n != 3 || len(w.Received()) > 0 {
		t.Errorf("%d messages wait and %d arrived, want 3 and 0", n, len(w.Received()))
	}
	queue.Check(t)
}

func testIdle(t *testing.T, w *Fixture) {
	ctx, end := context.WithCancel(t.Context())
	queue := w.queue(w.messages(3)...)
	queue.BlocksWhenEmpty = true
	over := make(chan error)
	go func() { over <- w.Driver.Serve(ctx, queue.Connection()) }()
	<-queue.idle
	end()
	if err := <-over; err != nil {
		t.Errorf("the end of the context is no failure: %v", err)
	}
	if n := len(w.Received()); n != 3 {
		t.Errorf("%d messages arrived, want 3", n)
	}
	queue.Check(t)
}

func testPanic(t *testing.T, w *Fixture) {
	queue := w.queue(w.messages(3)...)
	queue.OnRelease = func(*driver.Message) { panic("a bug") }
	defer func() {
		if p := recover(); p != "a bug" {
			t.Errorf("recovered %v, want what the queue panicked with", p)
		}
		if n := len(w.Received()); n > 0 {
			t.Errorf("%d bodies left", n)
		}
	}()
	_ = w.Driver.Serve(t.Context(), queue.Connection())
}

// testBehaviour sends to a next hop that does not take messages as it should. Whatever it
// does, each message has one outcome that is true, and when it takes messages again,
// they arrive.
func testBehaviour(t *testing.T, w *Fixture, b Behaviour) {
	messages := w.messages(4)
	queue := w.queue(messages[:3]...)
	w.SetBehaviour(b)
	serve(t, w, queue, 2, 3)
	outcomes := queue.Outcomes()
	for _, l := range messages[:3] {
		o, known := outcomes[l.Delivery]
		switch b {
		case RefusesTemporarily:
			if o.Verdict != driver.Temporary {
				t.Errorf("%s: %+v, want it temporary", l.Delivery, o)
			}
		case RefusesPermanently:
			if o.Verdict != driver.Permanent {
				t.Errorf("%s: %+v, want it permanent", l.Delivery, o)
			}
		case DropsAfterBody, NeverReplies:
			if o.Verdict != driver.Lost {
				t.Errorf("%s: %+v, want it lost", l.Delivery, o)
			}
		case DripsReply:
			if !known {
				t.Errorf("%s has no outcome", l.Delivery)
			}
		case RepliesEarly:
			if !known {
				t.Errorf("%s has no outcome", l.Delivery)
			}
		case Unreachable:
			if known && o.Verdict != driver.Temporary || !known && queue.Returned(l.Delivery)+queue.Waiting() == 0 {
				t.Errorf("%s: %+v, want it temporary, or back at the queue", l.Delivery, o)
			}
		}
	}
	if n := len(w.Received()); n > 0 {
		t.Errorf("%d messages were taken by a next hop that %s", n, b)
	}
	w.SetBehaviour(Accepts)
	body := string(messages[3].Body)
	queue = w.queue(messages[3])
	serve(t, w, queue, 1, 1)
	if got := w.Received(); len(got) == 0 || string(got[len(got)-1]) != body || queue.Outcomes()[messages[3].Delivery].Verdict != driver.Accepted {
		t.Errorf("after a next hop that %s, a message did not arrive: %+v", b, queue.Outcomes())
	}
}
