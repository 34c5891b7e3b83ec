package state

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/store/control"
)

// Types of keys for clients of GOV.UK Notify.
const (
	NotifyLive = "live" // sends to anyone
	NotifyTeam = "team" // sends to the team and the guests of the service
	NotifyTest = "test" // sends nothing
)

// NotifyTypes lists the types.
var NotifyTypes = []string{NotifyLive, NotifyTeam, NotifyTest}

// A Vault encrypts secrets that the server must read again.
type Vault interface {
	Seal(secret []byte, purpose string) ([]byte, error)
	Open(sealed []byte, purpose string) ([]byte, error)
	// Rotate replaces the key of the vault. reseal seals all secrets again.
	Rotate(ctx context.Context, reseal func() error) error
}

// maxNotifyKeys is the maximum number of Notify keys of a service, revoked ones included: the signature
// of a request is compared with each of them.
const maxNotifyKeys = 500

// A NotifyKey verifies the signatures of a client of GOV.UK Notify.
type NotifyKey struct {
	ID      string // of the key
	Name    string
	Type    string
	Secret  []byte
	Revoked bool // it is revoked, disabled or expired
}

// NotifyKeys returns the Notify keys of a service, the newest first, revoked ones included.
func (r *Catalog) NotifyKeys(service string) []NotifyKey {
	r.keyring.mu.RLock()
	held := r.keyring.notify[service]
	r.keyring.mu.RUnlock()
	all := make([]NotifyKey, 0, len(held))
	now := r.opt.Apply.Now()
	for _, k := range slices.Backward(held) {
		if k.secret != nil {
			all = append(all, NotifyKey{k.id(), k.name, k.Notify, k.secret, !k.usable(now)})
		}
	}
	return all
}

// NotifyKeyUsed notes that a request was signed with a key.
func (r *Catalog) NotifyKeyUsed(id string) {
	number, _ := parseKeyID(id)
	if k := r.keyring.get(number); k != nil {
		if minute := r.opt.Apply.Now().Unix() / useInterval * useInterval; k.used.Load() < minute {
			k.used.Store(minute)
		}
	}
}

// SealedKeys counts the stored keys whose secrets are sealed.
func (r *Catalog) SealedKeys() (n int) {
	for _, k := range r.keyring.list("") {
		if k.Notify != "" {
			n++
		}
	}
	return n
}

// notifyKeyText matches a key of GOV.UK Notify: a name, the id of the service and the secret.
var notifyKeyText = regexp.MustCompile(`^(?:(.*)-([0-9a-fA-F-]{36})-)?([0-9a-fA-F-]{36})$`)

// CreateNotifyKey creates a key for clients of GOV.UK Notify, and returns its text, which is shown only once.
// With a text, it registers an existing key of the service, or only its secret.
func (r *Catalog) CreateNotifyKey(ctx context.Context, service string, settings KeySettings, kind, text string) (Key, string, error) {
	if !slices.Contains(NotifyTypes, kind) {
		return Key{}, "", inputerror.Invalid("/notify", "use "+strings.Join(NotifyTypes, ", "), "unknown type of key %s", inputerror.Quote(kind))
	}
	settings.Scopes = catalog.ScopePublish // it is never used for the API; no scopes would mean admin
	if err := r.checkKey(&settings); err != nil {
		return Key{}, "", err
	}
	if r.opt.Vault == nil {
		return Key{}, "", &fanfare.Error{Code: fanfare.Unavailable, Message: "this server has no key to seal secrets with"}
	}
	var made Key
	err := r.writer.Run(ctx, func() error {
		svc, err := r.config.Load().Service(service)
		if err != nil {
			return inputerror.WithPrefix("/service", err)
		}
		if !svc.Notify.Active() {
			return &fanfare.Error{Code: fanfare.Conflict, Pointer: "/service", Message: "service " + inputerror.Quote(service) + " is not open to clients of GOV.UK Notify", Hint: "add the settings notify to the document of the service"}
		}
		secret, err := notifySecret(&svc.Notify, &settings, text)
		if err != nil {
			return err
		}
		held := r.keyring.list(service)
		if len(r.NotifyKeys(service)) >= maxNotifyKeys || r.keyring.len() >= maxKeys {
			return &fanfare.Error{Code: fanfare.TooLarge, Message: "the service has the maximum number of keys", Hint: "delete the service settings notify and create them with another id to start over"}
		}
		if slices.ContainsFunc(held, func(k *storedKey) bool { return k.RevokedAt.IsZero() && string(k.secret) == secret }) {
			return &fanfare.Error{Code: fanfare.Conflict, Pointer: "/secret", Message: "the service already has a key with this secret", Hint: "use the existing key; fanfare key list shows it"}
		}
		sealed, err := r.opt.Vault.Seal([]byte(secret), sealPurpose(service))
		if err != nil {
			return err
		}
		k := &storedKey{number: r.keyring.last + 1, name: settings.Name, svc: service, used: new(atomic.Int64), oldUsed: new(atomic.Int64), secret: []byte(secret), keyBody: keyBody{
			Scopes: settings.Scopes.Names(), Owner: settings.Owner, CreatedAt: r.opt.Apply.Now().UTC().Truncate(time.Second), ExpiresAt: settings.ExpiresAt,
			Notify: kind, Sealed: sealed}}
		made, text = k.key(), notifyName(settings.Name)+"-"+svc.Notify.ID+"-"+secret
		var b control.Batch
		b.AddAudit(audit.ActorOf(ctx), k.operation("create"), nil)
		return r.storeKey(&b, k)
	})
	if err != nil {
		return Key{}, "", err
	}
	return made, text, nil
}

// notifySecret returns the secret of a new key, or that of an existing key in a text.
func notifySecret(of *catalog.NotifySettings, settings *KeySettings, text string) (string, error) {
	if text == "" {
		return uuid.NewString(), nil
	}
	parts := notifyKeyText.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return "", inputerror.Invalid("/secret", "copy the whole key, which is NAME-SERVICE_ID-SECRET, or its last 36 characters", "the text is not a key of GOV.UK Notify")
	}
	if _, err := uuid.Parse(parts[3]); err != nil {
		return "", inputerror.Invalid("/secret", "copy the whole key, or its last 36 characters", "the secret is not a UUID")
	}
	if parts[2] != "" && !strings.EqualFold(parts[2], of.ID) {
		return "", inputerror.Invalid("/secret", "set notify.id of the service to "+strings.ToLower(parts[2]), "the key belongs to the service with the id %s", strings.ToLower(parts[2]))
	}
	if settings.Name == "" {
		settings.Name = parts[1]
	}
	return parts[3], nil // as it is written: clients sign with these characters
}

// notNames are the characters that the name in a key cannot have.
var notNames = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// notifyName returns the name at the beginning of a key.
func notifyName(name string) string {
	if name = strings.Trim(notNames.ReplaceAllString(name, "_"), "_"); name == "" {
		return "key"
	}
	return name
}

func sealPurpose(service string) string { return "notify key of service " + service }

// openNotifyKey decrypts the secret of a stored key. A key that cannot be opened verifies nothing.
func (r *Catalog) openNotifyKey(k *storedKey) {
	if k.Notify == "" || r.opt.Vault == nil {
		return
	}
	secret, err := r.opt.Vault.Open(k.Sealed, sealPurpose(k.svc))
	if err != nil {
		r.opt.Logger.Warn("the secret of a key cannot be opened; clients that use it are refused", "key", k.id(), "service", k.svc, "error", err)
		return
	}
	k.secret = secret
}

// revokeNotifyKey ends a key. Its secret stays, so that clients learn that their key was revoked.
func (r *Catalog) revokeNotifyKey(ctx context.Context, was *storedKey) error {
	k := *was
	k.RevokedAt = r.opt.Apply.Now().UTC().Truncate(time.Second)
	var b control.Batch
	b.AddAudit(audit.ActorOf(ctx), k.operation("delete"), nil)
	return r.storeKey(&b, &k)
}

// ResealKeys replaces the key of the vault, and seals all secrets with the new one. It returns their number.
func (r *Catalog) ResealKeys(ctx context.Context) (n int, err error) {
	if r.opt.Vault == nil {
		return 0, &fanfare.Error{Code: fanfare.Unavailable, Message: "this server has no key to seal secrets with"}
	}
	err = r.writer.Run(ctx, func() error {
		return r.opt.Vault.Rotate(ctx, func() error {
			var b control.Batch
			var renewed []*storedKey
			for _, was := range r.keyring.list("") {
				if was.Notify == "" || was.secret == nil {
					continue
				}
				k := *was
				if k.Sealed, err = r.opt.Vault.Seal(k.secret, sealPurpose(k.svc)); err != nil {
					return err
				}
				body, err := json.Marshal(k.keyBody)
				if err != nil {
					return err
				}
				b.Config = append(b.Config, control.ConfigRecord{Kind: catalog.KindKey, Number: k.number, Service: r.serviceNumber(k.svc), Name: k.name, Body: body})
				renewed = append(renewed, &k)
			}
			b.AddAudit(audit.ActorOf(ctx), audit.Operation{Action: "reseal", Kind: catalog.KindKey}, nil)
			if err := r.writer.Commit(&b); err != nil {
				return err
			}
			for _, k := range renewed {
				r.keyring.set(k)
			}
			n = len(renewed)
			return nil
		})
	})
	return n, err
}
