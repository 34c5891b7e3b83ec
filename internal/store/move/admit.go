package move

import (
	"context"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// admit refuses a move from a database that is not in charge, and a move into a database that
// has data of its own. The remains of an unfinished move from the same source, and data that
// was moved from there before, do not count as data of its own.
func admit(ctx context.Context, from, to Side) error {
	if err := CheckStart(ctx, from); err != nil {
		return err
	}
	source, err := ReadMark(ctx, from.DB)
	if err != nil {
		return err
	}
	target, err := ReadMark(ctx, to.DB)
	if err != nil {
		return err
	}
	switch {
	case target == nil:
		return checkEmpty(ctx, to)
	case (target.State == Filling || target.State == Full) && target.Peer == from.Name:
		return nil
	case target.State == Left && source != nil && source.Move == target.Move:
		return nil
	case target.State == Here:
		return notEmpty(to)
	}
	return target.refusal(to.Name)
}

func notEmpty(to Side) error {
	return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("%s is not empty", to.Name), Hint: "use an empty database, or delete the data in this one first"}
}

func checkEmpty(ctx context.Context, to Side) error {
	days, err := to.DB.Days(ctx)
	if err != nil {
		return err
	}
	if len(days) > 0 {
		return notEmpty(to)
	}
	tables := store.ControlTables()[1:] // every database begins with a row of meta
	n, err := countRows(ctx, to.DB.Control(), tables)
	if err == nil && n == 0 {
		n, err = countRows(ctx, to.DB.Sessions(), store.SessionTables())
	}
	if err == nil && n == 0 {
		n, err = countRows(ctx, to.DB.Mailboxes(), store.MailboxTables())
	}
	if err == nil && n > 0 {
		err = notEmpty(to)
	}
	return err
}
