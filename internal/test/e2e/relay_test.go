package e2e

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// A relay is the capture server with all that it took.
type relay struct {
	t    *testing.T
	addr string
	sink *sink.Server

	mu    sync.Mutex
	mails map[string][]string // by recipient, in order of arrival
	count int
	gate  func() // called before a mail is answered
}

// newRelay listens on a port that nobody else is given.
func newRelay(t *testing.T, config sink.Config) *relay {
	t.Helper()
	r := &relay{t: t, addr: pgtest.Address(t), mails: map[string][]string{}}
	r.open(config)
	return r
}

// open listens, again after close on the same port and with other faults. A process that
// another test starts has the socket that was closed until it runs its own program.
func (r *relay) open(config sink.Config) {
	r.t.Helper()
	config.OnMessage = r.take
	server := sink.New(config)
	var err error
	eventually(r.t, "the port is free", func() bool {
		_, err = server.Listen(r.addr)
		return !errors.Is(err, syscall.EADDRINUSE)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.sink = server
	go func() {
		if err := server.Serve(); err != nil {
			r.t.Error(err)
		}
	}()
	r.t.Cleanup(func() { server.Close() })
}

func (r *relay) close() { r.sink.Close() }

func (r *relay) take(_ string, to []string, body []byte) {
	r.mu.Lock()
	r.count++
	for _, recipient := range to {
		r.mails[recipient] = append(r.mails[recipient], string(body))
	}
	gate := r.gate
	r.mu.Unlock()
	if gate != nil {
		gate()
	}
}

// hold has the relay answer so many mails, and the others when they are let go.
func (r *relay) hold(after int) (letGo func()) {
	r.t.Helper()
	open := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate = func() {
		if r.total() > after {
			<-open
		}
	}
	letGo = sync.OnceFunc(func() { close(open) })
	r.t.Cleanup(letGo)
	return letGo
}

// total is how many mails were taken.
func (r *relay) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// of returns the mails of one recipient.
func (r *relay) of(recipient string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.mails[recipient]...)
}

// one waits for the mail of a recipient, who must get only one.
func (r *relay) one(recipient string) string {
	r.t.Helper()
	eventually(r.t, "a mail for "+recipient, func() bool { return len(r.of(recipient)) > 0 })
	mails := r.of(recipient)
	if len(mails) != 1 {
		r.t.Fatalf("%s got %d mails", recipient, len(mails))
	}
	return mails[0]
}

// wrong compares what arrived with one mail for each of these people, and
// describes the difference; "" where there is none.
func (r *relay) wrong(people ...string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lost, twice, strange []string
	wanted := map[string]bool{}
	for _, p := range people {
		wanted[p] = true
		switch n := len(r.mails[p]); {
		case n == 0:
			lost = append(lost, p)
		case n > 1:
			twice = append(twice, p)
		}
	}
	for p := range r.mails {
		if !wanted[p] {
			strange = append(strange, p)
		}
	}
	if len(lost)+len(twice)+len(strange) == 0 {
		return ""
	}
	return fmt.Sprintf("of %d people %d got nothing %.3v, %d got it twice %.3v, %d should not have got it %.3v",
		len(people), len(lost), lost, len(twice), twice, len(strange), strange)
}

// only fails unless exactly these people got one mail each.
func (r *relay) only(people ...string) {
	r.t.Helper()
	if wrong := r.wrong(people...); wrong != "" {
		r.t.Fatal(wrong)
	}
}

// headerOf returns the header of a mail, unfolded, and its body.
func headerOf(mail string) (header []string, body string) {
	head, body, _ := strings.Cut(mail, "\r\n\r\n")
	return strings.Split(strings.NewReplacer("\r\n ", " ", "\r\n\t", " ").Replace(head), "\r\n"), body
}

// field returns the value of a header field, "" if there is none.
func field(mail, name string) string {
	header, _ := headerOf(mail)
	for _, line := range header {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(key, name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
