package registry_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// A brokenStore fails to commit while fail is set, or every nth time.
type brokenStore struct {
	registry.Store
	fail    error
	each    int
	commits int
}

func (s *brokenStore) Commit(b *control.Batch) error {
	s.commits++
	if s.fail != nil {
		return s.fail
	}
	if s.each > 0 && s.commits%s.each == 0 {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "an error of the disk"}
	}
	return s.Store.Commit(b)
}

func TestAfterAFailedCommitItIsAsIfNothingHadBeenAsked(t *testing.T) {
	ctx := context.Background()
	store := &brokenStore{Store: openStore(t, storetest.Place(t))}
	index := condition.New()
	r, err := registry.Open(ctx, options(store, index))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	apply(t, r, weather)
	key := condition.Key{Service: "notify", Topic: "change"}
	kept := good(t, putAll(t, r, people.SubscriptionPut{ID: "kept", Topic: "change", Channel: "email", To: "a@example.org"}))
	seq := r.ChangeSeq()

	store.fail = &fanfare.Error{Code: fanfare.DiskFull, Message: "the disk is full"}
	puts := []people.SubscriptionPut{
		{ID: "kept", Topic: "other", Channel: "email", To: "a@example.org"}, // would replace
		{ID: "new", Topic: "change", Channel: "email", To: "new@example.org", Filter: "mag > 3.0"},
	}
	if err := r.PutSubscriptions(ctx, "notify", puts, make([]people.PutResult, 2)); fanfare.CodeOf(err) != fanfare.DiskFull {
		t.Fatalf("put: %v", err)
	}
	if err := r.EndSubscription(ctx, "notify", "kept", ""); fanfare.CodeOf(err) != fanfare.DiskFull {
		t.Fatalf("end: %v", err)
	}
	if _, _, err := r.CreateKey(ctx, "", state.KeySettings{Name: "x"}); fanfare.CodeOf(err) != fanfare.DiskFull {
		t.Fatalf("key: %v", err)
	}
	d, err := document.ParseDocument([]byte("service: notify\ntopics: {change: {schema: {properties: {title: {type: string}, mag: {type: number}, more: {}}}}}"), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(ctx, d); fanfare.CodeOf(err) != fanfare.DiskFull {
		t.Fatalf("apply: %v", err)
	}

	s, err := r.Subscription(ctx, "notify", "kept")
	if err != nil || s.State != "active" || s.Topic != "change" || !r.Live(s.Place) || index.Len(key) != 1 || r.ChangeSeq() != seq {
		t.Errorf("%+v, %v, index %d, change sequence %d", s, err, index.Len(key), r.ChangeSeq())
	}
	if _, err := r.Subscription(ctx, "notify", "new"); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("new: %v", err)
	}
	if _, err := findSubscriber(r, "new@example.org"); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("new subscriber: %v", err)
	}

	store.fail = nil
	if res := good(t, putAll(t, r, puts...)); !res[0].Created || !res[1].Created || res[0].ID != kept[0].ID {
		t.Errorf("afterwards: %+v", res)
	}
	if r.ChangeSeq() != seq+1 || index.Len(key) != 1 {
		t.Errorf("afterwards: change sequence %d, index %d", r.ChangeSeq(), index.Len(key))
	}
}

func TestAClosedRegistryRefusesAndStandsASecondClose(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	for range 2 {
		r.Close()
	}
	err := r.PutSubscriptions(context.Background(), "notify", []people.SubscriptionPut{{Topic: "change", Channel: "email", To: "a@example.org"}}, make([]people.PutResult, 1))
	if fanfare.CodeOf(err) != fanfare.Unavailable {
		t.Error(err)
	}
}

// In TestFailuresAmongCallersThatOverlapLoseAndDoubleNothing, callers put the same people
// in large groups, each of which is decided while the previous one is being committed, and
// every second commit fails.
func TestFailuresAmongCallersThatOverlapLoseAndDoubleNothing(t *testing.T) {
	ctx := context.Background()
	place := storetest.Place(t)
	store := &brokenStore{Store: openStore(t, place)}
	r, err := registry.Open(ctx, options(store, condition.New()))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	apply(t, r, waiting)
	store.each = 2

	const callers, rounds, members, pool = 4, 8, 600, 2500
	want := func(i int) people.SubscriptionPut {
		p := people.SubscriptionPut{Topic: "change", Channel: "email", To: fmt.Sprintf("p%d@example.org", i/2), Cadence: "immediate"}
		if i%3 == 0 {
			p.Cadence = fmt.Sprintf("daily %02d:%02d", i%24, i%60)
		}
		switch i % 4 {
		case 0:
			p.ID = fmt.Sprint("own-", i)
		case 1:
			p.Filter = fmt.Sprintf("mag > %d.0", i%50)
		case 2:
			p.Rule = "strong"
		}
		return p
	}
	var mu sync.Mutex
	ids, created := map[int]string{}, map[int]int{}
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for round := range rounds {
				puts, results := make([]people.SubscriptionPut, members), make([]people.PutResult, members)
				first := (c*211 + round*307) % pool
				for i := range puts {
					puts[i] = want((first + i) % pool)
				}
				for r.PutSubscriptions(ctx, "notify", puts, results) != nil {
					clear(results)
				}
				mu.Lock()
				for i, res := range results {
					n := (first + i) % pool
					if res.Err != nil || ids[n] != "" && ids[n] != res.ID {
						t.Errorf("%d: %+v, was %s", n, res, ids[n])
					}
					ids[n] = res.ID
					if res.Created {
						created[n]++
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for n := range ids {
		if created[n] != 1 {
			t.Errorf("%d was created %d times", n, created[n])
		}
	}
	r.Close()
	r, index := openAt(t, place)
	if n := index.Len(condition.Key{Service: "notify", Topic: "change"}); n != len(ids) {
		t.Errorf("after the restart the index has %d, want %d", n, len(ids))
	}
	for n, id := range ids {
		s, err := r.Subscription(ctx, "notify", id)
		if p := want(n); err != nil || s.To != p.To || s.Filter != p.Filter || s.Rule != p.Rule || s.Cadence != p.Cadence {
			t.Fatalf("%s: %+v, %v", id, s, err)
		}
	}
}

// A reader finds the person until the erasure is committed, because a kill or a full disk undoes
// it.
func TestErasedPersonIsFoundUntilTheErasureIsStored(t *testing.T) {
	r, store, _ := gated(t)
	begin := func(change func() error) <-chan error {
		over := make(chan error, 1)
		go func() { over <- change() }()
		<-store.entered
		return over
	}
	made := begin(func() error {
		_, _, err := r.PutSubscriber(t.Context(), "notify", "ada", mails("ada@example.org"), nil)
		return err
	})
	store.verdict <- nil
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	expect := func(when string, there bool) {
		t.Helper()
		_, byID := r.Subscriber(t.Context(), "notify", "ada")
		_, byAddress := r.SubscriberByAddress(t.Context(), "notify", "ada@example.org")
		if (byID == nil) != there || (byAddress == nil) != there {
			t.Errorf("%s: by id %v, by address %v", when, byID, byAddress)
		}
	}
	for _, verdict := range []error{&fanfare.Error{Code: fanfare.DiskFull, Message: "the disk is full"}, nil} {
		erased := begin(func() error {
			_, err := r.BeginErasure(t.Context(), "notify", "ada", false)
			return err
		})
		expect("while it is about to be kept", true)
		store.verdict <- verdict
		if err := <-erased; (err == nil) != (verdict == nil) {
			t.Fatal(err)
		}
		expect(fmt.Sprintf("with the outcome %v", verdict), verdict != nil)
	}
}
