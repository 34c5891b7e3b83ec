package sqlite

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitemigration"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare"
)

// migrate brings a file's schema up to date. It runs the scripts of the format that the file has not seen, in the order of
// their names, which begin with 001 and have no gaps, each in its own transaction. A released script never changes. A file
// that has seen more scripts than this program has is refused with Conflict, because an older program would write data
// that the newer one does not expect.
func migrate(ctx context.Context, conn *sqlite.Conn, file string, format *format) error {
	scripts, err := format.scripts()
	if err != nil {
		return err
	}
	var seen int
	err = sqlitex.ExecuteTransient(conn, "PRAGMA user_version", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		seen = stmt.ColumnInt(0)
		return nil
	}})
	if err != nil {
		return err
	}
	if seen > len(scripts) {
		return &fanfare.Error{Code: fanfare.Conflict,
			Message: fmt.Sprintf("the data directory was upgraded by a newer version of Fanfare: %s has schema version %d, and this version of Fanfare supports at most version %d", filepath.Base(file), seen, len(scripts)),
			Hint:    "start the newer version, or restore a backup from before the upgrade into another directory"}
	}
	return sqlitemigration.Migrate(ctx, conn, sqlitemigration.Schema{AppID: format.appID, Migrations: scripts})
}

// scripts reads the migrations in order.
func (f *format) scripts() ([]string, error) {
	entries, err := fs.ReadDir(f.migrations, f.folder) // sorted by name
	if err != nil {
		return nil, err
	}
	scripts := make([]string, 0, len(entries))
	for _, entry := range entries {
		script, err := f.migrations.ReadFile(path.Join(f.folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		scripts = append(scripts, string(script))
	}
	return scripts, nil
}
