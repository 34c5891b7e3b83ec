package postgres

import (
	_ "embed"
	"fmt"
	"slices"

	"fanfare.dev/fanfare/internal/store"
)

//go:embed control/moves.sql
var movesText string

// sharedTables have rows of all days; each other table of a day belongs to that day alone.
func sharedTables() []string {
	return []string{"switches", "controls", "held", "parked", "counters", "history_runs", "history_position", "advances", "gathered", "pending", "runs", "items", "message_files", "notices", "notices_position", "filter_answers"}
}

// controlFile, sessionFile, mailboxFile and dayFile contain all statements of a part: those of its file, and those that copy its tables.
func controlFile() string {
	return controlText + movesText + copies(store.ControlTables(), func(table string) (string, string, string, string) {
		return table, "", "", ""
	})
}

func sessionFile() string {
	return sessionText + copies(store.SessionTables(), func(table string) (string, string, string, string) {
		return table, "", "", ""
	})
}

func mailboxFile() string {
	return mailboxText + copies(store.MailboxTables(), func(table string) (string, string, string, string) {
		return table, "", "", ""
	})
}

func dayFile() string {
	return dayText + copies(store.DayTables(), func(table string) (string, string, string, string) {
		if slices.Contains(sharedTables(), table) {
			return table, "day, ", "'" + dayHere + "', ", "day = '" + dayHere + "'"
		}
		return table + "_" + dayHere, "", "", ""
	})
}

func copies(tables []store.Table, place func(string) (string, string, string, string)) string {
	return "\n" + store.CopyStatements(tables, store.Dialect{
		Param: func(number int) string { return fmt.Sprintf("$%d", number) },
		Bound: func(number int, kind store.Kind) string {
			types := map[store.Kind]string{store.IntColumn: "bigint", store.TextColumn: "text", store.BlobColumn: "bytea"}
			return fmt.Sprintf("$%d::%s", number, types[kind])
		},
		Place:  place,
		Binary: func(column string) string { return column + ` COLLATE "C"` },
	})
}

// dayHere is the placeholder for the day in SQL texts.
const dayHere = "yyyymmdd"
