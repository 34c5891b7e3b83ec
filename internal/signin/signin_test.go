package signin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/signin"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// A world has two keys and a store.
type world struct {
	*signin.SignIns
	t     *testing.T
	now   time.Time
	store signin.Store
	gone  map[string]bool // keys that cannot be used any more

	roles    *signin.Roles
	snapshot *catalog.Snapshot
}

func (w *world) Now() time.Time { return w.now }

func (w *world) Authenticate(secret string) (catalog.Principal, bool) {
	for _, id := range []string{"key-1", "key-2"} {
		if secret == "secret of "+id {
			return w.Principal(id)
		}
	}
	return catalog.Principal{}, false
}

func (w *world) Principal(id string) (catalog.Principal, bool) {
	p := catalog.Principal{KeyID: id, Name: "of " + id, Scopes: catalog.ScopeRead}
	if id == "key-2" {
		p.Service = "news"
	}
	return p, !w.gone[id]
}

func (w *world) open() {
	w.t.Helper()
	s, err := signin.Open(w.t.Context(), w.store, w, w.roles, w, slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	w.SignIns = s
}

func (w *world) begin(key string) string {
	w.t.Helper()
	secret, _, err := w.Begin(w.t.Context(), "secret of "+key, "Browser\x01/1", "192.0.2.1")
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

func (w *world) mustFind(when, secret string, want bool) {
	w.t.Helper()
	if in, ok := w.Find(secret); ok != want {
		w.t.Errorf("%s: the sign-in %+v is there: %v, want %v", when, in, ok, want)
	}
}

func start(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), gone: map[string]bool{}}
	w.store = control.New(storetest.OpenAt(t, t.TempDir()))
	w.grant(map[string][]catalog.RoleGrant{
		"news": {grant(staff, "groups", "editors", "sender"), grant(staff, "groups", "editors", "approver"), grant(staff, "groups", "chiefs", "admin"), grant(others, "groups", "editors", "admin")},
		"shop": {grant(staff, "email", "ada@example.org", "viewer")},
	})
	w.roles = signin.NewRoles([]string{staff, partners}, []catalog.RoleGrant{grant(staff, "groups", "operators", "viewer")}, func() *catalog.Snapshot { return w.snapshot })
	w.open()
	return w
}

func TestASignInOutlivesARestart(t *testing.T) {
	w := start(t)
	secret, other := w.begin("key-1"), w.begin("key-2")
	w.open()
	w.mustFind("after a restart", secret, true)
	if list := w.List(""); len(list) != 2 || list[0].Agent != "Browser/1" || list[0].Address != "192.0.2.1" {
		t.Errorf("the sign-ins are %+v", list)
	}
	list := w.List("news")
	if len(list) != 1 || list[0].Principal.KeyID != "key-2" {
		t.Fatalf("the sign-ins of the service are %+v", list)
	}
	if _, err := w.End(t.Context(), "games", list[0].ID); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("another service ends it: %v", err)
	}
	if _, err := w.End(t.Context(), "news", list[0].ID); err != nil {
		t.Error(err)
	}
	w.mustFind("after its end", other, false)
	w.open()
	w.mustFind("after its end and a restart", other, false)
	w.mustFind("after the end of another one", secret, true)
	w.mustFind("a guess", "guess", false)
	w.mustFind("no secret", "", false)
}

func TestASignInEnds(t *testing.T) {
	w := start(t)
	secret := w.begin("key-1")
	w.now = w.now.Add(signin.MaxIdle - time.Second)
	w.mustFind("just before", secret, true)
	w.now = w.now.Add(signin.MaxIdle - time.Second)
	w.mustFind("used meanwhile", secret, true)
	if err := w.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.open()
	w.now = w.now.Add(signin.MaxIdle - time.Second)
	w.mustFind("used before a restart", secret, true)
	w.now = w.now.Add(signin.MaxIdle)
	w.mustFind("not used for too long", secret, false)

	secret = w.begin("key-1")
	for began := w.now; w.now.Sub(began) < signin.MaxAge; w.now = w.now.Add(time.Hour) {
		w.mustFind("used all the time", secret, true)
	}
	w.mustFind("too old", secret, false)
	if err := w.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := w.store.SignIns(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%d sign-ins are left (%v)", len(list), err)
	}
}

func TestASignInEndsWithItsKey(t *testing.T) {
	w := start(t)
	secret := w.begin("key-1")
	w.gone["key-1"] = true
	w.mustFind("without its key", secret, false)
	if _, _, err := w.Begin(t.Context(), "secret of key-1", "", ""); fanfare.CodeOf(err) != fanfare.Unauthenticated {
		t.Errorf("signing in without the key: %v", err)
	}
	if list := w.List(""); len(list) != 0 {
		t.Errorf("the sign-ins are %+v", list)
	}
}

func TestAKeyHasALimitedNumberOfSignIns(t *testing.T) {
	w := start(t)
	first, other := w.begin("key-1"), w.begin("key-2")
	for range 100 {
		w.now = w.now.Add(time.Second)
		w.begin("key-1")
	}
	w.mustFind("the oldest one", first, false)
	w.mustFind("of another key", other, true)
	if n := len(w.List("")); n != 101 {
		t.Errorf("there are %d sign-ins", n)
	}
	w.open()
	if n := len(w.List("")); n != 101 {
		t.Errorf("there are %d sign-ins after a restart", n)
	}
}

// Issuers: nobody can sign in with the last one.
const (
	staff    = "https://staff.example.org"
	partners = "https://partners.example.org"
	others   = "https://others.example.org"
)

// grant is a grant of a role.
func grant(issuer, claim, value, role string) catalog.RoleGrant {
	return catalog.RoleGrant{Issuer: issuer, Claim: claim, Value: value, Role: role}
}

// grant replaces the roles in the configuration.
func (w *world) grant(services map[string][]catalog.RoleGrant) {
	w.snapshot = catalog.NewSnapshot()
	for name, grants := range services {
		w.snapshot.Services[name] = &catalog.ServiceSnapshot{Name: name, Roles: grants}
	}
}

// person returns a person with groups.
func person(issuer, subject string, groups ...string) signin.Person {
	return signin.Person{Issuer: issuer, Subject: subject, Name: "Ada <x@example.org> (fake)", Mail: "ada@example.org", Values: func(claim string) []string {
		return map[string][]string{"groups": groups, "email": {"ada@example.org"}, "secret": {"not for roles"}}[claim]
	}}
}

func (w *world) beginPerson(p signin.Person) string {
	w.t.Helper()
	secret, _, err := w.BeginPerson(w.t.Context(), p, "", "192.0.2.1")
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

func (w *world) mustHave(when, secret, want string) {
	w.t.Helper()
	in, ok := w.Find(secret)
	got := "none"
	if ok {
		got = fmt.Sprint(in.Rights.All.Names(), in.Rights.Services["news"].Names(), in.Rights.Services["shop"].Names())
	}
	if got != want {
		w.t.Errorf("%s: the roles are %s, want %s", when, got, want)
	}
}

func TestAPersonHasTheCurrentRoles(t *testing.T) {
	w := start(t)
	editor, operator, nobody := w.beginPerson(person(staff, "1", "editors", "other")), w.beginPerson(person(staff, "2", "operators", "chiefs")), w.beginPerson(person(staff, "3"))
	w.mustHave("an editor", editor, "[] [sender approver] [viewer]")
	w.mustHave("an operator", operator, "[viewer] [admin] [viewer]")
	w.mustHave("somebody with an address only", nobody, "[] [] [viewer]")
	for name, p := range map[string]signin.Person{"of another issuer": person(partners, "1", "editors"), "of an issuer that is unknown": person(others, "1", "editors")} {
		if secret, _, err := w.BeginPerson(t.Context(), p, "", ""); !errors.Is(err, signin.ErrNoRole) || secret != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	in, _ := w.Find(editor)
	if p := in.Principal; p.Title() != "Ada x@example.org fake <ada@example.org> ("+staff+")" || p.Service != "" || p.Scopes != 0 || p.KeyID != "" || fmt.Sprint(p.Identities()) != "[person "+staff+" 1 owner ada@example.org]" {
		t.Errorf("the person is %+v, %s", p, p.Title())
	}
	w.open()
	w.mustHave("after a restart", editor, "[] [sender approver] [viewer]")

	w.grant(map[string][]catalog.RoleGrant{"news": {grant(staff, "groups", "editors", "sender")}})
	w.mustHave("after a role is removed", editor, "[] [sender] []")
	w.mustHave("after all roles in services are removed", operator, "[viewer] [] []")
	w.mustHave("after the last role is removed", nobody, "none")
	list, err := w.store.SignIns(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("%d sign-ins, %v", len(list), err)
	}
	for _, one := range list {
		if strings.Contains(one.Person, "not for roles") || strings.Contains(one.Person, `"other"`) || one.KeyID != "" {
			t.Errorf("%s is stored", one.Person)
		}
	}
	if err := w.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err = w.store.SignIns(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("%d sign-ins are left, %v", len(list), err)
	}
	w.roles = signin.NewRoles([]string{partners}, nil, func() *catalog.Snapshot { return w.snapshot })
	w.open()
	w.mustHave("after the issuer is removed", editor, "none")
}

func TestASignInOfAPersonIsListedForOneServiceOnly(t *testing.T) {
	w := start(t)
	w.grant(map[string][]catalog.RoleGrant{"news": {grant(staff, "groups", "editors", "sender")}, "shop": {grant(staff, "groups", "sellers", "sender")}})
	w.beginPerson(person(staff, "1", "editors"))
	w.beginPerson(person(staff, "2", "editors", "sellers"))
	w.beginPerson(person(staff, "3", "operators", "editors"))
	w.begin("key-2")
	subjects := func(service string) (list []string) {
		for _, in := range w.List(service) {
			list = append(list, in.Principal.Subject+in.Principal.KeyID)
		}
		slices.Sort(list)
		return list
	}
	if got := fmt.Sprint(subjects("news"), subjects("shop"), subjects("")); got != "[1 key-2] [] [1 2 3 key-2]" {
		t.Errorf("the lists are %s", got)
	}
	for _, in := range w.List("") {
		_, err := w.End(t.Context(), "news", in.ID)
		if mine := in.Principal.Subject == "1" || in.Principal.KeyID != ""; mine != (err == nil) {
			t.Errorf("ending the sign-in of %s: %v", in.Principal.Title(), err)
		}
	}
}

func TestAPersonHasALimitedNumberOfSignIns(t *testing.T) {
	w := start(t)
	first, other, same := w.beginPerson(person(staff, "1", "editors")), w.beginPerson(person(staff, "2", "editors")), w.begin("key-1")
	for range 100 {
		w.now = w.now.Add(time.Second)
		w.beginPerson(person(staff, "1", "editors"))
	}
	w.mustFind("the oldest one", first, false)
	w.mustFind("of another person", other, true)
	w.mustFind("of a key", same, true)
}

func TestASignInOfAPersonEnds(t *testing.T) {
	w := start(t)
	secret := w.beginPerson(person(staff, "1", "editors"))
	w.now = w.now.Add(signin.MaxIdle)
	w.mustFind("not used for too long", secret, false)
	secret = w.beginPerson(person(staff, "1", "editors"))
	for began := w.now; w.now.Sub(began) < signin.MaxAge; w.now = w.now.Add(time.Hour) {
		w.mustFind("used all the time", secret, true)
	}
	w.mustFind("too old", secret, false)
}

// broken is a store that cannot be written.
type broken struct{ signin.Store }

func (broken) ChangeSignIns(context.Context, *control.SignInRecord, map[string]time.Time, []string) error {
	return errors.New("the disk is full")
}

func TestASignInThatIsNotStoredDoesNotExist(t *testing.T) {
	w := start(t)
	secret := w.begin("key-1")
	w.store = broken{w.store}
	w.open()
	if secret, _, err := w.Begin(t.Context(), "secret of key-1", "", ""); err == nil || secret != "" || len(w.List("")) != 1 {
		t.Errorf("signing in gets %q, %v", secret, err)
	}
	if _, err := w.End(t.Context(), "", w.List("")[0].ID); err == nil || strings.Contains(err.Error(), "disk") {
		t.Errorf("the error is %v", err)
	}
	w.mustFind("after a failed end", secret, true)
}
