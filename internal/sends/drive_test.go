package sends

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/ingest/messages"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// A world is a store, and messages that are settled when they are sent.
type world struct {
	t     *testing.T
	store *control.Store
	sends *Sends

	mu     sync.Mutex
	now    time.Time
	answer func(p *messages.Part) (messages.PartOutcome, error) // nil: sent
	calls  []string
	open   map[string]bool // broadcasts that are not completed
	steps  []string        // pauses and cancellations
	moved  chan struct{}   // closed at the next call

	restored bool // from a backup
}

const week = 7 * day

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, store: control.New(storetest.OpenAt(t, t.TempDir())), now: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), open: map[string]bool{}, moved: make(chan struct{})}
}

func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) Enter() (leave func()) { return func() {} }

func (w *world) NewChecker(context.Context, string, *wire.MessageRequest) (*messages.Checker, *wire.MessageRequest, error) {
	return nil, nil, errors.New("the tests of the driver check no rows")
}

func (w *world) SendPart(_ context.Context, _ string, p *messages.Part) (messages.PartOutcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begun := "new"
	if !p.Begun.IsZero() {
		begun = "begun " + p.Begun.Format("15:04")
	}
	if p.Only {
		begun += ", look only"
	}
	w.calls = append(w.calls, fmt.Sprintf("%d (%s): %d", p.Number, begun, len(p.Request.Recipients)))
	close(w.moved)
	w.moved = make(chan struct{})
	if w.answer != nil {
		return w.answer(p)
	}
	o := messages.PartOutcome{Event: fanfare.EventRef{Day: fanfare.DayOf(w.now), Seq: fanfare.NewEventSeq(uint64(p.Number)+1, 0)}}
	for i := range p.Request.Recipients {
		o.Rows = append(o.Rows, fanfare.RowID(p.Number*100+i+1))
	}
	return o, nil
}

func (w *world) Await(fanfare.EventRef) (done <-chan struct{}, forget func()) {
	return make(chan struct{}), func() {}
}

func (w *world) Broadcast(_ context.Context, ref fanfare.EventRef) (b fanfare.Broadcast, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b.Counts[fanfare.Accepted] = 2
	if !w.open[ref.String()] {
		b.Stages.Completed = w.now
	}
	return b, nil
}

func (w *world) EachOfEvent(_ context.Context, ref fanfare.EventRef, visit func(subscriber fanfare.RowID, d *fanfare.Delivery) error) error {
	base := fanfare.RowID(ref.Seq.Stream()-1) * 100
	for i, state := range []string{"accepted", "failed"} {
		d := fanfare.Delivery{ID: fmt.Sprintf("dlv-%d", i), State: state, Attempts: []fanfare.Attempt{{Text: "reply " + state, At: w.now}}}
		if err := visit(base+fanfare.RowID(i)+1, &d); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) step(verb string, scope fanfare.Scope) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps = append(w.steps, verb+" "+scope.Name)
	if verb == "cancel" {
		w.open[scope.Name] = false
	}
	return nil
}

func (w *world) Pause(_ context.Context, s fanfare.Scope, _ string) error { return w.step("pause", s) }
func (w *world) Resume(_ context.Context, s fanfare.Scope, _ string) error {
	return w.step("resume", s)
}
func (w *world) Cancel(_ context.Context, s fanfare.Scope, _ string) error {
	return w.step("cancel", s)
}

// put stores a send with three chunks of two rows each.
func (w *world) put(edit func(x *send)) {
	w.t.Helper()
	x := send{ID: "snd-a", Service: "news", State: wire.SendSending, SendRequest: wire.SendRequest{Channel: "email", Template: "a@1"}, CreatedAt: w.now, StartedAt: w.now, Settled: true,
		Authors: []person{{Title: "key-1", Identities: []string{"key key-1"}}}, List: &list{Upload: 1, Chunks: 3, SendList: wire.SendList{Rows: 6, Valid: 6}}}
	edit(&x)
	record, err := x.record()
	if err == nil {
		err = w.store.PutSend(w.t.Context(), record, nil)
	}
	for chunk := range int64(3) {
		rows := []storedRow{{Row: 2*chunk + 2, To: fmt.Sprintf("p%d@example.org", 2*chunk)}, {Row: 2*chunk + 3, To: fmt.Sprintf("p%d@example.org", 2*chunk+1)}}
		blob, wrong := pack(rows)
		err = errors.Join(err, wrong, w.store.AddSendRows(w.t.Context(), &control.SendRows{Send: x.ID, Upload: 1, Chunk: chunk, First: rows[0].Row, Count: 2, Rows: blob}))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// start opens the sends and runs them until the end of the test, or until stop.
func (w *world) start() (stop func()) {
	w.t.Helper()
	var err error
	w.sends, err = Open(w.t.Context(), Options{Store: w.store, Messages: w, Traces: w, Switches: w, NeedsApproval: func(string) bool { return true },
		Channel:  func(string, string) (*catalog.Channel, bool) { return nil, false },
		Estimate: func(uint16, int) wire.DryRunChannel { return wire.DryRunChannel{} }, Floor: func() error { return nil }, Restored: w.restored,
		Accepting: w, Record: week, Keep: week, Clock: w, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.sends.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	w.t.Cleanup(stop)
	return stop
}

// reaches returns when the send has a state, and fails if the test would end before.
func (w *world) reaches(state string) (x send) {
	w.t.Helper()
	e, err := w.sends.find("news", "snd-a")
	if err != nil {
		w.t.Fatal(err)
	}
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		e.mu.Lock()
		x, changed := e.send, e.changed
		e.mu.Unlock()
		if x.State == state && (x.Settled || x.StartedAt.IsZero() || state == wire.SendCompleted) {
			return x
		}
		select {
		case <-changed:
		case <-limit.C:
			w.t.Fatalf("the send is %s %q, not %s; calls: %v", x.State, x.Reason, state, w.calls)
		}
	}
}

func (w *world) called() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.calls, ", ")
}

func TestAStartLooksUpThePartThatHadBegun(t *testing.T) {
	w := newWorld(t)
	w.put(func(x *send) { x.Next, x.Begun, x.Sent = 1, w.now.Add(-3*day), 2 })
	w.start()
	if x := w.reaches(wire.SendCompleted); x.Next != 3 || !x.Begun.IsZero() || x.Sent != 6 || x.EndedAt.IsZero() {
		t.Errorf("at the end: %+v", x)
	}
	if got, want := w.called(), "1 (begun 08:00): 2, 2 (new): 2"; got != want {
		t.Errorf("sent were %s, want %s", got, want)
	}
}

func TestAPartWhoseRecordMayBeGonePausesTheSend(t *testing.T) {
	w := newWorld(t)
	w.put(func(x *send) { x.Next, x.Begun = 1, w.now.Add(-week) })
	w.answer = func(p *messages.Part) (messages.PartOutcome, error) {
		if p.Only {
			return messages.PartOutcome{}, messages.ErrNotSent
		}
		return messages.PartOutcome{Rows: make([]fanfare.RowID, 2)}, nil
	}
	stop := w.start()
	if x := w.reaches(wire.SendPaused); !x.Uncertain || !strings.Contains(x.Reason, "part 2 of 3") || !strings.Contains(x.Reason, "may have been deleted") {
		t.Errorf("the send is %+v", x)
	}
	stop()
	w.start() // a restart changes nothing
	if got, want := w.called(), "1 (begun 08:00, look only): 2"; got != want {
		t.Errorf("sent were %s, want %s", got, want)
	}
	if _, err := w.sends.Resume(t.Context(), catalog.Principal{KeyID: "key-2"}, "news", "snd-a", ""); err != nil {
		t.Fatal(err)
	}
	w.reaches(wire.SendCompleted)
	if got, want := w.called(), "1 (begun 08:00, look only): 2, 1 (begun 08:00): 2, 2 (new): 2"; got != want {
		t.Errorf("after the operator has decided: %s, want %s", got, want)
	}
}

func TestARestoreFromABackupPausesWhatMayHaveBeenSent(t *testing.T) {
	for name, c := range map[string]struct {
		state string
		after time.Duration // of the time of the send
		want  string
	}{
		"being sent": {wire.SendSending, 0, wire.SendPaused}, "due since": {wire.SendScheduled, -time.Minute, wire.SendPaused}, "due later": {wire.SendScheduled, time.Hour, wire.SendScheduled}, "a draft": {wire.SendDraft, 0, wire.SendDraft},
	} {
		w := newWorld(t)
		w.restored = true
		w.put(func(x *send) {
			x.State, x.SendAt = c.state, w.now.Add(c.after)
			if c.state != wire.SendSending {
				x.StartedAt = time.Time{}
			}
		})
		stop := w.start()
		if x := w.reaches(c.want); c.want == wire.SendPaused && !strings.Contains(x.Reason, "restored from a backup") {
			t.Errorf("%s: the reason is %q", name, x.Reason)
		}
		if calls := w.called(); calls != "" {
			t.Errorf("%s: sent were %s", name, calls)
		}
		stop()
		w.restored = false
		w.start()
		if w.reaches(c.want); c.want == wire.SendPaused {
			if _, err := w.sends.Resume(t.Context(), catalog.Principal{KeyID: "key-2"}, "news", "snd-a", ""); err != nil {
				t.Fatal(err)
			}
			w.reaches(wire.SendCompleted)
		}
	}
}

func TestAPartThatCannotBeSentPausesTheSend(t *testing.T) {
	w := newWorld(t)
	w.put(func(*send) {})
	w.answer = func(*messages.Part) (messages.PartOutcome, error) {
		return messages.PartOutcome{}, &fanfare.Error{Code: fanfare.Invalid, Message: "unknown channel"}
	}
	w.start()
	if x := w.reaches(wire.SendPaused); x.Uncertain || !strings.Contains(x.Reason, "part 1 of 3 cannot be sent: unknown channel") {
		t.Errorf("the send is %+v", x)
	}
}

func TestASendWaitsForItsOpenBroadcasts(t *testing.T) {
	w := newWorld(t)
	ref := func(part int) string {
		return fanfare.EventRef{Day: fanfare.DayOf(w.now), Seq: fanfare.NewEventSeq(uint64(part)+1, 0)}.String()
	}
	for part := range 3 {
		w.open[ref(part)] = true
	}
	w.put(func(*send) {})
	w.start()
	for w.called() != "0 (new): 2, 1 (new): 2, 2 (new): 2" {
		w.mu.Lock()
		moved := w.moved
		w.mu.Unlock()
		if w.called() == "0 (new): 2, 1 (new): 2, 2 (new): 2" {
			break
		}
		<-moved
	}
	by := catalog.Principal{KeyID: "key-2"}
	if s, err := w.sends.Pause(t.Context(), by, "news", "snd-a", "wait"); err != nil || s.State != wire.SendPaused || s.Reason != "wait" {
		t.Errorf("paused: %+v, %v", s, err)
	}
	if s, err := w.sends.Cancel(t.Context(), by, "news", "snd-a", "no"); err != nil || s.State != wire.SendCancelled || s.Progress.Broadcasts != 3 {
		t.Errorf("cancelled: %+v, %v", s, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	verbs := map[string]int{}
	for _, step := range w.steps {
		verb, name, _ := strings.Cut(step, " ")
		if name != ref(0) && name != ref(1) && name != ref(2) {
			t.Errorf("unexpected %s", step)
		}
		verbs[verb]++
	}
	if verbs["pause"] != 3 || verbs["cancel"] != 3 {
		t.Errorf("the steps are %v", w.steps)
	}
}

func TestAReportHasAllRows(t *testing.T) {
	w := newWorld(t)
	w.put(func(*send) {})
	rows := []storedRow{{Row: 2, To: "a@example.org"}, {Row: 3, To: "bad", Errors: []wire.SendError{{Row: 3, Detail: "no address"}}}, {Row: 4, To: "c@example.org"}, {Row: 5, To: "d@example.org"}, {Row: 6, Erased: true}}
	blob, err := pack(rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.EraseSendRows(t.Context(), &control.SendRows{Send: "snd-a", Upload: 1, Chunk: 0, First: 2, Count: 5, Rows: blob}); err != nil {
		t.Fatal(err)
	}
	w.answer = func(p *messages.Part) (messages.PartOutcome, error) {
		if p.Number > 0 {
			return messages.PartOutcome{}, &fanfare.Error{Code: fanfare.Invalid, Message: "unknown channel"}
		}
		return messages.PartOutcome{Event: fanfare.EventRef{Day: fanfare.DayOf(w.now), Seq: fanfare.NewEventSeq(1, 0)}, Rows: []fanfare.RowID{1, 0, 2},
			Refused: []wire.RecipientError{{Index: 1, Error: wire.Member{Detail: "refused now"}}}}, nil
	}
	w.start()
	w.reaches(wire.SendPaused)
	var got []string
	err = w.sends.Report(t.Context(), "news", "snd-a", func(o *wire.SendOutcome) error {
		got = append(got, strings.Join([]string{fmt.Sprint(o.Row), o.Address, o.State, o.Reason, o.Message}, "|"))
		return nil
	})
	want := "2|a@example.org|accepted|reply accepted|dlv-0 3|bad|invalid|no address| 4|c@example.org|refused|refused now| 5|d@example.org|failed|reply failed|dlv-1 6||erased|| " +
		"4|p2@example.org|waiting|| 5|p3@example.org|waiting|| 6|p4@example.org|waiting|| 7|p5@example.org|waiting||"
	if all := strings.Join(got, " "); err != nil || all != want {
		t.Errorf("%v, the report is\n%s, want\n%s", err, all, want)
	}
}

func TestAnEndedSendIsDeletedWithItsList(t *testing.T) {
	w := newWorld(t)
	w.put(func(x *send) { x.State, x.EndedAt = wire.SendCompleted, w.now.Add(-week-time.Hour) })
	if err := w.store.AddSendRows(t.Context(), &control.SendRows{Send: "snd-a", Upload: 2, Rows: []byte("left by a crash")}); err != nil {
		t.Fatal(err)
	}
	w.start()
	if chunks, err := w.store.SendChunks(t.Context(), "snd-a"); err != nil || len(chunks) > 3 {
		t.Errorf("the rows of an incomplete upload are there after the start: %v, %v", chunks, err)
	}
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		list, err := w.store.Sends(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		select {
		case <-again.C:
		case <-limit.C:
			t.Fatal("the send is still there")
		}
	}
	if chunks, err := w.store.SendChunks(t.Context(), "snd-a"); err != nil || len(chunks) > 0 {
		t.Errorf("its rows are still there: %v, %v", chunks, err)
	}
}

func TestPeopleAreIdentifiedByKeyOwnerAndSignIn(t *testing.T) {
	of := func(authors ...catalog.Principal) *send {
		x := &send{}
		for _, a := range authors {
			x.addAuthor(a)
			x.addAuthor(a)
		}
		return x
	}
	approve := catalog.ScopeApprove
	for _, c := range []struct {
		author, approver catalog.Principal
		may              bool
	}{
		{catalog.Principal{KeyID: "key-1"}, catalog.Principal{KeyID: "key-2", Scopes: approve}, true},
		{catalog.Principal{KeyID: "key-1"}, catalog.Principal{KeyID: "key-2"}, false},
		{catalog.Principal{KeyID: "key-1"}, catalog.Principal{KeyID: "key-1", Scopes: approve}, false},
		{catalog.Principal{KeyID: "key-1"}, catalog.Principal{KeyID: "key-1", Scopes: catalog.ScopeAdmin}, false},
		{catalog.Principal{KeyID: "key-1", Owner: "ada@example.org"}, catalog.Principal{KeyID: "key-2", Owner: "Ada@example.org", Scopes: approve}, false},
		{catalog.Principal{KeyID: "key-1", Owner: "ada@example.org"}, catalog.Principal{KeyID: "key-2", Owner: "bob@example.org", Scopes: approve}, true},
		{catalog.Principal{Issuer: "https://id", Subject: "1", Owner: "ada@example.org"}, catalog.Principal{KeyID: "key-2", Owner: "ada@example.org", Scopes: approve}, false},
		{catalog.Principal{Issuer: "https://id", Subject: "1"}, catalog.Principal{Issuer: "https://id", Subject: "1", Scopes: approve}, false},
		{catalog.Principal{Issuer: "https://id", Subject: "1"}, catalog.Principal{Issuer: "https://id", Subject: "2", Scopes: approve}, true},
	} {
		x := of(catalog.Principal{KeyID: "key-9"}, c.author)
		if len(x.Authors) != 2 {
			t.Errorf("%+v: the authors are %v", c.author, x.Authors)
		}
		if err := x.mayApprove(c.approver); (err == nil) != c.may {
			t.Errorf("%+v approves what %+v wrote: %v", c.approver, c.author, err)
		}
	}
}

func TestTheDigestChangesWithEverythingThatIsApproved(t *testing.T) {
	seen := map[string]string{}
	for name, edit := range map[string]func(x *send){
		"nothing": func(*send) {}, "name": func(x *send) { x.Name = "n" }, "channel": func(x *send) { x.Channel = "c" }, "template": func(x *send) { x.Template = "t@2" },
		"data": func(x *send) { x.Data = json.RawMessage(`{"a":2}`) }, "time": func(x *send) { x.SendAt = time.Unix(1, 0) }, "lane": func(x *send) { x.Lane = "urgent" },
		"reference": func(x *send) { x.Reference = "r" }, "skip": func(x *send) { x.SkipInvalid = true }, "rows": func(x *send) { x.List.Digest = "other" }, "number": func(x *send) { x.List.Valid = 2 }, "send": func(x *send) { x.ID = "snd-b" },
	} {
		x := &send{ID: "snd-a", Service: "news", SendRequest: wire.SendRequest{Channel: "email", Template: "t@1", Data: json.RawMessage(`{"a":1}`)}, List: &list{Digest: "d", SendList: wire.SendList{Valid: 1}}}
		edit(x)
		digest, err := x.digest()
		if err != nil || seen[digest] != "" {
			t.Errorf("%s has the digest of %s, %v", name, seen[digest], err)
		}
		seen[digest] = name
	}
	a, _ := (&send{SendRequest: wire.SendRequest{Data: json.RawMessage(`{"a": 1}`)}, List: &list{}}).digest()
	b, _ := (&send{SendRequest: wire.SendRequest{Data: json.RawMessage(`{"a":1}`)}, List: &list{}}).digest()
	if a != b {
		t.Error("blanks change the digest")
	}
}
