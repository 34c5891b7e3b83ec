// Package sessionlog keeps sessions in the part of the database that is theirs. It implements session.Log for SQLite and
// PostgreSQL.
//
// State. The package has no state of its own: everything is in the tables sessions, session_clients and session_log. A row
// of session_log is a group of requests or responses of one client, so that a commit of a thousand requests writes a few rows.
//
// Failure. A commit is durable as store.Durability says, and is stored as a whole or not at all. Append may be repeated: an
// entry that is stored already is compared, and not stored again. A broker that was replaced gets session.ErrFenced, because
// the epoch of a session is read, and locked, in the transaction that appends.
package sessionlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/store"
)

const (
	// pageRows and pageBytes limit the entries that Entries has in memory. It begins with a page of firstRows, because most
	// callers need one or two entries, and the next pages are larger by pageGrowth.
	pageRows   = 256
	pageBytes  = 4 << 20
	firstRows  = 2
	pageGrowth = 4

	// removeRows and removeBytes limit the entries that one transaction removes, because appends wait for it.
	removeRows  = 256
	removeBytes = 16 << 20

	// removeSessions is the number of old sessions that RemoveEnded lists at a time.
	removeSessions = 100
)

// A Log keeps sessions in a database.
type Log struct{ part store.Part }

var _ session.Log = (*Log)(nil)

// New returns the log of a database.
func New(db store.Database) *Log { return &Log{db.Sessions()} }

// options are the session.Options without those that have a column.
type options struct {
	MinInstances int           `json:"min_instances,omitempty"`
	MaxInstances int           `json:"max_instances,omitempty"`
	Priority     int           `json:"priority,omitempty"`
	Resends      int           `json:"resends,omitempty"`
	IdleTimeout  time.Duration `json:"idle_timeout,omitempty"` // nanoseconds, as the next one
	TotalTimeout time.Duration `json:"total_timeout,omitempty"`
}

func encodeOptions(o *session.Options) (string, error) {
	b, err := json.Marshal(options{o.MinInstances, o.MaxInstances, o.Priority, o.Resends, o.IdleTimeout, o.TotalTimeout})
	return string(b), err
}

// endedAt is 0 for an open session.
func endedAt(r *session.Record) (int64, error) {
	switch {
	case r.State == session.Open:
		return 0, nil
	case r.ClosedAt.IsZero():
		return 0, fmt.Errorf("session %d is %s, but the time of its end is missing", r.Number, r.State)
	}
	return r.ClosedAt.UnixNano(), nil
}

// Create stores a session and sets its number, which no session had before.
func (l *Log) Create(ctx context.Context, r *session.Record) error {
	text, err := encodeOptions(&r.Options)
	if err != nil {
		return err
	}
	ended, err := endedAt(r)
	if err != nil {
		return err
	}
	var number int64
	err = l.part.Write(ctx, func(s store.Session) error {
		if err := s.Each("session_next", func(row store.Row) error { number = row.Int64(0); return nil }); err != nil {
			return err
		}
		o := &r.Options
		return s.Run("session_insert", number, r.Service, o.Worker, string(o.Kind), o.Name, string(r.State), r.Reason, r.OpenedAt.UnixNano(), ended, int64(r.Epoch), o.OpenedBy, text)
	})
	if err == nil {
		r.Number = uint64(number)
	}
	return err
}

// skippedNumbers is far more than the number of sessions that begin in the seconds before a loss of power.
const skippedNumbers = 1 << 16

// SkipNumbers skips numbers of sessions that the database may have forgotten, because it was restored from a backup or lost its
// last transactions. They are not given to other sessions.
func (l *Log) SkipNumbers(ctx context.Context) error {
	return l.part.Write(ctx, func(s store.Session) error { return s.Run("session_skip", int64(skippedNumbers)) })
}

// Update stores the options, the state, the reason and the time of the end of a session.
func (l *Log) Update(ctx context.Context, r *session.Record) error {
	text, err := encodeOptions(&r.Options)
	if err != nil {
		return err
	}
	ended, err := endedAt(r)
	if err != nil {
		return err
	}
	found := false
	err = l.part.Write(ctx, func(s store.Session) error {
		found = false
		o := &r.Options
		return s.Each("session_update", func(store.Row) error { found = true; return nil },
			o.Worker, string(o.Kind), o.Name, string(r.State), r.Reason, ended, o.OpenedBy, text, int64(r.Number))
	})
	if err == nil && !found {
		err = unknown(r.Number)
	}
	return err
}

func unknown(number uint64) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("session ses-%d does not exist", number), Hint: "it may be older than session_retention"}
}

// Sessions returns the open sessions by number, then those that ended after since, by the time of their end.
func (l *Log) Sessions(ctx context.Context, since time.Time) (list []session.Record, err error) {
	after := int64(0)
	if !since.IsZero() {
		after = max(0, since.UnixNano())
	}
	err = l.part.Snapshot(ctx, func(s store.Session) error {
		list = nil
		add := func(row store.Row) error {
			r, err := record(row)
			if err == nil {
				list = append(list, r)
			}
			return err
		}
		if err := s.Each("sessions_open", add); err != nil {
			return err
		}
		return s.Each("sessions_ended", add, after)
	})
	return list, err
}

func record(row store.Row) (r session.Record, err error) {
	var o options
	if err := json.Unmarshal(row.Bytes(11), &o); err != nil {
		return r, fmt.Errorf("options of session %d: %w", row.Int64(0), err)
	}
	r = session.Record{Number: uint64(row.Int64(0)), Service: row.Text(1), State: session.State(row.Text(5)), Reason: row.Text(6),
		OpenedAt: time.Unix(0, row.Int64(7)).UTC(), Epoch: uint64(row.Int64(9)),
		Options: session.Options{Worker: row.Text(2), Kind: session.Kind(row.Text(3)), Name: row.Text(4), OpenedBy: row.Text(10),
			MinInstances: o.MinInstances, MaxInstances: o.MaxInstances, Priority: o.Priority, Resends: o.Resends, IdleTimeout: o.IdleTimeout, TotalTimeout: o.TotalTimeout}}
	if ended := row.Int64(8); ended != 0 {
		r.ClosedAt = time.Unix(0, ended).UTC()
	}
	return r, nil
}

// TakeOver raises the epoch of a session and returns it. It waits for transactions that append to the session.
func (l *Log) TakeOver(ctx context.Context, number uint64) (epoch uint64, err error) {
	found := false
	err = l.part.Write(ctx, func(s store.Session) error {
		found = false
		return s.Each("session_take_over", func(row store.Row) error { found, epoch = true, uint64(row.Int64(0)); return nil }, int64(number))
	})
	if err == nil && !found {
		err = unknown(number)
	}
	return epoch, err
}

// Clients returns the clients of a session, by number.
func (l *Log) Clients(ctx context.Context, number uint64) (list []session.ClientRecord, err error) {
	err = l.part.Read(ctx, func(s store.Session) error {
		list = nil
		return s.Each("session_clients", func(row store.Row) error {
			flags := row.Int64(7)
			list = append(list, session.ClientRecord{Number: uint32(row.Int64(0)), Name: row.Text(1),
				Requests: uint64(row.Int64(2)), Accepted: uint64(row.Int64(3)), Responses: uint64(row.Int64(4)), Received: uint64(row.Int64(5)), Floor: uint64(row.Int64(6)),
				Ended: flags&flagEnded != 0, IDs: flags&flagIDs != 0})
			return nil
		}, int64(number))
	})
	return list, err
}

// The flags of a client.
const (
	flagEnded = 1
	flagIDs   = 2
)

func flags(c *session.ClientRecord) (f int64) {
	if c.Ended {
		f |= flagEnded
	}
	if c.IDs {
		f |= flagIDs
	}
	return f
}

// Append stores entries and clients in one transaction. It fails with session.ErrFenced if another broker has taken over one
// of the sessions, and with an error if an entry with the same key but another content exists.
func (l *Log) Append(ctx context.Context, a *session.Append) error {
	checks, err := checksOf(a)
	if err != nil {
		return err
	}
	clients := lastUpdates(a.Clients)
	stored := make([]bool, len(checks)) // by check: the entry is there already
	return l.part.Write(ctx, func(s store.Session) error {
		seen := make([]bool, len(checks))
		clear(stored)
		err := s.EachOf("session_check", len(checks), func(i int) []any {
			c := checks[i]
			return []any{int64(c.Client), int64(c.Kind), int64(c.First), int64(c.Session)}
		}, func(i int, row store.Row) error {
			c := checks[i]
			if uint64(row.Int64(0)) != a.Epochs[c.Session] {
				return fenced(c.Session)
			}
			seen[i] = true
			if row.IsNull(1) {
				return nil
			}
			stored[i] = true
			if row.Int64(1) != int64(c.Count) || row.Int64(2) != int64(c.High) || !bytes.Equal(row.Bytes(3), c.Data) {
				return fmt.Errorf("session %d: entry %d of kind %d of client %d is already stored with different content", c.Session, c.First, c.Kind, c.Client)
			}
			return nil
		})
		if err != nil {
			return err
		}
		var missing []*session.Entry
		for i := range checks {
			if !seen[i] { // the session was removed
				return fenced(checks[i].Session)
			}
			if i < len(a.Entries) && !stored[i] {
				missing = append(missing, checks[i])
			}
		}
		err = s.Insert("session_log_insert", len(missing), func(i int, to store.Values) {
			e := missing[i]
			for _, v := range [...]int64{int64(e.Session), int64(e.Client), int64(e.Kind), int64(e.First), int64(e.Count), int64(e.High)} {
				to.Int64(v)
			}
			to.Bytes(e.Data)
		})
		if err != nil {
			return err
		}
		return s.Insert("session_client_put", len(clients), func(i int, to store.Values) {
			u := &a.Clients[clients[i]]
			c := &u.Client
			to.Int64(int64(u.Session))
			to.Int64(int64(c.Number))
			to.Text(c.Name)
			for _, v := range [...]uint64{c.Requests, c.Accepted, c.Responses, c.Received, c.Floor} {
				to.Int64(int64(v))
			}
			to.Int64(flags(c))
		})
	})
}

func fenced(number uint64) error { return fmt.Errorf("session %d: %w", number, session.ErrFenced) }

// checksOf returns the keys to look up: those of all entries, and one without an entry for each further session.
func checksOf(a *session.Append) ([]*session.Entry, error) {
	checks := make([]*session.Entry, 0, len(a.Entries)+len(a.Epochs))
	checked := make(map[uint64]bool, len(a.Epochs))
	need := func(number uint64) error {
		if _, ok := a.Epochs[number]; !ok {
			return fmt.Errorf("the append has no epoch of session %d", number)
		}
		checked[number] = true
		return nil
	}
	for i := range a.Entries {
		if err := need(a.Entries[i].Session); err != nil {
			return nil, err
		}
		checks = append(checks, &a.Entries[i])
	}
	for i := range a.Clients {
		number := a.Clients[i].Session
		known := checked[number]
		if err := need(number); err != nil {
			return nil, err
		}
		if !known {
			checks = append(checks, &session.Entry{Session: number}) // no entry has the kind 0
		}
	}
	for number := range a.Epochs {
		if !checked[number] {
			checks = append(checks, &session.Entry{Session: number})
		}
	}
	return checks, nil
}

// lastUpdates returns the indexes of the last update of each client. One statement must not write a row twice.
func lastUpdates(updates []session.ClientUpdate) []int {
	type key struct {
		session uint64
		client  uint32
	}
	last := make(map[key]int, len(updates))
	for i := range updates {
		last[key{updates[i].Session, updates[i].Client.Number}] = i
	}
	list := make([]int, 0, len(last))
	for i := range updates {
		if last[key{updates[i].Session, updates[i].Client.Number}] == i {
			list = append(list, i)
		}
	}
	return list
}

// Entries calls fn for the entries of a client of one kind, in the order of First, beginning with the one that contains from,
// until fn returns false. It reads pages, and uses no connection to the database while fn runs.
func (l *Log) Entries(ctx context.Context, number uint64, client uint32, kind session.EntryKind, from, high uint64, fn func(session.Entry) bool) error {
	key := []any{int64(number), int64(client), int64(kind)}
	begin, err := l.begin(ctx, key, from)
	if err != nil {
		return err
	}
	limit := firstRows
	for {
		page, err := l.page(ctx, key, begin, high, limit)
		if err != nil {
			return err
		}
		for i := range page.entries {
			e := &page.entries[i]
			begin = e.First + 1
			if e.First < from && e.First+uint64(e.Count) <= from {
				continue
			}
			if !fn(*e) {
				return nil
			}
		}
		if !page.more {
			return nil
		}
		limit = min(pageSize(page), limit*pageGrowth)
	}
}

// begin returns the first number of the last entry that begins at from or before.
func (l *Log) begin(ctx context.Context, key []any, from uint64) (first uint64, err error) {
	if from <= 1 {
		return 0, nil
	}
	err = l.part.Read(ctx, func(s store.Session) error {
		return s.Each("session_log_begin", func(row store.Row) error { first = uint64(row.Int64(0)); return nil }, append(key, int64(min(from, math.MaxInt64)))...)
	})
	return first, err
}

// A page has some entries of a client.
type page struct {
	entries []session.Entry
	bytes   int
	more    bool // it may not be the last one
}

// errFull ends the reading of a page.
var errFull = errors.New("the page is full")

func (l *Log) page(ctx context.Context, key []any, begin, high uint64, limit int) (p page, err error) {
	err = l.part.Read(ctx, func(s store.Session) error {
		p = page{}
		err := s.Each("session_log", func(row store.Row) error {
			if p.bytes >= pageBytes {
				p.more = true
				return errFull
			}
			e := session.Entry{Session: uint64(key[0].(int64)), Client: uint32(key[1].(int64)), Kind: session.EntryKind(key[2].(int64)),
				First: uint64(row.Int64(0)), Count: uint32(row.Int64(1)), High: uint64(row.Int64(2)), Data: row.Bytes(3)}
			p.entries = append(p.entries, e)
			p.bytes += len(e.Data)
			return nil
		}, append(key[:3:3], int64(begin), int64(high), int64(limit))...)
		if errors.Is(err, errFull) {
			return nil
		}
		p.more = len(p.entries) == limit
		return err
	})
	return p, err
}

// pageSize returns the number of entries of the next page, so that it has about pageBytes.
func pageSize(p page) int {
	average := p.bytes/len(p.entries) + 1
	return min(max(pageBytes/average, 1), pageRows)
}

// PurgeClient removes the entries of a client.
func (l *Log) PurgeClient(ctx context.Context, number uint64, client uint32) error {
	return l.removeEntries(ctx, number, client, client)
}

// Purge removes the entries and clients of a session that has ended, and sets its state to Purged. If it is interrupted, the
// session has no clients any more, and the rest of its entries is removed with the session, or when Purge is repeated.
func (l *Log) Purge(ctx context.Context, number uint64) error {
	found := false
	err := l.part.Write(ctx, func(s store.Session) error {
		found = false
		if err := s.Each("session_purged", func(store.Row) error { found = true; return nil }, int64(number)); err != nil || !found {
			return err
		}
		return s.Run("session_clients_remove", int64(number))
	})
	if err == nil && !found {
		err = &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("session ses-%d is open or does not exist", number), Hint: "close the session before you purge it"}
	}
	if err != nil {
		return err
	}
	return l.removeEntries(ctx, number, 0, math.MaxInt32)
}

// removeEntries removes the entries of clients in several transactions, so that appends to other sessions continue.
func (l *Log) removeEntries(ctx context.Context, number uint64, from, to uint32) error {
	for {
		removed := 0
		err := l.part.Write(ctx, func(s store.Session) error {
			removed = 0
			var last []session.Entry // of each client
			var sum int64
			err := s.Each("session_log_sizes", func(row store.Row) error {
				if removed > 0 && sum >= removeBytes {
					return nil
				}
				removed++
				sum += row.Int64(3)
				e := session.Entry{Client: uint32(row.Int64(0)), Kind: session.EntryKind(row.Int64(1)), First: uint64(row.Int64(2))}
				if n := len(last); n > 0 && last[n-1].Client == e.Client {
					last[n-1] = e
					return nil
				}
				last = append(last, e)
				return nil
			}, int64(number), int64(from), int64(to), int64(removeRows))
			for i := range last {
				if err == nil {
					e := &last[i]
					err = s.Run("session_log_remove", int64(number), int64(e.Client), int64(e.Kind), int64(e.First))
				}
			}
			return err
		})
		if err != nil || removed == 0 {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// RemoveEnded removes all that is kept of sessions that ended before a time.
func (l *Log) RemoveEnded(ctx context.Context, before time.Time) error {
	for {
		var old []int64
		err := l.part.Read(ctx, func(s store.Session) error {
			old = nil
			return s.Each("sessions_old", func(row store.Row) error { old = append(old, row.Int64(0)); return nil }, before.UnixNano(), int64(removeSessions))
		})
		if err != nil || len(old) == 0 {
			return err
		}
		for _, number := range old {
			if err := l.removeEntries(ctx, uint64(number), 0, math.MaxInt32); err != nil {
				return err
			}
		}
		err = l.part.Write(ctx, func(s store.Session) error {
			for _, number := range old {
				if err := s.Run("session_clients_remove", number); err != nil {
					return err
				}
				if err := s.Run("session_remove", number); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}
