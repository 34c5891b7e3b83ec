package registry_test

import (
	"context"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/match"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// A brokenStore refuses to commit while fail is set.
type brokenStore struct {
	registry.Store
	fail error
}

func (s *brokenStore) Commit(b *registry.Batch) error {
	if s.fail != nil {
		return s.fail
	}
	return s.Store.Commit(b)
}

func TestAfterAFailedCommitItIsAsIfNothingHadBeenAsked(t *testing.T) {
	ctx := context.Background()
	store := &brokenStore{Store: openStore(t, t.TempDir(), sqlite.Relaxed)}
	index := match.New()
	r, err := registry.Open(ctx, options(store, index))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	apply(t, r, weather)
	key := match.Key{Service: "notify", Topic: "change"}
	kept := good(t, putAll(t, r, registry.Put{ID: "kept", Topic: "change", Channel: "email", To: "a@example.org"}))
	seq := r.ChangeSeq()

	store.fail = &fanfare.Error{Code: fanfare.DiskFull, Message: "the disk is full"}
	puts := []registry.Put{
		{ID: "kept", Topic: "other", Channel: "email", To: "a@example.org"}, // would replace
		{ID: "new", Topic: "change", Channel: "email", To: "new@example.org", Filter: "mag > 3.0"},
	}
	if err := r.PutSubscriptions(ctx, "notify", puts, make([]registry.PutResult, 2)); fanfare.CodeOf(err) != fanfare.DiskFull {
		t.Fatalf("put: %v", err)
	}
	if err := r.EndSubscription(ctx, "notify", "kept", ""); fanfare.CodeOf(err) != fanfare.DiskFull {
		t.Fatalf("end: %v", err)
	}
	if _, err := r.CreateKey(ctx, "", "x"); fanfare.CodeOf(err) != fanfare.DiskFull {
		t.Fatalf("key: %v", err)
	}
	d, err := registry.ParseDocument([]byte("service: notify\ntopics: {change: {schema: {properties: {title: {type: string}, mag: {type: number}, more: {}}}}}"), "")
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
	if _, err := r.FindSubscriber(ctx, "notify", "new@example.org"); fanfare.CodeOf(err) != fanfare.NotFound {
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
	r, _ := openAt(t, t.TempDir())
	apply(t, r, weather)
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	err := r.PutSubscriptions(context.Background(), "notify", []registry.Put{{Topic: "change", Channel: "email", To: "a@example.org"}}, make([]registry.PutResult, 1))
	if fanfare.CodeOf(err) != fanfare.Unavailable {
		t.Error(err)
	}
}
