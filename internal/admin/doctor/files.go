package doctor

import (
	"context"
	"path/filepath"
)

// A File is a database file of the data directory.
type File struct {
	Name         string // below the data directory
	Bytes        int64
	Private      bool  // other users cannot read it
	Seen, Known  int   // schema version of the file, and the newest one of this program
	Unreadable   error // nil: it could be read
	NotPermitted bool  // this user cannot read it
}

// files checks the database files in the data directory.
func (o *Options) files(ctx context.Context, r *Report) {
	if !o.Config.SQLite() {
		return
	}
	list, err := o.Files(ctx)
	if err != nil {
		r.wrong("files", "", "the database files cannot be examined: %v", err)
		return
	}
	good, bytes := 0, int64(0)
	for _, f := range list {
		path := filepath.Join(o.Config.DataDir, f.Name)
		switch {
		case f.NotPermitted:
			r.wrong("files", "run this command as the user that runs the server", "this user cannot read %s", path)
		case f.Unreadable != nil:
			r.wrong("files", "check the disk, and restore a backup into another directory", "%s cannot be read as a database: %v", path, f.Unreadable)
		case f.Seen > f.Known:
			r.wrong("files", "use the newer version, or restore a backup from before the upgrade into another directory",
				"%s was upgraded by a newer version of Fanfare: it has schema version %d, but this program supports versions up to %d", path, f.Seen, f.Known)
		default:
			good++
			bytes += f.Bytes
		}
		if !f.Private && !f.NotPermitted {
			r.warn("files", "chmod o= "+path, "other users can read %s, which contains addresses or messages", path)
		}
	}
	if good == len(list) && good > 0 {
		r.ok("files", "%d database files can be read, %s in total", good, size(bytes))
	}
}
