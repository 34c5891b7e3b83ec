// Package signin keeps the sign-ins of people to the console. A person exchanges an API key once for a cookie, or signs in with OpenID Connect; from then
// on, the browser sends the cookie.
//
// State. All sign-ins are in memory and in the store, which keeps a hash of the secret in the cookie. A sign-in has no rights of its own: each request
// asks for those that its key has at that moment, or for the roles that the claims of the person have. A key that is disabled, changed or deleted, and a
// role that is removed, therefore take effect at once. A sign-in ends after a time without a request, and after a time in any case.
//
// Failure. A sign-in is stored before the cookie is sent. The times of the last use are stored some minutes late, so that a restart may end a sign-in
// that was used in between a little early.
package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/retry"
)

// The limits of sign-ins.
const (
	MaxIdle = 8 * time.Hour      // without a request
	MaxAge  = 7 * 24 * time.Hour // in any case

	maxPerPerson  = 100 // and of a key; the oldest one ends when there are more
	maxAgentBytes = 300
	useInterval   = 5 * time.Minute // precision of the stored time of the last use
	secretBytes   = 32
)

// Keys are the API keys.
type Keys interface {
	// Authenticate returns who has a secret.
	Authenticate(secret string) (catalog.Principal, bool)
	// Principal returns the current rights of a key that is usable now.
	Principal(keyID string) (catalog.Principal, bool)
}

// PeopleRoles are the current roles of people; *Roles has these methods.
type PeopleRoles interface {
	// Rights returns the roles of a person with claims of an issuer.
	Rights(issuer string, claims []catalog.Claim) catalog.Rights
	// Relevant selects the claims of a person on which roles depend now.
	Relevant(issuer string, values func(claim string) []string) []catalog.Claim
}

// Store stores sign-ins; *control.Store has these methods.
type Store interface {
	SignIns(ctx context.Context) ([]control.SignInRecord, error)
	ChangeSignIns(ctx context.Context, added *control.SignInRecord, used map[string]time.Time, ended []string) error
}

// A Person is a person whom an issuer of OpenID Connect has identified.
type Person struct {
	Issuer  string // URL
	Subject string
	Name    string
	Mail    string // verified mail address; "" if the issuer states none
	Values  func(claim string) []string
}

// A SignIn is a sign-in that has not ended, with the rights of its key or its person.
type SignIn struct {
	ID        string
	Principal catalog.Principal // of a person: without a service and scopes
	Rights    *catalog.Rights   // of a person; nil for a key
	BeganAt   time.Time
	UsedAt    time.Time
	ExpiresAt time.Time // if it is not used again
	Agent     string    // User-Agent of the browser
	Address   string    // IP address at the beginning
}

// SignIns are the sign-ins of a server. They are safe for concurrent use.
type SignIns struct {
	store Store
	keys  Keys
	roles PeopleRoles
	clock clock.Clock
	log   *slog.Logger

	mu     sync.Mutex
	byHash map[[sha256.Size]byte]*entry
}

// An entry is a sign-in in memory.
type entry struct {
	control.SignInRecord
	person    storedPerson // zero for a key
	storedUse time.Time
}

// A storedPerson is the stored form of a person. It has only the claims on which roles depended at the beginning.
type storedPerson struct {
	Issuer  string          `json:"issuer"`
	Subject string          `json:"subject"`
	Name    string          `json:"name,omitempty"`
	Mail    string          `json:"mail,omitempty"`
	Claims  []catalog.Claim `json:"claims"`
}

// Open reads the sign-ins.
func Open(ctx context.Context, store Store, keys Keys, roles PeopleRoles, c clock.Clock, log *slog.Logger) (*SignIns, error) {
	s := &SignIns{store: store, keys: keys, roles: roles, clock: c, log: log, byHash: map[[sha256.Size]byte]*entry{}}
	list, err := store.SignIns(ctx)
	for i := range list {
		e := &entry{SignInRecord: list[i], storedUse: list[i].UsedAt}
		if e.Person != "" {
			if err := json.Unmarshal([]byte(e.Person), &e.person); err != nil {
				return s, fmt.Errorf("sign-in %s: %w", e.ID, err)
			}
		}
		s.byHash[e.Hash] = e
	}
	return s, err
}

// Begin signs in the person who has the secret of a key, and returns the secret of the cookie. It fails with Unauthenticated.
func (s *SignIns) Begin(ctx context.Context, key, agent, address string) (secret string, in SignIn, err error) {
	who, ok := s.keys.Authenticate(key)
	if !ok {
		return "", in, &fanfare.Error{Code: fanfare.Unauthenticated, Message: "unknown or revoked API key", Hint: "create a key with fanfare key create; the first key is in admin.key of the data directory"}
	}
	return s.begin(ctx, &entry{SignInRecord: control.SignInRecord{KeyID: who.KeyID, Agent: agentOf(agent), Address: address}})
}

// ErrNoRole is the error for a person who has no role in any service.
var ErrNoRole = errors.New("the person has no role in any service")

// BeginPerson signs in a person, and returns the secret of the cookie. It fails with ErrNoRole.
func (s *SignIns) BeginPerson(ctx context.Context, p Person, agent, address string) (secret string, in SignIn, err error) {
	claims := s.roles.Relevant(p.Issuer, p.Values)
	if s.roles.Rights(p.Issuer, claims).IsEmpty() {
		return "", in, ErrNoRole
	}
	e := &entry{SignInRecord: control.SignInRecord{Agent: agentOf(agent), Address: address}, person: storedPerson{p.Issuer, p.Subject, catalog.PersonName(p.Name), p.Mail, claims}}
	text, err := json.Marshal(e.person)
	if err != nil {
		return "", in, err
	}
	e.Person = string(text)
	return s.begin(ctx, e)
}

// begin stores a sign-in with a new secret.
func (s *SignIns) begin(ctx context.Context, e *entry) (secret string, in SignIn, err error) {
	var random [secretBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	secret = base64.RawURLEncoding.EncodeToString(random[:])
	now := s.clock.Now().UTC().Truncate(time.Second)
	e.ID, e.Hash, e.BeganAt, e.UsedAt, e.storedUse = "sin-"+strings.ToLower(rand.Text()[:12]), sha256.Sum256([]byte(secret)), now, now, now
	s.mu.Lock()
	ended := s.excess(e)
	s.mu.Unlock()
	if err := s.store.ChangeSignIns(ctx, &e.SignInRecord, nil, idsOf(ended)); err != nil {
		return "", in, control.UserError(err, "the sign-in could not be stored")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, old := range ended {
		delete(s.byHash, old.Hash)
	}
	s.byHash[e.Hash] = e
	in, _ = s.live(e, now)
	return secret, in, nil
}

// agentOf returns the start of a User-Agent, without control characters.
func agentOf(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(text) > maxAgentBytes {
		text = strings.ToValidUTF8(text[:maxAgentBytes], "")
	}
	return text
}

// excess returns the oldest sign-ins of the key or the person of another one, so that one more is within the limit.
func (s *SignIns) excess(other *entry) []*entry {
	var of []*entry
	for _, e := range s.byHash {
		if e.KeyID == other.KeyID && e.person.Issuer == other.person.Issuer && e.person.Subject == other.person.Subject {
			of = append(of, e)
		}
	}
	if len(of) < maxPerPerson {
		return nil
	}
	slices.SortFunc(of, func(a, b *entry) int { return cmp.Or(a.UsedAt.Compare(b.UsedAt), cmp.Compare(a.ID, b.ID)) })
	return of[:len(of)-maxPerPerson+1]
}

func idsOf(list []*entry) (ids []string) {
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids
}

func (e *entry) signIn() SignIn {
	expires := e.UsedAt.Add(MaxIdle)
	if end := e.BeganAt.Add(MaxAge); end.Before(expires) {
		expires = end
	}
	return SignIn{ID: e.ID, BeganAt: e.BeganAt, UsedAt: e.UsedAt, ExpiresAt: expires, Agent: e.Agent, Address: e.Address}
}

// live returns the sign-in with its rights, unless it has ended.
func (s *SignIns) live(e *entry, now time.Time) (in SignIn, ok bool) {
	in = e.signIn()
	if p := &e.person; p.Issuer != "" {
		rights := s.roles.Rights(p.Issuer, p.Claims)
		in.Principal, in.Rights = catalog.Principal{Name: p.Name, Owner: p.Mail, Issuer: p.Issuer, Subject: p.Subject}, &rights
		ok = !rights.IsEmpty()
	} else {
		in.Principal, ok = s.keys.Principal(e.KeyID)
	}
	return in, ok && now.Before(in.ExpiresAt)
}

// IsOnlyFor reports whether all rights of a sign-in are in one service.
func (in *SignIn) IsOnlyFor(service string) bool {
	if in.Rights == nil {
		return in.Principal.Service == service
	}
	return in.Rights.All == 0 && len(in.Rights.Services) == 1 && in.Rights.Services[service] != 0
}

// Find returns the sign-in of a cookie, and counts this as a use.
func (s *SignIns) Find(secret string) (SignIn, bool) {
	now := s.clock.Now().UTC().Truncate(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byHash[sha256.Sum256([]byte(secret))] // of a random secret: the time of the lookup tells nothing about others
	if e == nil {
		return SignIn{}, false
	}
	in, ok := s.live(e, now)
	if !ok {
		return SignIn{}, false
	}
	if now.After(e.UsedAt) {
		e.UsedAt = now
		is := e.signIn()
		in.UsedAt, in.ExpiresAt = is.UsedAt, is.ExpiresAt
	}
	return in, true
}

// Peek returns the sign-in of a cookie, as Find does, but does not count as a use.
func (s *SignIns) Peek(secret string) (SignIn, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byHash[sha256.Sum256([]byte(secret))] // as in Find
	if e == nil {
		return SignIn{}, false
	}
	in, ok := s.live(e, s.clock.Now())
	return in, ok
}

// List returns the sign-ins whose rights are in a service only, or all with "", the newest first.
func (s *SignIns) List(service string) (list []SignIn) {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.byHash {
		if in, ok := s.live(e, now); ok && (service == "" || in.IsOnlyFor(service)) {
			list = append(list, in)
		}
	}
	slices.SortFunc(list, func(a, b SignIn) int { return cmp.Or(b.BeganAt.Compare(a.BeganAt), cmp.Compare(a.ID, b.ID)) })
	return list
}

// End ends a sign-in that List returns for the service. It fails with NotFound.
func (s *SignIns) End(ctx context.Context, service, id string) (SignIn, error) {
	list := s.List(service)
	at := slices.IndexFunc(list, func(in SignIn) bool { return in.ID == id })
	if at < 0 {
		return SignIn{}, &fanfare.Error{Code: fanfare.NotFound, Message: "the sign-in does not exist, or has ended", Hint: "list the sign-ins"}
	}
	if err := s.store.ChangeSignIns(ctx, nil, nil, []string{id}); err != nil {
		return list[at], control.UserError(err, "the end of the sign-in could not be stored")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.byHash, func(_ [sha256.Size]byte, e *entry) bool { return e.ID == id })
	return list[at], nil
}

// Run stores the times of the last use and removes what has ended, until ctx ends.
func (s *SignIns) Run(ctx context.Context) {
	ticker := time.NewTicker(useInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := s.Tidy(ctx); err != nil && ctx.Err() == nil {
			s.log.Log(ctx, retry.LogLevel(err), "cannot store the sign-ins of the console", "error", err)
		}
	}
}

// Tidy stores the times of the last use, and removes what has ended.
func (s *SignIns) Tidy(ctx context.Context) error {
	now := s.clock.Now()
	used := map[string]time.Time{}
	var ended []*entry
	s.mu.Lock()
	for _, e := range s.byHash {
		switch _, ok := s.live(e, now); {
		case !ok:
			ended = append(ended, e)
		case e.UsedAt.After(e.storedUse):
			used[e.ID] = e.UsedAt
		}
	}
	s.mu.Unlock()
	if len(used)+len(ended) == 0 {
		return nil
	}
	if err := s.store.ChangeSignIns(ctx, nil, used, idsOf(ended)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range ended {
		delete(s.byHash, e.Hash)
	}
	for _, e := range s.byHash {
		if at, ok := used[e.ID]; ok {
			e.storedUse = at
		}
	}
	return nil
}
