package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/client/session"
	"fanfare.dev/fanfare/client/worker"
)

const (
	faultEvery = 101 // requests that the worker answers with a fault
	retryEvery = 97  // requests that it returns at their first attempt, except in the session that runs a request at most once
)

// runLoggedWorker is an instance that writes each task that it begins to a file of its own.
func runLoggedWorker(args []string) error {
	log, err := os.OpenFile(args[0], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	pause, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	return worker.Run(context.Background(), worker.Options{}, func(_ context.Context, task *worker.Task) ([]byte, error) {
		if _, err := fmt.Fprintf(log, "%d %d\n", task.Session, task.Request); err != nil {
			return nil, err
		}
		<-time.After(pause)
		n, err := strconv.Atoi(string(task.Body))
		switch {
		case err != nil:
			return nil, err
		case n%faultEvery == 0:
			return nil, &worker.Fault{Code: "multiple", Message: "the number is a multiple of 101"}
		case task.Action == "retry" && task.Attempt == 1:
			return nil, worker.Retry(errors.New("not yet"))
		}
		return []byte(strconv.Itoa(2 * n)), nil
	})
}

// whenReachable repeats a call while the server, which the test kills, does not run or is starting, for up to two minutes.
func whenReachable[T any](call func() (T, error)) (T, error) {
	for end := time.Now().Add(2 * time.Minute); ; {
		result, err := call()
		_, away := errors.AsType[*client.Unreachable](err)
		if err == nil || !away && fanfare.CodeOf(err) != fanfare.Unavailable || time.Now().After(end) {
			return result, err
		}
		<-time.After(50 * time.Millisecond)
	}
}

// runLoggedClient sends the numbers up to a count to a session and writes each response to a file. When it starts again, it
// goes on where its file and the broker say. It sends the last tenth after a file exists.
func runLoggedClient(args []string) error {
	ctx := context.Background()
	id, count, file, last, once := args[0], 0, args[2], args[3], args[4] == "true"
	if _, err := fmt.Sscan(args[1], &count); err != nil {
		return err
	}
	c, err := client.New(os.Getenv("FANFARE_URL"), os.Getenv("FANFARE_KEY"))
	if err != nil {
		return err
	}
	attached, err := whenReachable(func() (*session.Session, error) { return session.Attach(ctx, c.ForService("bank"), id) })
	if err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	earlier, err := io.ReadAll(out)
	if err != nil {
		return err
	}
	from := session.From(uint64(bytes.Count(earlier, []byte("\n"))) + 1)
	cl, err := whenReachable(func() (*session.Client, error) { return attached.Client(ctx, "reader", from) })
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() {
		for n := int(cl.Last()) + 1; n <= count; n++ {
			for n > count-count/10 {
				if _, err := os.Stat(last); err == nil {
					break
				}
				<-time.After(20 * time.Millisecond)
			}
			r := session.Request{Body: []byte(strconv.Itoa(n))}
			if n%retryEvery == 0 && !once {
				r.Action = "retry"
			}
			if _, err := cl.SendRequest(ctx, r); err != nil {
				failed <- err
				return
			}
		}
		failed <- cl.EndCount(ctx, uint64(count))
	}()
	for r, err := range cl.Responses(ctx) {
		if err != nil {
			return err
		}
		text := string(r.Body)
		if fault, is := errors.AsType[*session.Fault](r.Err()); is {
			text = fault.Code
		}
		if _, err := fmt.Fprintf(out, "%d %d %s\n", r.Number, r.Request, text); err != nil {
			return err
		}
	}
	return <-failed
}

// runLogged runs a worker or a client of a loggedLoad until it is killed.
func runLogged(role string, args []string) int {
	run := runLoggedWorker
	if role == "logged-client" {
		run = runLoggedClient
	}
	if err := run(args); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		return 1
	}
	return 0
}

// A loggedProcess is a client or a worker in a process of its own, which is killed and started again.
type loggedProcess struct {
	t     *testing.T
	start func(n int) *exec.Cmd
	cmd   *exec.Cmd
	ended chan error
	runs  int
}

func (l *loggedProcess) begin() {
	l.t.Helper()
	l.runs++
	l.cmd = l.start(l.runs)
	var stderr bytes.Buffer
	l.cmd.Stderr = &stderr
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	ended, cmd := make(chan error, 1), l.cmd
	l.ended = ended
	go func() {
		err := cmd.Wait()
		if err != nil && stderr.Len() > 0 {
			err = fmt.Errorf("%w: %s", err, stderr.String())
		}
		ended <- err
	}()
	l.t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
}

func (l *loggedProcess) killAndBegin() {
	l.t.Helper()
	_ = l.cmd.Process.Kill()
	<-l.ended
	l.begin()
}

// A loggedLoad consists of three durable sessions with a client each, and three instances, all in processes of their own. The
// third session runs a request at most once.
type loggedLoad struct {
	t         *testing.T
	dir       string
	last      string // the file after which the clients send their last requests
	requests  int    // of all clients
	streams   []*loggedStream
	instances []*loggedProcess
}

// A loggedStream is the client of a session.
type loggedStream struct {
	loggedProcess
	id    string
	once  bool
	count int
	file  string
}

// startLoggedLoad opens the sessions with c, and starts the clients and instances, which connect to url. pause is the duration of
// a task.
func startLoggedLoad(t *testing.T, c *client.Client, url, key string, requests int, pause time.Duration) *loggedLoad {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l := &loggedLoad{t: t, dir: dir, last: filepath.Join(dir, "last"), requests: requests, instances: make([]*loggedProcess, 3)}
	process := func(args ...string) *exec.Cmd {
		cmd := exec.Command(self, args...)
		cmd.Env = append(os.Environ(), "FANFARE_URL="+url, "FANFARE_KEY="+key, "FANFARE_SERVICE=bank", "FANFARE_WORKER=pricing")
		return cmd
	}
	for i := range 3 {
		o := session.Options{Worker: "pricing", Kind: session.Durable, Priority: 20 * (i + 1)}
		once := i == 2
		if once {
			o.AtMostOnce = true
		}
		opened, err := session.Open(t.Context(), c, o)
		if err != nil {
			t.Fatal(err)
		}
		s := &loggedStream{id: opened.ID(), once: once, count: requests / 3, file: filepath.Join(dir, fmt.Sprintf("client-%d", i))}
		s.loggedProcess = loggedProcess{t: t, start: func(int) *exec.Cmd {
			return process("logged-client", s.id, strconv.Itoa(s.count), s.file, l.last, strconv.FormatBool(once))
		}}
		s.begin()
		l.streams = append(l.streams, s)
	}
	for i := range l.instances {
		l.instances[i] = &loggedProcess{t: t, start: func(n int) *exec.Cmd {
			return process("logged-worker", filepath.Join(dir, fmt.Sprintf("worker-%d-%d", i, n)), pause.String())
		}}
		l.instances[i].begin()
	}
	return l
}

// responses returns how many responses the clients have received.
func (l *loggedLoad) responses() (n int) {
	for _, s := range l.streams {
		n += s.responses()
	}
	return n
}

func (s *loggedStream) responses() int {
	text, _ := os.ReadFile(s.file) // it may not exist yet
	return bytes.Count(text, []byte("\n"))
}

// finish lets the clients send their last requests, and waits until they have all responses. Then it compares the responses
// with the logs of the instances, and with the counts of the broker.
func (l *loggedLoad) finish(c *client.Client) {
	l.t.Helper()
	if err := os.WriteFile(l.last, nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
	for _, s := range l.streams {
		select {
		case err := <-s.ended:
			if err != nil {
				l.t.Fatalf("the client of %s: %v", s.id, err)
			}
		case <-time.After(patience):
			l.t.Fatalf("the client of %s has not ended; %d responses in all", s.id, l.responses())
		}
	}
	runs := l.runs()
	again := 0
	for _, s := range l.streams {
		again += s.compare(runs)
		attached, err := session.Attach(l.t.Context(), c, s.id)
		if err != nil {
			l.t.Fatal(err)
		}
		now, err := attached.Info(l.t.Context())
		if err != nil || int(now.Requests) != s.count || int(now.Responses) != s.count {
			l.t.Errorf("%s: %d requests and %d responses, %v", s.id, now.Requests, now.Responses, err)
		}
	}
	l.t.Logf("%d tasks ran again", again)
}

// runs returns how many times each request ran, by the numbers of its session and of itself.
func (l *loggedLoad) runs() map[string]int {
	l.t.Helper()
	runs := map[string]int{}
	logs, err := filepath.Glob(filepath.Join(l.dir, "worker-*"))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			l.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			runs[strings.TrimSpace(line)]++
		}
	}
	return runs
}

// compare checks that each response came once and is right, and returns how many tasks ran again.
func (s *loggedStream) compare(runs map[string]int) (again int) {
	s.t.Helper()
	text, err := os.ReadFile(s.file)
	if err != nil {
		s.t.Fatal(err)
	}
	seen, lost := map[int]bool{}, 0
	number := 0
	for line := range strings.Lines(string(text)) {
		var at, request int
		var body string
		if _, err := fmt.Sscan(line, &at, &request, &body); err != nil {
			s.t.Fatalf("%s: the line %q: %v", s.id, line, err)
		}
		if number++; at != number || seen[request] || request < 1 || request > s.count {
			s.t.Errorf("%s: line %d is %q", s.id, number, line)
		}
		seen[request] = true
		ran := runs[fmt.Sprintf("%s %d", strings.TrimPrefix(s.id, "ses-"), request)]
		again += max(ran-1, 0)
		want := strconv.Itoa(2 * request)
		if request%faultEvery == 0 {
			want = "multiple"
		}
		switch {
		case s.once && body == "lost":
			lost++
			if ran > 1 {
				s.t.Errorf("%s: request %d is lost, and ran %d times", s.id, request, ran)
			}
		case body != want || ran == 0 || s.once && ran != 1:
			s.t.Errorf("%s: the response to %d is %s, and it ran %d times", s.id, request, body, ran)
		}
	}
	if len(seen) != s.count {
		s.t.Errorf("%s: %d of %d responses", s.id, len(seen), s.count)
	}
	s.t.Logf("%s: %d responses, %d lost in a session that runs a request at most once", s.id, len(seen), lost)
	return again
}
