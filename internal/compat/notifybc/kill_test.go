package notifybc_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/compat/notifybc"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/compat/notifybc/settings"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/ingest/messages"
	"fanfare.dev/fanfare/internal/store/control"
)

// world is everything around an API. It survives a kill of the API.
type world struct {
	mu      sync.Mutex
	records map[control.NotifyBCKey]control.NotifyBCRecord
	events  map[string]int // number of posts by id of the event
	broken  bool           // the intake accepts nothing
	kill    func()         // called by the intake
	posted  chan string
}

func newWorld() *world {
	return &world{records: map[control.NotifyBCKey]control.NotifyBCRecord{}, events: map[string]int{}, posted: make(chan string, 10)}
}

func (w *world) ChangeNotifyBCRecords(ctx context.Context, put []control.NotifyBCRecord, deleted ...control.NotifyBCKey) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, r := range put {
		w.records[r.NotifyBCKey] = r
	}
	for _, key := range deleted {
		delete(w.records, key)
	}
	return nil
}

func (w *world) EraseNotifyBCRecords(ctx context.Context, put []control.NotifyBCRecord, deleted ...control.NotifyBCKey) error {
	return w.ChangeNotifyBCRecords(ctx, put, deleted...)
}

func (w *world) NotifyBCRecord(_ context.Context, key control.NotifyBCKey) (*control.NotifyBCRecord, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r, ok := w.records[key]; ok {
		return &r, nil
	}
	return nil, nil
}

func (w *world) NotifyBCRecords(_ context.Context, service, kind, after string, _ int64) (list []control.NotifyBCRecord, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range slices.SortedFunc(maps.Keys(w.records), func(a, b control.NotifyBCKey) int { return strings.Compare(a.ID, b.ID) }) {
		if key.Service == service && key.Kind == kind && key.ID > after {
			list = append(list, w.records[key])
		}
	}
	return list, nil
}

func (w *world) Post(_ context.Context, events []fanfare.AcceptedEvent) ([]ingest.Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return nil, &fanfare.Error{Code: fanfare.Unavailable, Message: "broken"}
	}
	w.events[events[0].Event.ID]++
	if w.kill != nil {
		w.kill()
	}
	w.posted <- events[0].Event.ID
	return []ingest.Result{{Ref: fanfare.EventRef{Day: 1, Seq: 1}, Duplicate: w.events[events[0].Event.ID] > 1}}, nil
}

func (w *world) SendContent(context.Context, string, *messages.ContentMessage) (fanfare.EventRef, error) {
	return fanfare.EventRef{}, errors.New("not a unicast")
}

// FindEvent finds the events that were posted.
func (w *world) FindEvent(_ context.Context, _, id string) (fanfare.EventRef, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.events[id] > 0 {
		return fanfare.EventRef{Day: 1, Seq: 1}, nil
	}
	return fanfare.EventRef{}, &fanfare.Error{Code: fanfare.NotFound}
}

func (w *world) Broadcast(context.Context, fanfare.EventRef) (fanfare.Broadcast, error) {
	return fanfare.Broadcast{State: "completed"}, nil
}

func (w *world) Deliveries(context.Context, fanfare.EventRef, string, int) ([]fanfare.Delivery, string, error) {
	return nil, "", nil
}

func (w *world) Await(fanfare.EventRef) (<-chan struct{}, func()) { return nil, func() {} }

func (w *world) Caller(*http.Request) roles.Caller { return roles.Caller{Role: roles.SuperAdmin} }

func (w *world) Topic(_, name string) (*catalog.Topic, bool) { return &catalog.Topic{Name: name}, true }
func (w *world) ChannelNamed(_, name string) (*catalog.Channel, bool) {
	return &catalog.Channel{Name: name, Number: 1}, true
}
func (w *world) Snapshot() *catalog.Snapshot { return nil }
func (w *world) Apply(context.Context, *document.Document) (catalog.Diff, error) {
	return catalog.Diff{}, nil
}

func (w *world) PutSubscriptions(context.Context, string, []people.SubscriptionPut, []people.PutResult) error {
	return nil
}

func (w *world) Subscription(context.Context, string, string) (people.Subscription, error) {
	return people.Subscription{}, &fanfare.Error{Code: fanfare.NotFound}
}

func (w *world) AddressPlaces(context.Context, string, string) ([]fanfare.RowID, error) {
	return nil, nil
}

func (w *world) SubscriptionPage(context.Context, string, people.SubscriptionFilter, fanfare.RowID, int) ([]people.Subscription, fanfare.RowID, error) {
	return nil, 0, nil
}

// start returns a new API in the world, and a function that kills it.
func (w *world) start(t *testing.T) (api *notifybc.API, kill func()) {
	t.Helper()
	s := settings.Defaults()
	s.Service = "news"
	api = notifybc.New(notifybc.Options{Settings: s, Subscriptions: w, Topics: w, Records: w, Messages: w, Intake: w, Traces: w, Recorder: w, Callers: w, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	if err := api.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		api.Run(ctx)
	}()
	kill = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(kill)
	return api, kill
}

const broadcast = `{"serviceName":"a","channel":"email","isBroadcast":true,"message":{"subject":"s","textBody":"x"}}`

// A kill after a notification was stored, before or after its event was posted, neither loses nor repeats the event.
func TestStoredNotificationIsPostedOnceAfterAKill(t *testing.T) {
	for name, posted := range map[string]bool{"before the post": false, "after the post": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			api, kill := w.start(t)
			request, cancel := context.WithCancel(t.Context())
			defer cancel()
			if w.broken = !posted; posted {
				w.kill = cancel // the request ends before the id of the event is stored
			}
			api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(request, "POST", "/api/notifications", strings.NewReader(broadcast)))
			kill()
			w.mu.Lock()
			w.broken, w.kill = false, nil
			before := len(w.events)
			w.mu.Unlock()
			if posted {
				<-w.posted
			}
			if posted == (before == 0) {
				t.Fatalf("%d events were posted before the kill", before)
			}
			w.start(t)
			if !posted {
				select {
				case <-w.posted:
				case <-time.After(time.Minute):
					t.Fatal("the notification was lost")
				}
			}
			finished := func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				return len(w.records) == 1
			}
			for deadline := time.After(time.Minute); !finished(); {
				select {
				case <-deadline:
					t.Fatal("the notification does not finish")
				case <-time.After(time.Millisecond):
				}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.events) != 1 {
				t.Errorf("%d different events were posted", len(w.events))
			}
		})
	}
}
