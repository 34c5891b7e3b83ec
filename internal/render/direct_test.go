package render

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

// A direct send has no topic and no subscriptions. The data of the recipient is sub.
func TestDirectMessageHasSharedAndPersonalData(t *testing.T) {
	for name, text := range map[string]string{
		"in place":      "{{ event.order }} for {{ sub.name }}, {{ sub.seat.row }}",
		"in a block":    "{% if sub.name %}{{ event.order }} for {{ sub.name }}, {{ sub.seat.row }}{% endif %}",
		"through a tag": "{% assign who = sub.name %}{{ event.order }} for {{ who }}, {{ sub.seat.row }}",
	} {
		m := newMailing(t, Source{Text: text}, `{"order":17}`)
		m.Topic, m.UnsubscribeURL, m.UnsubscribeMailto, m.ListID = "", nil, "", ""
		r := newRecipient()
		r.Subscriptions, r.Data = nil, json.RawMessage(`{"name":"Ada","seat":{"row":3}}`)
		got := parse(t, write(t, m, r).Body)
		if text := strings.TrimSpace(got.parts["text/plain"]); text != "17 for Ada, 3" {
			t.Errorf("%s: got %q", name, text)
		}
		if got.header.Get("List-Unsubscribe") != "" || got.header.Get("List-Id") != "" {
			t.Errorf("%s: it has the header of a list: %v", name, got.header)
		}
		r.Data = json.RawMessage(`{"name":"Ada"}`)
		if text := strings.TrimSpace(parse(t, write(t, m, r).Body).parts["text/plain"]); text != "17 for Ada," {
			t.Errorf("%s: an absent value renders as %q", name, text)
		}
		m.RefuseMissing = true
		w, err := m.Writer()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Write(nil, r); err == nil || !strings.Contains(err.Error(), "sub.seat.row") {
			t.Errorf("%s: a variable that is not there: %v", name, err)
		}
	}
}

func TestTopicTemplateRefusesVariableOfDirectSends(t *testing.T) {
	template, err := Compile(Source{Name: "both", Subject: "S", Text: "a\n{{ sub.name }}"})
	if err != nil {
		t.Fatal(err)
	}
	if err := template.Check(nil, nil); err != nil {
		t.Errorf("for direct sends: %v", err)
	}
	if _, _, _, err := template.DryRun(nil); err != nil {
		t.Errorf("for direct sends: %v", err)
	}
	err = template.Check(json.RawMessage(`true`), nil)
	if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Line != 2 || e.Pointer != "/templates/both/text" || !strings.Contains(e.Hint, "subscription.data") {
		t.Errorf("for a topic: %v", err)
	}
}
