package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestProblemsOfDatabaseFilesAreNamedWithTheirFix(t *testing.T) {
	good := File{Name: "control.db", Bytes: 2e6, Private: true, Seen: 3, Known: 3}
	for _, test := range []struct {
		change func(*File)
		level  Level
		what   string
		mend   string
	}{
		{func(*File) {}, OK, "2 database files can be read, 4 MB in total", ""},
		{func(f *File) { f.Seen = 2 }, OK, "2 database files", ""}, // the server upgrades it
		{func(f *File) { f.Seen = 4 }, Wrong, "mailboxes.db was upgraded by a newer version of Fanfare: it has schema version 4, but this program supports versions up to 3", "use the newer version"},
		{func(f *File) { f.Unreadable = errors.New("file is not a database") }, Wrong, "mailboxes.db cannot be read as a database: file is not a database", "restore a backup"},
		{func(f *File) { f.Unreadable, f.NotPermitted, f.Private = errors.New("permission denied"), true, false }, Wrong, "this user cannot read", "the user that runs the server"},
		{func(f *File) { f.Private = false }, Warning, "other users can read", "chmod o= "},
	} {
		o := healthy(t)
		other := good
		other.Name = "mailboxes.db"
		test.change(&other)
		o.Files = func(context.Context) ([]File, error) { return []File{good, other}, nil }
		r := Look(t.Context(), o)
		list := r.of("files")
		if len(list) == 0 || list[0].Level != test.level || !strings.Contains(list[0].What, test.what) || !strings.Contains(list[0].Mend, test.mend) {
			t.Errorf("%+v: %+v", other, list)
		}
		if test.level == Wrong && (len(list) != 1 || r.Wrong != 1) {
			t.Errorf("%+v: more than one problem: %+v", other, list)
		}
	}
}
