package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/control"
)

// A world has objects of all kinds, and stores tasks.
type world struct {
	mu       sync.Mutex
	stored   map[string]string
	parked   []fanfare.Parked
	held     []fanfare.Broadcast
	subs     []people.Subscription
	suppress []suppression.Suppression
	did      []string
	noted    []string
	scopes   map[string]catalog.Scopes // of keys that are usable
	refuses  map[string]error
	before   func(what string) // called before each object
}

func newWorld() *world {
	return &world{stored: map[string]string{}, scopes: map[string]catalog.Scopes{"key-1": catalog.ScopeAdmin}, refuses: map[string]error{}, before: func(string) {}}
}

func (w *world) Tasks(context.Context) (list []control.TaskRecord, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, body := range w.stored {
		list = append(list, control.TaskRecord{ID: id, Body: body})
	}
	slices.SortFunc(list, func(a, b control.TaskRecord) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

func (w *world) PutTask(_ context.Context, task control.TaskRecord, deleted []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stored[task.ID] = task.Body
	for _, id := range deleted {
		delete(w.stored, id)
	}
	return nil
}

// acts notes what is done, and refuses what the test says.
func (w *world) acts(what, id string) error {
	w.before(id)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refuses[id]; err != nil {
		return err
	}
	w.did = append(w.did, what+" "+id)
	return nil
}

func (w *world) Parked(context.Context) ([]fanfare.Parked, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.parked), nil
}

func (w *world) RetryParked(_ context.Context, id string) error {
	err := w.acts("retry", id)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.parked = slices.DeleteFunc(w.parked, func(p fanfare.Parked) bool { return p.ID == id })
	}
	return err
}
func (w *world) DropParked(_ context.Context, id string) error { return w.acts("drop", id) }

func (w *world) HeldBroadcasts() (refs []fanfare.EventRef) {
	for _, b := range w.held {
		ref, _ := fanfare.ParseEventRef(b.Event)
		refs = append(refs, ref)
	}
	return refs
}

func (w *world) Broadcast(_ context.Context, ref fanfare.EventRef) (fanfare.Broadcast, error) {
	for _, b := range w.held {
		if b.Event == ref.String() {
			return b, nil
		}
	}
	return fanfare.Broadcast{}, &fanfare.Error{Code: fanfare.NotFound, Message: "no"}
}

func (w *world) Approve(_ context.Context, event, by string) error {
	return w.acts("approve by "+by, event)
}

func (w *world) Cancel(_ context.Context, scope fanfare.Scope, reason string) error {
	return w.acts("cancel "+string(scope.Kind)+" for "+reason, scope.Name)
}

func (w *world) SubscriberPlaces(_ context.Context, _, id string) ([]fanfare.RowID, error) {
	if id != "ada@example.org" {
		return nil, people.UnknownSubscriber(id)
	}
	return []fanfare.RowID{7}, nil
}

func (w *world) SubscriptionPage(_ context.Context, service string, f people.SubscriptionFilter, after fanfare.RowID, limit int) (page []people.Subscription, next fanfare.RowID, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.subs {
		switch {
		case s.Place <= after, s.Service != service, f.Topic != "" && f.Topic != s.Topic, f.State != "" && f.State != s.State, f.Owners != nil && !slices.Contains(f.Owners, s.Owner):
			continue
		}
		if len(page) == limit {
			return page, page[limit-1].Place, nil
		}
		page = append(page, s)
	}
	return page, 0, nil
}

func (w *world) EndSubscription(_ context.Context, service, id, reason string) error {
	if err := w.acts("end "+service+" for "+reason, id); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.subs {
		if w.subs[i].ID == id {
			w.subs[i].State = people.StateEnded
		}
	}
	return nil
}

func (w *world) Suppressions(_ context.Context, f suppression.Filter, after *suppression.Cursor, limit int) (page []suppression.Suppression, next *suppression.Cursor, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, s := range w.suppress { // the cursor counts down from the number of entries
		at := int64(len(w.suppress) - i)
		if after != nil && at >= after.At || f.Reason != "" && f.Reason != s.Reason {
			continue
		}
		if len(page) == limit {
			return page, &suppression.Cursor{At: at + 1, Kind: 1}, nil
		}
		page = append(page, s)
	}
	return page, nil, nil
}

func (w *world) Unsuppress(_ context.Context, service, address string) error {
	return w.acts("lift in "+service, address)
}

func (w *world) Record(ctx context.Context, d audit.Operation, detail *audit.Detail) error {
	by := audit.ActorOf(ctx)
	text := fmt.Sprint(by.KeyID, " ", by.Request, ": ", d.Action, " ", d.Kind)
	if detail != nil {
		text += fmt.Sprint(" ", detail.Counts)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = append(w.noted, text)
	return nil
}

func (w *world) rights(p catalog.Principal) (catalog.Principal, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	scopes, ok := w.scopes[p.KeyID]
	p.Scopes = scopes
	return p, ok
}

// open opens the tasks, and runs them until the function that it returns is called.
func (w *world) open(t *testing.T) (*Tasks, func()) {
	t.Helper()
	all, err := Open(t.Context(), Options{Store: w, Parking: w, Switches: w, Broadcasts: w, People: w, Audit: w, Rights: w.rights, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { all.Run(ctx); close(ended) }()
	return all, func() { stop(); <-ended }
}

var operator = catalog.Principal{KeyID: "key-1", Name: "ops", Scopes: catalog.ScopeAdmin}

func start(t *testing.T, all *Tasks, service string, in wire.TaskRequest) wire.Task {
	t.Helper()
	task, err := all.Start(t.Context(), operator, "req-1", service, in)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func get(t *testing.T, all *Tasks, id string) wire.Task {
	t.Helper()
	task, err := all.Task("", id)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func (w *world) addParked(n int) {
	for i := range n {
		w.parked = append(w.parked, fanfare.Parked{ID: fmt.Sprintf("prk-20261120-%x", i+1), At: time.Now().Add(-time.Hour)})
	}
}

func TestATaskActsOnEachObjectOnceAndIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.addParked(250)
		w.parked = append(w.parked, fanfare.Parked{ID: "prk-20261120-fff", At: time.Now().Add(time.Hour)}) // newer than the task
		w.refuses["prk-20261120-11"] = &fanfare.Error{Code: fanfare.Conflict, Message: "the batch is damaged"}
		w.refuses["prk-20261120-12"] = &fanfare.Error{Code: fanfare.NotFound, Message: "gone"}
		all, stop := w.open(t)
		defer stop()
		task := start(t, all, "", wire.TaskRequest{Action: RetryParked})
		synctest.Wait()
		if got := get(t, all, task.ID); got.State != completed || got.Found != 250 || got.Done != 249 || got.Failed != 1 || got.LastError != "prk-20261120-11: the batch is damaged" || got.EndedAt == nil {
			t.Errorf("the task is %+v", got)
		}
		seen := map[string]bool{}
		for _, one := range w.did {
			if seen[one] {
				t.Errorf("twice: %s", one)
			}
			seen[one] = true
		}
		if len(w.did) != 248 || seen["retry prk-20261120-fff"] {
			t.Errorf("%d retries", len(w.did))
		}
		if last := w.noted[len(w.noted)-1]; len(w.noted) != 249 || last != "key-1 req-1: end task map[done:249 failed:1 found:250]" || w.noted[0] != "key-1 req-1: retry parked" {
			t.Errorf("%d entries, the last is %s", len(w.noted), last)
		}
	})
}

func TestATaskContinuesAfterARestartWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.addParked(250)
		w.refuses["prk-20261120-5"] = &fanfare.Error{Code: fanfare.Conflict, Message: "no"}
		reached, goOn := make(chan struct{}), make(chan struct{})
		w.before = func(id string) {
			if id == "prk-20261120-96" { // number 150
				close(reached)
				<-goOn
			}
		}
		all, stop := w.open(t)
		task := start(t, all, "", wire.TaskRequest{Action: RetryParked})
		<-reached
		w.before = func(string) {}
		go close(goOn)
		stop()
		middle := get(t, all, task.ID)
		if middle.State != running || middle.Done+middle.Failed < 150 || middle.Done+middle.Failed >= 250 || middle.Found != middle.Done+middle.Failed {
			t.Fatalf("stopped at %+v", middle)
		}
		all, stop = w.open(t)
		defer stop()
		synctest.Wait()
		if got := get(t, all, task.ID); got.State != completed || got.Found != 250 || got.Done != 249 || got.Failed != 1 {
			t.Errorf("the task is %+v", got)
		}
		if len(w.did) != 249 {
			t.Errorf("%d retries", len(w.did))
		}
	})
}

func TestADisabledKeyStopsItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, change := range map[string]func(w *world){
			"disabled":       func(w *world) { delete(w.scopes, "key-1") },
			"lost its scope": func(w *world) { w.scopes["key-1"] = catalog.ScopeRead },
		} {
			w := newWorld()
			w.addParked(10)
			w.before = func(id string) {
				if id == "prk-20261120-3" {
					w.mu.Lock()
					defer w.mu.Unlock()
					change(w)
				}
			}
			all, stop := w.open(t)
			task := start(t, all, "", wire.TaskRequest{Action: DropParked})
			synctest.Wait()
			if got := get(t, all, task.ID); got.State != failed || got.Done != 3 || got.Found != 3 || !strings.Contains(got.LastError, "key") {
				t.Errorf("%s: the task is %+v", what, got)
			}
			if len(w.did) != 3 {
				t.Errorf("%s: %v", what, w.did)
			}
			stop()
		}
	})
}

func TestACancelledTaskActsOnNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.addParked(10)
		goOn := make(chan struct{})
		w.before = func(id string) {
			if id == "prk-20261120-4" {
				<-goOn
			}
		}
		all, stop := w.open(t)
		defer stop()
		task := start(t, all, "", wire.TaskRequest{Action: RetryParked})
		synctest.Wait()
		if _, err := all.Cancel(t.Context(), catalog.Principal{KeyID: "key-2", Scopes: catalog.ScopeSubscribe}, "", task.ID); fanfare.CodeOf(err) != fanfare.Forbidden {
			t.Errorf("a key with another scope: %v", err)
		}
		if _, err := all.Cancel(t.Context(), operator, "other", task.ID); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("another service: %v", err)
		}
		go func() {
			synctest.Wait()
			close(goOn)
		}()
		got, err := all.Cancel(t.Context(), operator, "", task.ID)
		if err != nil || got.State != cancelled || got.Done != 4 || got.Found != 4 || len(w.did) != 4 {
			t.Errorf("%+v, %v, %v", got, w.did, err)
		}
		if got, err := all.Cancel(t.Context(), operator, "", task.ID); err != nil || got.State != cancelled {
			t.Errorf("again: %+v, %v", got, err)
		}
		other := start(t, all, "", wire.TaskRequest{Action: RetryParked})
		synctest.Wait()
		if _, err := all.Cancel(t.Context(), operator, "", other.ID); fanfare.CodeOf(err) != fanfare.Conflict {
			t.Errorf("a completed one: %v", err)
		}
	})
}

func TestTasksForPeopleNameNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		old := time.Now().Add(-time.Hour)
		for i := range 300 {
			s := people.Subscription{ID: fmt.Sprintf("mine-%d", i), Place: fanfare.RowID(i + 1), Owner: fanfare.RowID(i % 10), Service: "news", Topic: []string{"story", "offer"}[i%2], State: people.StateActive, CreatedAt: old}
			if i%3 == 0 {
				s.State = people.StateEnded
			}
			w.subs = append(w.subs, s)
		}
		w.subs[1].CreatedAt = time.Now().Add(time.Hour)
		w.refuses["mine-7"] = &fanfare.Error{Code: fanfare.Invalid, Message: "ada@example.org is wrong"}
		w.suppress = []suppression.Suppression{{Address: "a@example.org", Reason: "manual", At: old}, {Hash: "00", Reason: "erased", At: old}, {Address: "b@example.org", Reason: "complaint", At: old}}
		all, stop := w.open(t)
		defer stop()
		ended := start(t, all, "news", wire.TaskRequest{Action: EndSubscriptions, Filter: wire.TaskFilter{Topic: "offer"}, Reason: "closed"})
		synctest.Wait()
		if got := get(t, all, ended.ID); got.State != completed || got.Found != 99 || got.Done != 98 || got.Failed != 1 || strings.Contains(got.LastError, "ada") {
			t.Errorf("the offers: %+v", got)
		}
		ada := start(t, all, "news", wire.TaskRequest{Action: EndSubscriptions, Filter: wire.TaskFilter{Subscriber: "ada@example.org"}})
		synctest.Wait()
		if got := get(t, all, ada.ID); got.State != completed || got.Filter.Subscriber != "per-7" || got.Found != 1 {
			t.Errorf("of Ada: %+v", got)
		}
		lifted := start(t, all, "news", wire.TaskRequest{Action: RemoveSuppressions})
		synctest.Wait()
		if got := get(t, all, lifted.ID); got.State != completed || got.Done != 2 || got.Failed != 1 || !strings.Contains(got.LastError, "erased") {
			t.Errorf("suppressions: %+v", got)
		}
		for id, body := range w.stored {
			if strings.Contains(body, "@") {
				t.Errorf("%s names a person: %s", id, body)
			}
		}
		if list := all.List("news", false); len(list) != 3 || list[0].ID != lifted.ID {
			t.Errorf("the tasks are %+v", list)
		}
		shared := start(t, all, "", wire.TaskRequest{Action: RetryParked})
		synctest.Wait()
		if list := all.List("news", true); len(list) != 4 || list[0].ID != shared.ID {
			t.Errorf("with those of all services: %+v", list)
		}
		if list := all.List("games", false); len(list) != 0 {
			t.Errorf("another service sees %+v", list)
		}
	})
}

func TestHeldBroadcastsAreApprovedOrCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for i, topic := range []string{"offer", "story", "offer"} {
			ref := fanfare.EventRef{Day: 20000, Seq: fanfare.NewEventSeq(uint64(i+1), 0)}
			w.held = append(w.held, fanfare.Broadcast{Event: ref.String(), Service: "news", Topic: topic})
		}
		all, stop := w.open(t)
		defer stop()
		start(t, all, "news", wire.TaskRequest{Action: ApproveBroadcasts, Filter: wire.TaskFilter{Topic: "offer"}})
		synctest.Wait()
		if want := []string{"approve by key-1 (ops) " + w.held[0].Event, "approve by key-1 (ops) " + w.held[2].Event}; !slices.Equal(w.did, want) {
			t.Errorf("did %v", w.did)
		}
		w.did = nil
		start(t, all, "", wire.TaskRequest{Action: CancelBroadcasts, Reason: "wrong price"})
		synctest.Wait()
		if len(w.did) != 3 || w.did[0] != "cancel broadcast for wrong price "+w.held[0].Event {
			t.Errorf("did %v", w.did)
		}
	})
}

func TestAWrongTaskIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		all, stop := w.open(t)
		defer stop()
		subscriber := catalog.Principal{KeyID: "key-2", Service: "news", Scopes: catalog.ScopeSubscribe}
		for _, test := range []struct {
			by      catalog.Principal
			service string
			in      wire.TaskRequest
			want    fanfare.Code
			pointer string
		}{
			{operator, "", wire.TaskRequest{Action: "drop"}, fanfare.Invalid, "/action"},
			{operator, "", wire.TaskRequest{Action: RetryParked, Filter: wire.TaskFilter{Topic: "x"}}, fanfare.Invalid, "/filter/topic"},
			{operator, "news", wire.TaskRequest{Action: EndSubscriptions, Filter: wire.TaskFilter{State: "ended"}}, fanfare.Invalid, "/filter/state"},
			{operator, "news", wire.TaskRequest{Action: EndSubscriptions, Filter: wire.TaskFilter{Subscriber: "eve"}}, fanfare.NotFound, ""},
			{operator, "news", wire.TaskRequest{Action: RemoveSuppressions, Filter: wire.TaskFilter{Reason: "erased"}}, fanfare.Invalid, "/filter/reason"},
			{operator, "news", wire.TaskRequest{Action: RetryParked, Reason: strings.Repeat("x", 201)}, fanfare.Invalid, "/reason"},
			{subscriber, "news", wire.TaskRequest{Action: RetryParked}, fanfare.Forbidden, ""},
			{subscriber, "games", wire.TaskRequest{Action: EndSubscriptions}, fanfare.Forbidden, ""},
			{subscriber, "news", wire.TaskRequest{Action: RemoveSuppressions, Filter: wire.TaskFilter{AllServices: true}}, fanfare.Forbidden, "/filter/all_services"},
		} {
			_, err := all.Start(t.Context(), test.by, "", test.service, test.in)
			e, ok := errors.AsType[*fanfare.Error](err)
			if !ok || e.Code != test.want || e.Pointer != test.pointer {
				t.Errorf("%+v: %v", test.in, err)
			}
		}
		if len(w.stored) != 0 {
			t.Errorf("stored are %v", w.stored)
		}
	})
}

func TestTasksThatDoTheSameAndTooManyAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.addParked(1)
		goOn := make(chan struct{})
		w.before = func(string) { <-goOn }
		all, stop := w.open(t)
		defer stop()
		start(t, all, "", wire.TaskRequest{Action: RetryParked})
		if _, err := all.Start(t.Context(), operator, "", "", wire.TaskRequest{Action: RetryParked}); fanfare.CodeOf(err) != fanfare.Conflict {
			t.Errorf("the same: %v", err)
		}
		for i := range maxWaiting - 1 {
			start(t, all, fmt.Sprint("s", i), wire.TaskRequest{Action: DropParked})
		}
		synctest.Wait()
		if _, err := all.Start(t.Context(), operator, "", "other", wire.TaskRequest{Action: DropParked}); fanfare.CodeOf(err) != fanfare.Unavailable {
			// Those of services without parked work have ended.
			if n := len(slices.DeleteFunc(all.List("", false), func(one wire.Task) bool { return one.State != running })); n >= maxWaiting {
				t.Errorf("%d are running, and another one gets %v", n, err)
			}
		}
		close(goOn)
		synctest.Wait()
		for _, one := range all.List("", false) {
			if one.State != completed {
				t.Errorf("%+v", one)
			}
		}
	})
}

func TestATaskWaitsForTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.addParked(3)
		away := fmt.Errorf("%w: %w", &fanfare.Error{Code: fanfare.Unavailable, Message: "no"}, store.ErrAway)
		tries := 0
		w.before = func(id string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if delete(w.refuses, id); id == "prk-20261120-2" && tries < 5 {
				tries++
				w.refuses[id] = away
			}
		}
		all, stop := w.open(t)
		task := start(t, all, "", wire.TaskRequest{Action: RetryParked})
		synctest.Wait()
		if got := get(t, all, task.ID); got.State != running || got.Done != 1 || got.Failed != 0 {
			t.Errorf("while it is away: %+v", got)
		}
		tries = -1000
		stop() // while it waits: the object is left open
		if got := get(t, all, task.ID); got.Done != 1 || got.Found != 1 || got.Failed != 0 {
			t.Errorf("stopped: %+v", got)
		}
		tries = 5
		all, stop = w.open(t)
		defer stop()
		synctest.Wait()
		if got := get(t, all, task.ID); got.State != completed || got.Done != 3 || got.Found != 3 || got.Failed != 0 {
			t.Errorf("at the end: %+v", got)
		}
	})
}
