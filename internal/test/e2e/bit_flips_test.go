package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// bitFlips is how many bits TestNoFlippedBitBecomesAWrongMessage flips. FANFARE_BIT_FLIPS sets another number, and
// FANFARE_BIT_FLIPS_SEED another seed.
const bitFlips = 12

func numberFrom(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// A damagedFinding is a finding of fanfare doctor --deep.
type damagedFinding struct {
	Check, Level, What, Mend string
	Event, File, Stream      string
	Sequence                 uint64
}

// A flipWorld is a stopped server whose data are flipped again and again.
type flipWorld struct {
	*server
	relay   *relay
	random  *rand.Rand
	stopped string                       // copy of the data directory after a stop, without write-ahead logs
	killed  string                       // copy of the data directory after a kill, with events that may not be matched
	backup  string                       // file
	wanted  map[string]map[string]string // text of the message by key and recipient
	keys    map[string]string            // key of an event
	matched map[string]bool              // keys of events whose manifests were stored before the flip
}

// Flipped bits in data at rest: the doctor reports each one, or it is harmless. No recipient gets a wrong message, and only messages of
// reported events are missing.
func TestNoFlippedBitBecomesAWrongMessage(t *testing.T) {
	t.Parallel()
	seed := numberFrom(t, "FANFARE_BIT_FLIPS_SEED", 1)
	w := newFlipWorld(t, uint64(seed), "")
	kinds := []string{"event", "manifest", "bus", "event", "manifest", "file", "log", "bus", "backup", "waiting"}
	results := map[string]int{}
	for i := range numberFrom(t, "FANFARE_BIT_FLIPS", bitFlips) {
		kind := kinds[i%len(kinds)]
		result := w.flipAndRun(i, kind)
		results[kind+" "+result]++
		if t.Failed() {
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		t.Logf("%s: %d", name, results[name])
	}
}

const flipDocument = `service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, retry: [1s, 1s, 1s]}
topics:
  story: {template: story}
templates:
  story:
    subject: "{{ event.key }}"
    text: "to={{ subscriber.address }} key={{ event.key }} body={{ event.body }} end"
`

func newFlipWorld(t *testing.T, seed uint64, database string) *flipWorld {
	t.Helper()
	w := &flipWorld{server: &server{t: t, dir: t.TempDir(), database: database}, relay: newRelay(t, sink.Config{}), random: rand.New(rand.NewPCG(seed, 1)), wanted: map[string]map[string]string{}, keys: map[string]string{}, matched: map[string]bool{}}
	w.start()
	w.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(flipDocument, w.relay.addr))
	people := crowd(6)
	w.subscribe(people...)
	w.mustRun("", "pause", "--all")
	body := func() string {
		b := make([]byte, 50+w.random.IntN(1500))
		for i := range b {
			b[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[w.random.IntN(36)]
		}
		return string(b)
	}
	event := func(key string) string {
		text := body()
		w.wanted[key] = map[string]string{}
		for _, p := range people {
			w.wanted[key][p] = fmt.Sprintf("to=%s key=%s body=%s end", p, key, text)
		}
		return fmt.Sprintf(`{"key":%q,"body":%q}`, key, text)
	}
	for i := range 12 {
		key := fmt.Sprintf("paused-%d", i)
		id := w.http.publish(event(key))
		w.keys[id], w.matched[key] = key, true
		w.frozen(id)
	}
	for i := range 4 {
		key, text, file := fmt.Sprintf("direct-%d", i), body(), body()+body()
		to := people[i]
		w.wanted[key] = map[string]string{to: "text " + text + " file " + file}
		id := into[struct{ ID string }](t, w.http.must(201, "POST", "/v1/messages", plain, fmt.Sprintf(
			`{"channel":"email","to":%q,"content":{"subject":%q,"text":"text %s"},"attachments":[{"name":"a.txt","content":%q}]}`,
			to, key, text, base64.StdEncoding.EncodeToString([]byte("file "+file))))).ID
		w.keys[id], w.matched[key] = key, true
	}
	eventually(t, "all waits", func() bool {
		s := w.status()
		return s.Bus.EventsPending == 0 && s.Bus.BatchesPending == 0
	})
	w.backup = filepath.Join(t.TempDir(), "backup")
	w.mustRun("", "backup", w.backup)
	w.mustStop()
	w.stopped, w.killed = filepath.Join(t.TempDir(), "stopped"), filepath.Join(t.TempDir(), "killed")
	w.copyDir(w.dir, w.stopped)
	w.start()
	// These events are in the bus, and perhaps in the write-ahead log.
	for i := range 10 {
		key := fmt.Sprintf("late-%d", i)
		w.keys[w.http.publish(event(key))] = key
	}
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-w.gone
	w.copyDir(w.dir, w.killed)
	return w
}

type flipStatus struct {
	Bus        struct{ EventsPending, BatchesPending int64 }
	Deliveries struct{ Pending, Deferred int64 }
}

func (w *flipWorld) status() (s flipStatus) {
	w.t.Helper()
	text := w.http.must(200, "GET", "/v1/status", "", "")
	found := into[struct {
		Bus struct {
			Events  int64 `json:"events_pending"`
			Batches int64 `json:"batches_pending"`
		}
		Deliveries struct{ Pending, Deferred int64 }
	}](w.t, text)
	s.Bus.EventsPending, s.Bus.BatchesPending = found.Bus.Events, found.Bus.Batches
	s.Deliveries.Pending, s.Deliveries.Deferred = found.Deliveries.Pending, found.Deliveries.Deferred
	return s
}

func (w *flipWorld) copyDir(from, to string) {
	w.t.Helper()
	if err := os.RemoveAll(to); err != nil {
		w.t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(to, 0o700); err != nil {
		w.t.Fatal(err)
	}
}

// flipAndRun flips a bit of a kind of data, asks the doctor, starts the server, and compares what arrives with what was published.
func (w *flipWorld) flipAndRun(number int, kind string) (result string) {
	t := w.t
	t.Helper()
	late := kind == "bus" || kind == "log"
	if late {
		w.copyDir(w.killed, w.dir)
	} else {
		w.copyDir(w.stopped, w.dir)
	}
	args := []string{"doctor", "--deep", "--json", "--data-dir", w.dir, "--disk-floor", "0", "--listen", "127.0.0.1:1", "--durability", "relaxed"}
	file, where := w.flip(kind)
	what := fmt.Sprintf("flip %d (%s, %s)", number, kind, where)
	if kind == "backup" {
		args = append(args, "--backup", file)
	}
	doctor := run(t, append(w.where(), "FANFARE_SERVER=", "FANFARE_KEY="), "", args...)
	report := into[struct{ Findings []damagedFinding }](t, doctor.out)
	reported := map[string]bool{} // keys of events
	var found []damagedFinding
	general := false
	for _, f := range report.Findings {
		if !strings.HasPrefix(f.Check, "deep") || f.Level == "ok" {
			continue
		}
		found = append(found, f)
		if f.Mend == "" || f.Level == "wrong" && doctor.code != 1 {
			t.Errorf("%s: exit code %d, and %+v says not what to do", what, doctor.code, f)
		}
		if f.Event != "" && w.keys[f.Event] != "" {
			reported[w.keys[f.Event]] = true
		} else {
			general = true
		}
	}
	if kind == "backup" {
		if !slices.ContainsFunc(found, func(f damagedFinding) bool { return f.File == file }) {
			t.Errorf("%s is not reported: %s", what, doctor.out)
		}
		if r := run(t, nil, "", "restore", file, "--data-dir", filepath.Join(t.TempDir(), "restored")); r.code == 0 {
			t.Errorf("%s: the backup was restored", what)
		}
		return "reported"
	}
	w.relay.forget()
	w.startAgain()
	w.mustRun("", "resume", "--all")
	var parked []fanfare.Parked
	var status flipStatus
	eventuallyWith(t, what+": all is sent or parked", func() bool {
		if status = w.status(); status.Bus.EventsPending+status.Bus.BatchesPending+status.Deliveries.Deferred > 0 {
			return false
		}
		members := int64(0)
		parked = into[[]fanfare.Parked](t, w.mustRun("", "parked", "list", "--json"))
		for _, p := range parked {
			members += int64(p.Members)
		}
		return status.Deliveries.Pending <= members
	}, func() string { return fmt.Sprintf("%+v %+v %+v", status, parked, found) })
	missing := w.compare(what)
	if !late { // these events were published after the copy was made
		maps.DeleteFunc(missing, func(key string, _ []string) bool { return !w.matched[key] })
	}
	for key, recipients := range missing {
		if !reported[key] && !general {
			t.Errorf("%s: %q did not get %s, and the doctor reports only %+v", what, recipients, key, found)
		}
		named := slices.ContainsFunc(parked, func(p fanfare.Parked) bool { return strings.Contains(p.Reason, "damaged") })
		for event, of := range w.keys {
			if of == key && !late && !named {
				if trace := w.run("", "trace", event, "--json"); !strings.Contains(trace.out, "damaged") {
					t.Errorf("%s: %s is missing, and neither parked work nor its trace says why: %+v %s%s", what, key, parked, trace.out, trace.err)
				}
			}
		}
	}
	w.mustStop()
	switch {
	case len(found) == 0:
		return "harmless"
	case len(missing) > 0:
		return "reported, messages held back"
	}
	return "reported, all messages sent"
}

// relationFiles selects the files of all tables and indexes, and of the long values of tables.
const relationFiles = `SELECT pg_relation_filepath(c.oid) || ' ' || c.relname FROM pg_class c
	WHERE c.relkind IN ('r', 'i', 't') AND pg_relation_size(c.oid) > 0 AND (c.relnamespace = 'fanfare'::regnamespace
	OR c.oid IN (SELECT reltoastrelid FROM pg_class WHERE relnamespace = 'fanfare'::regnamespace)) ORDER BY 1`

// With data checksums, the doctor reports each flipped bit in a page of the tables and indexes.
func TestDoctorReportsFlippedPagesOfPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	w := newFlipWorld(t, uint64(numberFrom(t, "FANFARE_BIT_FLIPS_SEED", 1)), cluster.URL)
	database := strings.TrimPrefix(urlPath(t, cluster.URL), "/")
	superuser := cluster.Superuser(database)
	doctor := func() (code int, found []damagedFinding) {
		r := run(t, append(w.where(), "FANFARE_SERVER=", "FANFARE_KEY="), "", "doctor", "--deep", "--json", "--data-dir", w.dir, "--disk-floor", "0", "--listen", "127.0.0.1:1", "--durability", "relaxed")
		for _, f := range into[struct{ Findings []damagedFinding }](t, r.out).Findings {
			// PostgreSQL counts what it found before.
			if strings.HasPrefix(f.Check, "deep") && f.Level != "ok" && !strings.Contains(f.What, "since its statistics were reset") {
				found = append(found, f)
			}
		}
		return r.code, found
	}
	if _, found := doctor(); !slices.ContainsFunc(found, func(f damagedFinding) bool { return strings.Contains(f.Mend, "CREATE EXTENSION amcheck") }) {
		t.Errorf("the doctor does not say that amcheck is missing: %+v", found)
	}
	pgtest.Execute(t, superuser, "CREATE EXTENSION amcheck")
	if _, found := doctor(); !slices.ContainsFunc(found, func(f damagedFinding) bool { return strings.Contains(f.Mend, "GRANT EXECUTE") }) {
		t.Errorf("the doctor does not say that it needs permission: %+v", found)
	}
	pgtest.Execute(t, superuser, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC")
	if _, found := doctor(); len(found) > 0 {
		t.Fatalf("without a flip, the doctor reports %+v", found)
	}
	files := pgtest.Texts(t, superuser, relationFiles)
	flips := numberFrom(t, "FANFARE_BIT_FLIPS", bitFlips)
	named := 0
	for i := range flips {
		name, relation, _ := strings.Cut(files[w.random.IntN(len(files))], " ")
		cluster.Stop()
		path := filepath.Join(cluster.Data(), name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		flipped := bytes.Clone(content)
		at, bit := w.random.IntN(len(content)), w.random.IntN(8)
		flipped[at] ^= 1 << bit
		overwrite(t, path, flipped)
		cluster.Restart()
		code, found := doctor()
		if code != 1 || len(found) == 0 {
			t.Errorf("flip %d: byte %d, bit %d of %s is not reported", i, at, bit, relation)
		}
		if slices.ContainsFunc(found, func(f damagedFinding) bool { return f.Event != "" }) {
			named++
		}
		cluster.Stop()
		overwrite(t, path, content)
		cluster.Restart()
	}
	t.Logf("%d flips in %d files: %d with the affected events", flips, len(files), named)
	if _, found := doctor(); len(found) > 0 {
		t.Errorf("after all flips were undone, the doctor reports %+v", found)
	}
}

// overwrite replaces the content of a file, whose owner stays.
func overwrite(t *testing.T, path string, content []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(content, 0)
	}
	if closing := f.Close(); err != nil || closing != nil {
		t.Fatal(err, closing)
	}
}

func urlPath(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u.Path
}

func (w *flipWorld) startAgain() {
	w.t.Helper()
	w.start()
	eventually(w.t, "the server is ready", func() bool {
		code, _, _ := w.http.send("GET", "/readyz", "", "")
		return code == 200
	})
}

// forget forgets all mails.
func (r *relay) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mails, r.count = map[string][]string{}, 0
}

// compare reports each message that was not published in this form, and returns the recipients of missing messages by key.
func (w *flipWorld) compare(what string) (missing map[string][]string) {
	w.t.Helper()
	w.relay.mu.Lock()
	defer w.relay.mu.Unlock()
	missing = map[string][]string{}
	for key, recipients := range w.wanted {
		for to := range recipients {
			missing[key] = append(missing[key], to)
		}
	}
	for to, mails := range w.relay.mails {
		for _, raw := range mails {
			key, text := contentOf(w.t, raw)
			if want, known := w.wanted[key][to]; !known || text != want {
				w.t.Errorf("%s: %s got a wrong message with the subject %q: %q, want %q", what, to, key, text, want)
				continue
			}
			at := slices.Index(missing[key], to)
			if at < 0 {
				w.t.Errorf("%s: %s got %s twice", what, to, key)
				continue
			}
			missing[key] = slices.Delete(missing[key], at, at+1)
		}
	}
	maps.DeleteFunc(missing, func(_ string, to []string) bool { return len(to) == 0 })
	return missing
}

// contentOf returns the subject of a mail, and the text of all its parts.
func contentOf(t *testing.T, raw string) (subject, text string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	var parts []string
	var read func(header func(string) string, body io.Reader)
	read = func(header func(string) string, body io.Reader) {
		media, params, err := mime.ParseMediaType(header("Content-Type"))
		if err != nil {
			t.Fatalf("%v in %q", err, raw)
		}
		if strings.HasPrefix(media, "multipart/") {
			for all := multipart.NewReader(body, params["boundary"]); ; {
				part, err := all.NextRawPart()
				if err != nil {
					return
				}
				read(part.Header.Get, part)
			}
		}
		switch strings.ToLower(header("Content-Transfer-Encoding")) {
		case "base64":
			body = base64.NewDecoder(base64.StdEncoding, body)
		case "quoted-printable":
			body = quotedprintable.NewReader(body)
		}
		b, err := io.ReadAll(body)
		if err != nil {
			t.Fatalf("%v in %q", err, raw)
		}
		parts = append(parts, strings.TrimSpace(string(b)))
	}
	read(m.Header.Get, m.Body)
	return m.Header.Get("Subject"), strings.Join(parts, " ")
}

// flip flips a bit of a kind of data.
func (w *flipWorld) flip(kind string) (file, where string) {
	w.t.Helper()
	switch kind {
	case "event":
		return w.flipValue("SELECT posted FROM broadcasts")
	case "manifest":
		return w.flipValue("SELECT members FROM manifests")
	case "file":
		return w.flipValue("SELECT content FROM message_files")
	case "waiting": // all of the values at once, whichever the generator takes
		return w.flipValue("SELECT posted FROM broadcasts UNION ALL SELECT members FROM manifests UNION ALL SELECT content FROM message_files")
	case "log":
		return w.flipIn("deliveries/*.db-wal", 32)
	case "bus":
		return w.flipIn([]string{"bus/jetstream/$G/streams/EVENTS/msgs/*.blk", "bus/jetstream/$G/streams/EVENTS/msgs/*.blk", "bus/jetstream/$G/streams/BATCHES/msgs/*"}[w.random.IntN(3)], 0)
	}
	file = filepath.Join(w.t.TempDir(), "backup")
	content, err := os.ReadFile(w.backup)
	if err != nil {
		w.t.Fatal(err)
	}
	// The padding at the end of a backup has no data.
	at := w.random.IntN(len(bytes.TrimRight(content, "\x00")))
	for content[at] == 0 { // nor has the padding of its parts
		at = w.random.IntN(len(content))
	}
	content[at] ^= 1 << w.random.IntN(8)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return file, fmt.Sprintf("byte %d", at)
}

// flipIn flips a bit behind the first bytes of one of some files.
func (w *flipWorld) flipIn(pattern string, from int) (file, where string) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, pattern))
	if err != nil {
		w.t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(name string) bool {
		info, err := os.Stat(name)
		return err != nil || info.Size() <= int64(from)
	})
	if len(files) == 0 {
		w.t.Fatalf("there is no %s", pattern)
	}
	file = files[w.random.IntN(len(files))]
	content, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	at := from + w.random.IntN(len(content)-from)
	return file, w.flipAt(file, content, at)
}

func (w *flipWorld) flipAt(file string, content []byte, at int) (where string) {
	w.t.Helper()
	bit := w.random.IntN(8)
	content[at] ^= 1 << bit
	if err := os.WriteFile(file, content, 0o600); err != nil {
		w.t.Fatal(err)
	}
	name, err := filepath.Rel(w.dir, file)
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprintf("%s, byte %d, bit %d", name, at, bit)
}

// flipValue flips a bit of one of the values that a statement selects in the files of days, where the values are in the file.
func (w *flipWorld) flipValue(statement string) (file, where string) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "deliveries", "*.db"))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("no file of a day: %v", err)
	}
	file = files[w.random.IntN(len(files))]
	conn, err := sqlite.OpenConn("file:"+file+"?immutable=1", sqlite.OpenReadOnly|sqlite.OpenURI) // without the log
	if err != nil {
		w.t.Fatal(err)
	}
	var values [][]byte
	err = sqlitex.ExecuteTransient(conn, statement, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		b := make([]byte, stmt.ColumnLen(0))
		stmt.ColumnBytes(0, b)
		values = append(values, b)
		return nil
	}})
	if closing := conn.Close(); err != nil || closing != nil {
		w.t.Fatal(err, closing)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	for range 10_000 {
		value := values[w.random.IntN(len(values))]
		from := w.random.IntN(len(value))
		window := value[from:min(len(value), from+16)]
		if len(window) < 8 {
			window = value[max(0, len(value)-8):]
		}
		if bytes.Count(content, window) != 1 {
			continue // in several values, or across pages
		}
		at := bytes.Index(content, window) + w.random.IntN(len(window))
		return file, w.flipAt(file, content, at)
	}
	w.t.Fatalf("no value of %q is in the file %s only once", statement, file)
	return "", ""
}
