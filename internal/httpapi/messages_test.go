package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// outbox accepts messages in tests. The test decides when each is settled.
type outbox struct {
	mu      sync.Mutex
	sent    []wire.MessageRequest
	keys    []Once
	settled map[fanfare.EventRef]time.Time
	waiting map[fanfare.EventRef][]chan struct{}
	looks   int
}

func newOutbox() *outbox {
	return &outbox{settled: map[fanfare.EventRef]time.Time{}, waiting: map[fanfare.EventRef][]chan struct{}{}}
}

func (o *outbox) Send(_ context.Context, service string, m *wire.MessageRequest, once Once) (Sent, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ref := fanfare.EventRef{Day: 20000, Seq: fanfare.NewEventSeq(uint64(len(o.sent)+1), 0)}
	again := false
	for i, known := range o.keys {
		if known.Key != "" && known.Key == once.Key {
			if known.Digest != once.Digest {
				return Sent{}, &fanfare.Error{Code: fanfare.KeyReused, Message: "another body"}
			}
			ref, again = fanfare.EventRef{Day: 20000, Seq: fanfare.NewEventSeq(uint64(i+1), 0)}, true
		}
	}
	if !again {
		o.sent, o.keys = append(o.sent, *m), append(o.keys, once)
	}
	return Sent{Ref: ref, Again: again, Message: wire.Message{ID: ref.MessageID(), Service: service, State: "pending", Errors: []wire.RecipientError{{Index: 1}}}}, nil
}

func (o *outbox) Try(_ context.Context, _ string, m *wire.MessageRequest) (wire.MessageRun, error) {
	return wire.MessageRun{DryRunChannel: wire.DryRunChannel{Channel: m.Channel, Messages: max(1, len(m.Recipients))}}, nil
}

func (o *outbox) Message(_ context.Context, service string, ref fanfare.EventRef) (wire.Message, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looks++
	if ref.Day != 20000 || service == "games" {
		return wire.Message{}, problem.NotFound("message", ref.MessageID())
	}
	m := wire.Message{ID: ref.MessageID(), State: "pending"}
	if at, ok := o.settled[ref]; ok {
		m.State, m.Stages.Completed = "accepted", at
	}
	return m, nil
}

func (o *outbox) WithReference(_ context.Context, _, reference string, before fanfare.EventRef, limit int) ([]wire.Message, error) {
	list := []wire.Message{}
	for n := uint64(5); n > 0 && len(list) < limit; n-- {
		if ref := (fanfare.EventRef{Day: 20000, Seq: fanfare.NewEventSeq(n, 0)}); before.Seq == 0 || ref.Seq < before.Seq {
			list = append(list, wire.Message{ID: ref.MessageID(), Reference: reference})
		}
	}
	return list, nil
}

func (o *outbox) Await(ref fanfare.EventRef) (<-chan struct{}, func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	told := make(chan struct{})
	o.waiting[ref] = append(o.waiting[ref], told)
	return told, func() {}
}

// settle ends the first message.
func (o *outbox) settle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	ref := fanfare.EventRef{Day: 20000, Seq: fanfare.NewEventSeq(1, 0)}
	o.settled[ref] = time.Now()
	for _, told := range o.waiting[ref] {
		close(told)
	}
}

const oneMessage = `{"channel":"email","to":"a@b.c","template":"t"}`

func TestAWaitingRequestIsAnsweredWhenItsMessageIsSettledAndLooksNoOftener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		a := newWorld().api(func(p *Dependencies) { p.Messages = o })
		began := time.Now()
		answered := make(chan *httptest.ResponseRecorder, 2)
		go func() { answered <- ask(t, a, "POST", "/v1/messages?wait=20s", oneMessage) }()
		synctest.Wait()
		go func() {
			answered <- ask(t, a, "GET", "/v1/messages/"+(fanfare.EventRef{Day: 20000, Seq: fanfare.NewEventSeq(1, 0)}).MessageID()+"?wait=30", "")
		}()
		synctest.Wait()
		<-time.After(7 * time.Second)
		o.settle()
		for range 2 {
			rec := <-answered
			var m wire.Message
			if err := json.Unmarshal(rec.Body.Bytes(), &m); err != nil || rec.Code/100 != 2 || m.State != "accepted" {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
			if rec.Code == 201 && len(m.Errors) != 1 {
				t.Errorf("the refused are lost: %s", rec.Body)
			}
		}
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("answered after %v", took)
		}
		if o.looks > 5 {
			t.Errorf("looked %d times", o.looks)
		}
	})
}

func TestWaitingEndsWithTheTimeAndWithTheServer(t *testing.T) {
	for name, test := range map[string]struct {
		stop time.Duration
		took time.Duration
	}{"time": {time.Hour, 3 * time.Second}, "server": {time.Second, time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newWorld().api(func(p *Dependencies) { p.Messages = newOutbox() })
				began := time.Now()
				stop := time.AfterFunc(test.stop, a.Stop)
				defer stop.Stop()
				rec := ask(t, a, "POST", "/v1/messages?wait=3s", oneMessage)
				if rec.Code != 201 || !strings.Contains(rec.Body.String(), `"state":"pending"`) || time.Since(began) != test.took {
					t.Errorf("%d %s after %v", rec.Code, rec.Body, time.Since(began))
				}
			})
		})
	}
}

func TestOnlySoManyRequestsWait(t *testing.T) {
	o := newOutbox()
	a := newWorld().api(func(p *Dependencies) { p.Messages = o })
	for range maxWaiting {
		a.waiting <- struct{}{}
	}
	problemIn(t, ask(t, a, "POST", "/v1/messages?wait=1s", oneMessage), 503, fanfare.Unavailable)
	if len(o.sent) != 0 {
		t.Error("the message was kept all the same")
	}
	if rec := ask(t, a, "POST", "/v1/messages", oneMessage); rec.Code != 201 {
		t.Errorf("without waiting: %d %s", rec.Code, rec.Body)
	}
	<-a.waiting
	o.settle()
	if rec := ask(t, a, "POST", "/v1/messages?wait=1s", oneMessage, "Idempotency-Key", ""); rec.Code != 201 || len(a.waiting) != maxWaiting-1 {
		t.Errorf("with a free place: %d, %d wait", rec.Code, len(a.waiting))
	}
}

func TestTheIdempotencyKeyIsReadAsTheDraftWritesItAndAsClientsDo(t *testing.T) {
	o := newOutbox()
	a := newWorld().api(func(p *Dependencies) { p.Messages = o })
	for i, header := range []string{`"k-1"`, "k-1", `  "k-1" `} {
		rec := ask(t, a, "POST", "/v1/messages", oneMessage, "Idempotency-Key", header)
		if replayed := rec.Header().Get("Idempotency-Replayed") == "true"; rec.Code != 201 || replayed != (i > 0) || rec.Header().Get("Location") == "" {
			t.Errorf("%q: %d, replayed %t: %s", header, rec.Code, replayed, rec.Body)
		}
	}
	problemIn(t, ask(t, a, "POST", "/v1/messages", strings.Replace(oneMessage, "a@b.c", "b@b.c", 1), "Idempotency-Key", "k-1"), 422, fanfare.KeyReused)
	for _, header := range []string{`""`, "a b", "ä", strings.Repeat("k", wire.MaxKeyBytes+1), `"a"b"`} {
		problemIn(t, ask(t, a, "POST", "/v1/messages", oneMessage, "Idempotency-Key", header), 422, fanfare.Invalid)
	}
	if len(o.sent) != 1 {
		t.Errorf("%d messages", len(o.sent))
	}
	for range 2 {
		ask(t, a, "POST", "/v1/messages", oneMessage) // without a key each is its own, and no body is held against another
	}
	if len(o.sent) != 3 || o.keys[2] != (Once{}) {
		t.Errorf("%d messages, %+v", len(o.sent), o.keys)
	}
}

func TestMessagesAreListedInPagesByReference(t *testing.T) {
	a := newWorld().api(func(p *Dependencies) { p.Messages = newOutbox() })
	var got []string
	for path := "/v1/messages?reference=r&limit=2"; path != ""; {
		rec := ask(t, a, "GET", path, "")
		var page wire.MessagePage
		if err := json.Unmarshal(rec.Body.Bytes(), &page); err != nil || rec.Code != 200 || len(page.Messages) > 2 {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		for _, m := range page.Messages {
			got = append(got, m.ID)
		}
		path = ""
		if page.Next != "" {
			path = "/v1/messages?reference=r&limit=2&cursor=" + page.Next
		}
	}
	if len(got) != 5 || got[0] <= got[4] {
		t.Errorf("the pages have %q", got)
	}
	problemIn(t, ask(t, a, "GET", "/v1/messages", ""), 422, fanfare.Invalid)
	problemIn(t, ask(t, a, "GET", "/v1/messages/order-1", ""), 404, fanfare.NotFound)
}

func TestErrorsOfTheMessageItselfAreReportedFirst(t *testing.T) {
	o := newOutbox()
	a := newWorld().api(func(p *Dependencies) { p.Messages = o })
	many := strings.Repeat(`{"to":"a@b.c"},`, wire.MaxRecipients) + `{"to":"a@b.c"}`
	for body, pointer := range map[string]string{
		`{"channel":"e","template":"t"}`:                                                                "/to",
		`{"channel":"e","template":"t","to":"a","subscriber":"b"}`:                                      "/to",
		`{"channel":"e","template":"t","recipients":[]}`:                                                "/recipients",
		`{"channel":"e","to":"a"}`:                                                                      "/template",
		`{"channel":"e","to":"a","template":"t","content":{"subject":"s"}}`:                             "/template",
		`{"channel":"e","to":"a","template":"t","all_or_nothing":true}`:                                 "/all_or_nothing",
		`{"channel":"e","to":"a","template":"t","reference":"a\nb"}`:                                    "/reference",
		`{"channel":"e","to":"a","template":"t","data":7}`:                                              "/data",
		fmt.Sprintf(`{"channel":"e","to":"a","template":"t","reference":%q}`, strings.Repeat("r", 201)): "/reference",
		`{"channel":"e","to":7,"template":"t"}`:                                                         "/to",
	} {
		if p := problemIn(t, ask(t, a, "POST", "/v1/messages", body), 422, fanfare.Invalid); p.Pointer != pointer {
			t.Errorf("%s: %+v", body, p)
		}
	}
	if p := problemIn(t, ask(t, a, "POST", "/v1/messages", `{"channel":"e","template":"t","recipients":[`+many+`]}`), 413, fanfare.TooLarge); p.Pointer != "/recipients" {
		t.Errorf("too many: %+v", p)
	}
	if len(o.sent) != 0 {
		t.Errorf("%d were sent", len(o.sent))
	}
}
