package move

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Stopped moves data between databases that no server uses, and closes both. It completes a move
// that was interrupted in its last step.
func Stopped(ctx context.Context, from, to Side, o Options) (_ *Report, err error) {
	ended, err := finish(ctx, from, to, o)
	if ended || err != nil {
		return &Report{From: from.Name, To: to.Name}, errors.Join(err, from.DB.Close(), to.DB.Close())
	}
	s := NewSwitch(from)
	report, err := s.Move(ctx, to, o)
	if err != nil {
		err = errors.Join(err, to.DB.Close())
	}
	return report, errors.Join(err, s.Close())
}

// finish marks the target of a move that was interrupted after its source was marked.
func finish(ctx context.Context, from, to Side, o Options) (bool, error) {
	source, err := ReadMark(ctx, from.DB)
	if err != nil || source == nil || source.State != Left {
		return false, err
	}
	target, err := ReadMark(ctx, to.DB)
	if err != nil || target == nil || target.Move != source.Move || target.State != Full && target.State != Here {
		return false, err
	}
	return true, (&Mark{State: Here, Move: target.Move, Peer: from.Name, At: o.Clock.Now()}).write(ctx, to.DB)
}

// Compare reads two databases without writers, and returns the content of each. A difference is an
// error.
func Compare(ctx context.Context, from, to Side, progress *Progress) (*Report, error) {
	report := &Report{From: from.Name, To: to.Name}
	days, err := daysOf(ctx, from.DB, to.DB)
	if err != nil {
		return report, err
	}
	tables, err := compareParts(ctx, "control", store.ControlTables(), from.DB.Control(), to.DB.Control(), progress)
	report.Tables = append(report.Tables, tables...)
	if err == nil {
		tables, err = compareParts(ctx, "sessions", store.SessionTables(), from.DB.Sessions(), to.DB.Sessions(), progress)
		report.Tables = append(report.Tables, tables...)
	}
	if err == nil {
		tables, err = compareParts(ctx, "mailboxes", store.MailboxTables(), from.DB.Mailboxes(), to.DB.Mailboxes(), progress)
		report.Tables = append(report.Tables, tables...)
	}
	for _, day := range days {
		if err != nil {
			break
		}
		var here, there store.Part
		here, err = dayOf(ctx, from.DB, day)
		if err == nil {
			there, err = dayOf(ctx, to.DB, day)
		}
		if err == nil {
			tables, err = compareParts(ctx, day.String(), store.DayTables(), here, there, progress)
			report.Tables = append(report.Tables, tables...)
		}
	}
	if err == nil {
		err = report.verdict("differences are expected if a server has written to one of the databases since the move; otherwise, please report this error together with the names of the tables")
	}
	return report, err
}

// daysOf lists the days that one of two databases has, in their order.
func daysOf(ctx context.Context, a, b store.Database) ([]fanfare.Day, error) {
	days, err := a.Days(ctx)
	if err != nil {
		return nil, err
	}
	more, err := b.Days(ctx)
	days = append(days, more...)
	slices.Sort(days)
	return slices.Compact(days), err
}

// dayOf is nil for a day that a database does not have.
func dayOf(ctx context.Context, db store.Database, day fanfare.Day) (store.Part, error) {
	p, err := db.Day(ctx, day, false)
	if fanfare.CodeOf(err) == fanfare.NotFound {
		return nil, nil
	}
	return p, err
}

func compareParts(ctx context.Context, name string, tables []store.Table, from, to store.Part, progress *Progress) ([]Compared, error) {
	var sides [2][]Sum
	both, ctx := errgroup.WithContext(ctx)
	for i, p := range []store.Part{from, to} {
		if p == nil {
			sides[i] = slices.Repeat([]Sum{nothing}, len(tables))
			continue
		}
		both.Go(func() error {
			return p.Snapshot(ctx, func(s store.Session) (err error) {
				sides[i], err = sums(s, tables, progress)
				return err
			})
		})
	}
	if err := both.Wait(); err != nil {
		return nil, err
	}
	return compared(name, tables, sides[0], sides[1]), nil
}

// A Count is the number of rows of a table.
type Count struct {
	Part, Table string
	Rows        int64
}

// Plan returns what a move would copy, or the reason why it is refused. It changes nothing.
func Plan(ctx context.Context, from, to Side) ([]Count, error) {
	if err := admit(ctx, from, to); err != nil {
		return nil, err
	}
	days, err := from.DB.Days(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := count(ctx, "control", from.DB.Control(), store.ControlTables())
	if err == nil {
		var more []Count
		more, err = count(ctx, "sessions", from.DB.Sessions(), store.SessionTables())
		counts = append(counts, more...)
	}
	if err == nil {
		var more []Count
		more, err = count(ctx, "mailboxes", from.DB.Mailboxes(), store.MailboxTables())
		counts = append(counts, more...)
	}
	for _, day := range slices.Backward(days) {
		if err != nil {
			break
		}
		var p store.Part
		if p, err = from.DB.Day(ctx, day, false); err == nil {
			var more []Count
			more, err = count(ctx, day.String(), p, store.DayTables())
			counts = append(counts, more...)
		}
	}
	return counts, err
}

func count(ctx context.Context, name string, p store.Part, tables []store.Table) ([]Count, error) {
	var counts []Count
	for i := range tables {
		n, err := countRows(ctx, p, tables[i:i+1])
		if err != nil {
			return nil, err
		}
		counts = append(counts, Count{name, tables[i].Name, n})
	}
	return counts, nil
}
