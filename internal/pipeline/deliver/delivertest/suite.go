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
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A Behaviour is the way a next hop treats messages.
type Behaviour string

// The behaviours.
const (
	Accepts            Behaviour = "accepts everything"
	RefusesTemporarily Behaviour = "refuses temporarily"
	RefusesPermanently Behaviour = "refuses permanently"
	DropsAfterBody     Behaviour = "closes the connection after a body"
	NeverReplies       Behaviour = "reads a body and never replies"
	DripsReply         Behaviour = "replies one byte at a time without end"
	RepliesEarly       Behaviour = "replies before it reads"
	Unreachable        Behaviour = "is unreachable"
)

// A Fixture is a driver with a real next hop.
type Fixture struct {
	Driver driver.Driver
	Relay  string // Relay of the outcomes, or its beginning
	// Message creates the nth message with the address and the format of this driver. Its body
	// contains text unchanged.
	Message func(n int, text string) *driver.Message
	// SetBehaviour sets how messages are treated from now on.
	SetBehaviour func(Behaviour)
	// HasAttachments reports whether messages may have attachments.
	HasAttachments bool
	// Idempotent reports whether a message that is sent twice replaces itself, so that messages
	// with different content may be released together.
	Idempotent bool
	// Behaviours lists the behaviours that the next hop supports in addition to Accepts.
	Behaviours []Behaviour
	// OnBody registers a function that receives every complete body before the next hop replies.
	OnBody func(func(body []byte))
	// Received returns the bodies that the next hop accepted, unchanged.
	Received func() [][]byte
}

// messages makes messages with different bodies, the last of them large.
func (f *Fixture) messages(n int) []*driver.Message {
	all := make([]*driver.Message, n)
	for i := range all {
		text := fmt.Sprintf("message %d ", i)
		if i == n-1 {
			text = strings.Repeat(text+"\r\n", 20_000)
		}
		all[i] = f.Message(i, text)
		all[i].Delivery = fanfare.DeliveryRef{Day: 20777, Manifest: 64, Position: uint32(i)}
	}
	return all
}

// queue returns a queue with messages.
func (f *Fixture) queue(messages ...*driver.Message) *Queue {
	queue := NewQueue(messages...)
	queue.AnyContent = f.Idempotent
	return queue
}

// Timeouts of the driver: for a next hop that replies, however busy the machine is, and for one whose silence a test waits for.
const (
	patience = 2 * time.Minute
	silence  = 4 * time.Second
)

// Run runs the suite. Each test opens its own fixture, whose driver has the given timeout for replies.
func Run(t *testing.T, open func(t *testing.T, timeout time.Duration) *Fixture) {
	for _, one := range []struct {
		name string
		test func(*testing.T, *Fixture)
	}{
		{"delivers each message once over several connections", testDelivery},
		{"sends nothing of a message that is not released", testRelease},
		{"reports an outcome for each message with shared content", testSharedContent},
		{"begins no body before the previous outcome is recorded", testReportOrder},
		{"sends nothing when outcomes cannot be recorded", testReportFails},
		{"takes no message when the context has ended", testEndedContext},
		{"ends an idle connection with its context", testIdle},
		{"passes on a panic of the queue", testPanic},
	} {
		t.Run(one.name, func(t *testing.T) { one.test(t, open(t, patience)) })
	}
	if open(t, patience).HasAttachments {
		t.Run("sends the attachments after each message", func(t *testing.T) { testAttachments(t, open(t, patience)) })
	}
	for _, b := range open(t, patience).Behaviours {
		timeout := patience
		if b == NeverReplies || b == DripsReply {
			timeout = silence
		}
		t.Run("a next hop that "+string(b), func(t *testing.T) { testBehaviour(t, open(t, timeout), b) })
	}
}

// serve runs connections until the queue has no more messages, as a Sender does: after an
// error it opens another connection.
func serve(t *testing.T, f *Fixture, queue *Queue, connections, failures int) {
	t.Helper()
	var running sync.WaitGroup
	for range connections {
		running.Go(func() {
			for failed := 0; ; failed++ {
				err := f.Driver.Serve(t.Context(), queue.Connection())
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

func testDelivery(t *testing.T, f *Fixture) {
	messages := f.messages(60)
	want := make([]string, len(messages))
	for i, message := range messages {
		want[i] = string(message.Body)
	}
	queue := f.queue(messages...)
	f.OnBody(queue.Arrived)
	serve(t, f, queue, 4, 0)
	var got []string
	for _, body := range f.Received() {
		got = append(got, string(body))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d bodies arrived, want the %d that were sent, each exactly once and unchanged", len(got), len(want))
	}
	for _, message := range messages {
		if o := queue.Outcomes()[message.Delivery]; o.Verdict != driver.Accepted || !strings.HasPrefix(o.Relay, f.Relay) {
			t.Errorf("%s: %+v, want it accepted by %s", message.Delivery, o, f.Relay)
		}
	}
}

// testAttachments sends messages with the same attachments, without attachments, and with
// the same content and attachments.
func testAttachments(t *testing.T, f *Fixture) {
	files := []byte("--=_mixed\r\n\r\n" + strings.Repeat(strings.Repeat("QUJD", 19)+"\r\n", 2_000) + "--=_mixed--\r\n")
	messages := f.messages(30)
	var want []string
	for i, message := range messages {
		if i%3 != 0 {
			message.Attachments = files
		}
		if i >= 20 {
			message.SharedContent, message.Attachments, message.Body = 1, files, []byte(string(messages[20].Body))
		}
		if i <= 20 {
			want = append(want, string(whole(message)))
		}
	}
	queue := f.queue(messages...)
	f.OnBody(queue.Arrived)
	serve(t, f, queue, 4, 0)
	var got []string
	for _, body := range f.Received() {
		got = append(got, string(body))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(slices.Compact(got), want) { // messages with the same content may share a body
		t.Errorf("%d different bodies arrived, want the %d that were sent, with their attachments", len(got), len(want))
	}
	if n := len(queue.Outcomes()); n != len(messages) {
		t.Errorf("%d outcomes, want %d", n, len(messages))
	}
}

func testRelease(t *testing.T, f *Fixture) {
	queue := f.queue(f.messages(20)...)
	queue.Refuses = func(message *driver.Message) bool { return message.Delivery.Position%2 == 0 }
	f.OnBody(queue.Arrived)
	serve(t, f, queue, 2, 0)
	if n := len(queue.Outcomes()); n != 10 {
		t.Errorf("%d outcomes, want one for each of the 10 released messages", n)
	}
	for _, body := range f.Received() {
		for i := range 10 {
			if bytes.Contains(body, fmt.Appendf(nil, "message %d ", 2*i)) {
				t.Errorf("message %d was sent", 2*i)
			}
		}
	}
	if n := len(f.Received()); n != 10 {
		t.Errorf("%d bodies arrived, want 10", n)
	}
}

// testSharedContent sends messages with two contents, some of which the queue refuses.
func testSharedContent(t *testing.T, f *Fixture) {
	messages := f.messages(40)
	first, second := string(messages[0].Body), string(messages[1].Body)
	for i, message := range messages {
		message.SharedContent, message.Body = 1, []byte(first)
		if i >= 20 {
			message.SharedContent, message.Body = 2, []byte(second)
		}
	}
	queue := f.queue(messages...)
	queue.Refuses = func(message *driver.Message) bool { return message.Delivery.Position%7 == 3 }
	f.OnBody(queue.Arrived)
	serve(t, f, queue, 2, 0)
	outcomes := queue.Outcomes()
	for _, message := range messages {
		o, known := outcomes[message.Delivery]
		if refused := message.Delivery.Position%7 == 3; known == refused || known && o.Verdict != driver.Accepted {
			t.Errorf("%s: %+v (%v), want it accepted if it was released", message.Delivery, o, known)
		}
	}
	if got := f.Received(); len(got) < 2 || len(got) > len(outcomes) {
		t.Errorf("%d bodies arrived for %d messages with two contents", len(got), len(outcomes))
	}
	for _, body := range f.Received() {
		if string(body) != first && string(body) != second {
			t.Errorf("received a body that is neither of the two: %.80q", body)
		}
	}
}

// testReportOrder checks the number of bodies whenever an outcome is being recorded.
func testReportOrder(t *testing.T, f *Fixture) {
	queue := f.queue(f.messages(30)...)
	arrived := 0
	var mu sync.Mutex
	f.OnBody(func(body []byte) {
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
			t.Errorf("%d bodies had arrived when outcome %d was being recorded", arrived, reported)
		}
		return nil
	}
	serve(t, f, queue, 1, 0)
	if reported != 30 {
		t.Errorf("%d outcomes, want 30", reported)
	}
}

func testReportFails(t *testing.T, f *Fixture) {
	queue := f.queue(f.messages(10)...)
	full := errors.New("the disk is full")
	queue.OnReport = func(*driver.Message) error { return full }
	if err := f.Driver.Serve(t.Context(), queue.Connection()); !errors.Is(err, full) {
		t.Errorf("Serve returned %v, want the error of the queue", err)
	}
	if n := len(f.Received()); n > 1 && !f.Idempotent { // an idempotent message is replaced when it is sent again
		t.Errorf("%d bodies were sent after the queue could not record an outcome", n-1)
	}
}

func testEndedContext(t *testing.T, f *Fixture) {
	ctx, end := context.WithCancel(t.Context())
	end()
	queue := f.queue(f.messages(3)...)
	if err := f.Driver.Serve(ctx, queue.Connection()); err != nil {
		t.Errorf("the end of the context must not be an error: %v", err)
	}
	if n := queue.Waiting(); n != 3 || len(f.Received()) > 0 {
		t.Errorf("%d messages are waiting and %d arrived, want 3 and 0", n, len(f.Received()))
	}
	queue.Check(t)
}

func testIdle(t *testing.T, f *Fixture) {
	ctx, end := context.WithCancel(t.Context())
	queue := f.queue(f.messages(3)...)
	queue.BlocksWhenEmpty = true
	over := make(chan error)
	go func() { over <- f.Driver.Serve(ctx, queue.Connection()) }()
	<-queue.idle
	end()
	if err := <-over; err != nil {
		t.Errorf("the end of the context must not be an error: %v", err)
	}
	if n := len(f.Received()); n != 3 {
		t.Errorf("%d messages arrived, want 3", n)
	}
	queue.Check(t)
}

func testPanic(t *testing.T, f *Fixture) {
	queue := f.queue(f.messages(3)...)
	queue.OnRelease = func(*driver.Message) { panic("a bug") }
	defer func() {
		if p := recover(); p != "a bug" {
			t.Errorf("recovered %v, want the panic of the queue", p)
		}
		if n := len(f.Received()); n > 0 {
			t.Errorf("%d bodies were sent", n)
		}
	}()
	_ = f.Driver.Serve(t.Context(), queue.Connection())
}

// testBehaviour sends to a next hop that misbehaves: each message has one true outcome, and
// later messages arrive.
func testBehaviour(t *testing.T, f *Fixture, b Behaviour) {
	messages := f.messages(4)
	queue := f.queue(messages[:3]...)
	f.SetBehaviour(b)
	serve(t, f, queue, 2, 3)
	outcomes := queue.Outcomes()
	for _, message := range messages[:3] {
		o, known := outcomes[message.Delivery]
		switch b {
		case RefusesTemporarily:
			if o.Verdict != driver.Temporary {
				t.Errorf("%s: %+v, want it temporary", message.Delivery, o)
			}
		case RefusesPermanently:
			if o.Verdict != driver.Permanent {
				t.Errorf("%s: %+v, want it permanent", message.Delivery, o)
			}
		case DropsAfterBody, NeverReplies:
			if o.Verdict != driver.Lost {
				t.Errorf("%s: %+v, want it lost", message.Delivery, o)
			}
		case DripsReply:
			if !known {
				t.Errorf("%s has no outcome", message.Delivery)
			}
		case RepliesEarly:
			if !known {
				t.Errorf("%s has no outcome", message.Delivery)
			}
		case Unreachable:
			if known && o.Verdict != driver.Temporary || !known && queue.Returned(message.Delivery)+queue.Waiting() == 0 {
				t.Errorf("%s: %+v, want it temporary, or back at the queue", message.Delivery, o)
			}
		}
	}
	if n := len(f.Received()); n > 0 {
		t.Errorf("%d messages were accepted by a next hop that %s", n, b)
	}
	f.SetBehaviour(Accepts)
	body := string(messages[3].Body)
	queue = f.queue(messages[3])
	serve(t, f, queue, 1, 1)
	if got := f.Received(); len(got) == 0 || string(got[len(got)-1]) != body || queue.Outcomes()[messages[3].Delivery].Verdict != driver.Accepted {
		t.Errorf("after a next hop that %s, a message did not arrive: %+v", b, queue.Outcomes())
	}
}
