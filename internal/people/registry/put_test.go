package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/rawjson"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func putAll(tb testing.TB, r *registry.Registry, puts ...people.SubscriptionPut) []people.PutResult {
	tb.Helper()
	results := make([]people.PutResult, len(puts))
	if err := r.PutSubscriptions(context.Background(), "notify", puts, results); err != nil {
		tb.Fatal(err)
	}
	return results
}

func good(tb testing.TB, results []people.PutResult) []people.PutResult {
	tb.Helper()
	for i, res := range results {
		if res.Err != nil {
			tb.Fatalf("put %d: %v", i, res.Err)
		}
	}
	return results
}

func TestOnePersonMatchedByThreeSubscriptionsIsOneSubscriber(t *testing.T) {
	r, index := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	good(t, putAll(t, r,
		people.SubscriptionPut{Topic: "change", Channel: "email", To: "Ada@Example.org"},
		people.SubscriptionPut{Topic: "change", Channel: "email", To: "Ada@example.org", Filter: "mag > 1.0"},
		people.SubscriptionPut{Topic: "change", Channel: "print", To: "Ada@EXAMPLE.org", Rule: "strong"},
	))
	hits, err := index.Match(condition.Key{Service: "notify", Topic: "change"}, condition.Event{Data: json.RawMessage(`{"title":"x","mag":7.0}`)}, nil)
	if err != nil || len(hits) != 3 {
		t.Fatalf("%d hits, %v", len(hits), err)
	}
	for _, h := range hits {
		if h.Subscriber != hits[0].Subscriber || h.Place.Partition() != h.Subscriber.Partition() {
			t.Errorf("hit %+v has another subscriber or partition", h)
		}
	}
}

func TestAnAnswerMeansThatTheNextEventSeesIt(t *testing.T) {
	r, index := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	key := condition.Key{Service: "notify", Topic: "change"}
	before := r.ChangeSeq()
	res := good(t, putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: "a@example.org"}))
	if r.ChangeSeq() != before+1 || index.Len(key) != 1 {
		t.Fatalf("change sequence %d, index %d", r.ChangeSeq(), index.Len(key))
	}
	putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: "a@example.org"})
	if r.ChangeSeq() != before+1 {
		t.Error("the same put again was a change")
	}
	if err := r.EndSubscription(context.Background(), "notify", res[0].ID, "no more"); err != nil {
		t.Fatal(err)
	}
	if r.ChangeSeq() != before+2 || index.Len(key) != 0 {
		t.Errorf("after the end: change sequence %d, index %d", r.ChangeSeq(), index.Len(key))
	}
}

func TestAfterEndIsCalledWhenNothingCanMatchAnyMore(t *testing.T) {
	index := condition.New()
	var r *registry.Registry
	var ended []fanfare.RowID
	opt := options(openStore(t, storetest.Place(t)), index)
	opt.WaitInFlight = func(p fanfare.RowID) {
		if r.Live(p) || index.Len(condition.Key{Service: "notify", Topic: "change"}) != 0 {
			t.Error("still live")
		}
		ended = append(ended, p)
	}
	r, err := registry.Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	apply(t, r, weather)
	res := good(t, putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: "a@example.org"}))
	place, _ := fanfare.ParseSubscriptionID(res[0].ID)
	for range 2 { // the second click on an unsubscribe link is no error
		if err := r.EndSubscriptionByRow(context.Background(), place, "link"); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(ended, []fanfare.RowID{place, place}) {
		t.Errorf("AfterEnd got %v", ended)
	}
	s, err := r.Subscription(context.Background(), "notify", res[0].ID)
	if err != nil || s.State != "ended" || s.Reason != "link" || s.EndedAt.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestAReasonIsKeptAsOneShortLineOfValidText(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	for given, want := range map[string]string{
		"moved\r\naway\x00":            "moved  away ",
		"caf\xc3":                      "caf",
		strings.Repeat("x", 255) + "é": strings.Repeat("x", 255), // the cut is not within a character
	} {
		id := good(t, putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: "a@example.org"}))[0].ID
		if err := r.EndSubscription(t.Context(), "notify", id, given); err != nil {
			t.Fatal(err)
		}
		if s, err := r.Subscription(t.Context(), "notify", id); err != nil || s.Reason != want {
			t.Errorf("the reason %q is kept as %q (%v)", given, s.Reason, err)
		}
	}
}

func TestAChangedConditionIsSeenAtOnceUnderTheSamePlace(t *testing.T) {
	r, index := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	match5 := func() int {
		hits, err := index.Match(condition.Key{Service: "notify", Topic: "change"}, condition.Event{Data: json.RawMessage(`{"mag":5.0}`)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(hits)
	}
	p := people.SubscriptionPut{ID: "mine", Topic: "change", Channel: "email", To: "a@example.org", Filter: "mag > 4.0"}
	good(t, putAll(t, r, p))
	place := func() fanfare.RowID {
		s, err := r.Subscription(context.Background(), "notify", "mine")
		if err != nil {
			t.Fatal(err)
		}
		return s.Place
	}
	first := place()
	if match5() != 1 {
		t.Fatal("not matched")
	}
	p.Filter = "mag > 6.0"
	if res := good(t, putAll(t, r, p)); res[0].Created || match5() != 0 || place() != first {
		t.Error("the change did not show, or made another")
	}
	p.Topic, p.Filter = "other", ""
	if res := good(t, putAll(t, r, p)); !res[0].Created || place() == first || r.Live(first) {
		t.Error("another topic did not make another subscription under the id")
	}
}

func TestManyCallersAtOnceGetTheirOwnAnswers(t *testing.T) {
	r, index := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	const callers, each = 16, 40
	var wg sync.WaitGroup
	ids := make([][]string, callers)
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				results := make([]people.PutResult, 2)
				err := r.PutSubscriptions(context.Background(), "notify", []people.SubscriptionPut{
					{Topic: "change", Channel: "email", To: fmt.Sprintf("p%d-%d@example.org", c, i)},
					{Topic: "change", Channel: "email", To: fmt.Sprintf("shared%d@example.org", i)},
				}, results)
				if err != nil || results[0].Err != nil || !results[0].Created {
					t.Error(err, results)
				}
				ids[c] = append(ids[c], results[1].ID)
			}
		})
	}
	wg.Wait()
	for c := range callers {
		if !slices.Equal(ids[c], ids[0]) {
			t.Errorf("caller %d got other ids for the shared subscriptions", c)
		}
	}
	if n := index.Len(condition.Key{Service: "notify", Topic: "change"}); n != callers*each+each {
		t.Errorf("the index has %d", n)
	}
}

func TestEveryBadMemberIsNamedAndTheOthersGoOn(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	ok := people.SubscriptionPut{Topic: "change", Channel: "email", To: "a@example.org"}
	long := func(n int) string { return strings.Repeat("x", n) }
	cases := []struct {
		name    string
		change  func(*people.SubscriptionPut)
		code    fanfare.Code
		pointer string
		text    string // in message or hint
	}{
		{"unknown topic", func(p *people.SubscriptionPut) { p.Topic = "chnage" }, fanfare.Invalid, "/topic", "did you mean change?"},
		{"no topic", func(p *people.SubscriptionPut) { p.Topic = "" }, fanfare.Invalid, "/topic", "missing"},
		{"unknown channel", func(p *people.SubscriptionPut) { p.Channel = "sms" }, fanfare.Invalid, "/channel", "email"},
		{"no address", func(p *people.SubscriptionPut) { p.To = "" }, fanfare.Invalid, "/to", "missing"},
		{"invalid address", func(p *people.SubscriptionPut) { p.To = "nobody" }, fanfare.Invalid, "/to", "nobody"},
		{"line break in the address", func(p *people.SubscriptionPut) { p.To = "a@example.org\r\nBcc: b@example.org" }, fanfare.Invalid, "/to", "line break"},
		{"filter and rule", func(p *people.SubscriptionPut) { p.Filter, p.Rule = "mag > 1.0", "strong" }, fanfare.Invalid, "/rule", "not both"},
		{"syntax error in the filter", func(p *people.SubscriptionPut) { p.Filter = "mag >" }, fanfare.Invalid, "/filter", "syntax"},
		{"a field that the schema lacks", func(p *people.SubscriptionPut) { p.Filter = "event.magnitude > 1.0" }, fanfare.Invalid, "/filter", "magnitude"},
		{"a filter over the limit", func(p *people.SubscriptionPut) { p.Filter = "title == '" + long(4096) + "'" }, fanfare.TooLarge, "/filter", "4096"},
		{"unknown rule", func(p *people.SubscriptionPut) { p.Rule = "nearby" }, fanfare.Invalid, "/rule", "near"},
		{"a param is missing", func(p *people.SubscriptionPut) { p.Rule, p.Params = "near", json.RawMessage(`{"place":"x"}`) }, fanfare.Invalid, "/params/min_mag", "min_mag"},
		{"a param of the wrong type", func(p *people.SubscriptionPut) {
			p.Rule, p.Params = "near", json.RawMessage(`{"place":"x","min_mag":"4"}`)
		}, fanfare.Invalid, "/params/min_mag", "number"},
		{"params without a rule", func(p *people.SubscriptionPut) { p.Params = json.RawMessage(`{"place":"x"}`) }, fanfare.Invalid, "/params", "rule"},
		{"params that are no object", func(p *people.SubscriptionPut) { p.Rule, p.Params = "near", json.RawMessage(`[1]`) }, fanfare.Invalid, "/params", "object"},
		{"data that is no object", func(p *people.SubscriptionPut) { p.Data = json.RawMessage(`"x"`) }, fanfare.Invalid, "/data", "object"},
		{"data that is not JSON", func(p *people.SubscriptionPut) { p.Data = json.RawMessage(`{"x":}`) }, fanfare.Invalid, "/data", "JSON"},
		{"data over the limit", func(p *people.SubscriptionPut) { p.Data = json.RawMessage(`{"x":"` + long(16<<10) + `"}`) }, fanfare.TooLarge, "/data", "16384"},
		{"attributes over the limit", func(p *people.SubscriptionPut) { p.Attributes = json.RawMessage(`{"x":"` + long(16<<10) + `"}`) }, fanfare.TooLarge, "/attributes", "16384"},
		{"data that is not UTF-8", func(p *people.SubscriptionPut) { p.Data = json.RawMessage("{\"x\":\"\xff\"}") }, fanfare.Invalid, "/data", "UTF-8"},
		{"attributes that are not UTF-8", func(p *people.SubscriptionPut) { p.Attributes = json.RawMessage("{\"\xc3\":1}") }, fanfare.Invalid, "/attributes", "UTF-8"},
		{"a filter with a zero byte", func(p *people.SubscriptionPut) { p.Filter = "title == 'a\x00b'" }, fanfare.Invalid, "/filter", "zero byte"},
		{"an id with a zero byte", func(p *people.SubscriptionPut) { p.ID = "a\x00b" }, fanfare.Invalid, "/id", "letters"},
		{"an address with a zero byte", func(p *people.SubscriptionPut) { p.To = "a\x00b@example.org" }, fanfare.Invalid, "/to", "zero byte"},
		{"an id with a space", func(p *people.SubscriptionPut) { p.ID = "a b" }, fanfare.Invalid, "/id", "letters"},
		{"an id that is too long", func(p *people.SubscriptionPut) { p.ID = long(129) }, fanfare.TooLarge, "/id", "128"},
		{"a reserved id", func(p *people.SubscriptionPut) { p.ID = "sub-1" }, fanfare.Invalid, "/id", "reserved"},
		{"unknown locale", func(p *people.SubscriptionPut) { p.Locale = "english please" }, fanfare.Invalid, "/locale", "pt-BR"},
		{"unknown time zone", func(p *people.SubscriptionPut) { p.TimeZone = "Mars/Base" }, fanfare.Invalid, "/time_zone", "Europe/Berlin"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bad := ok
			c.change(&bad)
			res := putAll(t, r, ok, bad, ok)
			if res[0].Err != nil || res[2].Err != nil {
				t.Errorf("the good ones: %v, %v", res[0].Err, res[2].Err)
			}
			e, is := errors.AsType[*fanfare.Error](res[1].Err)
			if !is {
				t.Fatalf("error is %v", res[1].Err)
			}
			if e.Code != c.code || e.Pointer != c.pointer || !strings.Contains(e.Error(), c.text) {
				t.Errorf("got %s at %q: %v", e.Code, e.Pointer, e)
			}
			if c.pointer == "/filter" && c.code == fanfare.Invalid && (e.Line != 1 || e.Column == 0) {
				t.Errorf("position %d:%d", e.Line, e.Column)
			}
		})
	}
}

func TestAnUnknownServiceIsAnErrorOfTheWholeCall(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	err := r.PutSubscriptions(context.Background(), "notifi", make([]people.SubscriptionPut, 1), make([]people.PutResult, 1))
	if fanfare.CodeOf(err) != fanfare.NotFound || !strings.Contains(err.Error(), "did you mean notify?") {
		t.Error(err)
	}
}

func TestCanonicalParamsDoNotDependOnSpelling(t *testing.T) {
	for _, s := range spellings {
		if got := string(rawjson.Canonical([]byte(s))); got != spellings[0] {
			t.Errorf("%s became %s", s, got)
		}
	}
}

func TestSettingsOfAPersonAreKeptUntilTheyChangeThem(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	ctx := context.Background()
	p := people.SubscriptionPut{Topic: "change", Channel: "email", To: "a@example.org", Locale: "fr-CA", TimeZone: "America/Vancouver",
		Attributes: json.RawMessage(`{"name":"Ada"}`)}
	good(t, putAll(t, r, p))
	good(t, putAll(t, r, people.SubscriptionPut{Topic: "other", Channel: "email", To: "a@example.org", Locale: "en"}))
	place, err := findSubscriber(r, "a@EXAMPLE.org")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := findSubscriber(r, people.SubscriberID(place)); err != nil || again != place {
		t.Errorf("by id: %v, %v", again, err)
	}
	err = r.Subscribers(ctx, []fanfare.RowID{place}, func(s *people.SubscriberRow) error {
		if s.Locale != "en" || s.TimeZone != "America/Vancouver" || string(s.Attributes) != `{"name":"Ada"}` || s.ID != people.SubscriberID(place) {
			t.Errorf("kept %+v", s)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := findSubscriber(r, "b@example.org"); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Error(err)
	}
}
