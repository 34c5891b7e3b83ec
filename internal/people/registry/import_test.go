package registry_test

import (
	"context"
	"fmt"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// A gatedStore commits, or fails to commit, when the test allows it.
type gatedStore struct {
	registry.Store
	entered chan struct{}
	verdict chan error
}

func (s *gatedStore) Commit(b *control.Batch) error {
	s.entered <- struct{}{}
	if err := <-s.verdict; err != nil {
		return err
	}
	return s.Store.Commit(b)
}

// step returns n puts, enough for a step that is decided while another one is being committed.
func step(number, n int) []people.SubscriptionPut {
	puts := make([]people.SubscriptionPut, n)
	for i := range puts {
		puts[i] = people.SubscriptionPut{Topic: "change", Channel: "email", To: fmt.Sprintf("p%d-%d@example.org", number, i)}
	}
	return puts
}

func gated(t *testing.T) (*registry.Registry, *gatedStore, *condition.Index) {
	t.Helper()
	store := &gatedStore{Store: openStore(t, storetest.Place(t)), entered: make(chan struct{}), verdict: make(chan error)}
	index := condition.New()
	r, err := registry.Open(t.Context(), options(store, index))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	applied := make(chan struct{})
	go func() {
		defer close(applied)
		apply(t, r, weather)
	}()
	for {
		select {
		case <-store.entered:
			store.verdict <- nil
		case <-applied:
			return r, store, index
		}
	}
}

func TestStepsOfAnImportAreKeptInTheirOrder(t *testing.T) {
	r, store, index := gated(t)
	const n = 600
	i := r.Import("notify")
	results := [3][]people.PutResult{make([]people.PutResult, n), make([]people.PutResult, n), make([]people.PutResult, n)}
	first := i.Begin(t.Context(), step(1, n), results[0])
	<-store.entered
	again := step(1, n) // the same people, in another language
	for k := range again {
		again[k].Locale = "de"
	}
	second := i.Begin(t.Context(), again, results[1])
	third := i.Begin(t.Context(), step(3, n), results[2])
	store.verdict <- nil
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	for committed := 0; ; {
		select {
		case <-store.entered:
			store.verdict <- nil
			committed++
			continue
		case err := <-third:
			if err != nil || committed == 0 {
				t.Fatalf("%v after %d commits", err, committed)
			}
		}
		break
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	for k := range n {
		if !results[0][k].Created || results[1][k].Created || results[1][k].ID != results[0][k].ID || !results[2][k].Created {
			t.Fatalf("%d: %+v, %+v, %+v", k, results[0][k], results[1][k], results[2][k])
		}
	}
	if got := index.Len(condition.Key{Service: "notify", Topic: "change"}); got != 2*n {
		t.Errorf("the index has %d", got)
	}
}

func TestWhereAStepFailsThoseBegunAfterItFailToo(t *testing.T) {
	r, store, index := gated(t)
	const n = 600
	i := r.Import("notify")
	begin := func(puts []people.SubscriptionPut) <-chan error {
		return i.Begin(t.Context(), puts, make([]people.PutResult, len(puts)))
	}
	first := begin(step(1, n))
	<-store.entered
	second := begin(step(2, n))
	refused := make([]people.PutResult, 1)
	bad := i.Begin(t.Context(), []people.SubscriptionPut{{Topic: "nowhere"}}, refused)
	fourth := begin(step(4, n))
	store.verdict <- &fanfare.Error{Code: fanfare.DiskFull, Message: "the disk is full"}
	for name, over := range map[string]<-chan error{"first": first, "second": second, "fourth": fourth} {
		if err := <-over; fanfare.CodeOf(err) != fanfare.DiskFull {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := <-bad; err != nil || refused[0].Err == nil {
		t.Errorf("the step of which all was refused: %v, %+v", err, refused[0])
	}
	if err := <-begin(step(5, n)); fanfare.CodeOf(err) != fanfare.DiskFull {
		t.Errorf("one that began later, in the same import: %v", err)
	}
	if got := index.Len(condition.Key{Service: "notify", Topic: "change"}); got != 0 {
		t.Errorf("%d are kept", got)
	}

	i = r.Import("notify")
	over := begin(step(2, n))
	<-store.entered
	store.verdict <- nil
	if err := <-over; err != nil || index.Len(condition.Key{Service: "notify", Topic: "change"}) != n {
		t.Errorf("another import: %v", err)
	}
	if err := <-r.Import("nobody").Begin(context.Background(), step(1, 1), make([]people.PutResult, 1)); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("into an unknown service: %v", err)
	}
	if err := <-i.Begin(t.Context(), step(1, registry.MaxStep+1), make([]people.PutResult, registry.MaxStep+1)); err == nil {
		t.Error("a step that is too large was taken")
	}
}
