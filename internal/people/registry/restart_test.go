package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// everything has all data that can be read about the service notify.
func everything(t *testing.T, r *registry.Registry, ids []string) string {
	t.Helper()
	ctx := context.Background()
	var b strings.Builder
	show := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	for _, topic := range r.Topics("notify") {
		show(topic)
		fmt.Fprintln(&b, topic.Rules, topic.ValidateData(json.RawMessage(`{"mag":"x"}`)))
	}
	for _, c := range r.Channels() {
		show(c)
	}
	show(r.Services())
	show(r.Paused())
	number, ok := r.TemplateVersion("notify", "a")
	src, _ := r.Template(number)
	fmt.Fprintln(&b, number, ok, src, r.ChangeSeq())
	for _, id := range ids {
		s, err := r.Subscription(ctx, "notify", id)
		if err != nil {
			t.Fatal(err)
		}
		show(s)
		fmt.Fprintln(&b, s.Place, s.Owner, r.Live(s.Place))
	}
	return b.String()
}

func TestARestartKeepsEverything(t *testing.T) {
	ctx := context.Background()
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, weather)
	apply(t, r, "service: notify\ntemplates: {a: {subject: S, text: one}}")
	apply(t, r, "service: notify\ntemplates: {a: {subject: S, text: two, html: '<p>'}}\ntopics: {other: {template: a, expiry: 2h, title: Other}}")
	_, admin, err := r.CreateKey(ctx, "", state.KeySettings{Name: "cli"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.SetPaused(ctx, fanfare.Scope{Kind: fanfare.ScopeChannel, Name: "notify/email"}, true, "relay is down"); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range 300 {
		p := people.SubscriptionPut{Topic: "change", Channel: "email", To: fmt.Sprintf("p%d@example.org", i), Locale: "de", TimeZone: "Europe/Berlin",
			Data: json.RawMessage(`{"a":1}`), Attributes: json.RawMessage(`{"b":2}`)}
		switch i % 4 {
		case 0:
			p.ID = fmt.Sprint("own-", i)
		case 1:
			p.Filter = fmt.Sprintf("mag > %d.0", i)
		case 2:
			p.Rule, p.Params = "near", json.RawMessage(fmt.Sprintf(`{"min_mag":%d,"place":"x"}`, i))
		}
		ids = append(ids, good(t, putAll(t, r, p))[0].ID)
		if i%7 == 0 {
			if err := r.EndSubscription(ctx, "notify", ids[i], "enough"); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := everything(t, r, ids)
	r.Close()
	r, _ = openAt(t, place)
	if after := everything(t, r, ids); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if who, ok := r.Authenticate(admin); !ok || !who.Operator() || who.Name != "cli" {
		t.Errorf("the key is %+v, %v", who, ok)
	}
	// Row ids continue where they ended.
	old := map[string]bool{}
	for _, id := range ids {
		old[id] = true
	}
	for i := range 300 {
		res := good(t, putAll(t, r, people.SubscriptionPut{Topic: "other", Channel: "email", To: fmt.Sprintf("p%d@example.org", i)}))
		if !res[0].Created || old[res[0].ID] {
			t.Fatalf("%+v", res)
		}
	}
}

func TestAKeyOpensItsServiceAndNoOther(t *testing.T) {
	ctx := context.Background()
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	_, secret, err := r.CreateKey(ctx, "notify", state.KeySettings{Name: "import"})
	if err != nil {
		t.Fatal(err)
	}
	who, ok := r.Authenticate(secret)
	if !ok || !who.May("notify") || who.May("other") || who.Operator() || who.KeyID != "key-1" {
		t.Errorf("%+v, %v", who, ok)
	}
	for _, wrong := range []string{"", "ff_", secret[:len(secret)-1], secret + "x", strings.ToUpper(secret), "Bearer " + secret} {
		if _, ok := r.Authenticate(wrong); ok {
			t.Errorf("%q opens", wrong)
		}
	}
	if _, _, err := r.CreateKey(ctx, "nobody", state.KeySettings{}); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Error(err)
	}
	_, again, err := r.CreateKey(ctx, "", state.KeySettings{Name: "admin"})
	if err != nil || again == secret || len(again) < 40 {
		t.Errorf("%q, %v", again, err)
	}
}

func TestPausedBroadcastsAreListedUntilTheyAreResumed(t *testing.T) {
	ctx := context.Background()
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	event := fanfare.EventRef{Day: fanfare.DayOf(time.Now()), Seq: 4097}
	scopes := []fanfare.Scope{
		{Kind: fanfare.ScopeAll}, {Kind: fanfare.ScopeService, Name: "notify"},
		{Kind: fanfare.ScopeChannel, Name: "notify/email"}, {Kind: fanfare.ScopeBroadcast, Name: event.String()},
	}
	for i, s := range scopes {
		for range 2 {
			if err := r.SetPaused(ctx, s, true, "because"); err != nil {
				t.Fatal(err)
			}
		}
		if p := r.Paused(); len(p) != i+1 || p[0].Reason != "because" {
			t.Errorf("%+v", p)
		}
	}
	for _, s := range scopes {
		if err := r.SetPaused(ctx, s, false, ""); err != nil {
			t.Fatal(err)
		}
	}
	if p := r.Paused(); len(p) != 0 {
		t.Errorf("%+v", p)
	}
	for _, s := range []fanfare.Scope{
		{Kind: "x"}, {Kind: fanfare.ScopeAll, Name: "x"}, {Kind: fanfare.ScopeService, Name: "x"},
		{Kind: fanfare.ScopeChannel, Name: "notify/x"}, {Kind: fanfare.ScopeChannel, Name: "notify"}, {Kind: fanfare.ScopeBroadcast, Name: "x"},
	} {
		if err := r.SetPaused(ctx, s, true, ""); err == nil {
			t.Errorf("%v was paused", s)
		}
	}
}

func TestBulkReadsSkipWhatIsMissingAndKeepTheOrder(t *testing.T) {
	ctx := context.Background()
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	good(t, putAll(t, r, sharedPuts(0, 2000)...))
	var want, asked []fanfare.RowID
	for partition := range fanfare.Partitions {
		for local := range uint32(64) {
			asked = append(asked, fanfare.NewRowID(partition, local))
		}
	}
	for _, p := range asked {
		if r.Live(p) {
			want = append(want, p)
		}
	}
	for _, places := range [][]fanfare.RowID{asked, want, want[:1], want[3:20], {want[1], want[40], want[500]}, nil} {
		var got, expected []fanfare.RowID
		for _, p := range places {
			if r.Live(p) {
				expected = append(expected, p)
			}
		}
		err := r.Subscriptions(ctx, places, func(s *people.SubscriptionRow) error {
			got = append(got, s.Place)
			if !s.Live || s.ID != fanfare.SubscriptionID(s.Place) || len(s.Data) == 0 {
				t.Errorf("%+v", s)
			}
			return nil
		})
		if err != nil || !reflect.DeepEqual(got, expected) {
			t.Errorf("asked for %d, got %d, want %d (%v)", len(places), len(got), len(expected), err)
		}
	}
	if len(want) != 2000 {
		t.Errorf("%d are live", len(want))
	}
}
