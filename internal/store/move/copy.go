package move

import (
	"context"

	"golang.org/x/sync/errgroup"

	"fanfare.dev/fanfare/internal/store"
)

// pagesAhead limits the pages that are read and not yet written.
const pagesAhead = 2

// copyTable copies a table from a session to a part. It reads while it writes.
func copyTable(ctx context.Context, from store.Session, to store.Part, t *store.Table, progress *Progress) error {
	pages := make(chan *rows, pagesAhead)
	writing, writes := errgroup.WithContext(ctx)
	writing.Go(func() error {
		for page := range pages {
			err := to.Write(ctx, func(s store.Session) error { return s.Insert("fill_"+t.Name, page.len(), page.bind) })
			if err != nil {
				return err
			}
			progress.add(page)
		}
		return nil
	})
	err := scan(from, t, func(page *rows) error {
		select {
		case pages <- page:
			return nil
		case <-writes.Done():
			return context.Cause(writes)
		}
	})
	close(pages)
	if written := writing.Wait(); written != nil {
		return written
	}
	return err
}

// clearTables deletes all rows of a part.
func clearTables(ctx context.Context, part store.Part, tables []store.Table) error {
	return part.Erase(ctx, func(s store.Session) error {
		for i := range tables {
			if err := s.Run("clear_" + tables[i].Name); err != nil {
				return err
			}
		}
		return nil
	})
}

// countRows counts the rows of a part.
func countRows(ctx context.Context, part store.Part, tables []store.Table) (n int64, err error) {
	err = part.Read(ctx, func(s store.Session) error {
		n = 0
		for i := range tables {
			err := s.Each("count_"+tables[i].Name, func(r store.Row) error { n += r.Int64(0); return nil })
			if err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}
