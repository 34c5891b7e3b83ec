package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

func TestAListIsSentToTheGoodAndNamesTheBad(t *testing.T) {
	t.Parallel()
	s, r := mailroom(t, sink.Config{}, "")
	list := `{"channel":"email","template":"personal","reference":"invitation","recipients":[
		{"to":"ada@example.org","data":{"name":"Ada"}},
		{"to":"not an address","data":{"name":"Nobody"}},
		{"to":"ben@example.org","data":{"name":"Ben"}},
		{"to":"cleo@example.org"},
		{"to":"ada@EXAMPLE.org","data":{"name":"Ada again"}},
		{"subscriber":"per-7fff","data":{"name":"Nobody"}},
		{"data":{"name":"Nobody"}},
		{"to":"dora@example.org","data":["Dora"]}]%s}`
	m := s.http.message("?wait=30s", fmt.Sprintf(list, ""))
	if m.State != "completed" || m.Recipients != 2 || m.Lane != "bulk" || m.Counts[fanfare.Accepted] != 2 || m.Delivery != nil {
		t.Errorf("answered %+v", m)
	}
	var bad []string
	for _, e := range m.Errors {
		bad = append(bad, fmt.Sprint(e.Index, e.Error.Pointer))
		if e.Error.Code != "invalid" || e.Error.Detail == "" {
			t.Errorf("recipient %d: %+v", e.Index, e.Error)
		}
	}
	if want := []string{"1/recipients/1/to", "3/recipients/3/data", "4/recipients/4", "5/recipients/5/subscriber", "6/recipients/6", "7/recipients/7/data"}; !slices.Equal(bad, want) {
		t.Errorf("refused are %q, want %q", bad, want)
	}
	if got := m.Errors[1].Error; !strings.Contains(got.Detail, "sub.name") || !strings.Contains(got.Detail, "personal@1") {
		t.Errorf("what is missing is not named: %+v", got)
	}
	r.only("ada@example.org", "ben@example.org")
	if mail := r.one("ben@example.org"); field(mail, "Subject") != "For Ben" || !strings.Contains(mail, "Ben of ben@example.org") {
		t.Errorf("the mail is %s", mail)
	}
	for _, body := range []string{fmt.Sprintf(list, `,"all_or_nothing":true`), `{"channel":"email","template":"personal","recipients":[{"to":"x"}]}`} {
		got := s.http.refused(422, "POST", "/v1/messages", plain, body)
		if got.Pointer != "/recipients" || len(got.Errors) == 0 || got.Errors[0].Pointer == "" {
			t.Errorf("%+v", got)
		}
	}
	if status, _, _ := s.http.send("GET", "/v1/subscribers/cleo@example.org/deliveries", "", ""); status != 404 {
		t.Errorf("somebody who was refused is known: %d", status)
	}
	if r.total() != 2 {
		t.Errorf("%d mails, want 2", r.total())
	}
}

func TestALongListReachesEverybodyOnce(t *testing.T) {
	t.Parallel()
	s, r := mailroom(t, sink.Config{}, "")
	people := crowd(3000)
	var b strings.Builder
	b.WriteString(`{"channel":"email","template":"personal","recipients":[`)
	for i, p := range people {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"to":%q,"data":{"name":"n%d"}}`, p, i)
	}
	b.WriteString(`]}`)
	m := s.http.message("", b.String())
	s.http.completed(m.Event)
	m = into[message](t, s.http.must(200, "GET", "/v1/messages/"+m.ID, "", ""))
	if m.State != "completed" || m.Recipients != len(people) || m.Counts[fanfare.Accepted] != int64(len(people)) {
		t.Errorf("answered %+v", m)
	}
	r.only(people...)
	for _, i := range []int{0, 17, 2999} {
		if got, want := field(r.one(people[i]), "Subject"), fmt.Sprintf("For n%d", i); got != want {
			t.Errorf("%s got %q, want %q", people[i], got, want)
		}
	}
	many := `{"channel":"email","template":"personal","recipients":[` + strings.Repeat(`{"to":"a@b.c"},`, 10_000) + `{"to":"a@b.c"}]}`
	if got := s.http.refused(413, "POST", "/v1/messages", plain, many); got.Pointer != "/recipients" {
		t.Errorf("%+v", got)
	}
	if got := s.http.refused(413, "POST", "/v1/messages", plain, `{"channel":"email","template":"receipt","to":"a@example.org","data":{"order":1,"total":"`+strings.Repeat("x", 600<<10)+`"}}`); !strings.Contains(got.Detail, "524288") {
		t.Errorf("%+v", got)
	}
}
