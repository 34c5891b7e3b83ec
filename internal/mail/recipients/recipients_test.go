package recipients_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/mail/recipients"
	"fanfare.dev/fanfare/internal/mailbox"
)

// A world has services with their domains, and mailboxes by service and address.
type world struct {
	now      time.Time
	services []recipients.Service
	boxes    map[[2]string]mailbox.AccountID
	err      error
	reads    int
}

func (w *world) Now() time.Time { return w.now }

func (w *world) read(context.Context) ([]recipients.Service, error) {
	w.reads++
	return w.services, w.err
}

func (w *world) accounts(_ context.Context, receives func(string) bool, forms ...string) (list []mailbox.Account, err error) {
	for _, form := range forms {
		for at, id := range w.boxes {
			if at[1] == form && receives(at[0]) {
				list = append(list, mailbox.Account{Owner: mailbox.Owner{ID: id, Service: at[0], Address: form}})
			}
		}
		if len(list) > 0 {
			break
		}
	}
	return list, nil
}

func (w *world) directory() *recipients.Directory {
	return recipients.New(recipients.Options{Accounts: w.accounts, Services: w.read, Clock: w})
}

// find returns the numbers of the accounts that get the mail to an address.
func find(t *testing.T, d *recipients.Directory, to string) (ids []mailbox.AccountID, err error) {
	t.Helper()
	list, err := d.Find(t.Context(), to)
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	slices.Sort(ids)
	return ids, err
}

func TestADomainBelongsToOneService(t *testing.T) {
	w := &world{
		services: []recipients.Service{
			{Name: "press", Domains: []recipients.Domain{{Name: "example.org", CatchAll: "office@example.org"}, {Name: "xn--mnchen-3ya.example"}}},
			{Name: "alerts", Domains: []recipients.Domain{{Name: "example.net", CatchAll: "nobody@example.net"}}},
			{Name: "open"},
		},
		boxes: map[[2]string]mailbox.AccountID{
			{"press", "ada@example.org"}: 1, {"open", "ada@example.org"}: 2, {"press", "office@example.org"}: 3,
			{"press", "ada@example.com"}: 4, {"open", "ada@example.com"}: 5, {"alerts", "ada@example.com"}: 6, {"open", "bob@example.org"}: 7,
			{"press", "info@m\u00fcnchen.example"}: 8, {"alerts", "joe@example.net"}: 9, {"press", "joe@example.net"}: 10,
			{"open", "Ann@example.org"}: 11, {"press", "ann@example.org"}: 12,
		},
	}
	d := w.directory()
	for to, want := range map[string][]mailbox.AccountID{
		"ada@example.org": {1}, "bob@example.org": {3}, "x@example.org": {3}, "ada@example.com": {5}, "info@m\u00fcnchen.example": {8},
		"joe@example.net": {9}, "Ann@example.org": {12}, "ADA@example.org": {1},
	} {
		if got, err := find(t, d, to); err != nil || !slices.Equal(got, want) {
			t.Errorf("mail to %s reaches %v (%v), want %v", to, got, err, want)
		}
	}
	for to, want := range map[string]error{
		"x@m\u00fcnchen.example": recipients.ErrUnknown, "x@example.net": recipients.ErrUnknown, "x@example.com": recipients.ErrNotHere, "x@sub.example.org": recipients.ErrNotHere,
	} {
		if got, err := find(t, d, to); !errors.Is(err, want) || errors.Is(err, recipients.ErrForeign) {
			t.Errorf("mail to %s reaches %v (%v), want %v", to, got, err, want)
		}
	}
	for alias, want := range map[[2]string]bool{
		{"press", "x@example.org"}: true, {"press", "x@example.com"}: false, {"press", "x@example.net"}: false, {"press", "x@m\u00fcnchen.example"}: true,
		{"open", "x@example.org"}: false, {"open", "x@example.com"}: true,
	} {
		if got, err := d.Receives(t.Context(), alias[0], alias[1]); err != nil || got != want {
			t.Errorf("%s receives mail to %s: %v (%v), want %v", alias[0], alias[1], got, err, want)
		}
	}
}

func TestAServerWhoseServicesListDomainsRefusesAllOthers(t *testing.T) {
	w := &world{
		services: []recipients.Service{{Name: "press", Domains: []recipients.Domain{{Name: "example.org"}}}},
		boxes:    map[[2]string]mailbox.AccountID{{"press", "ada@example.com"}: 1, {"gone", "ada@example.net"}: 2},
	}
	d := w.directory()
	for _, to := range []string{"ada@example.com", "ada@example.net", "x@example.com", "x@example.org.example.com"} {
		if got, err := find(t, d, to); !errors.Is(err, recipients.ErrForeign) || !errors.Is(err, recipients.ErrNotHere) {
			t.Errorf("mail to %s reaches %v (%v)", to, got, err)
		}
	}
}

func TestDomainsAreReadAgainAfterASecond(t *testing.T) {
	w := &world{now: time.Unix(1_700_000_000, 0), services: []recipients.Service{{Name: "open"}}, boxes: map[[2]string]mailbox.AccountID{{"open", "ada@example.org"}: 1}}
	d := w.directory()
	for range 3 {
		if _, err := find(t, d, "ada@example.org"); err != nil {
			t.Fatal(err)
		}
	}
	if w.reads != 1 {
		t.Errorf("the domains were read %d times", w.reads)
	}
	w.services = []recipients.Service{{Name: "open", Domains: []recipients.Domain{{Name: "example.com"}}}}
	w.now = w.now.Add(time.Second)
	if _, err := find(t, d, "ada@example.org"); !errors.Is(err, recipients.ErrForeign) {
		t.Errorf("after the change, mail gets %v", err)
	}
	w.err = errors.New("the database is away")
	w.now = w.now.Add(time.Second)
	if _, err := find(t, d, "ada@example.org"); !errors.Is(err, w.err) {
		t.Errorf("without a database, mail gets %v", err)
	}
	w.err, w.now = nil, w.now.Add(-time.Hour) // the clock was set back
	w.services = []recipients.Service{{Name: "open"}}
	if _, err := find(t, d, "ada@example.org"); err != nil {
		t.Errorf("after the clock was set back, mail gets %v", err)
	}
}
