package registry_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestATopicSaysWhichEventsAreMadeTogether(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	for _, c := range []struct {
		text string
		want catalog.Generation
	}{
		{"per_change", catalog.Generation{PerChange: true}},
		{"1s", catalog.Generation{Window: time.Second}},
		{"5s", catalog.Generation{Window: 5 * time.Second}},
		{"10s", catalog.Generation{Window: 10 * time.Second}},
		{"continuous", catalog.Generation{}},
	} {
		d, err := document.ParseDocument([]byte("service: a\ntopics:\n  x:\n    generation: "+c.text), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if got := r.Generation("a", "x"); got != c.want {
			t.Errorf("%s is %+v, want %+v", c.text, got, c.want)
		}
		shown, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := document.ParseDocument(shown, "")
		if err != nil || !reflect.DeepEqual(again.Topics["x"].TopicSettings, d.Topics["x"].TopicSettings) {
			t.Errorf("shown as %s, which is another: %v", shown, err)
		}
	}
	if got := r.Generation("a", "gone"); got != (catalog.Generation{}) {
		t.Errorf("a topic that is not there has %+v", got)
	}
}
