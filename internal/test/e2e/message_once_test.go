package e2e

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

func TestTheSameKeySendsOnce(t *testing.T) {
	t.Parallel()
	s, r := mailroom(t, sink.Config{}, "")
	body := `{"channel":"email","to":"ada@example.org","template":"receipt","data":{"order":1,"total":1}}`
	key := []string{"Idempotency-Key", `"8e03978e-40d5-43e8-bc93-6894a57f9324"`}
	first := s.http.message("", body, key...)
	check := func(when string) {
		t.Helper()
		status, text, header := s.http.send("POST", "/v1/messages", plain, body, key...)
		if got := into[message](t, text); status != 201 || got.ID != first.ID || header.Get("Idempotency-Replayed") != "true" || header.Get("Location") != "/v1/messages/"+first.ID {
			t.Errorf("%s: %d %s", when, status, text)
		}
		other := strings.Replace(body, `"order":1`, `"order":2`, 1)
		if got := s.http.refused(422, "POST", "/v1/messages", plain, other, key...); got.Code != "idempotency_key_reused" {
			t.Errorf("%s, another body: %+v", when, got)
		}
	}
	check("at once")
	s.http.completed(first.Event)
	check("when it had arrived")
	s.mustStop()
	s.start()
	check("after a restart")
	if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.gone
	s.start()
	check("after a kill")
	// An event of a topic with the same id and source is another thing.
	s.subscribe("ada@example.org")
	s.http.completed(into[accepted](t, s.http.must(202, "POST", "/v1/topics/story/events?id=8e03978e-40d5-43e8-bc93-6894a57f9324&source=/messages", plain, `{"title":"other"}`)).Events[0].ID)
	check("with an event of that id")
	if mails := r.of("ada@example.org"); len(mails) != 2 || field(mails[0], "Subject") != "Order 1" || field(mails[1], "Subject") != "other" {
		t.Errorf("%d mails", len(mails))
	}
	if b := s.http.broadcast(first.ID); b.SourceID != "8e03978e-40d5-43e8-bc93-6894a57f9324" {
		t.Errorf("the key is not shown as its id: %+v", b)
	}
}

func TestTheSameKeyAtTheSameTimeSendsOnce(t *testing.T) {
	t.Parallel()
	s, r := mailroom(t, sink.Config{}, "")
	body := `{"channel":"email","recipients":[{"to":"ada@example.org"},{"to":"bad"}],"template":"receipt","data":{"order":1,"total":1}}`
	ids := make([]string, 20)
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/messages?wait=30s", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			request.Header = http.Header{"Authorization": {"Bearer " + s.key}, "X-Fanfare-Service": {"news"}, "Content-Type": {plain}, "Idempotency-Key": {"once"}}
			response, err := plainHTTP.Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			var m message
			if err := decode(response.Body, &m); err != nil || response.StatusCode != 201 || len(m.Errors) != 1 || m.Errors[0].Index != 1 || m.State != "completed" {
				t.Errorf("%d: %v, %+v", response.StatusCode, err, m)
			}
			ids[i] = m.ID
		})
	}
	group.Wait()
	if slices.Sort(ids); ids[0] != ids[len(ids)-1] {
		t.Errorf("it became several messages: %q", ids)
	}
	r.one("ada@example.org")
}
