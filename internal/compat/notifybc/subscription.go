package notifybc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/compat/notifybc/codes"
	"fanfare.dev/fanfare/internal/compat/notifybc/jsonobject"
	"fanfare.dev/fanfare/internal/people"
)

// The states of a subscription of NotifyBC.
const (
	stateUnconfirmed = "unconfirmed"
	stateConfirmed   = "confirmed"
	stateDeleted     = "deleted"
)

// A subscription is a subscription of NotifyBC. A confirmed one is an active subscription. The others are paused
// subscriptions whose data has the state, so that nothing is sent to them and that their members, their codes and their
// ids stay; a subscription that was ended by other means reads as deleted.
type subscription struct {
	id          string
	serviceName string
	channel     string
	address     string // userChannelId as it was sent
	state       string
	members     Members // all others

	was *people.Subscription // as it is stored; nil if it is new
}

// ownMembers are the members of a subscription that are not among its members.
var ownMembers = []string{"id", "serviceName", "channel", "userChannelId", "state"}

// fixedMembers are the members that a change does not touch.
var fixedMembers = []string{"created", "createdBy", "updated", "updatedBy"}

// newID returns the id of a new record: the time in seconds and 64 random bits, in hexadecimal.
func newID(at time.Time) string {
	var id [12]byte
	binary.BigEndian.PutUint32(id[:], uint32(at.Unix())) // until 2106
	_, _ = rand.Read(id[4:])                             // does not fail
	return hex.EncodeToString(id[:])
}

// put returns the subscription as a put. It fails if the stored one has changed since it was read.
func (a *API) put(ctx context.Context, s *subscription) (people.SubscriptionPut, error) {
	channel := a.ourChannel(s.channel)
	if channel == "" {
		return people.SubscriptionPut{}, Bad("channel " + quote(s.channel) + " is not available")
	}
	topic, err := a.ensureTopic(ctx, s.serviceName)
	if err != nil {
		return people.SubscriptionPut{}, err
	}
	data := maps.Clone(s.members)
	data.set("userChannelId", s.address)
	p := people.SubscriptionPut{ID: s.id, Topic: topic, Channel: channel, To: s.address, State: people.StateActive}
	if s.state != stateConfirmed {
		p.State = people.StatePaused
		data.set("state", s.state)
	}
	filter, err := s.members.text("broadcastPushNotificationFilter")
	if err != nil {
		return p, Bad("broadcastPushNotificationFilter")
	}
	if filter != "" {
		p.Filter = "jmespath(event, " + literal(filter) + ")"
	}
	p.Data = data.encoded()
	if was := s.was; was != nil {
		p.Check = func(is *people.Subscription) error {
			switch {
			case is == nil && was.State == people.StateEnded, is != nil && is.State == was.State && string(is.Data) == string(was.Data):
				return nil
			}
			return errChanged
		}
	}
	return p, nil
}

// errChanged tells that a subscription has changed since it was read.
var errChanged = &fanfare.Error{Code: fanfare.Conflict, Message: "the subscription has just been changed", Hint: "try again"}

// literal returns a text as a literal of the condition language.
func literal(text string) string {
	m := Members{}
	m.set("", text)
	return string(m[""])
}

// quote quotes a text for a message.
func quote(text string) string { return literal(text[:min(len(text), 100)]) }

// store stores subscriptions, all in one transaction if they are valid.
func (a *API) store(ctx context.Context, list ...*subscription) error {
	puts := make([]people.SubscriptionPut, len(list))
	for i, s := range list {
		var err error
		if puts[i], err = a.put(ctx, s); err != nil {
			return err
		}
	}
	results := make([]people.PutResult, len(puts))
	if err := a.Subscriptions.PutSubscriptions(ctx, a.Settings.Service, puts, results); err != nil {
		return err
	}
	for i := range results {
		if err := results[i].Err; err != nil {
			if e, ok := err.(*fanfare.Error); ok && e.Code == fanfare.Invalid && strings.HasPrefix(e.Pointer, "/filter") { //nolint:errorlint // errors of results are not wrapped
				return Bad("broadcastPushNotificationFilter")
			}
			return err
		}
	}
	return nil
}

// change reads the subscription with an id, changes it, and stores it, again if it has just been changed by somebody else.
// A nil result of edit stores nothing.
func (a *API) change(ctx context.Context, id string, edit func(*subscription) ([]*subscription, error)) (*subscription, error) {
	for try := 0; ; try++ {
		s, err := a.find(ctx, id)
		if err != nil {
			return nil, err
		}
		list, err := edit(s)
		if err != nil || list == nil {
			return s, err
		}
		if err = a.store(ctx, list...); err != errChanged || try == maxTries { //nolint:errorlint // errors of results are not wrapped
			return s, err
		}
	}
}

const maxTries = 5

// find returns the subscription with an id.
func (a *API) find(ctx context.Context, id string) (*subscription, error) {
	if id == "" || people.CheckID(id) != nil && !strings.HasPrefix(id, "sub-") {
		return nil, errMissing
	}
	found, err := a.Subscriptions.Subscription(ctx, a.Settings.Service, id)
	switch {
	case err != nil && fanfare.CodeOf(err) == fanfare.NotFound:
		return nil, errMissing
	case err != nil:
		return nil, err
	}
	return a.subscription(&found), nil
}

// subscription converts a stored subscription.
func (a *API) subscription(of *people.Subscription) *subscription {
	s := &subscription{id: of.ID, serviceName: of.Topic, channel: a.theirChannel(of.Channel), address: of.To, members: Members{}, was: of}
	if topic, ok := a.Topics.Topic(a.Settings.Service, of.Topic); ok {
		s.serviceName = serviceNameOf(topic)
	}
	if len(of.Data) > 0 {
		_ = json.Unmarshal(of.Data, &s.members) // the registry stores objects only
	}
	if spelled, _ := s.members.text("userChannelId"); strings.EqualFold(spelled, of.To) {
		s.address = spelled
	}
	switch state, _ := s.members.text("state"); {
	case of.State == people.StateActive:
		s.state = stateConfirmed
	case of.State == people.StateEnded, state == stateDeleted:
		s.state = stateDeleted
	default:
		s.state = stateUnconfirmed
	}
	for _, name := range ownMembers {
		delete(s.members, name)
	}
	if _, ok := s.members["created"]; !ok {
		s.members.set("created", of.CreatedAt.UTC().Format(timeFormat))
	}
	return s
}

// secretMembers are shown to administrators only.
var secretMembers = []string{"confirmationRequest", "unsubscriptionCode", "createdBy", "updatedBy"}

// record returns the subscription as clients see it.
func (s *subscription) record(admin bool) Members {
	r := maps.Clone(s.members)
	r.set("id", s.id)
	r.set("serviceName", s.serviceName)
	r.set("channel", s.channel)
	r.set("userChannelId", s.address)
	r.set("state", s.state)
	if !admin {
		for _, name := range secretMembers {
			delete(r, name)
		}
	}
	return r
}

// code returns the code with which the subscription can be ended, or "".
func (s *subscription) code() string {
	code, _ := s.members.text("unsubscriptionCode")
	return code
}

// userID returns the id of the user who created the subscription, or "".
func (s *subscription) userID() string {
	id, _ := s.members.text("userId")
	return id
}

// confirmation returns the members of confirmationRequest; none without one.
func (s *subscription) confirmation() Members {
	if !s.members.isObject("confirmationRequest") {
		return Members{}
	}
	m, err := jsonobject.Split(s.members["confirmationRequest"])
	if err != nil {
		return Members{}
	}
	return m
}

// sameText compares two secrets in constant time.
func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// newCode returns a code that matches an expression.
func (a *API) newCode(pattern string) (string, error) {
	if known, ok := a.patterns.Load(pattern); ok {
		return known.(*codes.Pattern).New()
	}
	p, err := codes.Parse(pattern)
	if err != nil {
		return "", Bad("the regular expression of the code is not valid: " + err.Error())
	}
	if a.patternCount.Add(1) <= maxPatterns {
		a.patterns.Store(pattern, p)
	}
	return p.New()
}

// maxPatterns is the number of expressions that stay compiled.
const maxPatterns = 1000

// each visits the subscriptions that a filter selects, the current one for each id, until visit returns false. Subscriber is
// an address in any spelling.
func (a *API) each(ctx context.Context, f people.SubscriptionFilter, visit func(*subscription) bool) error {
	if f.Subscriber != "" {
		owners, err := a.Subscriptions.AddressPlaces(ctx, a.Settings.Service, f.Subscriber)
		if err != nil || len(owners) == 0 {
			return err
		}
		f.Subscriber, f.Owners = "", owners
	}
	for after := fanfare.RowID(0); ; {
		page, next, err := a.Subscriptions.SubscriptionPage(ctx, a.Settings.Service, f, after, pageSize)
		if err != nil {
			if fanfare.CodeOf(err) == fanfare.NotFound {
				return nil
			}
			return err
		}
		for i := range page {
			one := &page[i]
			if one.State == people.StateEnded && !strings.HasPrefix(one.ID, "sub-") {
				now, err := a.Subscriptions.Subscription(ctx, a.Settings.Service, one.ID)
				if err == nil && now.Place != one.Place {
					continue // it was replaced
				}
			}
			if !visit(a.subscription(one)) {
				return nil
			}
		}
		if next == 0 {
			return nil
		}
		after = next
	}
}

// pageSize is the number of subscriptions that are read together.
const pageSize = 1000

// without returns a list without its repeated members, in the same order.
func without(list []string) []string {
	var once []string
	for _, one := range list {
		if !slices.Contains(once, one) {
			once = append(once, one)
		}
	}
	return once
}
