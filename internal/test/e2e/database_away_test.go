package e2e

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// onPostgres is a newsroom on a PostgreSQL of the test's own, in a schema of its own,
// that is in the middle of a broadcast.
func onPostgres(t *testing.T) (s *server, postgres *pgtest.Server, event string) {
	t.Helper()
	postgres = pgtest.Start(t, pgtest.Quick...)
	r := newRelay(t, sink.Config{})
	s = prepare(t)
	s.database = postgres.URL + "&search_path=bulletins"
	s.start()
	s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: 20/s"))
	s.subscribe(crowd(2000)...)
	event = s.http.publish(`{"title":"slowly"}`)
	eventually(t, "mails leave", func() bool { return r.total() > 20 })
	return s, postgres, event
}

// readiness asks /readyz.
func (s *server) readiness() int {
	response, err := plainHTTP.Get(s.url + "/readyz")
	if err != nil {
		s.t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func (s *server) status() client.Status {
	s.t.Helper()
	return into[client.Status](s.t, s.mustRun("", "status", "--json", "--service", "news"))
}

// A frozen server accepts connections, since the kernel does, and no error tells that
// it is away.
func TestAFrozenDatabaseIsTold(t *testing.T) {
	t.Parallel()
	s, postgres, event := onPostgres(t)
	if !strings.Contains(s.logged(), "/fanfare?search_path=bulletins") {
		t.Errorf("the line that it is ready does not name the schema:\n%s", s.logged())
	}
	postgres.Freeze()
	begun := time.Now()
	first := s.run("", "status", "--service", "news")
	t.Logf("the status that was asked for at that moment took %v:\n%s", time.Since(begun), first.out)
	eventually(t, "it is not ready", func() bool { return s.readiness() == http.StatusServiceUnavailable })
	t.Logf("not ready after %v", time.Since(begun))

	status := s.status()
	if d := status.Database; d == nil || d.Away == nil || !strings.Contains(d.Error, "does not respond") {
		t.Errorf("the status says of the database %+v", d)
	}
	text := s.mustRun("", "status", "--service", "news")
	for line := range strings.Lines(text) {
		if strings.Count(line, "since") > 1 {
			t.Errorf("it is not clear what is since when: %s", line)
		}
	}
	if !regexp.MustCompile(`(?m)^database +fanfare@.*bulletins, PostgreSQL .*, unreachable since .*\n^database error .*does not respond`).MatchString(text) {
		t.Errorf("the status shows\n%s", text)
	}
	eventually(t, "no channel is said to send", func() bool {
		ch := s.status().Channels[0]
		return ch.State == "waiting" && ch.RatePerSecond == 0
	})

	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	examined := run(t, append(s.where(), "FANFARE_SERVER=", "FANFARE_KEY="), "", "doctor", "--json", "--data-dir", s.dir, "--listen", u.Host, "--disk-floor", "0")
	found := into[checkup](t, examined.out)
	if !found.has("database", "wrong", "cannot be reached") || !found.has("listen", "ok", "a server runs") || !found.has("server", "warning", "the database has been unreachable") ||
		!found.has("channel news/email", "ok", "") || strings.Contains(examined.out, "takes no work") {
		t.Errorf("the doctor says %s%s", examined.out, examined.err)
	}
	if !strings.Contains(examined.err, "waiting for the database fanfare@") {
		t.Errorf("the doctor does not say what it waits for: %q", examined.err)
	}
	begun = time.Now()
	traced := s.run("", "trace", event)
	t.Logf("the trace took %v:\n%s", time.Since(begun), traced.err)
	if traced.code == 0 || !strings.Contains(traced.err, "retrying in") || !strings.Contains(traced.err, "the database cannot be reached") {
		t.Errorf("the trace ended with %d: %s", traced.code, traced.err)
	}
	postgres.Thaw()
	eventually(t, "it is ready", func() bool { return s.readiness() == http.StatusOK })
	if d := s.status().Database; d.Away != nil || d.Error != "" {
		t.Errorf("it is back, and the status says %+v", d)
	}
}

func TestPausedMessagesAreShownAsPaused(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string][]string{"everything": {"--all"}, "service news": {"--service", "news"}, "channel news/email": {"--channel", "news/email"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newsroom(t, sink.Config{}, "rate: 1/s")
			s.subscribe(crowd(50)...)
			event := s.http.publish(`{"title":"slowly"}`)
			eventually(t, "it runs", func() bool { return s.http.broadcast(event).State == "running" })
			s.mustRun("", append([]string{"pause", "--reason", "a storm"}, scope...)...)
			want := name + " is paused: a storm"
			if b := s.http.broadcast(event); b.State != "paused" || b.Reason != want || !b.End.IsZero() {
				t.Errorf("it is %+v", b)
			}
			line := regexp.MustCompile(event + ` .* paused `)
			if text := s.mustRun("", "status"); !line.MatchString(text) {
				t.Errorf("the status shows\n%s", text)
			}
			if text := s.mustRun("", "trace", event); !strings.Contains(text, want) {
				t.Errorf("the trace shows\n%s", text)
			}
			if list := into[struct{ Broadcasts []fanfare.Broadcast }](t, s.http.must(200, "GET", "/v1/broadcasts?state=paused", "", "")); len(list.Broadcasts) != 1 {
				t.Errorf("paused are %+v", list)
			}
			s.mustRun("", append([]string{"resume"}, scope...)...)
			if b := s.http.broadcast(event); b.State != "running" || b.Reason != "" {
				t.Errorf("resumed it is %+v", b)
			}
		})
	}
}

func TestAStartSaysWhichDatabaseItWaitsFor(t *testing.T) {
	t.Parallel()
	dir, listen := t.TempDir(), pgtest.Address(t)
	cmd := exec.Command(binary, "serve", "--data-dir", dir, "--listen", listen)
	cmd.Env = append(os.Environ(), "FANFARE_DB=postgres://fanfare:secret-word@127.0.0.1:1/fanfare?search_path=bulletins")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	})
	eventually(t, "the start has begun", func() bool {
		_, err := os.Lstat(filepath.Join(dir, "lock"))
		return err == nil
	})
	env := []string{"FANFARE_SERVER=http://" + listen, "FANFARE_KEY=whatever"}
	waits := regexp.MustCompile(`the server is starting and waits for the database fanfare@127\.0\.0\.1:1/fanfare\?search_path=bulletins since \S+Z; the last try failed: .*connection refused`)
	var status ran
	eventuallyWith(t, "the status says what the start waits for", func() bool {
		status = run(t, env, "", "status")
		return waits.MatchString(status.err)
	}, func() string { return status.err })
	if strings.Contains(status.err, "secret-word") {
		t.Errorf("it shows the password: %s", status.err)
	}
}
