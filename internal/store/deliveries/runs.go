package deliveries

import (
	"context"
	"slices"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

const (
	blockPairs = 1024
	// blocksPerCommit limits how long indexing delays the recorder.
	blocksPerCommit = 64
)

// run is a sorted set of pairs of each kind under one number.
type run struct {
	segment, size int64
}

// remains are incomplete runs. Each is removed before the next run begins, so that they do not fill a database in which
// some writes fail.
type remains struct {
	mu   sync.Mutex
	runs map[fanfare.Day][]run
}

func (r *remains) add(of fanfare.Day, runs ...run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == nil {
		r.runs = map[fanfare.Day][]run{}
	}
	r.runs[of] = append(r.runs[of], runs...)
}

func (r *remains) take(of fanfare.Day) []run {
	r.mu.Lock()
	defer r.mu.Unlock()
	runs := r.runs[of]
	delete(r.runs, of)
	return runs
}

// newRun takes the next number. The run does not count before it is listed.
func (s *Store) newRun(ctx context.Context, of fanfare.Day, day store.Part) (r run, err error) {
	left := s.remains.take(of)
	if err := dropBlocks(ctx, day, left); err != nil {
		s.remains.add(of, left...)
		return r, err
	}
	err = day.Write(ctx, func(in store.Session) error {
		r.segment, err = number(in, "history_new")
		return err
	})
	return r, err
}

// list makes a run count.
func (r run) list(in store.Session) error {
	return in.Run("history_run_insert", r.segment, levelOf(r.size), r.size)
}

func listRuns(in store.Session) ([]run, error) {
	var runs []run
	err := in.Each("history_runs", func(r store.Row) error {
		runs = append(runs, run{r.Int64(0), r.Int64(1)})
		return nil
	})
	return runs, err
}

// blocks returns the blocks of a run in ascending order, each valid until the next call, and an empty block at the end.
// All pairs of a key are in one block.
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

// write writes the blocks of a kind, a few to a transaction, and counts their
// pairs.
func (r *run) write(ctx context.Context, day store.Part, kind int64, next blocks) error {
	type encoded struct {
		first int64
		pairs []byte
	}
	for ended := false; !ended; {
		some := make([]encoded, 0, blocksPerCommit)
		for len(some) < blocksPerCommit && !ended {
			block, err := next()
			if err != nil {
				return err
			}
			if ended = len(block) == 0; !ended {
				some = append(some, encoded{int64(block[0].key), appendPairs(nil, block)})
				r.size += int64(len(block))
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(some) == 0 {
			return nil
		}
		err := day.Write(ctx, func(in store.Session) error {
			return in.Insert("history_insert", len(some), func(i int, to store.Values) {
				to.Int64(kind)
				to.Int64(r.segment)
				to.Int64(some[i].first)
				to.Bytes(some[i].pairs)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
