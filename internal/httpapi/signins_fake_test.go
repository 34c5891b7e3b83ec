package httpapi

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/signin"
	"fanfare.dev/fanfare/internal/store/control"
)

// signInRecords stores sign-ins in memory.
type signInRecords struct {
	mu   sync.Mutex
	list []control.SignInRecord
}

func (s *signInRecords) SignIns(context.Context) ([]control.SignInRecord, error) { return nil, nil }

func (s *signInRecords) ChangeSignIns(_ context.Context, added *control.SignInRecord, _ map[string]time.Time, _ []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if added != nil {
		s.list = append(s.list, *added)
	}
	return nil
}

// signIns are the real sign-ins, with the keys of a world.
func signIns(keys Keys, roles signin.PeopleRoles) SignIns {
	s, err := signin.Open(context.Background(), &signInRecords{}, signInKeys{keys}, roles, clock.System{}, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	return s
}

// noRoles are the roles of a server without issuers.
func noRoles() *signin.Roles { return signin.NewRoles(nil, nil, catalog.NewSnapshot) }

// signInKeys finds the keys of a world by their ids.
type signInKeys struct{ Keys }

func (k signInKeys) Principal(id string) (catalog.Principal, bool) {
	for _, secret := range []string{adminSecret, newsSecret} {
		if p, ok := k.Authenticate(secret); ok && p.KeyID == id {
			return p, true
		}
	}
	return catalog.Principal{}, false
}
