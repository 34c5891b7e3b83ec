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

// What a key stands for; the numbers are stored.
const (
	historySubscribers = iota // place of a subscriber
	historyEventIDs           // hash of service and id of the CloudEvent
	historyReferences         // hash of service and reference, of direct sends that have one
	historyKinds
)

const (
	blockPairs = 1024
	// runEvents and runPairs bound one run, and so the memory it takes to sort.
	runEvents = 50_000
	runPairs  = 1_000_000
	// blocksPerCommit bounds how long indexing keeps the recorder waiting.
	blocksPerCommit = 64
)

// run is a sorted set of pairs of each kind under one number.
type run struct {
	segment, size int64
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
	var pairs [historyKinds][]pair
	var position int64
	events := 0
	err = d.read(ctx, func(conn *sqlite.Conn) (err error) {
		if position, err = historyPosition(conn); err != nil {
			return err
		}
		return dayQueries.each(conn, "broadcasts_behind", func(stmt *sqlite.Stmt) error {
			seq := fanfare.EventSeq(stmt.ColumnInt64(1))
			var posted indexed
			if err := json.Unmarshal(bytesAt(stmt, 2), &posted); err != nil {
				return err
			}
			added, err := subscriberPairs(conn, pairs[historySubscribers], seq)
			if err != nil {
				return err
			}
			pairs[historySubscribers] = added
			pairs[historyEventIDs] = append(pairs[historyEventIDs], pair{textKey(posted.Service, posted.Event.ID), seq})
			if reference := posted.Direct.Reference; reference != "" {
				pairs[historyReferences] = append(pairs[historyReferences], pair{textKey(posted.Service, reference), seq})
			}
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
	r, err := d.newRun()
	if err != nil {
		return 0, err
	}
	for kind := range historyKinds {
		size, err := d.writeRun(ctx, int64(kind), r.segment, cut(pairs[kind]))
		if err != nil {
			return 0, err
		}
		r.size += size
	}
	return events, d.write(func(conn *sqlite.Conn) error {
		if err := r.list(conn); err != nil {
			return err
		}
		return dayQueries.run(conn, "history_advance", position)
	})
}

// newRun takes the next number. The run does not count before it is listed.
func (d *day) newRun() (r run, err error) {
	err = d.write(func(conn *sqlite.Conn) error {
		return dayQueries.each(conn, "history_new", func(stmt *sqlite.Stmt) error {
			r.segment = stmt.ColumnInt64(0)
			return nil
		})
	})
	return r, err
}

// list makes a run count.
func (r run) list(conn *sqlite.Conn) error {
	return dayQueries.run(conn, "history_run_insert", r.segment, levelOf(r.size), r.size)
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

// blocks gives the blocks of a run in ascending order, each valid until the
// next, and an empty one at the end. A key never lies in two.
type blocks func() ([]pair, error)

// cut sorts pairs and returns their blocks.
func cut(pairs []pair) blocks {
	slices.SortFunc(pairs, comparePairs)
	return func() ([]pair, error) {
		n := min(blockPairs, len(pairs))
		for n > 0 && n < len(pairs) && pairs[n].key == pairs[n-1].key {
			n++
		}
		block := pairs[:n]
		pairs = pairs[n:]
		return block, nil
	}
}

// writeRun writes the blocks of a run, a few to a transaction, and returns how
// many pairs they have.
func (d *day) writeRun(ctx context.Context, kind, segment int64, next blocks) (size int64, err error) {
	type encoded struct {
		first int64
		pairs []byte
	}
	for ended := false; !ended; {
		some := make([]encoded, 0, blocksPerCommit)
		for len(some) < blocksPerCommit && !ended {
			block, err := next()
			if err != nil {
				return 0, err
			}
			if ended = len(block) == 0; !ended {
				some = append(some, encoded{int64(block[0].key), appendPairs(nil, block)})
				size += int64(len(block))
			}
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		err := d.write(func(conn *sqlite.Conn) error {
			for _, b := range some {
				if err := dayQueries.run(conn, "history_insert", kind, segment, b.first, b.pairs); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return size, nil
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
		position, err := historyPosition(conn)
		if err != nil {
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

// HistoryLag counts the events of a day that are not in a run yet.
func (s *Deliveries) HistoryLag(ctx context.Context, of fanfare.Day) (int64, error) {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return 0, err
	}
	var lag int64
	err = d.read(ctx, func(conn *sqlite.Conn) error {
		position, err := historyPosition(conn)
		if err != nil {
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
		runs = append(runs, run{stmt.ColumnInt64(0), stmt.ColumnInt64(1)})
		return nil
	})
	return runs, err
}

// historyPosition is the last event that is in a run, in the order of freezing.
func historyPosition(conn *sqlite.Conn) (frozen int64, err error) {
	err = dayQueries.each(conn, "history_position", func(stmt *sqlite.Stmt) error {
		frozen = stmt.ColumnInt64(0)
		return nil
	})
	return frozen, err
}

// textKey is a 63-bit hash, so that its order is the same signed.
func textKey(service, text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(service))
	h.Write([]byte{0})
	h.Write([]byte(text))
	return h.Sum64() >> 1
}
