package upgrade

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// A relay is the capture server, with who got which title.
type relay struct {
	addr string

	mu    sync.Mutex
	mails map[string][]string // recipients by title, in order of arrival
}

func newRelay(t *testing.T, inject sink.Inject) *relay {
	t.Helper()
	r := &relay{mails: map[string][]string{}}
	s := sink.New(sink.Config{Inject: inject, OnMessage: r.take})
	addr, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = addr.(*net.TCPAddr).String()
	go func() {
		if err := s.Serve(); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { s.Close() })
	return r
}

func (r *relay) take(_ string, to []string, body []byte) {
	_, subject, _ := strings.Cut(string(body), "\nSubject: ")
	title, _, _ := strings.Cut(subject, "\r\n")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mails[title] = append(r.mails[title], to...)
}

// got lists who got a title, sorted, each as often as it was got.
func (r *relay) got(title string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.mails[title]))
}
