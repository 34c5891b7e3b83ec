package condition

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAnAudienceHasTheSubscribersForWhomItsConditionIsTrue(t *testing.T) {
	ada := &Person{ID: "ada", Locale: "de-AT", TimeZone: "Europe/Vienna", Attributes: []byte(`{"region":"Wien","age":44,"tags":["a","b"]}`), Params: []byte(`{"min_mag":5,"place":"Graz"}`),
		Data: []byte(`{"data":{"province":"BC","level":3}}`)}
	nobody := &Person{ID: "per-1"}
	for _, c := range []struct {
		text        string
		ada, nobody bool
	}{
		{`subscriber.id == 'ada'`, true, false},
		{`subscriber.locale.startsWith('de')`, true, false},
		{`!has(subscriber.locale)`, false, true},
		{`subscriber.locale != 'en'`, true, false}, // what is missing is an error
		{`subscriber.time_zone == 'Europe/Vienna' || subscriber.id == 'per-1'`, true, true},
		{`subscriber.attributes.region in ['Wien', 'Graz']`, true, false},
		{`contains_ci(subscriber.attributes.region, 'wie')`, true, false},
		{`subscriber.attributes.age >= 18`, true, false},
		{`'b' in subscriber.attributes.tags`, true, false},
		{`subscriber.attributes.tags.exists(t, t == 'c')`, false, false},
		{`sub.min_mag + 1.0 > 5.5 && sub.place == 'Graz'`, true, false},
		{`has(sub.min_mag) ? false : true`, false, true},
		{`data.data.level == 3`, true, false},
		{"jmespath(data.data, \"province == 'BC' && level > `2`\")", true, false},
		{`jmespath(data.data, "province == 'AB'")`, false, false},
		{`!has(data.data) || jmespath(data.data, "province == 'BC'")`, true, true},
		{`true`, true, true},
	} {
		a, err := NewAudience(c.text, nil)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if reads := strings.Contains(c.text, "sub.") || strings.Contains(c.text, "data."); a.ReadsSubscription() != reads {
			t.Errorf("%s reads the subscription: %v", c.text, a.ReadsSubscription())
		}
		for range 2 { // what one event or person was is not there for the next
			if got := a.Has(ada); got != c.ada {
				t.Errorf("%s has ada: %v", c.text, got)
			}
			if got := a.Has(nobody); got != c.nobody {
				t.Errorf("%s has nobody: %v", c.text, got)
			}
		}
	}
}

func TestAnAudienceIsRefusedWithItsPosition(t *testing.T) {
	schema := json.RawMessage(`{"properties":{"region":{"type":"string"}},"additionalProperties":false}`)
	for _, c := range []struct{ text, says, hint string }{
		{`subscriber.attributes.regoin == 'x'`, `"regoin"`, "region"},
		{`subscriber.attributes.region > 5`, ``, ""},
		{`subscriber.addr == 'x'`, `"addr"`, ""},
		{`event.mag > 5.0`, `"event"`, "subscriber.attributes"},
		{`locale == 'de'`, `"locale"`, "subscriber.locale"},
		{`subscriber.id ==`, `syntax error`, ""},
		{`subscriber.id`, `must be true or false`, ""},
		{`crosses(sub.a, 5)`, ``, ""},
		{` `, `empty`, ""},
	} {
		_, err := NewAudience(c.text, schema)
		e := asError(t, err)
		if e.Pointer != "/audience_filter" || !strings.Contains(e.Message, c.says) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s: %+v", c.text, e)
		}
		if c.text != " " && e.Line != 1 {
			t.Errorf("%s: no position: %+v", c.text, e)
		}
	}
}

// An audience filter is evaluated for every subscriber whom an event could reach, so each loop counts.
func TestAnAudienceWithALoopInALoopIsRefused(t *testing.T) {
	loop := "subscriber.attributes.tags.all(a, a.size() > 1 && a.startsWith('x'))"
	if _, err := NewAudience(loop, nil); err != nil {
		t.Errorf("one loop: %v", err)
	}
	_, err := NewAudience("subscriber.attributes.tags.all(a, subscriber.attributes.tags.all(b, a != b && subscriber.attributes.tags.exists(c, c == a)))", nil)
	if e := asError(t, err); e.Pointer != "/audience_filter" || !strings.Contains(e.Message, "each person") || !strings.Contains(e.Hint, "loop") {
		t.Errorf("loops in loops: %+v", e)
	}
}

func BenchmarkAudience(b *testing.B) {
	a, err := NewAudience(`subscriber.attributes.region == 'Wien' && subscriber.locale.startsWith('de')`, nil)
	if err != nil {
		b.Fatal(err)
	}
	p := &Person{ID: "ada", Locale: "de-AT", TimeZone: "Europe/Vienna", Attributes: []byte(`{"region":"Wien","age":44,"name":"Ada"}`)}
	for b.Loop() {
		a.Has(p)
	}
}
