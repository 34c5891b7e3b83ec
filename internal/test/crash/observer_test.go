//go:build crashsteps

package crash

import (
	"bytes"
	"context"
	"fmt"
	"net/mail"
	"regexp"
	"sync"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// relayed starts a server that is ready, and has a document applied in which %q is the
// address of the relay and %d how many connections it takes. The function that is
// returned ends both.
func relayed(t *testing.T, durability, document string, config sink.Config) (w *world, relay *sink.Server, over func()) {
	w = &world{t: tell(t), seed: seedOf(t)}
	w.server = newServer(w.t, durability, pgtest.Chosen(t))
	limited, cancel := context.WithTimeout(t.Context(), 30*patience)
	t.Cleanup(cancel)
	w.given, w.fail = context.WithCancelCause(limited)
	if config.Inject.Seed == 0 {
		config.Inject.Seed = w.seed
	}
	relay = sink.New(config)
	address, err := relay.Listen("127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- relay.Serve() }()
	l := w.server.start()
	w.server.awaitReady(l)
	if _, err := l.client.Apply(t.Context(), fmt.Appendf(nil, document, address, connections), false); err != nil {
		w.t.Fatal(err)
	}
	return w, relay, func() {
		w.t.Helper()
		if err := context.Cause(w.given); err != nil {
			w.t.Fatal(err)
		}
		w.server.stop(w.server.current())
		if err := relay.Close(); err != nil {
			w.t.Fatal(err)
		}
		<-served
	}
}

// observer is who hears what becomes of others.
const observer = "observer@example.org"

// A hearing is what the observer was told, and by which messages.
type hearing struct {
	line *regexp.Regexp // of a message, what is told in its parentheses
	mu   sync.Mutex
	told map[string]map[string]bool // line, Message-ID
}

func newHearing(line string) *hearing {
	return &hearing{line: regexp.MustCompile(line), told: map[string]map[string]bool{}}
}

func (h *hearing) take(_ string, to []string, body []byte) {
	m, err := mail.ReadMessage(bytes.NewReader(body))
	if err != nil || len(to) != 1 || to[0] != observer {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, match := range h.line.FindAllSubmatch(body, -1) {
		line := string(match[1])
		if h.told[line] == nil {
			h.told[line] = map[string]bool{}
		}
		h.told[line][m.Header.Get("Message-ID")] = true
	}
}

// missing is one of several things that was not told yet, "" if all were.
func (h *hearing) missing(of map[string]bool) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for line := range of {
		if h.told[line] == nil {
			return line
		}
	}
	return ""
}

// check wants each of several things told by one message, and nothing else.
func (h *hearing) check(w *world, of map[string]bool) {
	w.t.Helper()
	for line, by := range h.told {
		if len(by) != 1 || !of[line] {
			w.t.Errorf("told %d times, and so it was %v: %s", len(by), of[line], line)
		}
	}
}
