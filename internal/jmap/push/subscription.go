package push

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mailbox"
)

// Bounds of push subscriptions.
const (
	maxSubscriptions = 20 // of an account
	maxURL           = 2048
	maxDevice        = 255
	maxTypes         = 50
	lifetime         = 7 * 24 * time.Hour // the longest one
	createInterval   = time.Minute        // of an account: after a burst, one subscription each interval
	createBurst      = 20
)

// AppPassword names an app password, as core.Login does.
func AppPassword(id int64) string { return "password " + strconv.FormatInt(id, 10) }

// A subscription is a PushSubscription (RFC 8620, section 7.2). Its JSON is the body of a record.
type subscription struct {
	Credential string   `json:"credential"` // with which it was made
	Device     string   `json:"device"`
	URL        string   `json:"url"`
	Keys       *Keys    `json:"keys,omitempty"`
	Code       string   `json:"code"` // that the client must return
	Verified   bool     `json:"verified,omitempty"`
	Expires    int64    `json:"expires"`         // Unix seconds
	Ends       int64    `json:"ends,omitempty"`  // when the credential ends, 0: it does not
	Types      []string `json:"types,omitempty"` // nil: all
}

func (s *subscription) body() string {
	text, _ := json.Marshal(s) // plain values: cannot fail
	return string(text)
}

func parseSubscription(r *mailbox.Record) (*subscription, error) {
	var s subscription
	if err := json.Unmarshal([]byte(r.Body), &s); err != nil {
		return nil, fmt.Errorf("push subscription %d of account %d: %w", r.ID, r.Account, err)
	}
	return &s, nil
}

// Options are what Subscriptions need.
type Options struct {
	Store  *mailbox.Store
	Client *http.Client // sends to the URLs of clients; it must not follow redirects, and not connect to private addresses
	Clock  clock.Clock
	Logger *slog.Logger
}

// Subscriptions send the changes of accounts to the URLs of clients. They are safe for concurrent use.
type Subscriptions struct {
	o Options

	mu      sync.Mutex
	full    map[mailbox.AccountID]time.Time // when an account may make a whole burst again
	pending []func(context.Context)         // verifications to send
	changed chan struct{}                   // has an element when Run must look at the records
}

// NewSubscriptions returns Subscriptions. Run sends.
func NewSubscriptions(o Options) *Subscriptions {
	return &Subscriptions{o: o, full: map[mailbox.AccountID]time.Time{}, changed: make(chan struct{}, 1)}
}

// Table returns the methods by their names.
func (s *Subscriptions) Table() map[string]core.Method {
	return map[string]core.Method{"PushSubscription/get": core.On(core.Capability, s.get), "PushSubscription/set": core.On(core.Capability, s.set)}
}

var properties = []string{"id", "deviceClientId", "verificationCode", "expires", "types"}

const idPrefix = "P"

func idOf(id mailbox.RecordID) core.ID { return core.ID(idPrefix + strconv.FormatInt(int64(id), 10)) }

// mine returns the subscriptions that the credential of a call has made, with their records.
func (s *Subscriptions) mine(ctx context.Context, c *core.Call) (account mailbox.AccountID, list []*subscription, records []mailbox.Record, err error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(string(c.Account), "a"), 10, 32)
	if err != nil {
		return 0, nil, nil, core.Fail(core.AccountNotFound, "")
	}
	account = mailbox.AccountID(n)
	all, _, err := s.o.Store.Records(ctx, account, mailbox.SubscriptionRecord)
	if err != nil {
		return account, nil, nil, err
	}
	for i := range all {
		one, err := parseSubscription(&all[i])
		if err != nil {
			return account, nil, nil, err
		}
		if one.Credential == c.Login().Credential && s.o.Clock.Now().Unix() < one.Expires {
			list, records = append(list, one), append(records, all[i])
		}
	}
	return account, list, records, nil
}

type getArguments struct {
	IDs        *[]core.ID `json:"ids"`
	Properties *[]string  `json:"properties"`
}

// get is PushSubscription/get (section 7.2.1). The URL and the keys are never returned.
func (s *Subscriptions) get(ctx context.Context, c *core.Call, a *getArguments) (any, error) {
	if a.Properties != nil && (slices.Contains(*a.Properties, "url") || slices.Contains(*a.Properties, "keys")) {
		return nil, core.Fail(core.Forbidden, "the properties url and keys cannot be read")
	}
	arguments := core.GetArguments{IDs: a.IDs, Properties: a.Properties}
	if err := arguments.Check(c, properties); err != nil {
		return nil, err
	}
	_, list, records, err := s.mine(ctx, c)
	if err != nil {
		return nil, err
	}
	found, missing := []any{}, []core.ID{}
	object := func(i int) map[string]any {
		one := list[i]
		record := map[string]any{"id": idOf(records[i].ID), "deviceClientId": one.Device, "verificationCode": nil, "expires": core.UTC(time.Unix(one.Expires, 0)), "types": nil}
		if one.Verified {
			record["verificationCode"] = one.Code
		}
		if one.Types != nil {
			record["types"] = one.Types
		}
		return arguments.Pick(record)
	}
	if arguments.IDs == nil {
		for i := range list {
			found = append(found, object(i))
		}
		return map[string]any{"list": found, "notFound": missing}, nil
	}
	for _, id := range *arguments.IDs {
		if at := slices.IndexFunc(records, func(r mailbox.Record) bool { return idOf(r.ID) == id }); at >= 0 {
			found = append(found, object(at))
		} else {
			missing = append(missing, id)
		}
	}
	return map[string]any{"list": found, "notFound": missing}, nil
}

type setArguments struct {
	Create  core.Object `json:"create"`
	Update  core.Object `json:"update"`
	Destroy []core.ID   `json:"destroy"`
}

// set is PushSubscription/set (section 7.2.2).
func (s *Subscriptions) set(ctx context.Context, c *core.Call, a *setArguments) (any, error) {
	arguments := core.SetArguments{Create: a.Create, Update: a.Update, Destroy: a.Destroy}
	if err := arguments.Check(c); err != nil {
		return nil, err
	}
	account, _, records, err := s.mine(ctx, c)
	if err != nil {
		return nil, err
	}
	r := &core.SetResult{}
	fail := func(err error, refuse func(*core.SetError)) error {
		failed, ok := errors.AsType[*core.SetError](err)
		switch {
		case ok:
		case errors.Is(err, mailbox.ErrNoRecord):
			failed = &core.SetError{Type: core.SetNotFound}
		case errors.Is(err, mailbox.ErrTooMany):
			failed = &core.SetError{Type: core.SetOverQuota, Description: err.Error()}
		default:
			return err
		}
		refuse(failed)
		return nil
	}
	for _, member := range a.Create {
		made, err := s.create(ctx, c, account, member.Value)
		if err == nil {
			c.Created(member.Name, made["id"].(core.ID))
			r.DidCreate(member.Name, made)
		} else if err := fail(err, func(e *core.SetError) { r.DidNotCreate(member.Name, e) }); err != nil {
			return nil, err
		}
	}
	number := func(name core.ID) mailbox.RecordID {
		resolved, _ := c.Resolve(name)
		for i := range records {
			if idOf(records[i].ID) == resolved {
				return records[i].ID
			}
		}
		return 0 // nobody has it
	}
	for _, member := range a.Update {
		name := core.ID(member.Name)
		changed, err := s.update(ctx, c, account, number(name), member.Value)
		if err == nil {
			r.DidUpdate(name, changed)
		} else if err := fail(err, func(e *core.SetError) { r.DidNotUpdate(name, e) }); err != nil {
			return nil, err
		}
	}
	for _, name := range a.Destroy {
		err := s.o.Store.RemoveRecord(ctx, account, mailbox.SubscriptionRecord, number(name))
		if err == nil {
			r.Destroyed = append(r.Destroyed, name)
		} else if err := fail(err, func(e *core.SetError) { r.DidNotDestroy(name, e) }); err != nil {
			return nil, err
		}
	}
	s.wake()
	return map[string]any{"created": r.Created, "updated": r.Updated, "destroyed": r.Destroyed, "notCreated": r.NotCreated, "notUpdated": r.NotUpdated, "notDestroyed": r.NotDestroyed}, nil
}

func (s *Subscriptions) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// newSubscription has the properties that a client may set.
type newSubscription struct {
	Device  string        `json:"deviceClientId"`
	URL     string        `json:"url"`
	Keys    *Keys         `json:"keys"`
	Code    *string       `json:"verificationCode"`
	Expires *core.UTCDate `json:"expires"`
	Types   *[]string     `json:"types"`
}

// take limits how many subscriptions an account makes: each makes the server send a request to a URL of the client.
func (s *Subscriptions) take(id mailbox.AccountID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Clock.Now()
	full := s.full[id]
	if full.Before(now) {
		full = now
	}
	if full = full.Add(createInterval); full.Sub(now) > createBurst*createInterval {
		return &core.SetError{Type: core.SetRateLimit, Description: "the account makes too many push subscriptions; try again later"}
	}
	if len(s.full) > 10_000 {
		clear(s.full)
	}
	s.full[id] = full
	return nil
}

func (s *Subscriptions) create(ctx context.Context, c *core.Call, account mailbox.AccountID, text json.RawMessage) (map[string]any, error) {
	object, err := core.ParseObject(text)
	if err != nil {
		return nil, core.Invalid("the subscription cannot be read")
	}
	var record newSubscription
	if failed := core.DecodeProperties(object, &record); failed != nil {
		return nil, failed
	}
	to, err := url.Parse(record.URL)
	switch {
	case err != nil || to.Scheme != "https" || to.Host == "" || to.User != nil || to.Fragment != "" || len(record.URL) > maxURL:
		return nil, core.Invalid("url must be a URL that begins with https:// and has no password and no fragment", "url")
	case record.Device == "" || len(record.Device) > maxDevice:
		return nil, core.Invalid(fmt.Sprintf("deviceClientId must have 1 to %d bytes", maxDevice), "deviceClientId")
	case record.Code != nil:
		return nil, core.Invalid("verificationCode must be null at first", "verificationCode")
	}
	if record.Keys != nil {
		if _, _, err := record.Keys.parse(); err != nil {
			return nil, core.Invalid("keys: "+err.Error(), "keys")
		}
	}
	made := &subscription{Credential: c.Login().Credential, Device: record.Device, URL: record.URL, Keys: record.Keys, Code: rand.Text()}
	if until := c.Login().Until; !until.IsZero() {
		made.Ends = until.Unix()
	}
	s.expire(made, record.Expires)
	if failed := made.setTypes(record.Types); failed != nil {
		return nil, failed
	}
	if err := s.take(account); err != nil {
		return nil, err
	}
	stored, err := s.o.Store.AddRecord(ctx, account, mailbox.SubscriptionRecord, true, made.body(), maxSubscriptions)
	if err != nil {
		return nil, err
	}
	s.verify(stored.ID, made)
	return map[string]any{"id": idOf(stored.ID), "keys": record.Keys, "expires": core.UTC(time.Unix(made.Expires, 0))}, nil
}

// expire sets the time at which a subscription ends: the one that the client wants, or the longest one.
func (s *Subscriptions) expire(one *subscription, wanted *core.UTCDate) {
	one.Expires = s.o.Clock.Now().Add(lifetime).Unix()
	if wanted != nil {
		one.Expires = min(one.Expires, wanted.Unix())
	}
	if one.Ends != 0 {
		one.Expires = min(one.Expires, one.Ends)
	}
}

func (s *subscription) setTypes(types *[]string) *core.SetError {
	if s.Types = nil; types == nil {
		return nil
	}
	if len(*types) > maxTypes || slices.ContainsFunc(*types, func(t string) bool { return len(t) > maxDevice }) {
		return core.Invalid(fmt.Sprintf("types must have at most %d names", maxTypes), "types")
	}
	s.Types = append([]string{}, *types...)
	return nil
}

// update changes the code, the expiry or the types.
func (s *Subscriptions) update(ctx context.Context, c *core.Call, account mailbox.AccountID, id mailbox.RecordID, text json.RawMessage) (changed map[string]any, err error) {
	patch, err := core.ParseObject(text)
	if err != nil {
		return nil, &core.SetError{Type: core.SetInvalidPatch, Description: "the patch cannot be read"}
	}
	for _, m := range patch {
		if !slices.Contains([]string{"verificationCode", "expires", "types"}, m.Name) {
			return nil, core.Invalid(fmt.Sprintf("%.80s cannot be changed", m.Name), m.Name)
		}
	}
	var record newSubscription
	if failed := core.DecodeProperties(patch, &record); failed != nil {
		return nil, failed
	}
	_, err = s.o.Store.EditRecord(ctx, account, mailbox.SubscriptionRecord, id, func(r *mailbox.Record) error {
		one, err := parseSubscription(r)
		if err != nil {
			return err
		}
		if one.Credential != c.Login().Credential {
			return &core.SetError{Type: core.SetNotFound}
		}
		changed = nil
		if _, has := patch.Get("verificationCode"); has {
			if record.Code == nil || subtle.ConstantTimeCompare([]byte(*record.Code), []byte(one.Code)) != 1 {
				return core.Invalid("verificationCode is not the code that was pushed", "verificationCode")
			}
			one.Verified = true
		}
		if _, has := patch.Get("expires"); has {
			s.expire(one, record.Expires)
			if record.Expires == nil || record.Expires.Unix() != one.Expires {
				changed = map[string]any{"expires": core.UTC(time.Unix(one.Expires, 0))}
			}
		}
		if _, has := patch.Get("types"); has {
			if failed := one.setTypes(record.Types); failed != nil {
				return failed
			}
		}
		r.Body = one.body()
		return nil
	})
	return changed, err
}

// valid reports whether a subscription may still be used: it has not expired, and the app password exists.
func (s *Subscriptions) valid(ctx context.Context, account mailbox.AccountID, one *subscription) (bool, error) {
	if s.o.Clock.Now().Unix() >= one.Expires {
		return false, nil
	}
	of, err := s.o.Store.Account(ctx, account)
	if err != nil {
		return false, err
	}
	if of.Disabled {
		return false, nil
	}
	if !strings.HasPrefix(one.Credential, "password ") {
		return true, nil // a token, which ends before the subscription
	}
	list, err := s.o.Store.Credentials(ctx, account)
	return slices.ContainsFunc(list, func(c mailbox.Credential) bool { return AppPassword(c.ID) == one.Credential }), err
}

// isGone reports whether an error means that the record is removed.
func isGone(err error) bool {
	return errors.Is(err, mailbox.ErrNoRecord) || errors.Is(err, mailbox.ErrNoAccount) || fanfare.CodeOf(err) == fanfare.NotFound
}
