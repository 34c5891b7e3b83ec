package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/client/session"
	"fanfare.dev/fanfare/client/worker"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// pricing starts a server with the worker of the example.
func pricing(t *testing.T, flags ...string) *server {
	t.Helper()
	s := serve(t, flags...)
	document, err := os.ReadFile("../../../examples/sessions/fanfare.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.mustRun(string(document), "apply", "-f", "-")
	return s
}

func (s *server) library(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(s.url, s.key)
	if err != nil {
		t.Fatal(err)
	}
	return c.ForService("bank")
}

// The example of the documentation works as it is written, and its worker stops on SIGTERM.
func TestTheGoExampleOfSessionsAddsUpTheOrders(t *testing.T) {
	t.Parallel()
	s := pricing(t)
	dir := t.TempDir()
	for _, name := range []string{"worker", "client"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, name), "../../../examples/sessions/"+name)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	env := append(os.Environ(), "FANFARE_URL="+s.url, "FANFARE_KEY="+s.key, "FANFARE_SERVICE=bank", "FANFARE_WORKER=pricing", "FANFARE_INSTANCE=one")
	instance := exec.CommandContext(t.Context(), filepath.Join(dir, "worker"))
	instance.Env = env
	if err := instance.Start(); err != nil {
		t.Fatal(err)
	}
	orders := exec.CommandContext(t.Context(), filepath.Join(dir, "client"))
	orders.Env = env
	if out, err := orders.CombinedOutput(); err != nil || string(out) != "total 10100\n" {
		t.Errorf("%v: %s", err, out)
	}
	if err := instance.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := instance.Wait(); err != nil {
		t.Errorf("the instance ended with %v", err)
	}
}

// A client and an instance connect again when the server starts again, and a durable session continues.
func TestTheGoLibrariesContinueAfterAStartOfTheServer(t *testing.T) {
	t.Parallel()
	s := pricing(t, "--listen", pgtest.Address(t))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	go func() { // ends with the context
		_ = worker.Run(ctx, worker.Options{URL: s.url, Key: s.key, Service: "bank", Worker: "pricing", Instance: "one", Logger: slog.New(slog.DiscardHandler)},
			func(_ context.Context, t *worker.Task) ([]byte, error) { return t.Body, nil })
	}()
	open, err := session.Open(ctx, s.library(t), session.Options{Worker: "pricing", Kind: session.Durable})
	if err != nil {
		t.Fatal(err)
	}
	cl, err := open.Client(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	const count = 3000
	sent := make(chan error, 1)
	half, stopped := make(chan bool), make(chan bool)
	go func() {
		for n := 1; n <= count; n++ {
			if n == count/2 {
				close(half)
				<-stopped
			}
			if _, err := cl.Send(ctx, fmt.Append(nil, n)); err != nil {
				sent <- err
				return
			}
		}
		sent <- cl.EndCount(ctx, count)
	}()
	<-half
	s.mustStop()
	close(stopped)
	s.start()
	seen := map[string]bool{}
	for r, err := range cl.Responses(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if string(r.Body) != fmt.Sprint(r.Request) || seen[string(r.Body)] {
			t.Fatalf("the response to request %d is %q", r.Request, r.Body)
		}
		seen[string(r.Body)] = true
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if len(seen) != count {
		t.Errorf("%d of %d responses came", len(seen), count)
	}
	if err := open.Close(ctx, true); err != nil {
		t.Error(err)
	}
}

// Errors of the server reach the callers of the Go libraries.
func TestTheGoLibrariesReportTheErrorsOfSessions(t *testing.T) {
	t.Parallel()
	s := pricing(t)
	ctx := t.Context()
	if _, err := session.Open(ctx, s.library(t), session.Options{Worker: "prices"}); fanfare.CodeOf(err) == "" || fanfare.CodeOf(err) == fanfare.Internal {
		t.Errorf("an unknown worker: %v", err)
	}
	if _, err := session.Attach(ctx, s.library(t), "ses-99"); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("an unknown session: %v", err)
	}
	if err := worker.Run(ctx, worker.Options{URL: s.url, Key: s.key, Service: "bank", Worker: "prices"}, nil); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("an instance of an unknown worker: %v", err)
	}
	if err := worker.Run(ctx, worker.Options{URL: s.url, Key: "wrong", Service: "bank", Worker: "pricing"}, nil); fanfare.CodeOf(err) != fanfare.Unauthenticated {
		t.Errorf("a wrong key: %v", err)
	}
	open, err := session.Open(ctx, s.library(t), session.Options{Worker: "pricing"})
	if err != nil {
		t.Fatal(err)
	}
	cl, err := open.Client(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"a", "a", "b"} {
		if _, err := cl.SendRequest(ctx, session.Request{ID: "order-1", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	refused, ok := errors.AsType[*session.RefusedError](cl.Flush(ctx))
	if !ok || refused.Request != 3 || cl.Repeated() != 1 {
		t.Errorf("a repeated id with other content: %v, %d repetitions", refused, cl.Repeated())
	}
	if err := cl.EndCount(ctx, 5); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("a wrong count: %v", err)
	}
	if err := cl.EndCount(ctx, 1); err != nil {
		t.Errorf("the right count: %v", err)
	}
}
