package registry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/control"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// A secret is 32 random bytes, so that a plain hash of it cannot be guessed
// back: no slow one is needed, and none is paid for with each request.
const (
	secretPrefix = "ff_"
	secretBytes  = 32
)

// MaxGrace is how long at most the old secret of a rotated key goes on to work.
const MaxGrace = 7 * 24 * time.Hour

// Limits of keys.
const (
	maxKeyNameBytes = 128
	maxKeys         = 1_000_000 // that are not deleted
)

// A Key is what is known of a key. Its secret is not.
type Key struct {
	ID string
	KeySettings
	Service   string    // "": all of them
	CreatedAt time.Time // zero of keys that were made before this was kept
	LastUsed  time.Time // in whole minutes; the last quarter of an hour is lost where the server is killed
	OldUntil  time.Time // until when the secret before the last rotation works
	OldUsed   time.Time // when that was used last, in whole minutes; zero: not since the start
}

// KeySettings is what may be changed of a key.
type KeySettings struct {
	Name      string    // what the key is for; shown in logs
	Scopes    Scopes    // none: ScopeAdmin
	ExpiresAt time.Time // zero: never
	Disabled  bool
}

// keyBody is what is kept of a key: never the secret.
type keyBody struct {
	Hash      []byte    `json:"hash"` // SHA-256 of the secret's text
	Scopes    []string  `json:"scopes,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Disabled  bool      `json:"disabled,omitempty"`
	OldHash   []byte    `json:"old_hash,omitempty"` // of the secret before, good until OldUntil
	OldUntil  time.Time `json:"old_until,omitzero"`
	LastUsed  time.Time `json:"last_used,omitzero"`
}

// scopes are those that are kept. A key from before there were scopes could do
// everything in what it reached, so it is its admin.
func (b *keyBody) scopes() Scopes {
	if b.Scopes == nil {
		return ScopeAdmin
	}
	s, _ := ParseScopes(b.Scopes) // was checked when it was kept
	return s
}

func (k *heldKey) key() Key {
	return Key{ID: k.id(), Service: k.svc, CreatedAt: k.CreatedAt, LastUsed: k.lastUsed(), OldUntil: k.OldUntil, OldUsed: minuteOf(k.oldUsed),
		KeySettings: KeySettings{Name: k.name, Scopes: k.scopes(), ExpiresAt: k.ExpiresAt, Disabled: k.Disabled}}
}

// CreateKey makes a key for one service, or with service "" for all, and returns
// its secret. This is the only time that it is seen.
func (r *Registry) CreateKey(ctx context.Context, service string, settings KeySettings) (Key, string, error) {
	if settings.Scopes == 0 {
		settings.Scopes = ScopeAdmin
	}
	if err := r.checkKey(&settings); err != nil {
		return Key{}, "", err
	}
	secret, hash := newSecret()
	var made Key
	err := r.writer.submit(ctx, &job{run: func(*writer) error {
		if r.keyring.len() >= maxKeys {
			return &fanfare.Error{Code: fanfare.TooLarge, Message: "there are too many keys", Hint: "delete those that nobody uses"}
		}
		if service != "" {
			if _, err := r.config.Load().service(service); err != nil {
				return inputerror.WithPrefix("/service", err)
			}
		}
		k := &heldKey{number: r.keyring.last + 1, name: settings.Name, svc: service, used: new(atomic.Int64), oldUsed: new(atomic.Int64), keyBody: keyBody{
			Hash: hash[:], Scopes: settings.Scopes.Names(), CreatedAt: r.opt.Now().UTC().Truncate(time.Second),
			ExpiresAt: settings.ExpiresAt, Disabled: settings.Disabled}}
		made = k.key()
		var b control.Batch
		b.AddAudit(audit.ActorOf(ctx), k.deed("create"), nil)
		return r.keepKey(&b, k)
	}})
	if err != nil {
		return Key{}, "", err
	}
	return made, secret, nil
}

func newSecret() (string, secretHash) {
	var raw [secretBytes]byte
	rand.Read(raw[:]) // never fails
	secret := secretPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
	return secret, sha256.Sum256([]byte(secret))
}

func (r *Registry) checkKey(s *KeySettings) error {
	s.ExpiresAt = s.ExpiresAt.UTC().Truncate(time.Second)
	switch {
	case len(s.Name) > maxKeyNameBytes:
		return inputerror.TooLarge("/name", len(s.Name), maxKeyNameBytes)
	case strings.ContainsAny(s.Name, "\r\n\x00"):
		return inputerror.Invalid("/name", "", "must be one line")
	case s.Scopes == 0:
		return inputerror.Invalid("/scopes", "use "+strings.Join(scopeNames[:], ", "), "a key needs a scope")
	}
	return nil
}

// Keys lists the keys of a service, or with "" all, in the order in which they
// were made.
func (r *Registry) Keys(service string) []Key {
	held := r.keyring.list(service)
	all := make([]Key, len(held))
	for i, k := range held {
		all[i] = k.key()
	}
	return all
}

// Key returns one key. With a service, those of others do not exist.
func (r *Registry) Key(service, id string) (Key, error) {
	k, err := r.heldKey(service, id)
	if err != nil {
		return Key{}, err
	}
	return k.key(), nil
}

func (r *Registry) heldKey(service, id string) (*heldKey, error) {
	if number, ok := parseKeyID(id); ok {
		if k := r.keyring.get(number); k != nil && (service == "" || k.svc == service) {
			return k, nil
		}
	}
	return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "key " + inputerror.Quote(id) + " does not exist"}
}

// ChangeKey lets change set what may be changed. The key works by its new
// settings when ChangeKey returns.
func (r *Registry) ChangeKey(ctx context.Context, service, id string, change func(*KeySettings) error) (Key, error) {
	return r.editKey(ctx, service, id, "update", func(k *heldKey) error {
		settings := k.key().KeySettings
		if err := change(&settings); err != nil {
			return err
		}
		if err := r.checkKey(&settings); err != nil {
			return err
		}
		k.name, k.Scopes, k.ExpiresAt, k.Disabled = settings.Name, settings.Scopes.Names(), settings.ExpiresAt, settings.Disabled
		return nil
	})
}

// RotateKey gives the key a new secret, and returns it. The secret that it had
// goes on to work for grace; one from an earlier rotation ends now.
func (r *Registry) RotateKey(ctx context.Context, service, id string, grace time.Duration) (Key, string, error) {
	if grace < 0 || grace > MaxGrace {
		return Key{}, "", inputerror.Invalid("/grace", "", "must be from 0 to %d seconds", int(MaxGrace.Seconds()))
	}
	secret, hash := newSecret()
	key, err := r.editKey(ctx, service, id, "rotate", func(k *heldKey) error {
		k.OldHash, k.OldUntil = nil, time.Time{}
		if grace > 0 {
			k.OldHash, k.OldUntil = k.Hash, r.opt.Now().UTC().Add(grace)
		}
		k.Hash, k.oldUsed = hash[:], new(atomic.Int64)
		return nil
	})
	return key, secret, err
}

// DeleteKey ends a key for good. To delete it again is no error.
func (r *Registry) DeleteKey(ctx context.Context, service, id string) error {
	return r.writer.submit(ctx, &job{run: func(*writer) error {
		k, err := r.heldKey(service, id)
		if err != nil {
			if number, ok := parseKeyID(id); ok && service == "" && number <= r.keyring.last && r.keyring.get(number) == nil {
				return nil
			}
			return err
		}
		if err := r.keepOperator(k, nil); err != nil {
			return err
		}
		b := control.Batch{Config: []control.ConfigRecord{{Kind: kindKey, Number: k.number, Service: r.serviceNumber(k.svc), Name: k.name, Body: []byte("{}"), Deleted: true}}}
		b.AddAudit(audit.ActorOf(ctx), k.deed("delete"), nil)
		if err := r.commit(&b); err != nil {
			return err
		}
		r.keyring.remove(k.number)
		return nil
	}})
}

// editKey changes a copy of the key and keeps it.
func (r *Registry) editKey(ctx context.Context, service, id, action string, edit func(*heldKey) error) (changed Key, err error) {
	err = r.writer.submit(ctx, &job{run: func(*writer) error {
		was, err := r.heldKey(service, id)
		if err != nil {
			return err
		}
		k := *was
		if err := edit(&k); err != nil {
			return err
		}
		if err := r.keepOperator(was, &k); err != nil {
			return err
		}
		changed = k.key()
		var b control.Batch
		b.AddAudit(audit.ActorOf(ctx), k.deed(action), &audit.Detail{Fields: keyChanges(was, &k)})
		return r.keepKey(&b, &k)
	}})
	if err != nil {
		return Key{}, err
	}
	return changed, nil
}

// deed is what the audit says of a change of the key.
func (k *heldKey) deed(action string) audit.Operation {
	return audit.Operation{Service: k.svc, Action: action, Kind: kindKey, Name: k.id()}
}

// keyChanges lists what the audit shows of a key: never a hash.
func keyChanges(was, now *heldKey) []audit.FieldChange {
	shown := func(k *heldKey) map[string]any {
		fields := map[string]any{"name": k.name, "scopes": k.scopes().String(), "disabled": k.Disabled}
		for name, at := range map[string]time.Time{"expires_at": k.ExpiresAt, "old_until": k.OldUntil} {
			if !at.IsZero() {
				fields[name] = at.UTC().Truncate(time.Second)
			}
		}
		return fields
	}
	return fieldChanges(shown(was), shown(now))
}

// keepOperator refuses to take the last key away that may do everything. now is
// nil where it is deleted.
func (r *Registry) keepOperator(was, now *heldKey) error {
	at := r.opt.Now()
	able := func(k *heldKey) bool { return k.usable(at) && k.principal().Operator() }
	if !able(was) || now != nil && able(now) {
		return nil
	}
	for _, k := range r.keyring.list("") {
		if k.number != was.number && able(k) {
			return nil
		}
	}
	return &fanfare.Error{Code: fanfare.Conflict, Message: "it is the last key that may do everything", Hint: "make another one first, or rotate it"}
}

// keepKey makes k durable with b, and then known. It runs in the writer.
func (r *Registry) keepKey(b *control.Batch, k *heldKey) error {
	record, err := r.keyRecord(k)
	if err != nil {
		return err
	}
	b.Config = append(b.Config, record)
	if err := r.commit(b); err != nil {
		return err
	}
	r.keyring.set(k)
	return nil
}

// keyRecord is what is kept of k, with its last use.
func (r *Registry) keyRecord(k *heldKey) (control.ConfigRecord, error) {
	k.LastUsed = k.lastUsed()
	body, err := json.Marshal(k.keyBody)
	return control.ConfigRecord{Kind: kindKey, Number: k.number, Service: r.serviceNumber(k.svc), Name: k.name, Body: body}, err
}

// serviceNumber is 0 for no service.
func (r *Registry) serviceNumber(name string) uint32 {
	if svc := r.config.Load().services[name]; svc != nil {
		return svc.number
	}
	return 0
}

func keyID(number uint32) string { return "key-" + strconv.FormatUint(uint64(number), 10) }

func parseKeyID(id string) (uint32, bool) {
	digits, ok := strings.CutPrefix(id, "key-")
	number, err := strconv.ParseUint(digits, 10, 32)
	return uint32(number), ok && err == nil && keyID(uint32(number)) == id
}

func (r *Registry) loadKey(s *snapshot, c *control.ConfigRecord) error {
	if c.Deleted {
		r.keyring.remove(c.Number)
		return nil
	}
	var body keyBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	if len(body.Hash) != sha256.Size {
		return &fanfare.Error{Code: fanfare.Internal, Message: "the kept hash is damaged"}
	}
	if c.Service != 0 && s.names[c.Service] == "" {
		return fmt.Errorf("no service %d", c.Service) // it must not become a key of all
	}
	r.keyring.set(&heldKey{number: c.Number, name: c.Name, svc: s.names[c.Service], keyBody: body, used: new(atomic.Int64), oldUsed: new(atomic.Int64)})
	return nil
}
