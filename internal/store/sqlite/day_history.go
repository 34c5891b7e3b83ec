package sqlite

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/fnv"
	"slices"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

// The history of a person is found through sorted runs of (subscriber, event)
// pairs, built behind the hot path from the manifests: a look-up reads a block
// or two of each run. What is not in a run yet is looked up in the manifests
// themselves, so an answer is complete however far the runs lag.

const (
	historySubscribers = 0
	historyEventIDs    = 1

	blockPairs = 1024
	// runEvents and runPairs bound one run, and so the memory it takes to sort.
	runEvents = 50_000
	runPairs  = 1_000_000
	// blocksPerCommit bounds how long indexing keeps the recorder waiting.
	blocksPerCommit = 64
)

var historyKinds = [...]int64{historySubscribers, historyEventIDs}

// run is a sorted set of pairs of both kinds under one number.
type run struct {
	segment, level, size int64
}

type pair struct {
	key uint64
	seq fanfare.EventSeq
}

func comparePairs(a, b pair) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.seq, b.seq))
}

// IndexHistory adds one run of what came since the last one, and reports how
// many events it covered; 0 means that the runs are complete. It is called by
// one goroutine at a time.
func (s *Deliveries) IndexHistory(ctx context.Context, of fanfare.Day) (int, error) {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return 0, err
	}
	var pairs [len(historyKinds)][]pair
	var position, segment int64
	events := 0
	err = d.read(ctx, func(conn *sqlite.Conn) error {
		if err := historyPosition(conn, &position, &segment); err != nil {
			return err
		}
		return dayQueries.each(conn, "broadcasts_behind", func(stmt *sqlite.Stmt) error {
			seq := fanfare.EventSeq(stmt.ColumnInt64(1))
			var posted fanfare.Posted
			if err := json.Unmarshal(bytesAt(stmt, 2), &posted); err != nil {
				return err
			}
			added, err := subscriberPairs(conn, pairs[historySubscribers], seq)
			if err != nil {
				return err
			}
			pairs[historySubscribers] = added
			pairs[historyEventIDs] = append(pairs[historyEventIDs], pair{eventIDKey(posted.Service, posted.Event.ID), seq})
			position = stmt.ColumnInt64(0)
			events++
			if len(added) >= runPairs {
				return errEnough{}
			}
			return nil
		}, position, int64(runEvents))
	})
	if err != nil && !errors.Is(err, errEnough{}) {
		return 0, err
	}
	if events == 0 {
		return 0, nil
	}
	for _, kind := range historyKinds {
		if err := d.writeRun(kind, segment, pairs[kind]); err != nil {
			return 0, err
		}
	}
	size := int64(len(pairs[historySubscribers]) + events)
	return events, d.write(func(conn *sqlite.Conn) error {
		if err := dayQueries.run(conn, "history_run_insert", segment, int64(0), size); err != nil {
			return err
		}
		return dayQueries.run(conn, "history_advance", position, segment+1)
	})
}

func subscriberPairs(conn *sqlite.Conn, pairs []pair, seq fanfare.EventSeq) ([]pair, error) {
	err := dayQueries.each(conn, "manifests_of_event", func(stmt *sqlite.Stmt) error {
		m, err := manifestAt(stmt)
		for i := range m.Sections {
			for j := range m.Sections[i].Members {
				pairs = append(pairs, pair{uint64(m.Sections[i].Members[j].Subscriber), seq})
			}
		}
		return err
	}, int64(fanfare.NewManifestID(seq, 0)), int64(fanfare.NewManifestID(seq+1, 0)))
	return pairs, err
}

// writeRun sorts pairs and writes them in blocks, a few to a transaction. Until
// the run is listed they are not read; what a crash left under its number goes.
func (d *day) writeRun(kind, segment int64, pairs []pair) error {
	slices.SortFunc(pairs, comparePairs)
	err := d.write(func(conn *sqlite.Conn) error { return dayQueries.run(conn, "history_delete", kind, segment) })
	if err != nil {
		return err
	}
	var blob []byte
	for len(pairs) > 0 {
		err := d.write(func(conn *sqlite.Conn) error {
			for range blocksPerCommit {
				n := blockEnd(pairs)
				if n == 0 {
					return nil
				}
				blob = appendPairs(blob[:0], pairs[:n])
				if err := dayQueries.run(conn, "history_insert", kind, segment, int64(pairs[0].key), blob); err != nil {
					return err
				}
				pairs = pairs[n:]
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// blockEnd is how many pairs go into the next block: a key never begins in two.
func blockEnd(pairs []pair) int {
	n := min(blockPairs, len(pairs))
	for n > 0 && n < len(pairs) && pairs[n].key == pairs[n-1].key {
		n++
	}
	return n
}

func appendPairs(b []byte, pairs []pair) []byte {
	var before pair
	for _, p := range pairs {
		b = binary.AppendUvarint(b, p.key-before.key)
		b = binary.AppendVarint(b, int64(p.seq)-int64(before.seq))
		before = p
	}
	return b
}

// eachPair decodes a block until visit returns false.
func eachPair(b []byte, visit func(pair) bool) {
	var at pair
	for len(b) > 0 {
		delta, n := binary.Uvarint(b)
		if n <= 0 {
			return
		}
		seqDelta, m := binary.Varint(b[n:])
		if m <= 0 {
			return
		}
		b = b[n+m:]
		at.key += delta
		at.seq += fanfare.EventSeq(seqDelta)
		if !visit(at) {
			return
		}
	}
}

// History returns the events of a day that have a delivery to a subscriber,
// newest first.
func (s *Deliveries) History(ctx context.Context, of fanfare.Day, subscriber fanfare.Place) ([]fanfare.EventSeq, error) {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return nil, err
	}
	var found []fanfare.EventSeq
	err = d.snapshot(ctx, func(conn *sqlite.Conn) error {
		var position, next int64
		if err := historyPosition(conn, &position, &next); err != nil {
			return err
		}
		if found, err = findInRuns(conn, historySubscribers, uint64(subscriber)); err != nil {
			return err
		}
		return dayQueries.each(conn, "manifests_behind", func(stmt *sqlite.Stmt) error {
			m, err := manifestAt(stmt)
			if err != nil {
				return err
			}
			if len(m.PositionsOf(subscriber)) > 0 {
				found = append(found, m.ID.Event())
			}
			return nil
		}, position, int64(subscriber.Partition()))
	})
	slices.Sort(found)
	slices.Reverse(found)
	return slices.Compact(found), err
}

// FindEvent returns the newest event of a day whose CloudEvent has an id; 0 if
// there is none.
func (s *Deliveries) FindEvent(ctx context.Context, of fanfare.Day, service, id string) (fanfare.EventSeq, error) {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return 0, err
	}
	var newest fanfare.EventSeq
	err = d.snapshot(ctx, func(conn *sqlite.Conn) error {
		var position, next int64
		if err := historyPosition(conn, &position, &next); err != nil {
			return err
		}
		candidates, err := findInRuns(conn, historyEventIDs, eventIDKey(service, id))
		if err != nil {
			return err
		}
		is := func(posted []byte) bool {
			var p fanfare.Posted
			return json.Unmarshal(posted, &p) == nil && p.Service == service && p.Event.ID == id
		}
		for _, seq := range candidates {
			if err := dayQueries.each(conn, "posted", func(stmt *sqlite.Stmt) error {
				if is(bytesAt(stmt, 0)) {
					newest = max(newest, seq)
				}
				return nil
			}, int64(seq)); err != nil {
				return err
			}
		}
		return dayQueries.each(conn, "broadcasts_behind", func(stmt *sqlite.Stmt) error {
			if is(bytesAt(stmt, 2)) {
				newest = max(newest, fanfare.EventSeq(stmt.ColumnInt64(1)))
			}
			return nil
		}, position, int64(-1))
	})
	return newest, err
}

// HistoryLag counts the events of a day that are not in a run yet.
func (s *Deliveries) HistoryLag(ctx context.Context, of fanfare.Day) (int64, error) {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return 0, err
	}
	var lag int64
	err = d.read(ctx, func(conn *sqlite.Conn) error {
		var position, segment int64
		if err := historyPosition(conn, &position, &segment); err != nil {
			return err
		}
		return dayQueries.each(conn, "behind", func(stmt *sqlite.Stmt) error {
			lag = stmt.ColumnInt64(0)
			return nil
		}, position)
	})
	return lag, err
}

// findInRuns returns the events of a key in all runs.
func findInRuns(conn *sqlite.Conn, kind int64, key uint64) ([]fanfare.EventSeq, error) {
	runs, err := listRuns(conn)
	if err != nil {
		return nil, err
	}
	var found []fanfare.EventSeq
	for _, r := range runs {
		err := dayQueries.each(conn, "history_blocks", func(stmt *sqlite.Stmt) error {
			if uint64(stmt.ColumnInt64(0)) > key {
				return errEnough{}
			}
			eachPair(bytesAt(stmt, 1), func(p pair) bool {
				if p.key == key {
					found = append(found, p.seq)
				}
				return p.key <= key
			})
			return nil
		}, kind, r.segment, kind, r.segment, int64(key))
		if err != nil && !errors.Is(err, errEnough{}) {
			return nil, err
		}
	}
	return found, nil
}

func listRuns(conn *sqlite.Conn) ([]run, error) {
	var runs []run
	err := dayQueries.each(conn, "history_runs", func(stmt *sqlite.Stmt) error {
		runs = append(runs, run{stmt.ColumnInt64(0), stmt.ColumnInt64(1), stmt.ColumnInt64(2)})
		return nil
	})
	return runs, err
}

func historyPosition(conn *sqlite.Conn, frozen, segment *int64) error {
	return dayQueries.each(conn, "history_position", func(stmt *sqlite.Stmt) error {
		*frozen, *segment = stmt.ColumnInt64(0), stmt.ColumnInt64(1)
		return nil
	})
}

// eventIDKey is a 63-bit hash, so that its order is the same signed.
func eventIDKey(service, id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(service))
	h.Write([]byte{0})
	h.Write([]byte(id))
	return h.Sum64() >> 1
}
