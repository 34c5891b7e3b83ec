package e2e

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// A message that is being accepted when one of its recipients is erased keeps
// nothing of that one: who was found before is forgotten after it was kept.
func TestAMessageThatIsBeingAcceptedForgetsWhoIsErased(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "rate: unlimited")
	const many, erased = 900, 12
	token := func(i int) string { return fmt.Sprintf("qzx%03dwvk", i) }
	var to []string
	for i := range many {
		if i < erased {
			s.http.must(201, "PUT", "/v1/subscribers/"+token(i), plain, fmt.Sprintf(`{"addresses":[{"kind":"mail","address":"%s@example.org"}]}`, token(i)))
			to = append(to, fmt.Sprintf(`{"subscriber":%q,"data":{"n":%q}}`, token(i), token(i)))
			continue
		}
		to = append(to, fmt.Sprintf(`{"to":"other%d@example.org","data":{"n":"x"}}`, i))
	}
	slow := `{% for i in (1..900) %}{% if i == 1 %}{{ sub.n }}{% endif %}{% endfor %}` // to write one for each takes a while
	body := `{"channel":"email","recipients":[` + strings.Join(to, ",") + `],"content":{"subject":"s","text":"` + slow + `"}}`
	sent := make(chan int)
	go func() {
		status, _, _ := s.http.send("POST", "/v1/messages", plain, body)
		sent <- status
	}()
	var names []string
	for i := range erased {
		s.http.must(200, "POST", "/v1/subscribers/"+token(i)+"/erase", plain, `{}`)
		names = append(names, token(i))
	}
	if status := <-sent; status != 201 {
		t.Fatalf("the message got %d", status)
	}
	if files := s.foundIn(names...); len(files) > 0 {
		t.Errorf("who is erased is in %d places, such as %v", len(files), files[:min(4, len(files))])
	}
}

// A key of a message may have been made of an address.
func TestAnIdempotencyKeyThatNamesWhoIsErasedIsForgotten(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	send := func(key string) string {
		status, text, _ := s.http.send("POST", "/v1/messages?wait=10s", plain, `{"channel":"email","to":"Qzxkey@example.org","content":{"subject":"s","text":"t"}}`, "Idempotency-Key", key)
		if status != 201 {
			t.Fatalf("%d %s", status, text)
		}
		return into[struct{ ID string }](t, text).ID
	}
	named, plainly := send("welcome-QZXkey@example.org"), send("of-no-name")
	list := into[struct{ Subscribers []struct{ ID string } }](t, s.http.must(200, "GET", "/v1/subscribers?address=Qzxkey@example.org", "", ""))
	s.http.must(200, "POST", "/v1/subscribers/"+list.Subscribers[0].ID+"/erase", plain, `{}`)
	if files := s.foundIn("qzxkey"); len(files) > 0 {
		t.Errorf("found in %v", files)
	}
	if len(s.foundIn("of-no-name")) == 0 {
		t.Error("a key that names nobody is gone, too")
	}
	for _, id := range []string{named, plainly} {
		s.http.must(200, "GET", "/v1/messages/"+id, "", "")
	}
}
