package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"fanfare.dev/fanfare"
)

//go:embed control/queries.sql
var controlText string

//go:embed sessions/queries.sql
var sessionText string

//go:embed mailboxes/queries.sql
var mailboxText string

//go:embed day/queries.sql
var dayText string

// Functions of the database create and drop the tables of a day, so that the previous version of the program creates them
// as the newer version needs them.

// createDay creates the tables of a day. It does nothing if they exist.
func createDay(ctx context.Context, conn *pgx.Conn, of fanfare.Day) error {
	_, err := conn.Exec(ctx, "SELECT make_day($1)", of.Time())
	return err
}

// removeDay drops the tables of a day if they exist. It fails with 55P03 (lock_not_available) if one of them is being read
// for longer than a moment.
func removeDay(ctx context.Context, conn *pgx.Conn, of fanfare.Day) error {
	_, err := conn.Exec(ctx, "SELECT drop_day($1)", of.Time())
	return err
}

// listDays returns the stored days, newest first.
func listDays(ctx context.Context, conn *pgx.Conn) ([]fanfare.Day, error) {
	rows, err := conn.Query(ctx, "SELECT day FROM days ORDER BY day DESC")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (fanfare.Day, error) {
		var day time.Time
		err := row.Scan(&day)
		return fanfare.DayOf(day), err
	})
}

// sessionTables are the tables of the sessions that contain personal data.
var sessionTables = []string{"sessions", "session_clients", "session_log"}

// mailboxTables are the tables of the mailboxes that contain personal data.
var mailboxTables = []string{"accounts", "credentials", "mailboxes", "messages", "contents", "content_data", "inbox_block_data", "mailbox_records", "mailbox_aliases"}

// scrubTables are the tables of a day, or of the control part, that contain personal data.
func scrubTables(of *fanfare.Day) []string {
	if of == nil {
		return []string{"subscribers", "subscriptions", "filters", "audit", "suppressions", "erasures", "consents"}
	}
	return []string{"broadcasts_" + of.String(), "attempts_" + of.String(), "parked"}
}
