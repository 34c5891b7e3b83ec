package deliveries

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// mergeRuns is the number of runs of one level that are merged into one of the next level, so that
// a look-up reads fewer than ten runs of each level.
const mergeRuns = 10

// levelOf returns the number of decimal digits of a run's size, minus one. Merging only runs of
// similar size writes each pair once per level.
func levelOf(size int64) (level int64) {
	for ; size >= mergeRuns; size /= mergeRuns {
		level++
	}
	return level
}

// MergeHistory merges ten runs of one level, if there are ten, and reports whether it did. It
// holds one block of each run in memory. It may run at the same time as IndexHistory, but only
// once at a time.
func (s *Store) MergeHistory(ctx context.Context, of fanfare.Day) (bool, error) {
	day, err := s.db.Day(ctx, of, false)
	if err != nil {
		return false, err
	}
	var runs []run
	err = day.Read(ctx, func(in store.Session) error {
		runs, err = listRuns(in)
		return err
	})
	chosen := mergeable(runs)
	if err != nil || chosen == nil {
		return false, err
	}
	merged, err := s.newRun(ctx, of, day)
	if err != nil {
		return false, err
	}
	for kind := range historyKinds {
		if err := merged.write(ctx, day, int64(kind), merge(ctx, day, int64(kind), chosen)); err != nil {
			s.remains.add(of, merged)
			return false, err
		}
	}
	err = day.Write(ctx, func(in store.Session) error {
		for _, r := range chosen {
			if err := in.Run("history_run_delete", r.segment); err != nil {
				return err
			}
		}
		return merged.list(in)
	})
	if err != nil {
		return false, err
	}
	return true, dropBlocks(ctx, day, chosen)
}

// mergeable returns the ten oldest runs of the lowest level that has ten, or nil.
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
func merge(ctx context.Context, day store.Part, kind int64, runs []run) blocks {
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
					if err := day.Read(ctx, r.more); err != nil {
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
func (r *reading) more(in store.Session) error {
	r.block = r.block[:0]
	last := r.last
	err := in.Each("history_next", func(row store.Row) error {
		r.last = row.Int64(0)
		eachPair(row.Bytes(1), func(p pair) bool {
			r.block = append(r.block, p)
			return true
		})
		return nil
	}, r.kind, r.segment, last)
	r.pairs, r.ended = r.block, len(r.block) == 0
	return err
}

func dropBlocks(ctx context.Context, day store.Part, runs []run) error {
	for _, r := range runs {
		err := day.Write(ctx, func(in store.Session) error {
			for kind := range historyKinds {
				if err := in.Run("history_delete", int64(kind), r.segment); err != nil {
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

// SweepHistory removes the blocks of incomplete runs that a crash left. It must be called before other methods that use
// the runs of a day.
func (s *Store) SweepHistory(ctx context.Context, of fanfare.Day) error {
	day, err := s.db.Day(ctx, of, false)
	if err != nil {
		return err
	}
	var left []run
	err = day.Read(ctx, func(in store.Session) error {
		left = nil
		runs, err := listRuns(in)
		if err != nil {
			return err
		}
		listed := map[int64]bool{}
		for _, r := range runs {
			listed[r.segment] = true
		}
		return in.Each("history_segments", func(r store.Row) error {
			if segment := r.Int64(0); !listed[segment] {
				left = append(left, run{segment: segment})
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return dropBlocks(ctx, day, left)
}
