package tasks

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/suppression"
)

// The names of the actions.
const (
	RetryParked        = "retry-parked"
	DropParked         = "drop-parked"
	ApproveBroadcasts  = "approve-broadcasts"
	CancelBroadcasts   = "cancel-broadcasts"
	RemoveSuppressions = "remove-suppressions"
	EndSubscriptions   = "end-subscriptions"
)

// Parking lists and releases parked work.
type Parking interface {
	Parked(ctx context.Context) ([]fanfare.Parked, error)
	RetryParked(ctx context.Context, id string) error
	DropParked(ctx context.Context, id string) error
}

// Switches approve and cancel broadcasts.
type Switches interface {
	HeldBroadcasts() []fanfare.EventRef
	Approve(ctx context.Context, event, by string) error
	Cancel(ctx context.Context, scope fanfare.Scope, reason string) error
}

// Broadcasts reads a broadcast.
type Broadcasts interface {
	Broadcast(ctx context.Context, ref fanfare.EventRef) (fanfare.Broadcast, error)
}

// People are the subscriptions and the suppressions.
type People interface {
	SubscriberPlaces(ctx context.Context, service, addressOrID string) ([]fanfare.RowID, error)
	SubscriptionPage(ctx context.Context, service string, f people.SubscriptionFilter, after fanfare.RowID, limit int) (page []people.Subscription, next fanfare.RowID, err error)
	EndSubscription(ctx context.Context, service, id, reason string) error
	Suppressions(ctx context.Context, f suppression.Filter, after *suppression.Cursor, limit int) (page []suppression.Suppression, next *suppression.Cursor, err error)
	Unsuppress(ctx context.Context, service, address string) error
}

// An action is a kind of task.
type action struct {
	scopes  catalog.Scopes // one of them is needed
	filters []string       // members of the filter that it accepts
	atOnce  int            // objects that are acted on at the same time
	// list returns at most limit objects after a position, and the position after them. It returns no position at the end.
	list func(ctx context.Context, task *record, after string, limit int) (page []object, next string, err error)
}

// An object is one of those that match a filter.
type object struct {
	position string // in the list
	name     string // for people; never an address
	private  bool   // an error about it may name a person
	do       func(ctx context.Context, by catalog.Principal) error
}

// actions returns the actions by name.
func (o *Options) actions() map[string]action {
	return map[string]action{
		RetryParked: {scopes: catalog.ScopeAdmin, atOnce: 1, list: o.parked("retry", o.Parking.RetryParked)},
		DropParked:  {scopes: catalog.ScopeAdmin, atOnce: 1, list: o.parked("drop", o.Parking.DropParked)},
		ApproveBroadcasts: {scopes: catalog.ScopeApprove, atOnce: 1, filters: []string{"topic"}, list: o.held("approve", func(ctx context.Context, task *record, by catalog.Principal, id string) error {
			return o.Switches.Approve(ctx, id, title(by))
		})},
		CancelBroadcasts: {scopes: catalog.ScopeAdmin, atOnce: 1, filters: []string{"topic"}, list: o.held("cancel", func(ctx context.Context, task *record, by catalog.Principal, id string) error {
			return o.Switches.Cancel(ctx, fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: id}, task.Reason)
		})},
		RemoveSuppressions: {scopes: catalog.ScopeSubscribe, atOnce: 8, filters: []string{"reason", "all_services"}, list: o.suppressions},
		EndSubscriptions:   {scopes: catalog.ScopeSubscribe, atOnce: 8, filters: []string{"topic", "channel", "subscriber", "state"}, list: o.subscriptions},
	}
}

// title returns the id and the name of a key, or the name of a person.
func title(by catalog.Principal) string {
	switch {
	case by.KeyID == "":
		return by.Name
	case by.Name == "":
		return by.KeyID
	}
	return by.KeyID + " (" + by.Name + ")"
}

// cut returns the objects after a position, at most limit, in the order of their positions.
func cut(all []object, after string, limit int) (page []object, next string) {
	slices.SortFunc(all, func(a, b object) int { return cmp.Compare(a.position, b.position) })
	all = slices.DeleteFunc(all, func(one object) bool { return one.position <= after })
	if len(all) > limit {
		return all[:limit], all[limit-1].position
	}
	return all, ""
}

// parked lists parked work. A task of a service sees the work of its own events only, as its key does.
func (o *Options) parked(name string, do func(ctx context.Context, id string) error) func(context.Context, *record, string, int) ([]object, string, error) {
	return func(ctx context.Context, task *record, after string, limit int) ([]object, string, error) {
		list, err := o.Parking.Parked(ctx)
		if err != nil {
			return nil, "", err
		}
		var all []object
		for _, p := range list {
			if p.At.After(task.StartedAt) {
				continue
			}
			of, err := o.serviceOf(ctx, &p)
			if err != nil {
				return nil, "", err
			}
			if task.Service != "" && of != task.Service {
				continue
			}
			all = append(all, object{position: parkedOrder(p.ID), name: p.ID, do: func(ctx context.Context, _ catalog.Principal) error {
				if err := do(ctx, p.ID); err != nil {
					return err
				}
				return o.Audit.Record(ctx, audit.Operation{Service: of, Action: name, Kind: "parked", Name: p.ID}, nil)
			}})
		}
		page, next := cut(all, after, limit)
		return page, next, nil
	}
}

// parkedOrder makes the ids prk-<day>-<hex> sort by day and number.
func parkedOrder(id string) string {
	i := strings.LastIndexByte(id, '-') + 1
	return id[:i] + strings.Repeat("0", max(0, 16-len(id[i:]))) + id[i:]
}

// serviceOf returns the service of parked work. It returns "" for work of several services, and for work that is too damaged to assign.
func (o *Options) serviceOf(ctx context.Context, p *fanfare.Parked) (string, error) {
	ref, ok := fanfare.ParseEventRef(p.Event)
	if !ok || ref.Seq == 0 || p.Shared {
		return "", nil
	}
	b, err := o.Broadcasts.Broadcast(ctx, ref)
	if fanfare.CodeOf(err) == fanfare.NotFound {
		return "", nil
	}
	return b.Service, err
}

// held lists the broadcasts that wait for approval.
func (o *Options) held(name string, do func(ctx context.Context, task *record, by catalog.Principal, id string) error) func(context.Context, *record, string, int) ([]object, string, error) {
	return func(ctx context.Context, task *record, after string, limit int) ([]object, string, error) {
		var all []object
		for _, ref := range o.Switches.HeldBroadcasts() {
			b, err := o.Broadcasts.Broadcast(ctx, ref)
			if fanfare.CodeOf(err) == fanfare.NotFound {
				continue
			}
			if err != nil {
				return nil, "", err
			}
			if task.Service != "" && b.Service != task.Service || task.Filter.Topic != "" && b.Topic != task.Filter.Topic || b.Stages.Received.After(task.StartedAt) {
				continue
			}
			all = append(all, object{position: fmt.Sprintf("%08d.%016x", ref.Day, uint64(ref.Seq)), name: b.Event, do: func(ctx context.Context, by catalog.Principal) error {
				if err := do(ctx, task, by, b.Event); err != nil {
					return err
				}
				return o.Audit.Record(ctx, audit.Operation{Service: b.Service, Action: name, Kind: string(fanfare.ScopeBroadcast), Name: b.Event}, nil)
			}})
		}
		page, next := cut(all, after, limit)
		return page, next, nil
	}
}

// suppressions lists the suppressions of a service, or those of all services, the latest first.
func (o *Options) suppressions(ctx context.Context, task *record, after string, limit int) (page []object, next string, err error) {
	from, err := parseSuppressionPosition(after)
	if err != nil {
		return nil, "", err
	}
	list, end, err := o.People.Suppressions(ctx, suppression.Filter{Service: task.Service, Reason: task.Filter.Reason}, from, limit)
	if err != nil {
		return nil, "", err
	}
	for _, s := range list {
		if s.At.After(task.StartedAt) {
			continue
		}
		page = append(page, object{name: "suppression", private: true, do: func(ctx context.Context, _ catalog.Principal) error {
			if s.Address == "" {
				return &fanfare.Error{Code: fanfare.Conflict, Message: "the address was erased, and only its hash is stored"}
			}
			return o.People.Unsuppress(ctx, task.Service, s.Address)
		}})
	}
	if end != nil {
		next = fmt.Sprintf("%x.%x.%x", end.At, end.Kind, end.Hash)
	}
	return page, next, nil
}

func parseSuppressionPosition(text string) (*suppression.Cursor, error) {
	if text == "" {
		return nil, nil
	}
	var c suppression.Cursor
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil, fmt.Errorf("damaged position %q", text)
	}
	at, err := strconv.ParseInt(parts[0], 16, 64)
	if err != nil {
		return nil, err
	}
	kind, err := strconv.ParseUint(parts[1], 16, 8)
	if err != nil {
		return nil, err
	}
	hash, err := hex.DecodeString(parts[2])
	if err != nil || len(hash) != len(c.Hash) {
		return nil, fmt.Errorf("damaged position %q", text)
	}
	c.At, c.Kind = at, uint8(kind)
	copy(c.Hash[:], hash)
	return &c, nil
}

// subscriptions lists the subscriptions that have not ended.
func (o *Options) subscriptions(ctx context.Context, task *record, after string, limit int) (page []object, next string, err error) {
	var from uint64
	if after != "" {
		if from, err = strconv.ParseUint(after, 16, 32); err != nil {
			return nil, "", err
		}
	}
	f := people.SubscriptionFilter{Topic: task.Filter.Topic, Channel: task.Filter.Channel, State: task.Filter.State, Owners: task.Owners}
	if task.Filter.Subscriber != "" && len(f.Owners) == 0 {
		return nil, "", fmt.Errorf("task %s has lost its subscriber", task.ID) // without owners, the filter would select everybody
	}
	list, end, err := o.People.SubscriptionPage(ctx, task.Service, f, fanfare.RowID(from), limit)
	if err != nil {
		return nil, "", err
	}
	for _, s := range list {
		if s.State == people.StateEnded || s.CreatedAt.After(task.StartedAt) {
			continue
		}
		page = append(page, object{position: fmt.Sprintf("%x", s.Place), name: fanfare.SubscriptionID(s.Place), private: true, do: func(ctx context.Context, _ catalog.Principal) error {
			return o.People.EndSubscription(ctx, task.Service, s.ID, task.Reason)
		}})
	}
	if end != 0 {
		next = fmt.Sprintf("%x", end)
	}
	return page, next, nil
}
