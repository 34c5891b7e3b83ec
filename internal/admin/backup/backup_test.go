package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"fanfare.dev/fanfare"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// fixed is a clock that stands still.
type fixed struct{}

func (fixed) Now() time.Time { return noon }

// content is a file of the store in tests: bytes, and no moment.
type content []byte

func (c content) Size() int64 { return int64(len(c)) }
func (c content) Copy(_ context.Context, w io.Writer) error {
	_, err := w.Write(c)
	return err
}
func (content) Close() error { return nil }

// files are what a data directory has in tests.
var files = map[string]string{
	"control.db":                         strings.Repeat("people", 100),
	"sessions.db":                        strings.Repeat("work", 100),
	"mailboxes.db":                       strings.Repeat("mail", 100),
	"control.db-wal":                     "not copied as it is",
	"link.key":                           "signs links",
	"admin.key":                          "opens everything",
	"lock":                               "",
	"deliveries/deliveries-20261119.db":  strings.Repeat("yesterday", 50),
	"deliveries/deliveries-20261120.db":  strings.Repeat("today", 90),
	"deliveries/deliveries-20261120.db2": "of somebody else",
	"bus/jetstream/meta":                 "is made anew",
}

// dataDir is a data directory of files, with groups of unmatched events.
func dataDir(t *testing.T, groups ...string) *Source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &Source{Dir: dir, Version: "v1.2.3", Clock: fixed{},
		Snapshot: func(path string) (Snapshot, error) {
			text, err := os.ReadFile(path)
			return content(text), err
		},
		Unmatched: func(_ context.Context, visit func([]byte, int, fanfare.EventSeq) error) error {
			for i, g := range groups {
				if err := visit([]byte(g), 2, fanfare.NewEventSeq(uint64(i+7), 1)); err != nil {
					return err
				}
			}
			return nil
		}}
}

func take(t *testing.T, s *Source) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Take(t.Context(), &b, s, 0); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBackupHasItsPartsInOrder(t *testing.T) {
	large := strings.Repeat("x", eventsBytes)
	var names []string
	m, err := Read(bytes.NewReader(take(t, dataDir(t, "one", large, "three"))), Visitor{
		Header: func(h Header) error {
			if want := int64(600 + 400 + 400 + 450 + 450 + len("not copied as it is")); h.Bytes != want || h.Fanfare != "v1.2.3" {
				t.Errorf("the header is %+v, want %d bytes", h, want)
			}
			return nil
		},
		Part: func(name string, _ int64, _ io.Reader) error { names = append(names, name); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"events/000001", "events/000002", "deliveries/deliveries-20261119.db", "deliveries/deliveries-20261120.db", "sessions.db", "mailboxes.db", "link.key", "control.db"}
	if !slices.Equal(names, want) {
		t.Errorf("it has %v, want %v", names, want)
	}
	if m.Events != 6 || m.LastEvent != fanfare.NewEventSeq(9, 1) || m.Days() != 2 || !m.Began.Equal(noon) {
		t.Errorf("the manifest is %+v", m)
	}
}

func TestRestoreEqualsTheBackup(t *testing.T) {
	backup := take(t, dataDir(t, "one", "two"))
	dir := filepath.Join(t.TempDir(), "new", "data")
	later := noon.Add(time.Hour)
	if _, err := Restore(bytes.NewReader(backup), dir, later, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := tree(t, dir), []string{"control.db", "deliveries/deliveries-20261119.db", "deliveries/deliveries-20261120.db", "events/000001", "link.key", "mailboxes.db", "restored.json", "sessions.db"}; !slices.Equal(got, want) {
		t.Errorf("restored are %v, want %v", got, want)
	}
	for _, name := range tree(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, %v", name, info.Mode(), err)
		}
		if want, ours := files[name]; ours {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
	}
	note, err := ReadNote(dir)
	if err != nil || !note.New() || !note.Backup.Equal(noon) || !note.Restored.Equal(later) || note.LastEvent != fanfare.NewEventSeq(8, 1) {
		t.Errorf("the note is %+v, %v", note, err)
	}
	var groups []string
	if err := ReadEvents(dir, func(g []byte) error { groups = append(groups, string(g)); return nil }); err != nil || !slices.Equal(groups, []string{"one", "two"}) {
		t.Errorf("the events are %q, %v", groups, err)
	}
	if err := Interrupted(dir); err != nil {
		t.Error(err)
	}
	if _, err := Restore(bytes.NewReader(backup), dir, later, nil); fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into what is there already: %v", err)
	}
}

// Each byte of the parts, the manifest and the headers counts; only the padding after the last part may be missing.
func TestTruncatedBackupIsRefused(t *testing.T) {
	backup := take(t, dataDir(t, "one"))
	whole := len(backup)
	for whole > 0 && backup[whole-1] == 0 {
		whole--
	}
	dir := t.TempDir()
	for n := range whole {
		_, err := Read(bytes.NewReader(backup[:n]), Visitor{})
		if n%512 == 1 { // once in each block
			_, err = Restore(bytes.NewReader(backup[:n]), dir, noon, nil)
		}
		if fanfare.CodeOf(err) != fanfare.Invalid || !strings.Contains(err.Error(), "truncated") {
			t.Fatalf("cut after %d bytes of %d: %v", n, len(backup), err)
		}
		if left := tree(t, dir); left != nil {
			t.Fatalf("after %d bytes it leaves %v", n, left)
		}
	}
	if _, err := Restore(bytes.NewReader(backup), dir, noon, nil); err != nil {
		t.Errorf("the complete backup: %v", err)
	}
}

func TestDamagedBackupIsRefusedWithItsPart(t *testing.T) {
	backup := take(t, dataDir(t, "one"))
	for _, part := range []string{"people", "yesterday", "signs links", `"format":3`, "v1.2.3\",\n", "control.db\x00"} {
		at := bytes.LastIndex(backup, []byte(part))
		if at < 0 {
			t.Fatalf("%q is not in the backup", part)
		}
		for bit := range 8 {
			bad := bytes.Clone(backup)
			bad[at+1] ^= 1 << bit
			_, err := Read(bytes.NewReader(bad), Visitor{})
			if fanfare.CodeOf(err) != fanfare.Invalid {
				t.Errorf("bit %d of %q turned: %v", bit, part, err)
			}
		}
	}
	bad := bytes.Replace(backup, []byte("yesterdayyester"), []byte("yesterdayYester"), 1)
	if _, err := Read(bytes.NewReader(bad), Visitor{}); err == nil || !strings.Contains(err.Error(), "deliveries/deliveries-20261119.db was modified") {
		t.Errorf("the error does not name the part: %v", err)
	}
	for name, text := range map[string][]byte{"empty": nil, "text": []byte("hello"), "zeros": make([]byte, 4096)} {
		if _, err := Read(bytes.NewReader(text), Visitor{}); fanfare.CodeOf(err) != fanfare.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBackupOfANewerVersionIsRefused(t *testing.T) {
	var b bytes.Buffer
	if _, err := newWriter(&b, Header{Format: Format + 1, Fanfare: "v9"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(&b, Visitor{}); fanfare.CodeOf(err) != fanfare.Invalid || !strings.Contains(err.Error(), "v9") {
		t.Errorf("got %v", err)
	}
}

func TestBackupsOfOlderFormatsAreRestored(t *testing.T) {
	for format, parts := range [][]string{1: {"control.db"}, 2: {"sessions.db", "control.db"}} {
		if format == 0 {
			continue
		}
		var b bytes.Buffer
		w, err := newWriter(&b, Header{Format: format, Fanfare: "v0.1.0"})
		for _, name := range parts {
			if err == nil {
				err = w.bytes(name, []byte(files[name]))
			}
		}
		if err == nil {
			err = w.end(noon)
		}
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if _, err := Restore(&b, dir, noon, nil); err != nil {
			t.Fatalf("format %d: %v", format, err)
		}
		want := append(slices.Clone(parts), "restored.json")
		slices.Sort(want)
		if got := tree(t, dir); !slices.Equal(got, want) {
			t.Errorf("format %d: restored are %v, want %v", format, got, want)
		}
	}
}

func TestPartsStayInTheDirectory(t *testing.T) {
	for _, name := range []string{"../control.db", "/etc/passwd", "deliveries/../x.key", "deliveries/deliveries-20261120.db/x", "deliveries/x.db", ".key", "a/b.key", "events/..", "A.key", "a b.key", ".restoring", "x"} {
		if known(name) {
			t.Errorf("%q may be a part", name)
		}
	}
	var b bytes.Buffer
	w, err := newWriter(&b, Header{Format: Format})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.bytes("../out.key", []byte("x")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "in")
	if _, err := Restore(&b, dir, noon, nil); fanfare.CodeOf(err) != fanfare.Invalid {
		t.Errorf("got %v", err)
	}
	if left := tree(t, filepath.Dir(dir)); left != nil {
		t.Errorf("it wrote %v", left)
	}
}

func TestInterruptedRestoreStartsAgain(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{restoring: "", "control.db": "half", "note.txt": "of somebody else"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Interrupted(dir); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("a server may start: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "note.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(bytes.NewReader(take(t, dataDir(t))), dir, noon, nil); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "control.db")); err != nil || string(text) != files["control.db"] {
		t.Errorf("control.db is %q, %v", text, err)
	}
}

func TestBackupFileIsRenamedWhenComplete(t *testing.T) {
	backup := take(t, dataDir(t, "one"))
	dir := t.TempDir()
	file := filepath.Join(dir, "nightly.tar")
	broken := errors.New("the network is gone")
	for name, from := range map[string]io.Reader{
		"cut":     bytes.NewReader(backup[:3000]),
		"damaged": bytes.NewReader(bytes.Replace(backup, []byte("today"), []byte("todaY"), 1)),
		"broken":  io.MultiReader(bytes.NewReader(backup[:3000]), iotest.ErrReader(broken)),
	} {
		if _, err := Keep(from, file, nil); err == nil || name == "broken" && !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
		if left := tree(t, dir); left != nil {
			t.Errorf("%s: it leaves %v", name, left)
		}
	}
	if err := os.WriteFile(file+partial, []byte("of one that was killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	var last int64
	if _, err := Keep(bytes.NewReader(backup), file, func(done, _ int64) { last = done }); err != nil || last != int64(len(backup)) {
		t.Fatalf("%v, and heard of %d bytes of %d", err, last, len(backup))
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || !slices.Equal(tree(t, dir), []string{"nightly.tar"}) {
		t.Errorf("it is %v, %v, beside %v", info, err, tree(t, dir))
	}
	if text, err := os.ReadFile(file); err != nil || !bytes.Equal(text, backup) {
		t.Errorf("it is not what came: %v", err)
	}
	if _, err := Keep(bytes.NewReader(backup), file, nil); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("over one that is there: %v", err)
	}
}

func TestRestoreRefusesATooSmallDisk(t *testing.T) {
	var b bytes.Buffer
	if _, err := newWriter(&b, Header{Format: Format, Bytes: 1 << 60}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := Keep(bytes.NewReader(b.Bytes()), filepath.Join(dir, "a"), nil); fanfare.CodeOf(err) != fanfare.DiskFull {
		t.Errorf("a backup: %v", err)
	}
	if _, err := Restore(&b, dir, noon, nil); fanfare.CodeOf(err) != fanfare.DiskFull {
		t.Errorf("a restore: %v", err)
	}
	if left := tree(t, dir); left != nil {
		t.Errorf("it leaves %v", left)
	}
}

func TestUncertainBroadcastsAreListedInPages(t *testing.T) {
	dir := t.TempDir()
	if _, err := Restore(bytes.NewReader(take(t, dataDir(t, "one"))), dir, noon, nil); err != nil {
		t.Fatal(err)
	}
	note, err := ReadNote(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a start that was killed is repeated
		err := note.Finish(dir, func(add func(*Uncertain) error) error {
			return errors.Join(add(&Uncertain{Event: "a", Unsettled: 3}), add(&Uncertain{Event: "b", Unsettled: 4}), add(&Uncertain{Event: "c", Unmatched: true}))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	note, err = ReadNote(dir)
	if err != nil || note.New() || note.Broadcasts != 2 || note.Deliveries != 7 || note.Unmatched != 1 {
		t.Errorf("the note is %+v, %v", note, err)
	}
	var all []string
	for offset, pages := int64(0), 0; pages == 0 || offset != 0; pages++ {
		list, next, err := ReadUncertain(dir, offset, 2)
		if err != nil || len(list) > 2 || pages > 1 {
			t.Fatalf("page %d: %v, %v", pages, list, err)
		}
		for _, u := range list {
			all = append(all, u.Event)
		}
		offset = next
	}
	if !slices.Equal(all, []string{"a", "b", "c"}) {
		t.Errorf("listed are %v", all)
	}
	if _, _, err := ReadUncertain(dir, 1, 2); fanfare.CodeOf(err) != fanfare.Invalid {
		t.Errorf("an offset within a line: %v", err)
	}
	if err := ReadEvents(dir, func([]byte) error { return errors.New("it is still there") }); err != nil {
		t.Error(err)
	}
}

func TestPaceLimitsTheRate(t *testing.T) {
	p := &pace{perSecond: 1000, passed: 5000}
	for elapsed, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 4 * time.Second: time.Second, 5 * time.Second: 0} {
		if got := p.ahead(elapsed); got != want {
			t.Errorf("after %v it rests %v, want %v", elapsed, got, want)
		}
	}
	if free := (&pace{passed: 1 << 40}); free.ahead(0) != 0 {
		t.Error("without a rate it rests")
	}
	ctx, cancel := context.WithCancel(t.Context())
	slow := newPace(ctx, io.Discard, 1)
	if _, err := slow.Write(make([]byte, 1000)); err != nil { // the first passes at once
		t.Fatal(err)
	}
	cancel()
	if _, err := slow.Write([]byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}

// tree lists all files below dir; nil where there are none.
func tree(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, name)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

func FuzzReadNeverPanicsAndTakesNothingThatIsNotWhole(f *testing.F) {
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := Read(bytes.NewReader(text), Visitor{}); err == nil {
			t.Errorf("%d bytes pass for a backup", len(text))
		}
	})
}
