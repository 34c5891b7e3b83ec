package registry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// A silentStore blocks commits until answer is closed.
type silentStore struct {
	registry.Store
	answer chan struct{}
}

func (s *silentStore) Commit(b *control.Batch) error {
	<-s.answer
	return s.Store.Commit(b)
}

func TestNobodyWaitsLongForAStoreThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		// Always files, because a synctest bubble cannot wait for a socket.
		store := &silentStore{Store: openStore(t, t.TempDir()), answer: make(chan struct{})}
		index := condition.New()
		o := options(store, index)
		o.MaxWait = 5 * time.Second
		r, err := registry.Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		silence := store.answer
		store.answer = make(chan struct{})
		close(store.answer)
		apply(t, r, weather)
		store.answer = silence

		put := func(address string) error {
			return r.PutSubscriptions(ctx, "notify", []people.SubscriptionPut{{Topic: "change", Channel: "email", To: address}}, make([]people.PutResult, 1))
		}
		begun := time.Now()
		said := map[string]chan string{}
		ask := func(what string, do func() error) {
			answer := make(chan string, 1)
			said[what] = answer
			go func() {
				err := do()
				if fanfare.CodeOf(err) != fanfare.Unavailable {
					t.Errorf("%s: answered with %v", what, err)
					answer <- ""
					return
				}
				e, _ := errors.AsType[*fanfare.Error](err)
				answer <- e.Message
			}()
			synctest.Wait()
		}
		ask("under way", func() error { return put("under-way@example.org") })
		ask("behind", func() error { return put("behind@example.org") })
		ask("pause", func() error { return r.SetPaused(ctx, fanfare.Scope{Kind: fanfare.ScopeAll}, true, "behind") })
		ask("key", func() error {
			_, _, err := r.CreateKey(ctx, "", state.KeySettings{Name: "behind"})
			return err
		})
		told := map[string]string{}
		for what, answer := range said {
			told[what] = <-answer
		}
		if took := time.Since(begun); took != o.MaxWait {
			t.Errorf("took %v", took)
		}

		close(store.answer)
		if err := put("afterwards@example.org"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		_, first := findSubscriber(r, "under-way@example.org")
		_, second := findSubscriber(r, "behind@example.org")
		kinds := map[bool]int{}
		for what, kept := range map[string]bool{"under way": first == nil, "behind": second == nil, "pause": len(r.Paused()) > 0, "key": len(r.Keys("")) > 0} {
			kinds[kept]++
			if open := told[what] == "the database does not respond; it may still store the request"; kept != open {
				t.Errorf("%s: kept is %v, and they were told that %s", what, kept, told[what])
			}
		}
		if kinds[true] == 0 || kinds[false] == 0 {
			t.Errorf("both cases should be among these: %v", told)
		}
	})
}

func TestNothingIsHandedInWhileTheStoreIsAway(t *testing.T) {
	ctx := context.Background()
	o := options(openStore(t, storetest.Place(t)), condition.New())
	var away error
	o.StoreOutage = func() error { return away }
	r, err := registry.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	apply(t, r, weather)
	away = &fanfare.Error{Code: fanfare.Unavailable, Message: "gone"}
	put := func() error {
		return r.PutSubscriptions(ctx, "notify", []people.SubscriptionPut{{Topic: "change", Channel: "email", To: "a@example.org"}}, make([]people.PutResult, 1))
	}
	if err := put(); !errors.Is(err, away) {
		t.Errorf("while it is away: %v", err)
	}
	if err := <-r.Import("notify").Begin(ctx, []people.SubscriptionPut{{Topic: "change", Channel: "email", To: "a@example.org"}}, make([]people.PutResult, 1)); !errors.Is(err, away) {
		t.Errorf("an import while it is away: %v", err)
	}
	away = nil
	if err := put(); err != nil {
		t.Errorf("when it is back: %v", err)
	}
}
