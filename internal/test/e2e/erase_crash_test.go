package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// tryErase asks for an erasure whose answer may not come; it returns the status,
// 0 where there was none.
func (c *caller) tryErase(id string) int {
	r, err := http.NewRequestWithContext(c.t.Context(), "POST", c.url+"/v1/subscribers/"+id+"/erase", strings.NewReader("{}"))
	if err != nil {
		c.t.Error(err)
		return 0
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("X-Fanfare-Service", c.service)
	r.Header.Set("Content-Type", plain)
	response, err := c.http.Do(r)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

// kill ends the server without a warning.
func (s *server) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	<-s.gone
}

// An erasure waits for the mail that is on the wire, and is finished by the next
// start where the server dies meanwhile.
func TestAnErasureSurvivesAKillWhileItWaitsForTheWire(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.subscribe(`{"topic":"story","channel":"email","to":"zyxwold@example.org","subscriber":"zyxwold"}`)
	arrived, answer := make(chan struct{}, 1), make(chan struct{})
	r.mu.Lock()
	r.gate = func() {
		select {
		case arrived <- struct{}{}:
		default:
		}
		<-answer
	}
	r.mu.Unlock()
	s.http.publish(`{"title":"on the wire"}`)
	<-arrived
	status := make(chan int, 1)
	go func() { status <- s.http.tryErase("zyxwold") }()
	eventually(t, "the erasure has begun", func() bool {
		got, _, _ := s.http.send("GET", "/v1/subscribers/zyxwold", "", "")
		return got == 404
	})
	if files := s.foundIn("zyxwold"); len(files) == 0 {
		t.Error("it is erased while its mail is on the wire")
	}
	s.kill()
	if got := <-status; got != 0 {
		t.Errorf("the erasure was answered with %d", got)
	}
	close(answer)
	s.start()
	eventuallyWith(t, "the erasure is finished", func() bool { return len(s.foundIn("zyxwold")) == 0 },
		func() string { return fmt.Sprint(s.foundIn("zyxwold")) })
	s.http.must(404, "GET", "/v1/subscribers/zyxwold", "", "")
}

// Whenever the server dies, whoever's erasure was begun is erased after the next
// start, and nobody else is touched.
func TestErasuresAreFinishedAfterKills(t *testing.T) {
	t.Parallel()
	const people = 60
	s, _ := newsroom(t, sink.Config{}, "")
	name := func(i int) string { return fmt.Sprintf("Vw%03dkq", i) }
	var b strings.Builder
	for i := range people {
		fmt.Fprintf(&b, `{"topic":"story","channel":"email","to":"%[1]s@example.org","subscriber":"%[1]s"}`+"\n", name(i))
	}
	s.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines, b.String())
	event := s.http.publish(`{"title":"for all"}`)
	s.http.completed(event)
	for round := range 3 {
		var asked sync.WaitGroup
		answered := make(chan struct{}, people)
		for i := round * people / 4; i < (round+1)*people/4; i++ {
			asked.Go(func() {
				if s.http.tryErase(name(i)) == 200 {
					answered <- struct{}{}
				}
			})
		}
		if round > 0 {
			<-answered // the first time it dies at the very beginning
		}
		s.kill()
		asked.Wait()
		s.start()
	}
	var left []string
	for i := range people {
		status, _, _ := s.http.send("GET", "/v1/subscribers/"+name(i), "", "")
		if status == 200 {
			left = append(left, name(i))
			continue
		}
		eventuallyWith(t, name(i)+" is erased", func() bool { return len(s.foundIn(name(i))) == 0 }, func() string { return fmt.Sprint(s.foundIn(name(i))) })
	}
	if len(left) < people/4 || len(left) > people-2 {
		t.Errorf("%d of %d are left", len(left), people)
	}
	for _, id := range left {
		if all := s.http.history(id); len(all) != 1 || all[0].Address == "" {
			t.Errorf("%s, who is not erased, has the history %+v", id, all)
		}
	}
	if b := s.http.broadcast(event); b.Counts.Total() != people {
		t.Errorf("the counts are %v", b.Counts)
	}
}
