package registry_test

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestAnApplySaysThatATopicLosesItsTemplate(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, "service: a\nchannels: {hook: {driver: webhook}}\ntemplates: {t: {subject: s, text: b}}\ntopics: {x: {template: t}, y: {}}")
	if notes := apply(t, r, "service: a\ntopics: {x: {title: X}}").Notes; len(notes) != 0 {
		t.Errorf("where all channels lead to programs: %q", notes)
	}
	apply(t, r, "service: a\nchannels: {mail: {driver: smtp, relay: 'h:25', from: a@b.c}}\ntopics: {x: {template: t}}")
	notes := apply(t, r, "service: a\ntopics: {x: {title: X}, y: {title: Y}}").Notes
	if len(notes) != 1 || !strings.Contains(notes[0], "topic x no longer has a template") {
		t.Errorf("notes %q", notes)
	}
	if notes := apply(t, r, "service: a\ntopics: {x: {title: Z}}").Notes; len(notes) != 0 {
		t.Errorf("of what was so before: %q", notes)
	}
}
