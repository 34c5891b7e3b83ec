package notifybc

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
)

func TestServiceNamesAreTopicsAndBack(t *testing.T) {
	for name, want := range map[string]string{
		"load": "load", "a-b.c_d": "a-b.c_d", "myService": "n.my_service", "Water Levels!": "n._water-20_levels-21", "n.x": "n.n-2ex", "fanfare.deliveries": "n.fanfare-2edeliveries", "é": "n.-c3-a9",
	} {
		if got := topicName(name); got != want {
			t.Errorf("%q is the topic %q, want %q", name, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringN(1, 80, 200), rapid.StringMatching(`[a-zA-Z0-9_. -]{1,70}`), rapid.SampledFrom([]string{"b.c", "h.d", "N.X"})).Draw(t, "name")
		topic := topicName(name)
		if !document.NamePattern.MatchString(topic) || fanfare.ReservedTopic(topic) {
			t.Fatalf("%q is the topic %q, which is not valid", name, topic)
		}
		if back := serviceNameOf(&catalog.Topic{Name: topic, Title: name}); back != name {
			t.Fatalf("%q is the topic %q, which is the service name %q", name, topic, back)
		}
		if !strings.HasPrefix(topic, hashedPrefix) && serviceNameOf(&catalog.Topic{Name: topic}) != name {
			t.Fatalf("%q needs a title", name)
		}
	})
}
