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
