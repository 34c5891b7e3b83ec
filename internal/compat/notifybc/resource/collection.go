package resource

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/compat/notifybc/query"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/store/control"
)

// Limits of collections.
const (
	pageRecords = 1000
	maxListed   = 100_000 // records in a list without a limit
)

// Records store records.
type Records interface {
	ChangeNotifyBCRecords(ctx context.Context, put []control.NotifyBCRecord, deleted ...control.NotifyBCKey) error
	NotifyBCRecord(ctx context.Context, key control.NotifyBCKey) (*control.NotifyBCRecord, error)
	NotifyBCRecords(ctx context.Context, service, kind, after string, limit int64) ([]control.NotifyBCRecord, error)
}

// A Record is a record as the API returns it: decoded JSON.
type Record = map[string]any

// A Collection is the records of one kind.
type Collection struct {
	Records
	Service, Kind string
	Clock         clock.Clock
}

// Time returns a time as records contain it.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// millis returns the milliseconds of a time in a record; 0 if it is missing.
func millis(v any) int64 {
	text, _ := v.(string)
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}

// NewID returns a new id: 24 hexadecimal digits, of which the first eight are the time in seconds.
func NewID(now time.Time) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	binary.BigEndian.PutUint32(b[:4], uint32(now.Unix()))
	return hex.EncodeToString(b[:])
}

// New adds id, created, updated, createdBy and updatedBy to a record.
func (c *Collection) New(r Record, by *roles.Caller) Record {
	now := c.Clock.Now()
	r["id"], r["created"], r["updated"] = NewID(now), Time(now), Time(now)
	r["createdBy"], r["updatedBy"] = callerOf(by), callerOf(by)
	return r
}

// Touch sets updated and updatedBy.
func (c *Collection) Touch(r Record, by *roles.Caller) {
	r["updated"], r["updatedBy"] = Time(c.Clock.Now()), callerOf(by)
}

func callerOf(c *roles.Caller) map[string]any {
	m := map[string]any{"role": string(c.Role)}
	if c.SecurityID != "" {
		m["securityId"], m["authnStrategy"] = c.SecurityID, c.Strategy
	}
	return m
}

// Key returns the key of a record.
func (c *Collection) Key(id string) control.NotifyBCKey {
	return control.NotifyBCKey{Service: c.Service, Kind: c.Kind, ID: id}
}

// Encode returns a record as it is stored.
func (c *Collection) Encode(r Record) (control.NotifyBCRecord, error) {
	id, _ := r["id"].(string)
	body := make(Record, len(r))
	for name, v := range r {
		if name != "id" {
			body[name] = v
		}
	}
	text, err := json.Marshal(body)
	return control.NotifyBCRecord{NotifyBCKey: c.Key(id), Created: millis(r["created"]), Updated: millis(r["updated"]), Body: string(text)}, err
}

func decode(stored *control.NotifyBCRecord) (r Record, err error) {
	if err := json.Unmarshal([]byte(stored.Body), &r); err != nil || r == nil {
		return nil, fmt.Errorf("the %s %s is not an object", stored.Kind, stored.ID)
	}
	r["id"] = stored.ID
	return r, nil
}

// Put stores a record.
func (c *Collection) Put(ctx context.Context, r Record) error {
	stored, err := c.Encode(r)
	if err != nil {
		return err
	}
	return c.ChangeNotifyBCRecords(ctx, []control.NotifyBCRecord{stored})
}

// Get returns a record, or nil.
func (c *Collection) Get(ctx context.Context, id string) (Record, error) {
	stored, err := c.NotifyBCRecord(ctx, c.Key(id))
	if err != nil || stored == nil {
		return nil, err
	}
	return decode(stored)
}

// Each calls visit for each record, in the order of ids, until it returns false.
func (c *Collection) Each(ctx context.Context, visit func(Record) bool) error {
	after := ""
	for {
		page, err := c.NotifyBCRecords(ctx, c.Service, c.Kind, after, pageRecords)
		if err != nil {
			return err
		}
		for i := range page {
			r, err := decode(&page[i])
			if err != nil {
				return err
			}
			if !visit(r) {
				return nil
			}
		}
		if len(page) < pageRecords {
			return nil
		}
		after = page[len(page)-1].ID
	}
}

// Find calls visit for each record that matches a query, until it returns false.
func (c *Collection) Find(ctx context.Context, q *query.Query, visit func(Record) bool) error {
	test := func(r Record) bool { return !q.Match(r) || visit(r) }
	if ids := q.Paths().IDs; ids != nil {
		seen := map[string]bool{}
		for _, id := range ids {
			if seen[id] {
				continue
			}
			seen[id] = true
			r, err := c.Get(ctx, id)
			if err != nil {
				return err
			}
			if r != nil && !test(r) {
				break
			}
		}
	} else if err := c.Each(ctx, func(r Record) bool { return test(r) && q.Err() == nil }); err != nil {
		return err
	}
	if q.Err() != nil {
		return Bad(q.Err().Error())
	}
	return nil
}

// List answers a request for a list with the records that keep accepts.
func (c *Collection) List(r *Request, keep func(Record) bool) (Answer, error) {
	q, err := r.Query()
	if err != nil {
		return Answer{}, err
	}
	skip, limit := q.Window()
	var found []Record
	err = c.Find(r.Context(), q, func(one Record) bool {
		if keep(one) {
			found = append(found, one)
		}
		return len(found) <= maxListed && (q.Ordered() || limit == 0 || len(found) < skip+limit)
	})
	switch {
	case err != nil:
		return Answer{}, err
	case len(found) > maxListed:
		return Answer{}, Bad(fmt.Sprintf("more than %d records match: set limit and skip", maxListed))
	}
	return OK(q.Page(found))
}

// Count answers a request for the number of the records that keep accepts.
func (c *Collection) Count(r *Request, keep func(Record) bool) (Answer, error) {
	q, err := r.Query()
	if err != nil {
		return Answer{}, err
	}
	n := 0
	err = c.Find(r.Context(), q, func(one Record) bool {
		if keep(one) {
			n++
		}
		return true
	})
	if err != nil {
		return Answer{}, err
	}
	return Counted(n)
}

// All accepts every record.
func All(Record) bool { return true }

// readOnly are the members of a record that a change does not set.
var readOnly = []string{"id", "created", "updated", "createdBy", "updatedBy"}

// WithoutReadOnly removes the members that a client cannot set.
func WithoutReadOnly(body Record) Record {
	for _, name := range readOnly {
		delete(body, name)
	}
	return body
}

// Replaced returns a record with the members of a body in place of its own.
func Replaced(old, body Record) Record {
	r := WithoutReadOnly(body)
	for _, name := range readOnly {
		if v, ok := old[name]; ok {
			r[name] = v
		}
	}
	return r
}

// Patched returns a record with the members of a body over its own.
func Patched(old, body Record) Record {
	r := make(Record, len(old)+len(body))
	for name, v := range old {
		r[name] = v
	}
	for name, v := range WithoutReadOnly(body) {
		r[name] = v
	}
	return r
}

// Require returns a record, or refuses the request if it does not exist.
func (c *Collection) Require(ctx context.Context, id string) (Record, error) {
	r, err := c.Get(ctx, id)
	if err == nil && r == nil {
		err = Missing()
	}
	return r, err
}

// patchBatch is the number of records that one transaction changes.
const patchBatch = 500

// PatchMany answers a request that changes all records that match. change returns the changed record.
func (c *Collection) PatchMany(r *Request, change func(Record) (Record, error)) (Answer, error) {
	q, err := r.Query()
	if err != nil {
		return Answer{}, err
	}
	n := 0
	var failed error
	var batch []control.NotifyBCRecord
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := c.ChangeNotifyBCRecords(r.Context(), batch)
		n, batch = n+len(batch), batch[:0]
		return err
	}
	err = c.Find(r.Context(), q, func(one Record) bool {
		var changed Record
		if changed, failed = change(one); failed != nil {
			return false
		}
		var stored control.NotifyBCRecord
		if stored, failed = c.Encode(changed); failed != nil {
			return false
		}
		if batch = append(batch, stored); len(batch) == patchBatch {
			failed = flush()
		}
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	if err == nil {
		err = flush()
	}
	if err != nil {
		return Answer{}, err
	}
	return Counted(n)
}
