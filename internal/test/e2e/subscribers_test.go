package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// A subscriber as the API shows it.
type subscriber struct {
	ID        string
	Addresses []struct{ Kind, Address, Label string }
	Locale    string
	TimeZone  string `json:"time_zone"`
}

// A subscriber is put, read, changed and listed like any resource.
func TestASubscriberIsAResource(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, news("127.0.0.1:1", ""))
	const ada = `{"addresses":[{"kind":"mail","address":"Ada@Example.org","label":"home"},{"kind":"mail","address":"ada@work.example"}],"locale":"de-AT","time_zone":"Europe/Vienna","attributes":{"vip":true}}`
	status, text, header := s.http.send("PUT", "/v1/subscribers/ada", plain, ada)
	if got := into[subscriber](t, text); status != 201 || got.ID != "ada" || len(got.Addresses) != 2 ||
		got.Addresses[0].Address != "Ada@example.org" || got.Addresses[0].Label != "home" || header.Get("Location") != "/v1/subscribers/ada" {
		t.Fatalf("%d %s %v", status, text, header)
	}
	tag := header.Get("ETag")
	_, again, header := s.http.send("GET", "/v1/subscribers/ada", "", "")
	if again != text || header.Get("ETag") != tag || tag == "" {
		t.Errorf("read %s with tag %s, put %s with tag %s", again, header.Get("ETag"), text, tag)
	}
	s.http.must(200, "PUT", "/v1/subscribers/ada", plain, ada)

	status, text, header = s.http.send("PATCH", "/v1/subscribers/ada", "application/merge-patch+json", `{"time_zone":null,"locale":"en","attributes":{"vip":null,"age":36}}`, "If-Match", tag)
	if status != 200 || strings.Contains(text, "Vienna") || !strings.Contains(text, `"locale":"en"`) || !strings.Contains(text, `"attributes":{"age":36}`) || header.Get("ETag") == tag {
		t.Errorf("patched: %d %s", status, text)
	}
	for _, change := range [][2]string{{"PATCH", `{"locale":"fr"}`}, {"PUT", ada}, {"DELETE", ""}} {
		if got := s.http.refused(412, change[0], "/v1/subscribers/ada", plain, change[1], "If-Match", tag); got.Code != "precondition_failed" {
			t.Errorf("%s with an old tag: %+v", change[0], got)
		}
	}
	s.http.must(412, "PUT", "/v1/subscribers/ada", plain, ada, "If-None-Match", "*")
	s.http.must(412, "PUT", "/v1/subscribers/nobody", plain, ada, "If-Match", "*")

	ours := into[subscriber](t, s.http.must(201, "POST", "/v1/subscribers", plain, `{"addresses":[{"kind":"mail","address":"grace@example.org"}]}`))
	if !strings.HasPrefix(ours.ID, "per-") {
		t.Errorf("our id is %s", ours.ID)
	}
	for body, pointer := range map[string]string{
		`{"addresses":[{"kind":"mail","address":"ada@work.example"}]}`:                                        "/addresses/0/address",
		`{"addresses":[{"kind":"fax","address":"1"}]}`:                                                        "/addresses/0/kind",
		`{"addresses":[{"kind":"mail","address":"x"}]}`:                                                       "/addresses/0/address",
		`{"addresses":[{"kind":"mail","address":"x@example.org"},{"kind":"mail","address":"x@EXAMPLE.org"}]}`: "/addresses/1/address",
		`{"locale":"nonsense!","addresses":[]}`:                                                               "/locale",
		`{"time_zone":"Mars/Base","addresses":[]}`:                                                            "/time_zone",
		`{"attributes":[1],"addresses":[]}`:                                                                   "/attributes",
		`{"attributes":{"a":"` + strings.Repeat("x", 17<<10) + `"},"addresses":[]}`:                           "/attributes",
	} {
		status, text, _ := s.http.send("PUT", "/v1/subscribers/other", plain, body)
		if got := into[member](t, text); status < 400 || status >= 500 || got.Pointer != pointer {
			t.Errorf("%.80s: %d %s", body, status, text)
		}
	}
	s.http.must(404, "GET", "/v1/subscribers/other", "", "") // nothing of a refused one is kept

	s.http.must(201, "PUT", "/v1/subscribers/empty", plain, `{}`)
	seen := map[string]bool{}
	for cursor := ""; ; {
		page := into[struct {
			Subscribers []subscriber
			Next        string
		}](t, s.http.must(200, "GET", "/v1/subscribers?limit=1&cursor="+cursor, "", ""))
		for _, one := range page.Subscribers {
			if seen[one.ID] {
				t.Errorf("%s is listed twice", one.ID)
			}
			seen[one.ID] = true
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(seen) != 3 || !seen["ada"] || !seen["empty"] || !seen[ours.ID] {
		t.Errorf("listed: %v", seen)
	}
	for query, want := range map[string]string{"address=ADA@work.example": "[]", "address=ada@work.example": "ada", "id=ada": "ada", "id=ada&address=grace@example.org": "[]", "id=none": "[]"} {
		if got := s.http.must(200, "GET", "/v1/subscribers?"+query, "", ""); !strings.Contains(got, want) {
			t.Errorf("%s: %s", query, got)
		}
	}
}

// A subscription that names its subscriber goes to the default address, and each
// address that is subscribed gets a message of its own.
func TestASubscriptionGoesToTheDefaultAddressOfItsSubscriber(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.must(201, "PUT", "/v1/subscribers/ada", plain, `{"addresses":[{"kind":"mail","address":"one@example.org"},{"kind":"mail","address":"two@example.org"}],"locale":"de"}`)
	s.http.must(201, "POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"email","subscriber":"ada"}`)
	s.http.must(200, "POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"email","subscriber":"ada"}`)
	s.http.must(200, "POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"email","to":"one@example.org"}`)
	s.http.must(201, "PUT", "/v1/subscriptions/second", plain, `{"topic":"story","channel":"email","subscriber":"ada","to":"two@example.org"}`)
	got := into[struct{ Subscriber, To string }](t, s.http.must(200, "GET", "/v1/subscriptions/second", "", ""))
	if got.Subscriber != "ada" || got.To != "two@example.org" {
		t.Errorf("the second is %+v", got)
	}
	event := s.http.publish(`{"title":"both"}`)
	if b := s.http.completed(event); b.Messages != 2 {
		t.Errorf("%d messages", b.Messages)
	}
	r.one("one@example.org")
	r.one("two@example.org")
	if all := s.http.deliveries(event, "&recipient=ada"); len(all) != 2 || all[0].Subscriber != "ada" || all[1].Subscriber != "ada" {
		t.Errorf("deliveries of ada: %+v", all)
	}
	if one := s.http.deliveries(event, "&recipient=two@example.org"); len(one) != 1 || one[0].Address != "two@example.org" {
		t.Errorf("deliveries of the address: %+v", one)
	}

	for put, pointer := range map[string]string{
		`{"topic":"story","channel":"email","subscriber":"nobody"}`:                              "/subscriber",
		`{"topic":"story","channel":"email"}`:                                                    "/to",
		`{"topic":"story","channel":"email","subscriber":"other","to":"one@example.org"}`:        "/to",
		`{"topic":"story","channel":"email","subscriber":"per-ffffffff","to":"new@example.org"}`: "/subscriber",
	} {
		status, text, _ := s.http.send("POST", "/v1/subscriptions", plain, put)
		if got := into[member](t, text); status < 400 || got.Pointer != pointer {
			t.Errorf("%s: %d %s", put, status, text)
		}
	}

	// The default is another now, and the address that is gone hears nothing more.
	s.http.must(200, "PUT", "/v1/subscribers/ada", plain, `{"addresses":[{"kind":"mail","address":"three@example.org"},{"kind":"mail","address":"two@example.org"}]}`)
	s.http.must(201, "POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"email","subscriber":"ada"}`)
	s.http.completed(s.http.publish(`{"title":"again"}`))
	if one, two, three := len(r.of("one@example.org")), len(r.of("two@example.org")), len(r.of("three@example.org")); one != 1 || two != 2 || three != 1 {
		t.Errorf("mails: %d, %d and %d", one, two, three)
	}
	if all := s.http.history("ada"); len(all) != 4 {
		t.Errorf("the history has %d deliveries", len(all))
	}

	// A deleted subscriber gets nothing, is not listed, and stays in the history.
	s.http.must(204, "DELETE", "/v1/subscribers/ada", "", "")
	s.http.must(204, "DELETE", "/v1/subscribers/ada", "", "")
	s.http.must(404, "GET", "/v1/subscribers/ada", "", "")
	if b := s.http.completed(s.http.publish(`{"title":"gone"}`)); b.Matched != 0 {
		t.Errorf("%d matched", b.Matched)
	}
	if all := s.http.history("ada"); len(all) != 4 {
		t.Errorf("the history has %d deliveries", len(all))
	}
	s.mustStop()
	s.start()
	if all := s.http.history("ada"); len(all) != 4 {
		t.Errorf("after a restart the history has %d deliveries", len(all))
	}
	s.http.must(404, "GET", "/v1/subscribers/ada", "", "")
	s.http.must(201, "POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"email","to":"two@example.org"}`)
	if got := into[subscriber](t, s.http.must(200, "GET", "/v1/subscribers/ada", "", "")); len(got.Addresses) != 2 || got.Addresses[0].Address != "three@example.org" {
		t.Errorf("who subscribes again is %+v", got)
	}
}

// history lists what somebody got, the latest first.
func (c *caller) history(who string) []fanfare.Delivery {
	c.t.Helper()
	return into[struct{ Deliveries []fanfare.Delivery }](c.t, c.must(200, "GET", "/v1/subscribers/"+who+"/deliveries?limit=1000", "", "")).Deliveries
}

// The attributes of subscribers are what the service's schema says, wherever
// they are put.
func TestAttributesFitTheSchemaOfTheService(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, news("127.0.0.1:1", ""))
	s.http.must(201, "PUT", "/v1/subscribers/before", plain, `{"attributes":{"floor":"third"}}`)
	schema := "service: news\nsubscriber_schema:\n  type: object\n  properties: {floor: {type: integer}, team: {type: string}}\n  additionalProperties: false\n"
	if got := s.http.must(200, "POST", "/v1/apply", yaml, schema); !strings.Contains(got, "subscriber_schema") {
		t.Errorf("the change is %s", got)
	}
	if got := s.http.must(200, "POST", "/v1/apply", yaml, schema); strings.Contains(got, "subscriber_schema") {
		t.Errorf("the same again changes %s", got)
	}
	check := func() {
		t.Helper()
		wrong := func(method, path, body string) {
			t.Helper()
			if got := s.http.refused(422, method, path, plain, body); got.Pointer != "/attributes/floor" {
				t.Errorf("%s %s: %+v", method, path, got)
			}
		}
		wrong("PUT", "/v1/subscribers/ada", `{"attributes":{"floor":"third"}}`)
		wrong("POST", "/v1/subscriptions", `{"topic":"story","channel":"email","to":"a@example.org","attributes":{"floor":"third"}}`)
		s.http.must(404, "GET", "/v1/subscribers/ada", "", "")
		if got := s.http.refused(422, "PUT", "/v1/subscribers/ada", plain, `{"attributes":{"room":1}}`); got.Pointer != "/attributes/room" {
			t.Errorf("%+v", got)
		}
	}
	check()
	if got := s.http.must(200, "GET", "/v1/services/news", "", ""); !strings.Contains(got, `"subscriber_schema":{`) {
		t.Errorf("the service is %s", got)
	}
	s.http.must(200, "GET", "/v1/subscribers/before", "", "") // what was put before stays
	s.mustStop()
	s.start()
	check()
	s.http.must(201, "PUT", "/v1/subscribers/ada", plain, `{"attributes":{"floor":3}}`)
	if got := s.http.refused(422, "PATCH", "/v1/subscribers/ada", plain, `{"attributes":{"floor":"third"}}`); got.Pointer != "/attributes/floor" {
		t.Errorf("%+v", got)
	}
	if got := s.http.refused(422, "POST", "/v1/apply", yaml, "service: news\nsubscriber_schema: {type: nonsense}\n"); !strings.HasPrefix(got.Pointer, "/subscriber_schema") {
		t.Errorf("%+v", got)
	}
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\nsubscriber_schema: null\n")
	s.http.must(200, "PUT", "/v1/subscribers/ada", plain, `{"attributes":{"floor":"third"}}`)
}
