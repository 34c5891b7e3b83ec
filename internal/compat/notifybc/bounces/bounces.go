package bounces

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/compat/notifybc/resource"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/store/control"
)

// The kinds of records: bounces, and those that lead from an address to its bounce.
const (
	Kind        = "bounce"
	KindAddress = "bounce-address"
)

// Limits of a record.
const (
	maxMessages     = 20
	maxMessageBytes = 1000
	maxAddressBytes = 512
)

// Bounces are those of one service. They are safe for concurrent use.
type Bounces struct {
	resource.Collection
	addresses resource.Collection
	editing   sync.Mutex // held while a record is read, changed and stored
}

// New returns the bounces of a service.
func New(records resource.Records, service string, c clock.Clock) *Bounces {
	return &Bounces{Collection: resource.Collection{Records: records, Service: service, Kind: Kind, Clock: c},
		addresses: resource.Collection{Records: records, Service: service, Kind: KindAddress, Clock: c}}
}

// AddressID returns the id of the record that leads from an address to its bounce.
func AddressID(channel, address string) string {
	hash := sha256.Sum256([]byte(channel + "\x00" + strings.ToLower(address)))
	return hex.EncodeToString(hash[:])
}

// Count counts a bounce of an address, and returns how many there are since the record of the address began. It is idempotent: a bounce
// with an id that has been counted is not counted again. If Close has closed the record in the meantime, the next bounce begins another one.
func (b *Bounces) Count(ctx context.Context, channel, address, message, id string, at time.Time) (count int, err error) {
	if len(message) > maxMessageBytes {
		message = strings.ToValidUTF8(message[:maxMessageBytes], "")
	}
	b.editing.Lock()
	defer b.editing.Unlock()
	record, err := b.ofAddress(ctx, channel, address)
	if err != nil {
		return 0, err
	}
	if messages, _ := record["bounceMessages"].([]any); slices.ContainsFunc(messages, func(one any) bool {
		m, _ := one.(map[string]any)
		return m["id"] == id
	}) {
		if record["state"] == "deleted" {
			return 0, nil
		}
		known, _ := record["hardBounceCount"].(float64)
		return int(known), nil
	}
	system := &roles.Caller{Role: roles.SuperAdmin}
	if record == nil || record["state"] == "deleted" {
		record = b.New(resource.Record{"channel": channel, "userChannelId": address, "hardBounceCount": 0.0, "state": "active", "bounceMessages": []any{}, "latestNotificationStarted": nil}, system)
	}
	messages, _ := record["bounceMessages"].([]any)
	before, _ := record["hardBounceCount"].(float64)
	record["hardBounceCount"] = before + 1
	record["bounceMessages"] = append([]any{map[string]any{"date": resource.Time(at), "message": message, "id": id}}, messages[:min(len(messages), maxMessages-1)]...)
	b.Touch(record, system)
	return int(before) + 1, b.put(ctx, record)
}

// Close closes the record of an address, whose subscriptions have ended.
func (b *Bounces) Close(ctx context.Context, channel, address string) error {
	b.editing.Lock()
	defer b.editing.Unlock()
	record, err := b.ofAddress(ctx, channel, address)
	if err != nil || record == nil || record["state"] == "deleted" {
		return err
	}
	record["state"] = "deleted"
	b.Touch(record, &roles.Caller{Role: roles.SuperAdmin})
	return b.put(ctx, record)
}

// ofAddress returns the newest record of an address, or nil.
func (b *Bounces) ofAddress(ctx context.Context, channel, address string) (resource.Record, error) {
	link, err := b.addresses.Get(ctx, AddressID(channel, address))
	if err != nil {
		return nil, err
	}
	id, _ := link["bounce"].(string)
	return b.Get(ctx, id)
}

// put stores a record, and the way to it from its address.
func (b *Bounces) put(ctx context.Context, r resource.Record) error {
	records, err := b.Encoded(r)
	if err != nil {
		return err
	}
	return b.ChangeNotifyBCRecords(ctx, records)
}

// Encoded returns a bounce as it is stored, with the record that leads to it.
func (b *Bounces) Encoded(r resource.Record) ([]control.NotifyBCRecord, error) {
	stored, err := b.Encode(r)
	if err != nil {
		return nil, err
	}
	all := []control.NotifyBCRecord{stored}
	channel, _ := r["channel"].(string)
	address, _ := r["userChannelId"].(string)
	if r["state"] != "deleted" {
		link, err := b.addresses.Encode(resource.Record{"id": AddressID(channel, address), "bounce": r["id"], "created": r["created"], "updated": r["updated"]})
		if err != nil {
			return nil, err
		}
		all = append(all, link)
	}
	return all, nil
}

// Routes returns the routes of bounces.
func (b *Bounces) Routes() []resource.Route {
	const all, one = "/bounces", "/bounces/{id}"
	routes := []resource.Route{
		{Method: "POST", Path: all, Handle: b.create},
		{Method: "GET", Path: all, Handle: func(r *resource.Request) (resource.Answer, error) { return b.List(r, resource.All) }},
		{Method: "PATCH", Path: all, Handle: b.patchAll},
		{Method: "GET", Path: all + "/count", Handle: func(r *resource.Request) (resource.Answer, error) { return b.Collection.Count(r, resource.All) }},
		{Method: "GET", Path: one, Handle: func(r *resource.Request) (resource.Answer, error) {
			found, err := b.Require(r.Context(), r.PathValue("id"))
			if err != nil {
				return resource.Answer{}, err
			}
			return resource.OK(found)
		}},
		{Method: "PUT", Path: one, Handle: func(r *resource.Request) (resource.Answer, error) { return b.change(r, resource.Replaced) }},
		{Method: "PATCH", Path: one, Handle: func(r *resource.Request) (resource.Answer, error) { return b.change(r, resource.Patched) }},
		{Method: "DELETE", Path: one, Handle: b.delete},
	}
	for i := range routes {
		routes[i].Who = resource.SuperAdmins
	}
	return routes
}

// check refuses a bounce that is not valid, and sets what is missing.
func check(r resource.Record) error {
	for _, name := range []string{"channel", "userChannelId"} {
		if _, err := resource.Text(r, name, true, maxAddressBytes); err != nil {
			return err
		}
	}
	if r["state"] == nil {
		r["state"] = "active"
	}
	if r["state"] != "active" && r["state"] != "deleted" {
		return resource.Bad("state must be active or deleted")
	}
	if r["hardBounceCount"] == nil {
		r["hardBounceCount"] = 0.0
	}
	if count, ok := r["hardBounceCount"].(float64); !ok || count < 0 {
		return resource.Bad("hardBounceCount must be a number that is not negative")
	}
	if r["bounceMessages"] == nil {
		r["bounceMessages"] = []any{}
	}
	if _, ok := r["bounceMessages"].([]any); !ok {
		return resource.Bad("bounceMessages must be an array")
	}
	return nil
}

func (b *Bounces) create(r *resource.Request) (resource.Answer, error) {
	body, err := r.Body()
	if err != nil {
		return resource.Answer{}, err
	}
	created := b.New(resource.WithoutReadOnly(body), &r.Caller)
	if err := check(created); err != nil {
		return resource.Answer{}, err
	}
	b.editing.Lock()
	defer b.editing.Unlock()
	if err := b.put(r.Context(), created); err != nil {
		return resource.Answer{}, err
	}
	return resource.OK(created)
}

func (b *Bounces) change(r *resource.Request, change func(old, body resource.Record) resource.Record) (resource.Answer, error) {
	body, err := r.Body()
	if err != nil {
		return resource.Answer{}, err
	}
	b.editing.Lock()
	defer b.editing.Unlock()
	old, err := b.Require(r.Context(), r.PathValue("id"))
	if err != nil {
		return resource.Answer{}, err
	}
	changed := change(old, body)
	b.Touch(changed, &r.Caller)
	if err := check(changed); err != nil {
		return resource.Answer{}, err
	}
	if err := b.put(r.Context(), changed); err != nil {
		return resource.Answer{}, err
	}
	return resource.Done()
}

func (b *Bounces) patchAll(r *resource.Request) (resource.Answer, error) {
	body, err := r.Body()
	if err != nil {
		return resource.Answer{}, err
	}
	for _, name := range []string{"channel", "userChannelId"} {
		if _, ok := body[name]; ok {
			return resource.Answer{}, resource.Bad(name + " must be changed by id")
		}
	}
	b.editing.Lock()
	defer b.editing.Unlock()
	return b.PatchMany(r, func(old resource.Record) (resource.Record, error) {
		changed := resource.Patched(old, body)
		b.Touch(changed, &r.Caller)
		return changed, check(changed)
	})
}

func (b *Bounces) delete(r *resource.Request) (resource.Answer, error) {
	b.editing.Lock()
	defer b.editing.Unlock()
	found, err := b.Require(r.Context(), r.PathValue("id"))
	if err != nil {
		return resource.Answer{}, err
	}
	channel, _ := found["channel"].(string)
	address, _ := found["userChannelId"].(string)
	keys := []control.NotifyBCKey{b.Key(r.PathValue("id"))}
	if link, err := b.addresses.Get(r.Context(), AddressID(channel, address)); err != nil {
		return resource.Answer{}, err
	} else if link["bounce"] == found["id"] {
		keys = append(keys, b.addresses.Key(AddressID(channel, address)))
	}
	if err := b.ChangeNotifyBCRecords(r.Context(), nil, keys...); err != nil {
		return resource.Answer{}, err
	}
	return resource.Done()
}
