package notifybc

import (
	"context"
	"encoding/json"
	"errors"

	"fanfare.dev/fanfare/internal/compat/notifybc/query"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/people"
)

// query reads the parameters filter and where of a request.
func (x *Exchange) query() (*query.Query, error) {
	q, err := query.Parse(x.Request.URL.Query())
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		return nil, Bad(wrong.Message)
	}
	return q, err
}

// maxListed is the maximum number of records that a list holds in memory.
const maxListed = 100_000

// errTooMany refuses a list that does not fit into memory.
var errTooMany = Bad("the list has more than 100000 records: narrow where, or set limit without order")

// A lister collects the records that match a query.
type lister struct {
	q       *query.Query
	count   int              // of the records that match
	records []map[string]any // nil if only the number is wanted
	list    bool
	most    int // records that the answer can need; 0: all
}

func newLister(q *query.Query, list bool) *lister {
	l := &lister{q: q, list: list}
	if skip, limit := q.Window(); list && limit > 0 && !q.Ordered() {
		l.most = skip + limit
	}
	return l
}

// add adds a record if it matches, and reports whether more are needed.
func (l *lister) add(record Members) (more bool) {
	decoded := make(map[string]any, len(record))
	for name, raw := range record {
		var value any
		if json.Unmarshal(raw, &value) == nil {
			decoded[name] = value
		}
	}
	if !l.q.Match(decoded) {
		return l.q.Err() == nil
	}
	l.count++
	if l.list {
		l.records = append(l.records, decoded)
	}
	return l.q.Err() == nil && len(l.records) <= maxListed && (l.most == 0 || l.count < l.most)
}

// err returns the error because of which the list is not complete.
func (l *lister) err() error {
	switch {
	case l.q.Err() != nil:
		return Bad(l.q.Err().Error())
	case len(l.records) > maxListed:
		return errTooMany
	}
	return nil
}

// answer writes the page of the list that the query asks for, or the number of records.
func (l *lister) answer(x *Exchange) error {
	if err := l.err(); err != nil {
		return err
	}
	if !l.list {
		return x.JSON(map[string]any{"count": l.count})
	}
	page := l.q.Page(l.records)
	if page == nil {
		page = []map[string]any{}
	}
	return x.JSON(page)
}

func (a *API) listSubscriptions(x *Exchange) error  { return a.subscriptionsOf(x, true) }
func (a *API) countSubscriptions(x *Exchange) error { return a.subscriptionsOf(x, false) }

// subscriptionsOf lists or counts the subscriptions that a caller may see.
func (a *API) subscriptionsOf(x *Exchange, list bool) error {
	q, err := x.query()
	if err != nil {
		return err
	}
	l := newLister(q, list)
	admin := x.Caller.IsAdmin()
	visit := func(s *subscription) bool {
		if x.Caller.Role == roles.User && (s.userID() != x.Caller.SecurityID || s.state == stateDeleted) {
			return true
		}
		return l.add(s.record(admin))
	}
	if err := a.eachSelected(x.Request.Context(), q, visit); err != nil {
		return err
	}
	return l.answer(x)
}

// eachSelected visits the subscriptions that a query can match: those with its ids, or of its service, channel, address or
// state, in an order that does not change.
func (a *API) eachSelected(ctx context.Context, q *query.Query, visit func(*subscription) bool) error {
	paths := q.Paths()
	if paths.IDs != nil {
		for _, id := range without(paths.IDs) {
			s, err := a.find(ctx, id)
			if err == errMissing { //nolint:errorlint // find returns it as it is
				continue
			}
			if err != nil {
				return err
			}
			if !visit(s) {
				break
			}
		}
		return nil
	}
	f := people.SubscriptionFilter{}
	if len(paths.States) == 1 && paths.States[0] == stateConfirmed {
		f.State = people.StateActive
	}
	if len(paths.Channels) == 1 {
		if f.Channel = a.ourChannel(paths.Channels[0]); f.Channel == "" {
			return nil
		}
	}
	if len(paths.ServiceNames) == 1 {
		f.Topic = topicName(paths.ServiceNames[0])
		if _, ok := a.Topics.Topic(a.Settings.Service, f.Topic); !ok {
			return nil
		}
	}
	if paths.UserChannelIDs == nil {
		return a.each(ctx, f, visit)
	}
	more := true
	for _, address := range without(paths.UserChannelIDs) {
		f.Subscriber = address
		err := a.each(ctx, f, func(s *subscription) bool {
			more = visit(s)
			return more
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}
