package sqlite

import (
	"context"
	"errors"
	"strings"
	"unsafe"

	"golang.org/x/sync/errgroup"
	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/registry"
)

const (
	subscriberColumns   = `place, service, kind, address, id, locale, time_zone, attributes, subscriber, parts, flags`
	subscriptionColumns = `place, subscriber, topic, channel, created_at, created_seq, filter, rule, id, params, data, ended_at, ended_seq, reason`

	// placesPerLookup is how many places one statement is asked for.
	placesPerLookup = 64
	// denseFactor: where at least one row of so many is wanted, reading the
	// whole range and skipping is quicker than looking up each.
	denseFactor = 8
	// fewPlaces is from when on one statement for many beats one for each.
	fewPlaces = 12
)

// A selection is one way to read a table: everything, a range, or given places.
type selection struct{ all, between, in string }

func newSelection(columns, table string) selection {
	head := `SELECT ` + columns + ` FROM ` + table
	return selection{
		all:     head + ` ORDER BY place`,
		between: head + ` WHERE place BETWEEN ?1 AND ?2 ORDER BY place`,
		in:      head + ` WHERE place IN (?` + strings.Repeat(`,?`, placesPerLookup-1) + `) ORDER BY place`,
	}
}

var (
	selectSubscribers   = newSelection(subscriberColumns, "subscribers")
	selectSubscriptions = newSelection(subscriptionColumns, "subscriptions")
)

// SubscriberRecords visits the subscribers at places.
func (c *Control) SubscriberRecords(ctx context.Context, places []fanfare.Place, visit func(*registry.SubscriberRecord) error) error {
	return c.read(ctx, func(conn *sqlite.Conn) error {
		var buf arena
		var r registry.SubscriberRecord
		return lookup(conn, &selectSubscribers, places, func(stmt *sqlite.Stmt) error {
			buf.reset()
			buf.subscriber(stmt, &r)
			buf.keepSubscriber(&r)
			return visit(&r)
		})
	})
}

// SubscriptionRecords visits the subscriptions at places.
func (c *Control) SubscriptionRecords(ctx context.Context, places []fanfare.Place, visit func(*registry.SubscriptionRecord) error) error {
	return c.read(ctx, func(conn *sqlite.Conn) error {
		var buf arena
		var r registry.SubscriptionRecord
		return lookup(conn, &selectSubscriptions, places, func(stmt *sqlite.Stmt) error {
			buf.reset()
			buf.subscription(stmt, &r)
			buf.keepSubscription(&r)
			return visit(&r)
		})
	})
}

// lookup visits the rows at places, which are sorted.
func lookup(conn *sqlite.Conn, sel *selection, places []fanfare.Place, visit func(*sqlite.Stmt) error) error {
	for len(places) > 0 {
		n := denseRun(places)
		var err error
		if n > 0 {
			err = lookupRange(conn, sel, places[:n], visit)
		} else {
			n = min(placesPerLookup, len(places))
			err = lookupEach(conn, sel, places[:n], visit)
		}
		if err != nil {
			return err
		}
		places = places[n:]
	}
	return nil
}

// denseRun returns how many places from the first on are best read as a range:
// they lie close together, or are the last few. 0 means none.
func denseRun(places []fanfare.Place) int {
	n := 1
	for n < len(places) && places[n]-places[0] <= fanfare.Place(denseFactor*n) {
		n++
	}
	if n < fewPlaces && len(places) > fewPlaces {
		return 0
	}
	return n
}

func lookupRange(conn *sqlite.Conn, sel *selection, places []fanfare.Place, visit func(*sqlite.Stmt) error) error {
	stmt, err := conn.Prepare(sel.between)
	if err != nil {
		return err
	}
	stmt.BindInt64(1, int64(places[0]))
	stmt.BindInt64(2, int64(places[len(places)-1]))
	i := 0
	return each(stmt, func(stmt *sqlite.Stmt) error {
		place := fanfare.Place(stmt.ColumnInt64(0))
		for i < len(places) && places[i] < place {
			i++
		}
		if i == len(places) || places[i] != place {
			return nil
		}
		return visit(stmt)
	})
}

func lookupEach(conn *sqlite.Conn, sel *selection, places []fanfare.Place, visit func(*sqlite.Stmt) error) error {
	stmt, err := conn.Prepare(sel.in)
	if err != nil {
		return err
	}
	for i := range placesPerLookup {
		stmt.BindInt64(i+1, int64(places[min(i, len(places)-1)]))
	}
	return each(stmt, visit)
}

func each(stmt *sqlite.Stmt, visit func(*sqlite.Stmt) error) error {
	for {
		more, err := stmt.Step()
		if err != nil {
			return err
		}
		if !more {
			return stmt.Reset()
		}
		if err := visit(stmt); err != nil {
			return errors.Join(err, stmt.Reset())
		}
	}
}

// Load visits everything, subscribers and subscriptions at the same time.
func (c *Control) Load(ctx context.Context, v registry.Loader) error {
	if err := c.read(ctx, func(conn *sqlite.Conn) error { return loadSmall(conn, v) }); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return c.read(ctx, func(conn *sqlite.Conn) error {
			var buf arena
			var r registry.SubscriberRecord
			return all(conn, selectSubscribers.all, func(stmt *sqlite.Stmt) error {
				buf.reset()
				buf.subscriber(stmt, &r)
				return v.Subscriber(&r)
			})
		})
	})
	g.Go(func() error {
		return c.read(ctx, func(conn *sqlite.Conn) error {
			var buf arena
			var r registry.SubscriptionRecord
			return all(conn, selectSubscriptions.all, func(stmt *sqlite.Stmt) error {
				buf.reset()
				buf.subscription(stmt, &r)
				return v.Subscription(&r)
			})
		})
	})
	return g.Wait()
}

func all(conn *sqlite.Conn, query string, visit func(*sqlite.Stmt) error) error {
	stmt, err := conn.Prepare(query)
	if err != nil {
		return err
	}
	return each(stmt, visit)
}

// configQuery has services first: the others belong to one.
const configQuery = `SELECT kind, number, service, name, body, deleted FROM config ORDER BY kind <> 'service', kind, number`

func configAt(stmt *sqlite.Stmt) registry.ConfigRecord {
	return registry.ConfigRecord{
		Kind: stmt.ColumnText(0), Number: uint32(stmt.ColumnInt64(1)), Service: uint32(stmt.ColumnInt64(2)),
		Name: stmt.ColumnText(3), Body: []byte(stmt.ColumnText(4)), Deleted: stmt.ColumnBool(5),
	}
}

func loadSmall(conn *sqlite.Conn, v registry.Loader) error {
	err := all(conn, `SELECT value FROM meta WHERE name = 'change_seq'`, func(stmt *sqlite.Stmt) error {
		v.ChangeSeq(uint64(stmt.ColumnInt64(0)))
		return nil
	})
	if err != nil {
		return err
	}
	err = all(conn, configQuery, func(stmt *sqlite.Stmt) error {
		c := configAt(stmt)
		return v.Config(&c)
	})
	if err != nil {
		return err
	}
	if err := loadForgotten(conn, v); err != nil {
		return err
	}
	return all(conn, `SELECT number, text FROM filters ORDER BY number`, func(stmt *sqlite.Stmt) error {
		return v.Filter(&registry.FilterRecord{Number: uint32(stmt.ColumnInt64(0)), Text: stmt.ColumnText(1)})
	})
}

// An arena holds the texts of one row, so that reading one allocates nothing.
type arena struct {
	buf  []byte
	used int
}

func (a *arena) reset() { a.used = 0 }

// bytes returns a column's text, valid until reset; nil for NULL.
func (a *arena) bytes(stmt *sqlite.Stmt, column int) []byte {
	n := stmt.ColumnLen(column)
	if n == 0 {
		return nil
	}
	if a.used+n > len(a.buf) {
		// What was handed out of the old one stays valid: it is not reused.
		a.buf, a.used = make([]byte, max(1024, 2*(a.used+n))), 0
	}
	b := a.buf[a.used : a.used+n : a.used+n]
	stmt.ColumnBytes(column, b)
	a.used += n
	return b
}

func (a *arena) text(stmt *sqlite.Stmt, column int) string { return asString(a.bytes(stmt, column)) }

func (a *arena) subscriber(stmt *sqlite.Stmt, r *registry.SubscriberRecord) {
	*r = registry.SubscriberRecord{
		Place:      fanfare.Place(stmt.ColumnInt64(0)),
		Service:    uint32(stmt.ColumnInt64(1)),
		Kind:       uint8(stmt.ColumnInt64(2)),
		Address:    a.text(stmt, 3),
		ID:         a.text(stmt, 4),
		Locale:     a.text(stmt, 5),
		TimeZone:   a.text(stmt, 6),
		Attributes: a.bytes(stmt, 7),
		Subscriber: fanfare.Place(stmt.ColumnInt64(8)),
		Parts:      a.bytes(stmt, 9),
		Flags:      registry.Flags(stmt.ColumnInt64(10)),
	}
}

func (a *arena) subscription(stmt *sqlite.Stmt, r *registry.SubscriptionRecord) {
	*r = registry.SubscriptionRecord{
		Place:      fanfare.Place(stmt.ColumnInt64(0)),
		Subscriber: fanfare.Place(stmt.ColumnInt64(1)),
		Topic:      uint32(stmt.ColumnInt64(2)),
		Channel:    uint16(stmt.ColumnInt64(3)),
		CreatedAt:  stmt.ColumnInt64(4),
		CreatedSeq: uint64(stmt.ColumnInt64(5)),
		Filter:     uint32(stmt.ColumnInt64(6)),
		Rule:       uint32(stmt.ColumnInt64(7)),
		ID:         a.text(stmt, 8),
		Params:     a.bytes(stmt, 9),
		Data:       a.bytes(stmt, 10),
		EndedAt:    stmt.ColumnInt64(11),
		EndedSeq:   uint64(stmt.ColumnInt64(12)),
		Reason:     a.text(stmt, 13),
	}
	r.Ended = r.EndedSeq != 0
}

// keepSubscriber and keepSubscription copy the strings out of the arena.

func (a *arena) keepSubscriber(r *registry.SubscriberRecord) {
	r.Address, r.ID = strings.Clone(r.Address), strings.Clone(r.ID)
	r.Locale, r.TimeZone = strings.Clone(r.Locale), strings.Clone(r.TimeZone)
}

func (a *arena) keepSubscription(r *registry.SubscriptionRecord) {
	r.ID, r.Reason = strings.Clone(r.ID), strings.Clone(r.Reason)
}

// asString is b as a string without a copy; b must not change while it is used.
func asString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // saves a copy of every text that is read or written
}
