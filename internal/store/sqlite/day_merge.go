package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

// mergeRuns is how many runs of one level become one of the next, so that a
// look-up meets fewer than ten of each.
const mergeRuns = 10

// levelOf is the number of decimal digits of a run's size, less one: merging
// what is alike in size writes each pair once a level.
func levelOf(size int64) (level int64) {
	for ; size >= mergeRuns; size /= mergeRuns {
		level++
	}
	return level
}

// MergeHistory makes one run of ten of one level, where there are ten, and
// reports whether it did. It holds a block of each in memory, whatever their
// size, and may run beside IndexHistory, but not beside itself.
func (s *Deliveries) MergeHistory(ctx context.Context, of fanfare.Day) (bool, error) {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return false, err
	}
	var runs []run
	err = d.read(ctx, func(conn *sqlite.Conn) (err error) {
		runs, err = listRuns(conn)
		return err
	})
	chosen := mergeable(runs)
	if err != nil || chosen == nil {
		return false, err
	}
	merged, err := d.newRun()
	if err != nil {
		return false, err
	}
	for kind := range historyKinds {
		size, err := d.writeRun(ctx, int64(kind), merged.segment, d.merge(ctx, int64(kind), chosen))
		if err != nil {
			return false, err
		}
		merged.size += size
	}
	err = d.write(func(conn *sqlite.Conn) error {
		for _, r := range chosen {
			if err := dayQueries.run(conn, "history_run_delete", r.segment); err != nil {
				return err
			}
		}
		return merged.list(conn)
	})
	if err != nil {
		return false, err
	}
	return true, d.dropBlocks(chosen)
}

// mergeable returns the ten oldest runs of the lowest level that has ten; nil
// if none has.
func mergeable(runs []run) []run {
	byLevel := map[int64][]run{}
	highest := int64(0)
	for _, r := range runs {
		level := levelOf(r.size)
		byLevel[level] = append(byLevel[level], r)
		highest = max(highest, level)
	}
	for level := range highest + 1 {
		if list := byLevel[level]; len(list) >= mergeRuns {
			return list[:mergeRuns]
		}
	}
	return nil
}

// merge returns the blocks of a run that has the pairs of all of runs.
func (d *day) merge(ctx context.Context, kind int64, runs []run) blocks {
	open := make([]*reading, len(runs))
	for i, r := range runs {
		open[i] = &reading{kind: kind, segment: r.segment, last: -1}
	}
	var block []pair
	return func() ([]pair, error) {
		block = block[:0]
		for {
			var least *reading
			for _, r := range open {
				if len(r.pairs) == 0 && !r.ended {
					if err := d.read(ctx, r.more); err != nil {
						return nil, err
					}
				}
				if len(r.pairs) > 0 && (least == nil || comparePairs(r.pairs[0], least.pairs[0]) < 0) {
					least = r
				}
			}
			if least == nil || len(block) >= blockPairs && least.pairs[0].key != block[len(block)-1].key {
				return block, nil
			}
			block = append(block, least.pairs[0])
			least.pairs = least.pairs[1:]
		}
	}
}

// reading is a run that is read block by block.
type reading struct {
	kind, segment int64
	last          int64 // the first key of the block that was read last
	block, pairs  []pair
	ended         bool
}

// more reads the next block.
func (r *reading) more(conn *sqlite.Conn) error {
	r.block = r.block[:0]
	err := dayQueries.each(conn, "history_next", func(stmt *sqlite.Stmt) error {
		r.last = stmt.ColumnInt64(0)
		eachPair(bytesAt(stmt, 1), func(p pair) bool {
			r.block = append(r.block, p)
			return true
		})
		return nil
	}, r.kind, r.segment, r.last)
	r.pairs, r.ended = r.block, len(r.block) == 0
	return err
}

func (d *day) dropBlocks(runs []run) error {
	for _, r := range runs {
		err := d.write(func(conn *sqlite.Conn) error {
			for kind := range historyKinds {
				if err := dayQueries.run(conn, "history_delete", int64(kind), r.segment); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// SweepHistory removes the blocks of runs that a crash left unfinished. It runs
// before anything else is done with the runs of a day.
func (s *Deliveries) SweepHistory(ctx context.Context, of fanfare.Day) error {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return err
	}
	listed := map[int64]bool{}
	var left []run
	err = d.read(ctx, func(conn *sqlite.Conn) error {
		runs, err := listRuns(conn)
		if err != nil {
			return err
		}
		for _, r := range runs {
			listed[r.segment] = true
		}
		return dayQueries.each(conn, "history_segments", func(stmt *sqlite.Stmt) error {
			if segment := stmt.ColumnInt64(0); !listed[segment] {
				left = append(left, run{segment: segment})
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return d.dropBlocks(left)
}
