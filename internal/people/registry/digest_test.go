package registry_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestATopicSaysHowItsDigestsAre(t *testing.T) {
	for text, want := range map[string]catalog.Digest{
		`{template: daily}`:                             {Template: "daily", Max: 50},
		`{template: daily, key: content_id, max: 1000}`: {Template: "daily", Key: "content_id", Max: 1000},
	} {
		d, err := document.ParseDocument([]byte("service: a\ntopics:\n  x:\n    digest: "+text), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Topics["x"].Digest; got != want {
			t.Errorf("%s is %+v, want %+v", text, got, want)
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
}

func TestTheKeyOfADigestIsAFieldThatEventsCanHave(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply := func(key string) error {
		d, err := document.ParseDocument([]byte("service: a\ntemplates:\n  daily: {subject: s, text: t}\ntopics:\n  x:\n    digest: {template: daily, key: "+key+"}\n"+
			"    schema: {type: object, properties: {content: {type: object, properties: {id: {type: string}}}}, additionalProperties: false}\n"), "")
		if err != nil {
			return err
		}
		_, err = r.Apply(t.Context(), d)
		return err
	}
	for _, key := range []string{"content.ids", "content"} {
		err := apply(key)
		if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Pointer != "/topics/x/digest/key" || e.Line != 6 {
			t.Errorf("%s is refused with %v at %+v", key, err, e)
		}
	}
	if err := apply("content.id"); err != nil {
		t.Fatal(err)
	}
	topic, _ := r.Topic("a", "x")
	if topic.Digest != (catalog.Digest{Template: "daily", Key: "content.id", Max: 50}) {
		t.Errorf("the topic has %+v", topic.Digest)
	}
	if n, ok := r.DigestTemplate(topic); !ok || n == 0 {
		t.Error("its template has no number")
	}
	if key, ok := topic.Digest.KeyOf(&fanfare.Event{Data: json.RawMessage(`{"content":{"id":"c-1"}}`)}); !ok || key != "c-1" {
		t.Errorf("the key is %q, %v", key, ok)
	}
}

func TestWaitingDigestKeepsTheSettingsThatItsTopicHad(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	change := func(topic string) { apply(t, r, "service: a\n"+topic) }
	told := func() (digest catalog.Digest, template string) {
		topic, ok := r.Topic("a", "x")
		if !ok {
			t.Fatal("the topic is gone")
		}
		number, _ := r.DigestTemplate(topic)
		source, _ := r.Template(number)
		return topic.LatestDigest(), source.Text
	}
	change("topics: {x: {}}\n")
	if digest, template := told(); !digest.IsZero() || template != "" {
		t.Errorf("a topic that never had a digest is told by %+v, %q", digest, template)
	}
	change("templates: {daily: {subject: s, text: the first}, weekly: {subject: s, text: the second}}\ntopics: {x: {digest: {template: daily, max: 7}}}\n")
	change("templates: {daily: {delete: true}}\ntopics: {x: {title: X}}\n")
	r.Close()
	r, _ = openAt(t, place)
	change("topics: {x: {title: Y}}\n")
	if digest, template := told(); digest.Max != 7 || template != "the first" {
		t.Errorf("told by %+v, %q", digest, template)
	}
	change("topics: {x: {digest: {template: weekly}}}\n")
	if digest, template := told(); digest.Max != 50 || template != "the second" {
		t.Errorf("with another digest told by %+v, %q", digest, template)
	}
}
