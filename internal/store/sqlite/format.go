package sqlite

import (
	"embed"

	"fanfare.dev/fanfare/internal/store"
)

// A format is what a kind of file has in it, and how much memory is spent on one.
type format struct {
	appID      int32 // marks the file
	migrations embed.FS
	folder     string // of the migrations
	statements statements

	writerCacheKiB, readerCacheKiB int

	// logPages is when a commit moves the write-ahead log into the file, in pages
	// of 4 KiB. Larger is fewer writes at random places; smaller is a log that is
	// written over sooner, and a sync of what is written over takes half of what
	// it takes where the log still grows.
	logPages int
}

var (
	//go:embed control/[0-9]*.sql
	controlMigrations embed.FS
	//go:embed control/queries.sql
	controlQueries string
	//go:embed control/moves.sql
	controlMoves string
	//go:embed day/[0-9]*.sql
	dayMigrations embed.FS
	//go:embed day/queries.sql
	dayQueries string
)

var (
	controlFormat = format{
		appID: 0x46616e43 /* FanC */, migrations: controlMigrations, folder: "control", statements: parseStatements(controlQueries + controlMoves + copies(store.ControlTables())),
		writerCacheKiB: 8 << 10, readerCacheKiB: 4 << 10,
		logPages: 8000, // an import writes everywhere; what is synced at once is what an event waits for
	}
	dayFormat = format{
		appID: 0x46616e44 /* FanD */, migrations: dayMigrations, folder: "day", statements: parseStatements(dayQueries + copies(store.DayTables())),
		writerCacheKiB: 8 << 10, readerCacheKiB: 4 << 10,
		logPages: 2000, // outcomes are appended
	}
)
