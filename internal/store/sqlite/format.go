package sqlite

import (
	"embed"

	"fanfare.dev/fanfare/internal/store"
)

// A format describes a kind of file: its content and its memory limits.
type format struct {
	appID      int32 // identifies the kind of file
	migrations embed.FS
	folder     string // folder of the migrations
	statements statements

	writerCacheKiB, readerCacheKiB int

	// logPages is the size of the write-ahead log, in pages of 4 KiB, at which a commit moves it into the file. A larger
	// log means fewer writes at random places. A smaller log is overwritten sooner, and syncing overwritten pages takes
	// half as long as syncing a log that still grows.
	logPages int
}

var (
	//go:embed control/[0-9]*.sql
	controlMigrations embed.FS
	//go:embed control/queries.sql
	controlQueries string
	//go:embed control/moves.sql
	controlMoves string
	//go:embed sessions/[0-9]*.sql
	sessionMigrations embed.FS
	//go:embed sessions/queries.sql
	sessionQueries string
	//go:embed mailboxes/[0-9]*.sql
	mailboxMigrations embed.FS
	//go:embed mailboxes/queries.sql
	mailboxQueries string
	//go:embed day/[0-9]*.sql
	dayMigrations embed.FS
	//go:embed day/queries.sql
	dayQueries string
)

var (
	controlFormat = format{
		appID: 0x46616e43 /* FanC */, migrations: controlMigrations, folder: "control", statements: parseStatements(controlQueries + controlMoves + copies(store.ControlTables())),
		writerCacheKiB: 8 << 10, readerCacheKiB: 4 << 10,
		logPages: 8000, // an import writes to random places; an event waits only for the synced pages
	}
	sessionFormat = format{
		appID: 0x46616e53 /* FanS */, migrations: sessionMigrations, folder: "sessions", statements: parseStatements(sessionQueries + copies(store.SessionTables())),
		writerCacheKiB: 8 << 10, readerCacheKiB: 4 << 10,
		logPages: 2000, // groups are appended
	}
	mailboxFormat = format{
		appID: 0x46616e4d /* FanM */, migrations: mailboxMigrations, folder: "mailboxes", statements: parseStatements(mailboxQueries + copies(store.MailboxTables())),
		writerCacheKiB: 8 << 10, readerCacheKiB: 4 << 10,
		logPages: 8000, // a group of deliveries writes to the pages of many accounts
	}
	dayFormat = format{
		appID: 0x46616e44 /* FanD */, migrations: dayMigrations, folder: "day", statements: parseStatements(dayQueries + copies(store.DayTables())),
		writerCacheKiB: 8 << 10, readerCacheKiB: 4 << 10,
		logPages: 2000, // outcomes are appended
	}
)
