package registry_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// clock is a clock that the test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// openTimed opens the registry at a place with a clock.
func openTimed(t TB, place string, c *clock) *registry.Registry {
	t.Helper()
	opt := options(openStore(t, place), condition.New())
	opt.Now = c.now
	r, err := registry.Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func newKey(t *testing.T, r *registry.Registry, service string, s state.KeySettings) (state.Key, string) {
	t.Helper()
	key, secret, err := r.CreateKey(t.Context(), service, s)
	if err != nil {
		t.Fatal(err)
	}
	return key, secret
}

func TestAKeyOpensFromItsMakingUntilItEnds(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	set := func(change func(*state.KeySettings)) func(*testing.T, *registry.Registry, string) string {
		return func(t *testing.T, r *registry.Registry, id string) string {
			if _, err := r.ChangeKey(t.Context(), "", id, func(s *state.KeySettings) error { change(s); return nil }); err != nil {
				t.Fatal(err)
			}
			return ""
		}
	}
	rotate := func(grace time.Duration) func(*testing.T, *registry.Registry, string) string {
		return func(t *testing.T, r *registry.Registry, id string) string {
			_, secret, err := r.RotateKey(t.Context(), "", id, grace)
			if err != nil {
				t.Fatal(err)
			}
			return secret
		}
	}
	for _, test := range []struct {
		name     string
		do       func(*testing.T, *registry.Registry, string) string // returns the new secret, if any
		after    time.Duration
		old, new bool // which secret opens
	}{
		{"untouched", set(func(*state.KeySettings) {}), 1000 * time.Hour, true, false},
		{"disabled", set(func(s *state.KeySettings) { s.Disabled = true }), 0, false, false},
		{"before it expires", set(func(s *state.KeySettings) { s.ExpiresAt = noon.Add(time.Hour) }), time.Hour - time.Second, true, false},
		{"at its expiry", set(func(s *state.KeySettings) { s.ExpiresAt = noon.Add(time.Hour) }), time.Hour, false, false},
		{"rotated at once", rotate(0), 0, false, true},
		{"rotated, within grace", rotate(time.Hour), time.Hour - time.Second, true, true},
		{"rotated, after grace", rotate(time.Hour), time.Hour, false, true},
		{"rotated twice", func(t *testing.T, r *registry.Registry, id string) string {
			rotate(time.Hour)(t, r, id)
			return rotate(time.Hour)(t, r, id)
		}, 0, false, true},
		{"deleted", func(t *testing.T, r *registry.Registry, id string) string {
			for range 2 { // the second time is no error
				if err := r.DeleteKey(t.Context(), "", id); err != nil {
					t.Fatal(err)
				}
			}
			return ""
		}, 0, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, place := &clock{noon}, storetest.Place(t)
			r := openTimed(t, place, c)
			apply(t, r, weather)
			newKey(t, r, "", state.KeySettings{Name: "operator"})
			key, first := newKey(t, r, "notify", state.KeySettings{Name: "one", Scopes: catalog.ScopePublish | catalog.ScopeRead})
			second := test.do(t, r, key.ID)
			c.at = noon.Add(test.after)
			for run := range 2 { // the second time after a restart
				who, ok := r.Authenticate(first)
				if ok != test.old || ok && (who.KeyID != key.ID || who.Scopes != catalog.ScopePublish|catalog.ScopeRead || who.Service != "notify") {
					t.Errorf("run %d: the first secret: %+v, %v", run, who, ok)
				}
				if _, ok := r.Authenticate(second); ok != test.new {
					t.Errorf("run %d: the new secret opens: %v", run, ok)
				}
				r.Close()
				for _, secret := range []string{first, second} {
					if secret == "" {
						continue
					}
					if found := storetest.Find(t, place, secret); len(found) > 0 {
						t.Errorf("a secret is kept: %v", found)
					}
				}
				r = openTimed(t, place, c)
			}
		})
	}
}

func TestAKeyFromBeforeThereWereScopesIsAdminOfWhatItWas(t *testing.T) {
	place := storetest.Place(t)
	store := openStore(t, place)
	kept := func(number, service uint32, secret string) control.ConfigRecord {
		hash := sha256.Sum256([]byte(secret))
		body, err := json.Marshal(map[string]any{"hash": hash[:]})
		if err != nil {
			t.Fatal(err)
		}
		return control.ConfigRecord{Kind: "key", Number: number, Service: service, Name: "old", Body: body}
	}
	err := store.Load(t.Context(), control.Loader{ChangeSeq: func(uint64) {}, Config: func(*control.ConfigRecord) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	err = store.Commit(&control.Batch{Config: []control.ConfigRecord{
		{Kind: "service", Number: 1, Name: "notify", Body: []byte("{}")}, kept(1, 0, "ff_operator"), kept(2, 1, "ff_service")}})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := openAt(t, place)
	if who, ok := r.Authenticate("ff_operator"); !ok || !who.Operator() {
		t.Errorf("%+v, %v", who, ok)
	}
	if who, ok := r.Authenticate("ff_service"); !ok || who.Operator() || who.Service != "notify" || who.Scopes != catalog.ScopeAdmin {
		t.Errorf("%+v, %v", who, ok)
	}
}

func TestTheLastKeyOfTheOperatorCannotBeTakenAway(t *testing.T) {
	c := &clock{time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	r := openTimed(t, storetest.Place(t), c)
	apply(t, r, weather)
	last, _ := newKey(t, r, "", state.KeySettings{})
	newKey(t, r, "notify", state.KeySettings{})
	newKey(t, r, "", state.KeySettings{Scopes: catalog.ScopeRead})
	newKey(t, r, "", state.KeySettings{ExpiresAt: c.at})
	takeAway := func(id string) map[string]error {
		ctx := t.Context()
		change := func(f func(*state.KeySettings)) error {
			_, err := r.ChangeKey(ctx, "", id, func(s *state.KeySettings) error { f(s); return nil })
			return err
		}
		return map[string]error{
			"disable": change(func(s *state.KeySettings) { s.Disabled = true }),
			"demote":  change(func(s *state.KeySettings) { s.Scopes = catalog.ScopePublish }),
			"expire":  change(func(s *state.KeySettings) { s.ExpiresAt = c.at }),
			"delete":  r.DeleteKey(ctx, "", id),
		}
	}
	for how, err := range takeAway(last.ID) {
		if fanfare.CodeOf(err) != fanfare.Conflict {
			t.Errorf("%s: %v", how, err)
		}
	}
	newKey(t, r, "", state.KeySettings{})
	for how, err := range takeAway(last.ID) {
		if err != nil {
			t.Errorf("%s with another operator: %v", how, err)
		}
	}
}

func TestKeysOfAnotherServiceDoNotExist(t *testing.T) {
	ctx := context.Background()
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	apply(t, r, "service: games")
	own, _ := newKey(t, r, "games", state.KeySettings{})
	foreign, secret := newKey(t, r, "notify", state.KeySettings{})
	all, _ := newKey(t, r, "", state.KeySettings{})
	if got := r.Keys("games"); len(got) != 1 || got[0].ID != own.ID {
		t.Errorf("%+v", got)
	}
	if got := r.Keys(""); len(got) != 3 || got[2].ID != all.ID {
		t.Errorf("%+v", got)
	}
	for _, id := range []string{foreign.ID, all.ID, "key-99", "key-", "key-01", "key-4294967297", ""} {
		_, read := r.Key("games", id)
		_, change := r.ChangeKey(ctx, "games", id, func(*state.KeySettings) error { return nil })
		_, _, rotate := r.RotateKey(ctx, "games", id, 0)
		for what, err := range map[string]error{"read": read, "change": change, "rotate": rotate, "delete": r.DeleteKey(ctx, "games", id)} {
			if fanfare.CodeOf(err) != fanfare.NotFound {
				t.Errorf("%s %q: %v", what, id, err)
			}
		}
	}
	if _, ok := r.Authenticate(secret); !ok {
		t.Error("the foreign key was touched")
	}
}

func TestANumberOfADeletedKeyIsNotGivenAgain(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	newKey(t, r, "", state.KeySettings{})
	gone, _ := newKey(t, r, "", state.KeySettings{})
	if err := r.DeleteKey(t.Context(), "", gone.ID); err != nil {
		t.Fatal(err)
	}
	r.Close()
	r, _ = openAt(t, place)
	if next, _ := newKey(t, r, "", state.KeySettings{}); next.ID == gone.ID {
		t.Errorf("%s was given twice", next.ID)
	}
}

func TestWrongSettingsOfAKeyAreNamed(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	for pointer, s := range map[string]state.KeySettings{
		"/name": {Name: "a\nb"}, "/name ": {Name: strings.Repeat("x", 200)},
	} {
		_, _, err := r.CreateKey(t.Context(), "", s)
		if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Pointer != strings.TrimSpace(pointer) {
			t.Errorf("%s: %v", pointer, err)
		}
	}
	if _, err := catalog.ParseScopes([]string{"read", "write"}); err == nil || !strings.Contains(fmt.Sprint(err), "/scopes/1") {
		t.Error(err)
	}
}

// A look-up takes as long with a hundred thousand keys as with one.
func BenchmarkAuthenticate(b *testing.B) {
	for _, keys := range []int{1, 10_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			place := storetest.Place(b)
			store := openStore(b, place)
			r, err := registry.Open(b.Context(), options(store, condition.New()))
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			var secret string
			for range keys {
				if _, secret, err = r.CreateKey(b.Context(), "", state.KeySettings{}); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, ok := r.Authenticate(secret); !ok {
					b.Fatal("unknown")
				}
			}
		})
	}
}

// An operator that rotates a key must see whether the previous secret is still used.
func TestUseOfTheSecretBeforeARotationIsSeenApart(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c := &clock{noon}
	r := openTimed(t, storetest.Place(t), c)
	apply(t, r, weather)
	newKey(t, r, "", state.KeySettings{Name: "operator"})
	key, first := newKey(t, r, "notify", state.KeySettings{Name: "one", Scopes: catalog.ScopePublish})
	rotated, second, err := r.RotateKey(audit.WithActor(t.Context(), audit.Actor{KeyID: "key-1"}), "", key.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	used := func(secret string, after time.Duration) (last, old time.Time) {
		t.Helper()
		c.at = noon.Add(after)
		if _, ok := r.Authenticate(secret); !ok {
			t.Fatal("the secret does not open")
		}
		now, err := r.Key("", rotated.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now.LastUsed, now.OldUsed
	}
	if last, old := used(second, time.Minute); !last.Equal(noon.Add(time.Minute)) || !old.IsZero() {
		t.Errorf("the new secret was used, and the key says %v, of the old one %v", last, old)
	}
	if last, old := used(first, 2*time.Minute); !last.Equal(noon.Add(2*time.Minute)) || !old.Equal(noon.Add(2*time.Minute)) {
		t.Errorf("the old secret was used, and the key says %v, of the old one %v", last, old)
	}
	lines, _, err := r.Audit(t.Context(), audit.Query{Action: "rotate", Limit: 10})
	if err != nil || len(lines) != 1 {
		t.Fatalf("%+v, %v", lines, err)
	}
	if says := string(lines[0].Detail); !strings.Contains(says, `"old_until"`) || strings.Contains(says, "0001-01-01") {
		t.Errorf("the audit says %s", says)
	}
}
