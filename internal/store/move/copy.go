package move

import (
	"context"

	"golang.org/x/sync/errgroup"

	"fanfare.dev/fanfare/internal/store"
)

// pagesAhead is how many pages may have been read and not written yet.
const pagesAhead = 2

// copyTable writes what a session sees of a table into a part. Reading goes on
// while a page is written.
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

// clearTables empties a part.
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

// countRows counts what a part has.
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
