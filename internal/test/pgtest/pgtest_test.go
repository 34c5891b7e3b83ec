package pgtest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// standsAlone has this program start a server and wait to be killed.
const standsAlone = "PGTEST_STANDS_ALONE"

func TestMain(m *testing.M) {
	if os.Getenv(standsAlone) == "" {
		os.Exit(m.Run())
	}
	c, err := Launch(Quick...)
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, c.process.pid, c.dir)
	select {}
}

// query returns the first column of a statement's rows.
func query(t *testing.T, at, statement string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return got
}

func TestADatabaseIsTheTestsOwnAndEndsWithIt(t *testing.T) {
	const here = "SELECT current_database()::text"
	one := Database(t)
	var name string
	t.Run("inner", func(t *testing.T) {
		other := Database(t)
		name = query(t, other, here)[0]
		if name == query(t, one, here)[0] {
			t.Error("two databases are one")
		}
		query(t, other, "CREATE TABLE kept (n int)")
	})
	if left := query(t, one, "SELECT datname::text FROM pg_database"); slices.Contains(left, name) {
		t.Errorf("%s is still there: %q", name, left)
	}
	if got := query(t, one, "SELECT tablename::text FROM pg_tables WHERE tablename = 'kept'"); len(got) > 0 {
		t.Errorf("a new database has %q", got)
	}
}

// A user's database is like this; one in which everything is allowed, and bytes
// are in order, would hide mistakes.
func TestAServerIsLikeThoseOfUsers(t *testing.T) {
	at := Database(t)
	if got := query(t, at, "SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user"); got[0] != "false" {
		t.Error("tests connect as a superuser")
	}
	if got := query(t, at, "SELECT w FROM unnest(ARRAY['B', 'a', 'C']) w ORDER BY w"); !slices.Equal(got, []string{"a", "B", "C"}) {
		t.Errorf("texts are in the order %q", got)
	}
}

func TestOnlyCommittedDataSurvivesAKill(t *testing.T) {
	s := Start(t)
	at := s.Database()
	query(t, at, "CREATE TABLE kept (n text)")
	open, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close(context.WithoutCancel(t.Context()))
	if _, err := open.Exec(t.Context(), "BEGIN; INSERT INTO kept VALUES ('begun')"); err != nil {
		t.Fatal(err)
	}
	query(t, at, "INSERT INTO kept VALUES ('committed')")
	first := s.cluster.process.pid
	children, err := childrenOf(first)
	if err != nil || len(children) < 3 {
		t.Fatalf("its processes are %v, %v", children, err)
	}

	s.Kill()
	for _, pid := range append(children, first) {
		if alive(pid) {
			t.Errorf("process %d lives", pid)
		}
	}
	if _, err := open.Exec(t.Context(), "COMMIT"); err == nil {
		t.Error("a connection outlived its server")
	}
	s.Restart()
	if got := query(t, at, "SELECT n FROM kept"); !slices.Equal(got, []string{"committed"}) {
		t.Errorf("after the kill there is %q", got)
	}
	if log, err := os.ReadFile(s.cluster.log()); err != nil || !bytes.Contains(log, []byte("was not properly shut down")) {
		t.Errorf("it was not a crash: %v\n%s", err, log)
	}

	s.Stop()
	s.Restart()
	if got := query(t, at, "SELECT n FROM kept"); !slices.Equal(got, []string{"committed"}) {
		t.Errorf("after the stop there is %q", got)
	}
}

// A server that ends again as it starts, as on a disk that is still full, is started again by
// the next call.
func TestAServerIsRevivedUntilItRuns(t *testing.T) {
	s := Start(t)
	own := s.cluster.data() + "/postgresql.auto.conf"
	settings, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) {
		if err := os.WriteFile(own, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte("no_such_setting = 1\n"))
	p := s.cluster.process
	if err := syscall.Kill(p.pid, syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	<-p.gone
	if ended, err := s.Revive(); !ended || err == nil || s.Running() {
		t.Fatalf("revived with a wrong setting: %v, %v, running: %v", ended, err, s.Running())
	}
	write(settings)
	if ended, err := s.Revive(); !ended || err != nil || !s.Running() {
		t.Fatalf("not revived: %v, %v, running: %v", ended, err, s.Running())
	}
	if ended, err := s.Revive(); ended || err != nil {
		t.Errorf("revived although it runs: %v, %v", ended, err)
	}
}

func TestANameIsFoundInAnyColumnAndNotWhereItWas(t *testing.T) {
	at := Database(t)
	Execute(t, at, `CREATE TABLE "Texts" (n int, "A b" text)`, "CREATE TABLE blobs (b bytea) PARTITION BY RANGE (b)", "CREATE TABLE one PARTITION OF blobs DEFAULT",
		`INSERT INTO "Texts" VALUES (1, 'Hello Ada'), (2, NULL)`, `INSERT INTO blobs VALUES ('\x00414441ff')`)
	got := Find(t, at, "ada", "Bob")
	slices.Sort(got)
	if want := []string{`"Texts" has ada`, "one has ada"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	Execute(t, at, `DELETE FROM "Texts"`, "UPDATE blobs SET b = ''")
	if got := Find(t, at, "ada"); len(got) > 0 {
		t.Errorf("still found: %q", got)
	}
}

func TestASettingIsTheServers(t *testing.T) {
	if got := query(t, Start(t, "work_mem=3MB", "fsync=off").URL, "SHOW work_mem"); got[0] != "3MB" {
		t.Errorf("work_mem is %q", got)
	}
}

func TestNothingOutlivesTheProcessThatStartedIt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), standsAlone+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	var pid int
	var dir string
	if _, err := fmt.Sscan(line, &pid, &dir); err != nil {
		t.Fatalf("no server was started: %q", line)
	}
	if !alive(pid) {
		t.Fatal("it is dead already")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if err := await("its end and that of its directory", func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err) && !alive(pid)
	}); err != nil {
		t.Error(err)
	}
}
