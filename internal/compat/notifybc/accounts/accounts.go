package accounts

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/compat/notifybc/resource"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/signin/guesslimit"
	"fanfare.dev/fanfare/internal/store/control"
)

// The kinds of records.
const (
	KindAdministrator = "administrator"
	KindCredential    = "credential"
	KindToken         = "token"
)

// Limits of accounts.
const (
	maxAdministrators = 10_000
	maxTokens         = 1000 // of one administrator
	maxNameBytes      = 255
	maxTTLSeconds     = 100 * 365 * 24 * 3600
)

// Accounts are the administrators of one service. They are safe for concurrent use.
type Accounts struct {
	administrators, credentials, tokens resource.Collection

	clock   clock.Clock
	log     *slog.Logger
	hasher  hasher
	guesses *guesslimit.Limit
	editing sync.Mutex // held while an administrator is checked and stored
}

// New returns the accounts of a service.
func New(records resource.Records, service string, c clock.Clock, log *slog.Logger) *Accounts {
	of := func(kind string) resource.Collection {
		return resource.Collection{Records: records, Service: service, Kind: kind, Clock: c}
	}
	return &Accounts{administrators: of(KindAdministrator), credentials: of(KindCredential), tokens: of(KindToken), clock: c, log: log, hasher: newHasher(), guesses: guesslimit.New()}
}

// Routes returns the routes of administrators, whoami and login.
func (a *Accounts) Routes() []resource.Route {
	notAdmins := func(c *roles.Caller) bool { return !c.IsAdmin() }
	const one = "/administrators/{id}"
	return []resource.Route{
		{Method: "GET", Path: "/administrators/whoami", Who: resource.Everyone, Handle: whoAmI},
		{Method: "POST", Path: "/administrators/login", Who: notAdmins, Handle: a.login},
		{Method: "POST", Path: "/administrators", Who: resource.SuperAdmins, Handle: a.create},
		{Method: "GET", Path: "/administrators", Who: resource.Admins, Handle: func(r *resource.Request) (resource.Answer, error) {
			return a.administrators.List(r, visibleTo(&r.Caller))
		}},
		{Method: "GET", Path: "/administrators/count", Who: resource.Admins, Handle: func(r *resource.Request) (resource.Answer, error) {
			return a.administrators.Count(r, visibleTo(&r.Caller))
		}},
		{Method: "GET", Path: one, Who: resource.Admins, Handle: a.get},
		{Method: "PUT", Path: one, Who: resource.Admins, Handle: func(r *resource.Request) (resource.Answer, error) { return a.change(r, true) }},
		{Method: "PATCH", Path: one, Who: resource.Admins, Handle: func(r *resource.Request) (resource.Answer, error) { return a.change(r, false) }},
		{Method: "DELETE", Path: one, Who: resource.Admins, Handle: a.delete},
		{Method: "POST", Path: one + "/user-credential", Who: resource.Admins, Handle: a.setPassword},
		{Method: "POST", Path: one + "/access-tokens", Who: resource.Admins, Handle: a.createToken},
		{Method: "GET", Path: one + "/access-tokens", Who: resource.Admins, Handle: a.listTokens},
		{Method: "PATCH", Path: one + "/access-tokens", Who: resource.Admins, Handle: a.patchTokens},
		{Method: "DELETE", Path: one + "/access-tokens", Who: resource.Admins, Handle: a.deleteTokens},
	}
}

func whoAmI(r *resource.Request) (resource.Answer, error) { return resource.OK(r.Caller) }

// visibleTo accepts the administrators that a caller may see: with a token, only oneself.
func visibleTo(c *roles.Caller) func(resource.Record) bool {
	return func(r resource.Record) bool { return !c.HoldsToken() || r["id"] == c.SecurityID }
}

// administrator returns the administrator in the path, if the caller may see it.
func (a *Accounts) administrator(r *resource.Request) (resource.Record, error) {
	id := r.PathValue("id")
	if r.Caller.HoldsToken() && id != r.Caller.SecurityID {
		return nil, resource.Refused()
	}
	return a.administrators.Require(r.Context(), id)
}

func (a *Accounts) get(r *resource.Request) (resource.Answer, error) {
	found, err := a.administrator(r)
	if err != nil {
		return resource.Answer{}, err
	}
	return resource.OK(found)
}

// fields returns the known members of a body.
func fields(body resource.Record) (resource.Record, error) {
	email, err := resource.Text(body, "email", true, maxNameBytes)
	if err != nil {
		return nil, err
	}
	if _, err := address.Parse(email); err != nil {
		return nil, resource.Bad("email is not a mail address")
	}
	username, err := resource.Text(body, "username", false, maxNameBytes)
	known := resource.Record{"email": email}
	if username != "" {
		known["username"] = username
	}
	return known, err
}

// passwordOf returns the password in a body; "" if there is none and it is not required.
func passwordOf(body resource.Record, required bool) (string, error) {
	v, ok := body["password"]
	if !ok && !required {
		return "", nil
	}
	password, isText := v.(string)
	if !isText || !isStrong(password) {
		return "", resource.Bad("password must match pattern: at least 10 characters with upper and lower case, a digit and one of !_@#&$*")
	}
	return password, nil
}

// checkEmail refuses an address that another administrator has.
func (a *Accounts) checkEmail(ctx context.Context, email, id string) error {
	taken, n := false, 0
	err := a.administrators.Each(ctx, func(r resource.Record) bool {
		other, _ := r["email"].(string)
		n++
		taken = strings.EqualFold(other, email) && r["id"] != id
		return !taken
	})
	switch {
	case err != nil:
		return err
	case taken:
		return resource.Bad("an administrator with this email exists already")
	case n >= maxAdministrators && id == "":
		return resource.Bad("there are too many administrators")
	}
	return nil
}

func (a *Accounts) create(r *resource.Request) (resource.Answer, error) {
	body, err := r.Body()
	if err != nil {
		return resource.Answer{}, err
	}
	known, err := fields(body)
	if err != nil {
		return resource.Answer{}, err
	}
	password, err := passwordOf(body, true)
	if err != nil {
		return resource.Answer{}, err
	}
	hash, err := a.hasher.hash(r.Context(), password)
	if err != nil {
		return resource.Answer{}, err
	}
	a.editing.Lock()
	defer a.editing.Unlock()
	if err := a.checkEmail(r.Context(), known["email"].(string), ""); err != nil {
		return resource.Answer{}, err
	}
	created := a.administrators.New(known, &r.Caller)
	if err := a.store(r.Context(), created, hash, &r.Caller); err != nil {
		return resource.Answer{}, err
	}
	return resource.OK(created)
}

// store stores an administrator, and a password if its hash is not empty, in one transaction.
func (a *Accounts) store(ctx context.Context, administrator resource.Record, hash string, by *roles.Caller) error {
	stored, err := a.administrators.Encode(administrator)
	if err != nil {
		return err
	}
	put := []control.NotifyBCRecord{stored}
	if hash != "" {
		credential := a.credentials.New(resource.Record{"hash": hash}, by)
		credential["id"] = administrator["id"]
		if stored, err = a.credentials.Encode(credential); err != nil {
			return err
		}
		put = append(put, stored)
	}
	return a.administrators.ChangeNotifyBCRecords(ctx, put)
}

func (a *Accounts) change(r *resource.Request, replace bool) (resource.Answer, error) {
	body, err := r.Body()
	if err != nil {
		return resource.Answer{}, err
	}
	password, err := passwordOf(body, false)
	if err != nil {
		return resource.Answer{}, err
	}
	hash := ""
	if password != "" {
		if hash, err = a.hasher.hash(r.Context(), password); err != nil {
			return resource.Answer{}, err
		}
	}
	a.editing.Lock()
	defer a.editing.Unlock()
	old, err := a.administrator(r)
	if err != nil {
		return resource.Answer{}, err
	}
	given := resource.Record{}
	for _, name := range []string{"email", "username"} {
		if v, ok := body[name]; ok {
			given[name] = v
		} else if v, ok := old[name]; ok && !replace {
			given[name] = v
		}
	}
	known, err := fields(given)
	if err != nil {
		return resource.Answer{}, err
	}
	if err := a.checkEmail(r.Context(), known["email"].(string), r.PathValue("id")); err != nil {
		return resource.Answer{}, err
	}
	changed := resource.Replaced(old, known)
	a.administrators.Touch(changed, &r.Caller)
	if err := a.store(r.Context(), changed, hash, &r.Caller); err != nil {
		return resource.Answer{}, err
	}
	return resource.Done()
}

func (a *Accounts) delete(r *resource.Request) (resource.Answer, error) {
	a.editing.Lock()
	defer a.editing.Unlock()
	if _, err := a.administrator(r); err != nil {
		return resource.Answer{}, err
	}
	id := r.PathValue("id")
	keys := []control.NotifyBCKey{a.administrators.Key(id), a.credentials.Key(id)}
	err := a.tokens.Each(r.Context(), func(token resource.Record) bool {
		if token["userId"] == id {
			keys = append(keys, a.tokens.Key(token["id"].(string)))
		}
		return true
	})
	if err == nil {
		err = a.tokens.ChangeNotifyBCRecords(r.Context(), nil, keys...)
	}
	if err != nil {
		return resource.Answer{}, err
	}
	return resource.Done()
}

func (a *Accounts) setPassword(r *resource.Request) (resource.Answer, error) {
	body, err := r.Body()
	if err != nil {
		return resource.Answer{}, err
	}
	password, err := passwordOf(body, true)
	if err != nil {
		return resource.Answer{}, err
	}
	administrator, err := a.administrator(r)
	if err != nil {
		return resource.Answer{}, err
	}
	hash, err := a.hasher.hash(r.Context(), password)
	if err != nil {
		return resource.Answer{}, err
	}
	credential := a.credentials.New(resource.Record{"hash": hash}, &r.Caller)
	credential["id"] = administrator["id"]
	if err := a.credentials.Put(r.Context(), credential); err != nil {
		return resource.Answer{}, err
	}
	delete(credential, "hash") // nobody needs it
	credential["userId"] = administrator["id"]
	return resource.OK(credential)
}

// errLogin is the answer to a wrong address or password.
var errLogin = &roles.Refusal{Status: http.StatusUnauthorized, Message: "Invalid email or password."}

func (a *Accounts) login(r *resource.Request) (resource.Answer, error) {
	body, err := r.Body()
	if err != nil {
		return resource.Answer{}, err
	}
	email, err := resource.Text(body, "email", true, maxNameBytes)
	if err != nil {
		return resource.Answer{}, err
	}
	password, isText := body["password"].(string)
	if !isText {
		return resource.Answer{}, resource.Bad("password is required")
	}
	user, now := strings.ToLower(email), a.clock.Now()
	if err := a.guesses.Permit(now, r.Client, user); err != nil {
		message := "too many wrong logins: try again later"
		if e, ok := errors.AsType[*fanfare.Error](err); ok {
			message = e.Message + ": try again later"
		}
		return resource.Answer{}, &roles.Refusal{Status: http.StatusTooManyRequests, Message: message}
	}
	id, hash := "", ""
	err = a.administrators.Each(r.Context(), func(one resource.Record) bool {
		if other, _ := one["email"].(string); strings.EqualFold(other, email) {
			id, _ = one["id"].(string)
		}
		return id == ""
	})
	if err != nil {
		return resource.Answer{}, err
	}
	if id != "" {
		credential, err := a.credentials.Get(r.Context(), id)
		if err != nil {
			return resource.Answer{}, err
		}
		hash, _ = credential["hash"].(string)
	}
	ok, err := a.hasher.matches(r.Context(), password, hash)
	if err != nil {
		return resource.Answer{}, err
	}
	if !ok {
		a.guesses.Wrong(now, r.Client, user)
		return resource.Answer{}, errLogin
	}
	a.guesses.Right(now, r.Client, user)
	token, _, err := a.issue(r, id, resource.Record{"name": body["tokenName"], "ttl": body["ttl"]}, &roles.Caller{SecurityID: id, Strategy: "accessToken", Role: roles.Admin})
	if err != nil {
		return resource.Answer{}, err
	}
	return resource.OK(map[string]any{"token": token})
}

// Holder returns the administrator of an access token; "" if it is unknown or expired.
func (a *Accounts) Holder(ctx context.Context, token string) (string, error) {
	found, err := a.tokens.Get(ctx, TokenID(token))
	if err != nil || found == nil || a.expired(found) {
		return "", err
	}
	id, _ := found["userId"].(string)
	return id, nil
}

// expired reports whether a token has reached the end of its time to live.
func (a *Accounts) expired(token resource.Record) bool {
	ttl, ok := token["ttl"].(float64)
	if !ok {
		return false
	}
	text, _ := token["created"].(string)
	created, err := time.Parse(time.RFC3339Nano, text)
	return err != nil || a.clock.Now().Sub(created).Seconds() >= ttl
}
