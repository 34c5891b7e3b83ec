package state

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

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/store/control"
)

// A secret is 32 random bytes, so a plain hash is safe. A slow hash would cost time in each
// request.
const (
	secretPrefix = "ff_"
	secretBytes  = 32
)

// MaxGrace is the maximum time for which the previous secret of a rotated key stays valid.
const MaxGrace = 7 * 24 * time.Hour

// Limits of keys.
const (
	maxKeyNameBytes  = 128
	maxKeyOwnerBytes = 254
	maxKeys          = 1_000_000 // that are not deleted
)

// A Key is the public part of a key, without its secret.
type Key struct {
	ID string
	KeySettings
	Service   string    // "": all of them
	CreatedAt time.Time // zero for keys from before this was stored
	LastUsed  time.Time // in whole minutes; the last quarter of an hour is lost if the server is killed
	OldUntil  time.Time // end of the grace time of the previous secret
	OldUsed   time.Time // last use of the previous secret, in whole minutes; zero: none since the start
	Notify    string    // type of a key for clients of GOV.UK Notify; "": a key for the API
}

// KeySettings are the settings of a key that can be changed.
type KeySettings struct {
	Name      string         // purpose of the key; shown in logs
	Owner     string         // the person who owns the key, such as a mail address, or ""
	Scopes    catalog.Scopes // none: ScopeAdmin
	ExpiresAt time.Time      // zero: never
	Disabled  bool
}

// keyBody is the stored form of a key, without the secret.
type keyBody struct {
	Hash      []byte    `json:"hash"` // SHA-256 of the secret's text
	Scopes    []string  `json:"scopes,omitempty"`
	Owner     string    `json:"owner,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Disabled  bool      `json:"disabled,omitempty"`
	OldHash   []byte    `json:"old_hash,omitempty"` // of the previous secret, valid until OldUntil
	OldUntil  time.Time `json:"old_until,omitzero"`
	LastUsed  time.Time `json:"last_used,omitzero"`

	// A Notify key has no hash: its secret verifies signatures, and is stored sealed.
	Notify    string    `json:"notify,omitempty"` // its type
	Sealed    []byte    `json:"sealed,omitempty"`
	RevokedAt time.Time `json:"revoked_at,omitzero"` // it is not listed any more, but its signatures are recognized
}

// scopes returns the stored scopes. A key from before scopes existed could do everything within
// its service, so it is an admin.
func (b *keyBody) scopes() catalog.Scopes {
	if b.Scopes == nil {
		return catalog.ScopeAdmin
	}
	s, _ := catalog.ParseScopes(b.Scopes) // was checked before it was stored
	return s
}

func (k *storedKey) key() Key {
	return Key{ID: k.id(), Service: k.svc, CreatedAt: k.CreatedAt, LastUsed: k.lastUsed(), OldUntil: k.OldUntil, OldUsed: minuteOf(k.oldUsed), Notify: k.Notify,
		KeySettings: KeySettings{Name: k.name, Owner: k.Owner, Scopes: k.scopes(), ExpiresAt: k.ExpiresAt, Disabled: k.Disabled}}
}

// CreateKey creates a key for one service, or with service "" for all, and returns its secret,
// which is shown only once.
func (r *Catalog) CreateKey(ctx context.Context, service string, settings KeySettings) (Key, string, error) {
	if settings.Scopes == 0 {
		settings.Scopes = catalog.ScopeAdmin
	}
	if err := r.checkKey(&settings); err != nil {
		return Key{}, "", err
	}
	secret, hash := newSecret()
	var made Key
	err := r.writer.Run(ctx, func() error {
		if r.keyring.len() >= maxKeys {
			return &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the server has %d keys, the maximum", maxKeys), Hint: "delete unused keys"}
		}
		if service != "" {
			if _, err := r.config.Load().Service(service); err != nil {
				return inputerror.WithPrefix("/service", err)
			}
		}
		k := &storedKey{number: r.keyring.last + 1, name: settings.Name, svc: service, used: new(atomic.Int64), oldUsed: new(atomic.Int64), keyBody: keyBody{
			Hash: hash[:], Scopes: settings.Scopes.Names(), Owner: settings.Owner, CreatedAt: r.opt.Apply.Now().UTC().Truncate(time.Second),
			ExpiresAt: settings.ExpiresAt, Disabled: settings.Disabled}}
		made = k.key()
		var b control.Batch
		b.AddAudit(audit.ActorOf(ctx), k.operation("create"), nil)
		return r.storeKey(&b, k)
	})
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

func (r *Catalog) checkKey(s *KeySettings) error {
	s.ExpiresAt = s.ExpiresAt.UTC().Truncate(time.Second)
	switch {
	case len(s.Name) > maxKeyNameBytes:
		return inputerror.TooLarge("/name", len(s.Name), maxKeyNameBytes)
	case strings.ContainsAny(s.Name, "\r\n\x00"):
		return inputerror.Invalid("/name", "", "must be one line")
	case len(s.Owner) > maxKeyOwnerBytes:
		return inputerror.TooLarge("/owner", len(s.Owner), maxKeyOwnerBytes)
	case strings.TrimSpace(s.Owner) != s.Owner || strings.ContainsFunc(s.Owner, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return inputerror.Invalid("/owner", "such as ada@example.org", "must be one line, without spaces at its ends")
	case s.Scopes == 0:
		return inputerror.Invalid("/scopes", "use "+strings.Join(catalog.ScopeNames[:], ", "), "the key has no scope")
	}
	return nil
}

// Keys lists the keys of a service, or with "" all, in the order of creation.
func (r *Catalog) Keys(service string) []Key {
	all := []Key{}
	for _, k := range r.keyring.list(service) {
		if k.RevokedAt.IsZero() {
			all = append(all, k.key())
		}
	}
	return all
}

// Key returns one key. With a service, keys of other services are not found.
func (r *Catalog) Key(service, id string) (Key, error) {
	k, err := r.findKey(service, id)
	if err != nil {
		return Key{}, err
	}
	return k.key(), nil
}

// Principal returns the rights of a key that can be used now.
func (r *Catalog) Principal(id string) (catalog.Principal, bool) {
	k, err := r.findKey("", id)
	if err != nil || k.Notify != "" || !k.usable(r.opt.Apply.Now()) {
		return catalog.Principal{}, false
	}
	return k.principal(), true
}

func (r *Catalog) findKey(service, id string) (*storedKey, error) {
	if number, ok := parseKeyID(id); ok {
		if k := r.keyring.get(number); k != nil && k.RevokedAt.IsZero() && (service == "" || k.svc == service) {
			return k, nil
		}
	}
	return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "key " + inputerror.Quote(id) + " does not exist"}
}

// ChangeKey applies change to the settings of a key. The new settings are in force when it
// returns.
func (r *Catalog) ChangeKey(ctx context.Context, service, id string, change func(*KeySettings) error) (Key, error) {
	return r.editKey(ctx, service, id, "update", func(k *storedKey) error {
		settings := k.key().KeySettings
		if err := change(&settings); err != nil {
			return err
		}
		if err := r.checkKey(&settings); err != nil {
			return err
		}
		k.name, k.Owner, k.Scopes, k.ExpiresAt, k.Disabled = settings.Name, settings.Owner, settings.Scopes.Names(), settings.ExpiresAt, settings.Disabled
		return nil
	})
}

// RotateKey gives the key a new secret, and returns it. The previous secret stays valid for grace;
// one from an earlier rotation becomes invalid.
func (r *Catalog) RotateKey(ctx context.Context, service, id string, grace time.Duration) (Key, string, error) {
	if grace < 0 || grace > MaxGrace {
		return Key{}, "", inputerror.Invalid("/grace", "", "must be from 0 to %d seconds", int(MaxGrace.Seconds()))
	}
	secret, hash := newSecret()
	key, err := r.editKey(ctx, service, id, "rotate", func(k *storedKey) error {
		if k.Notify != "" {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "the secret of a key for clients of GOV.UK Notify cannot be changed", Hint: "create another key for the clients, and revoke this one when no client uses it"}
		}
		k.OldHash, k.OldUntil = nil, time.Time{}
		if grace > 0 {
			k.OldHash, k.OldUntil = k.Hash, r.opt.Apply.Now().UTC().Add(grace)
		}
		k.Hash, k.oldUsed = hash[:], new(atomic.Int64)
		return nil
	})
	return key, secret, err
}

// DeleteKey deletes a key. Deleting it again is no error.
func (r *Catalog) DeleteKey(ctx context.Context, service, id string) error {
	return r.writer.Run(ctx, func() error {
		k, err := r.findKey(service, id)
		if err != nil {
			if number, ok := parseKeyID(id); ok && service == "" && number <= r.keyring.last {
				if k := r.keyring.get(number); k == nil || !k.RevokedAt.IsZero() {
					return nil
				}
			}
			return err
		}
		if err := r.keepAdminKey(k, nil); err != nil {
			return err
		}
		if k.Notify != "" {
			return r.revokeNotifyKey(ctx, k)
		}
		b := control.Batch{Config: []control.ConfigRecord{{Kind: catalog.KindKey, Number: k.number, Service: r.serviceNumber(k.svc), Name: k.name, Body: []byte("{}"), Deleted: true}}}
		b.AddAudit(audit.ActorOf(ctx), k.operation("delete"), nil)
		if err := r.writer.Commit(&b); err != nil {
			return err
		}
		r.keyring.remove(k.number)
		return nil
	})
}

// editKey changes a copy of the key and stores it.
func (r *Catalog) editKey(ctx context.Context, service, id, action string, edit func(*storedKey) error) (changed Key, err error) {
	err = r.writer.Run(ctx, func() error {
		was, err := r.findKey(service, id)
		if err != nil {
			return err
		}
		k := *was
		if err := edit(&k); err != nil {
			return err
		}
		if err := r.keepAdminKey(was, &k); err != nil {
			return err
		}
		changed = k.key()
		var b control.Batch
		b.AddAudit(audit.ActorOf(ctx), k.operation(action), &audit.Detail{Fields: keyChanges(was, &k)})
		return r.storeKey(&b, &k)
	})
	if err != nil {
		return Key{}, err
	}
	return changed, nil
}

// operation returns the audit operation of a change of the key.
func (k *storedKey) operation(action string) audit.Operation {
	return audit.Operation{Service: k.svc, Action: action, Kind: catalog.KindKey, Name: k.id()}
}

// keyChanges returns the changes of a key for the audit log, never a hash.
func keyChanges(was, now *storedKey) []audit.FieldChange {
	shown := func(k *storedKey) map[string]any {
		fields := map[string]any{"name": k.name, "scopes": k.scopes().String(), "disabled": k.Disabled}
		for name, at := range map[string]time.Time{"expires_at": k.ExpiresAt, "old_until": k.OldUntil} {
			if !at.IsZero() {
				fields[name] = at.UTC().Truncate(time.Second)
			}
		}
		return fields
	}
	changes := catalog.FieldChanges(shown(was), shown(now))
	if was.Owner != now.Owner {
		changes = append(changes, audit.FieldChange{Field: "owner", New: "changed"}) // the log has no addresses
	}
	return changes
}

// keepAdminKey refuses to remove the last operator key with the scope admin. now is nil if the key
// is deleted.
func (r *Catalog) keepAdminKey(was, now *storedKey) error {
	at := r.opt.Apply.Now()
	able := func(k *storedKey) bool { return k.usable(at) && k.principal().Operator() }
	if !able(was) || now != nil && able(now) {
		return nil
	}
	for _, k := range r.keyring.list("") {
		if k.number != was.number && able(k) {
			return nil
		}
	}
	return &fanfare.Error{Code: fanfare.Conflict, Message: "the key must remain usable: it is the last valid operator key", Hint: "create another operator key first, or rotate this one"}
}

// storeKey stores k with b, and then publishes it. It runs in the writer.
func (r *Catalog) storeKey(b *control.Batch, k *storedKey) error {
	record, err := r.keyRecord(k)
	if err != nil {
		return err
	}
	b.Config = append(b.Config, record)
	if err := r.writer.Commit(b); err != nil {
		return err
	}
	r.keyring.set(k)
	return nil
}

// keyRecord returns the stored form of k, with its last use.
func (r *Catalog) keyRecord(k *storedKey) (control.ConfigRecord, error) {
	k.LastUsed = k.lastUsed()
	body, err := json.Marshal(k.keyBody)
	return control.ConfigRecord{Kind: catalog.KindKey, Number: k.number, Service: r.serviceNumber(k.svc), Name: k.name, Body: body}, err
}

// serviceNumber returns the number of a service, 0 for "".
func (r *Catalog) serviceNumber(name string) uint32 {
	if svc := r.config.Load().Services[name]; svc != nil {
		return svc.Number
	}
	return 0
}

func keyID(number uint32) string { return "key-" + strconv.FormatUint(uint64(number), 10) }

func parseKeyID(id string) (uint32, bool) {
	digits, ok := strings.CutPrefix(id, "key-")
	number, err := strconv.ParseUint(digits, 10, 32)
	return uint32(number), ok && err == nil && keyID(uint32(number)) == id
}

func (r *Catalog) loadKey(s *catalog.Snapshot, c *control.ConfigRecord) error {
	if c.Deleted {
		r.keyring.remove(c.Number)
		return nil
	}
	var body keyBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	if body.Notify == "" && len(body.Hash) != sha256.Size {
		return &fanfare.Error{Code: fanfare.Internal, Message: "the stored hash of the key is damaged"}
	}
	if c.Service != 0 && s.ServiceNames[c.Service] == "" {
		return fmt.Errorf("unknown service number %d", c.Service) // the key must not become one for all services
	}
	k := &storedKey{number: c.Number, name: c.Name, svc: s.ServiceNames[c.Service], keyBody: body, used: new(atomic.Int64), oldUsed: new(atomic.Int64)}
	r.openNotifyKey(k)
	r.keyring.set(k)
	return nil
}
