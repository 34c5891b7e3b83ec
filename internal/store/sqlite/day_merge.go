package sqlite

import (
	"context"
	"slices"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

const (
	// mergeRuns is how many runs of one level become one of the next, so that a
	// look-up meets fewer than ten of each.
	mergeRuns = 10
	// mergePairs bounds the memory of a merge; larger runs stay as they are.
	mergePairs = 1_000_000
)

// MergeHistory merges runs of one level where there are enough of them, and
// reports whether it did. It is called by the goroutine that indexes.
func (s *Deliveries) MergeHistory(ctx context.Context, of fanfare.Day) (bool, error) {
	d, err := s.day(ctx, of, false)
	if err != nil {
		return false, err
	}
	var runs []run
	var position, segment int64
	err = d.read(ctx, func(conn *sqlite.Conn) (err error) {
		if runs, err = listRuns(conn); err != nil {
			return err
		}
		return historyPosition(conn, &position, &segment)
	})
	if err != nil {
		return false, err
	}
	chosen := mergeable(runs)
	if chosen == nil {
		return false, nil
	}
	merged := run{segment: segment, level: chosen[0].level + 1}
	for _, kind := range historyKinds {
		pairs, err := d.pairsOf(ctx, kind, chosen)
		if err != nil {
			return false, err
		}
		merged.size += int64(len(pairs))
		if err := d.writeRun(kind, segment, pairs); err != nil {
			return false, err
		}
	}
	err = d.write(func(conn *sqlite.Conn) error {
		for _, r := range chosen {
			if err := dayQueries.run(conn, "history_run_delete", r.segment); err != nil {
				return err
			}
		}
		if err := dayQueries.run(conn, "history_run_insert", merged.segment, merged.level, merged.size); err != nil {
			return err
		}
		return dayQueries.run(conn, "history_advance", position, segment+1)
	})
	if err != nil {
		return false, err
	}
	return true, d.dropBlocks(chosen)
}

// mergeable returns ten runs of one level that fit into one, the lowest level
// first; nil if there are none.
func mergeable(runs []run) []run {
	byLevel := map[int64][]run{}
	var levels []int64
	for _, r := range runs {
		if byLevel[r.level] == nil {
			levels = append(levels, r.level)
		}
		byLevel[r.level] = append(byLevel[r.level], r)
	}
	slices.Sort(levels)
	for _, level := range levels {
		list := byLevel[level]
		list = slices.DeleteFunc(list, func(r run) bool { return r.size > mergePairs/mergeRuns })
		if len(list) >= mergeRuns {
			return list[:mergeRuns]
		}
	}
	return nil
}

func (d *day) pairsOf(ctx context.Context, kind int64, runs []run) ([]pair, error) {
	var pairs []pair
	err := d.read(ctx, func(conn *sqlite.Conn) error {
		for _, r := range runs {
			err := dayQueries.each(conn, "history_all", func(stmt *sqlite.Stmt) error {
				eachPair(bytesAt(stmt, 0), func(p pair) bool {
					pairs = append(pairs, p)
					return true
				})
				return nil
			}, kind, r.segment)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return pairs, err
}

func (d *day) dropBlocks(runs []run) error {
	for _, r := range runs {
		err := d.write(func(conn *sqlite.Conn) error {
			for _, kind := range historyKinds {
				if err := dayQueries.run(conn, "history_delete", kind, r.segment); err != nil {
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
