package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

var (
	storyTemplate = document.Member{Service: "a", Kind: "template", Name: "story"}
	storyDraft    = document.Member{Service: "a", Kind: "draft", Name: "story"}
)

func keepDraft(ctx context.Context, tb TB, r *registry.Registry, text string) error {
	tb.Helper()
	_, err := r.ApplyMember(ctx, parsed(tb, storyDraft, text), nil)
	return err
}

func publishVersion(ctx context.Context, r *registry.Registry, version int, note string) error {
	return publishOf(ctx, r, "a", version, note)
}

func publishOf(ctx context.Context, r *registry.Registry, service string, version int, note string) error {
	d, err := document.Publication(service, "story", version, note)
	if err == nil {
		_, err = r.ApplyMember(ctx, d, nil)
	}
	return err
}

func always(catalog.Configuration) error { return nil }

// versionsOf returns the versions of the template story as "number state text".
func versionsOf(r *registry.Registry, service string) (all []string) {
	for _, v := range r.Configuration().TemplateVersions(service, "story") {
		line := fmt.Sprintf("%d %s %s", v.Version, v.State, v.Text)
		if v.State == catalog.VersionDraft {
			line += fmt.Sprintf(" over %d", v.Base)
		}
		all = append(all, line)
	}
	return all
}

// A modelled template consists only of version numbers and texts.
type modelled struct {
	published, last int
	texts           map[int]string
	draft           *modelledDraft
}

type modelledDraft struct {
	version, base int
	text          string
}

func (m *modelled) apply(text string) {
	if m.published == 0 || m.texts[m.published] != text {
		m.last++
		m.published, m.texts[m.last] = m.last, text
	}
}

func (m *modelled) keep(text string) {
	d := &modelledDraft{version: m.last + 1, base: m.published, text: text}
	if m.draft != nil && (m.draft.version == m.last || m.draft.text == text && m.draft.base == d.base) {
		d.version = m.draft.version
	}
	m.draft, m.last = d, max(m.last, d.version)
}

// publish returns false if the registry must reject it.
func (m *modelled) publish(version int) bool {
	if d := m.draft; d != nil && (version == 0 || version == d.version) {
		if d.base != m.published {
			return false
		}
		m.published, m.texts[d.version], m.draft = d.version, d.text, nil
		return true
	}
	if _, known := m.texts[version]; !known {
		return false
	}
	m.published = version
	return true
}

func (m *modelled) versions() (all []string) {
	for n := 1; n <= m.last; n++ {
		text, was := m.texts[n]
		switch {
		case m.draft != nil && m.draft.version == n:
			all = append(all, fmt.Sprintf("%d draft %s over %d", n, m.draft.text, m.draft.base))
		case n == m.published:
			all = append(all, fmt.Sprintf("%d published %s", n, text))
		case was:
			all = append(all, fmt.Sprintf("%d earlier %s", n, text))
		}
	}
	return all
}

func TestVersionsAreWhatWasDoneToThemAndWhatIsPinnedStays(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	cases := 0
	rapid.Check(t, func(rt *rapid.T) {
		cases++
		service := fmt.Sprintf("a%d", cases)
		template, draft := storyTemplate, storyDraft
		template.Service, draft.Service = service, service
		apply(rt, r, "service: "+service)
		m := &modelled{texts: map[int]string{}}
		pinned := map[uint32]string{}
		must := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			text := rapid.SampledFrom([]string{"one", "two", "three"}).Draw(rt, "text")
			switch rapid.SampledFrom([]string{"apply", "draft", "draft", "publish", "publish", "version", "discard", "delete", "restart"}).Draw(rt, "deed") {
			case "apply":
				apply(rt, r, "service: "+service+"\ntemplates: {story: {subject: s, text: "+text+"}}")
				m.apply(text)
			case "draft":
				_, err := r.ApplyMember(t.Context(), parsed(rt, draft, "{subject: s, text: "+text+"}"), nil)
				must(err)
				m.keep(text)
			case "publish":
				if err := publishOf(t.Context(), r, service, 0, ""); (err == nil) != m.publish(0) {
					rt.Fatalf("publishing the draft: %v", err)
				}
			case "version":
				version := rapid.IntRange(1, m.last+1).Draw(rt, "version")
				if err := publishOf(t.Context(), r, service, version, ""); (err == nil) != m.publish(version) {
					rt.Fatalf("publishing version %d: %v", version, err)
				}
			case "discard":
				must(r.DeleteMember(t.Context(), draft, always))
				m.draft = nil
			case "delete":
				must(r.DeleteMember(t.Context(), template, always))
				m.published, m.draft = 0, nil
			case "restart":
				r.Close()
				r, _ = openAt(t, place)
			}
			if got, want := versionsOf(r, service), m.versions(); !slices.Equal(got, want) {
				rt.Fatalf("there are %q, want %q", got, want)
			}
			number, ok := r.TemplateVersion(service, "story")
			if ok != (m.published != 0) {
				rt.Fatalf("version %d is published, and %v is pinned", m.published, number)
			}
			if ok {
				pinned[number] = m.texts[m.published]
			}
			for number, want := range pinned {
				if source, ok := r.Template(number); !ok || source.Text != want {
					rt.Fatalf("what was pinned to %d is %q now, want %q", number, source.Text, want)
				}
			}
		}
	})
}

func TestADraftIsTriedWhereTheTemplateIsUsedAndWhatIsPublishedStaysInUse(t *testing.T) {
	var tried []string
	r, _ := openAt(t, storetest.Place(t), func(o *registry.Options) {
		o.DryRunTemplate = func(src *catalog.TemplateSource, schema json.RawMessage, _ map[string]string) error {
			tried = append(tried, src.Text+" with "+string(schema))
			if strings.Contains(src.Text, "wrong") {
				return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/templates/story/text", Message: "no such field"}
			}
			return nil
		}
		o.DryRunDigest = func(src *catalog.TemplateSource, schemas []json.RawMessage) error {
			return o.DryRunTemplate(src, schemas[0], nil)
		}
	})
	apply(t, r, "service: a\ntemplates: {story: {subject: s, text: first}}\ntopics: {x: {template: story}, y: {digest: {template: story}, schema: {type: object}}}")
	tried = nil
	if err := keepDraft(t.Context(), t, r, "{subject: s, text: second}"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"second with true", `second with {"type":"object"}`}; !slices.Equal(tried, want) {
		t.Errorf("the draft was tried as %q, want %q", tried, want)
	}
	err := keepDraft(t.Context(), t, r, "{subject: s, text: wrong}")
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok || e.Pointer != "/text" || !strings.Contains(e.Message, "in topic x") {
		t.Errorf("a wrong draft: %+v", err)
	}
	tried = nil
	apply(t, r, "service: a\ntopics: {x: {template: story, schema: {type: object}}}")
	if want := []string{`first with {"type":"object"}`}; !slices.Equal(tried, want) {
		t.Errorf("a topic was tried with %q, want %q", tried, want)
	}
	tried = nil
	if err := r.DeleteMember(t.Context(), storyDraft, always); err != nil || len(tried) != 0 {
		t.Errorf("what is thrown away was tried as %q: %v", tried, err)
	}
}

func TestADraftThatWasKeptBeforeSomethingElseWasPublishedIsRefused(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, "service: a\ntemplates: {story: {subject: s, text: first}}")
	if err := keepDraft(t.Context(), t, r, "{subject: s, text: mine}"); err != nil {
		t.Fatal(err)
	}
	diff := apply(t, r, "service: a\ntemplates: {story: {subject: s, text: theirs}}")
	if len(diff.Notes) != 1 || !strings.Contains(diff.Notes[0], "version 2") || !strings.Contains(diff.Notes[0], "stored again") {
		t.Errorf("noted %q", diff.Notes)
	}
	err := publishVersion(t.Context(), r, 0, "")
	if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Code != fanfare.Conflict || !strings.Contains(e.Message, "version 3") {
		t.Errorf("published: %v", err)
	}
	if err := keepDraft(t.Context(), t, r, "{subject: s, text: mine}"); err != nil {
		t.Fatal(err)
	}
	if diff := apply(t, r, "service: a\ntemplates: {story: {subject: s, text: theirs}}"); len(diff.Changes) != 0 || len(diff.Notes) != 1 || strings.Contains(diff.Notes[0], "stored again") {
		t.Errorf("applied again: %+v", diff)
	}
	if err := publishVersion(t.Context(), r, 4, ""); err != nil {
		t.Error(err)
	}
	if want := []string{"1 earlier first", "3 earlier theirs", "4 published mine"}; !slices.Equal(versionsOf(r, "a"), want) {
		t.Errorf("there are %q, want %q", versionsOf(r, "a"), want)
	}
	for name, err := range map[string]error{
		"the draft that is none": publishVersion(t.Context(), r, 0, ""), "an unknown version": publishVersion(t.Context(), r, 2, ""), "a note of two lines": publishVersion(t.Context(), r, 1, "a\nb"),
	} {
		if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Hint == "" && e.Pointer == "" {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

func TestVersionsKeepTheirAuthorContentAndReason(t *testing.T) {
	place := storetest.Place(t)
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	clock := func(o *registry.Options) { o.Now = func() time.Time { return now } }
	r, _ := openAt(t, place, clock)
	apply(t, r, "service: a\ntemplates: {story: {subject: s, text: first}}")
	ctx := audit.WithActor(t.Context(), tester)
	if err := keepDraft(ctx, t, r, "{subject: s, text: second, note: shorter, at: '2020-01-01T00:00:00Z', key: key-1}"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if err := publishVersion(ctx, r, 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := publishVersion(ctx, r, 1, "a wrong link"); err != nil {
		t.Fatal(err)
	}
	if err := keepDraft(ctx, t, r, "{subject: s, text: third}"); err != nil {
		t.Fatal(err)
	}
	if err := r.DeleteMember(ctx, storyDraft, always); err != nil {
		t.Fatal(err)
	}
	r.Close()
	r, _ = openAt(t, place, clock)
	var got []catalog.Made
	for _, v := range r.Configuration().TemplateVersions("a", "story") {
		got = append(got, v.Made)
	}
	want := []catalog.Made{{At: now, Key: "key-7", KeyName: "tests", Note: "a wrong link"}, {At: now, Key: "key-7", KeyName: "tests", Note: "shorter"}}
	if !slices.Equal(got, want) {
		t.Errorf("made %+v, want %+v", got, want)
	}
	var lines []string
	for _, line := range audited(t, r) {
		before, detail, _ := strings.Cut(line, " {")
		lines = append(lines, before)
		if strings.Contains(detail, "third") {
			t.Errorf("the audit has a text: %s", line)
		}
	}
	if want := []string{"a: draft template story", "a: publish template story", "a: publish template story", "a: draft template story", "a: discard template story"}; !slices.Equal(lines, want) {
		t.Errorf("the audit has %q, want %q", lines, want)
	}
}

func TestMessagesUseOnlyPublishedVersions(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, "service: a\ntemplates: {story: {subject: s, text: first}}")
	if err := keepDraft(t.Context(), t, r, "{subject: s, text: second}"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"story": "first", "story@1": "first", "story@2": "", "story@draft": "", "story@3": "", "story@0": "", "story@": "", "other": ""} {
		source, err := r.ChooseTemplate("a", name, state.ChooseReleased)
		if e, ok := errors.AsType[*fanfare.Error](err); want == "" && (!ok || e.Pointer != "/template" || e.Hint == "") {
			t.Errorf("%s: %+v, %v", name, source, err)
		}
		if want != "" && (err != nil || source.Text != want) {
			t.Errorf("%s: %+v, %v", name, source, err)
		}
	}
	for _, name := range []string{"story@2", "story@draft"} {
		if source, err := r.ChooseTemplate("a", name, state.ChooseAny); err != nil || source.Text != "second" || source.Number != 0 {
			t.Errorf("trying %s: %+v, %v", name, source, err)
		}
	}
}

func TestADraftGoesWithItsTemplateAndItsService(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	for _, gone := range []document.Member{storyTemplate, {Service: "a", Kind: "service", Name: "a"}} {
		apply(t, r, "service: a")
		if err := keepDraft(t.Context(), t, r, "{subject: s, text: t}"); err != nil {
			t.Fatal(err)
		}
		if all := r.Configuration().Drafts("a"); len(all) != 1 || all[0].Name != "story" {
			t.Fatalf("drafts %+v", all)
		}
		if err := r.DeleteMember(t.Context(), gone, always); err != nil {
			t.Fatal(err)
		}
		apply(t, r, "service: a")
		if d := r.Configuration().Draft("a", "story"); d != nil {
			t.Errorf("after deleting the %s there is the draft %+v", gone.Kind, d)
		}
	}
	r.Close()
	r, _ = openAt(t, place)
	if all := r.Configuration().Drafts("a"); len(all) != 0 {
		t.Errorf("after a restart there are drafts %+v", all)
	}
}

func TestDocumentNumbersVersionsOfTemplatesFromElsewhere(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	text := func(words string, lowest int) string {
		return fmt.Sprintf("service: a\ntemplates: {story: {subject: s, text: %s, min_version: %d}}", words, lowest)
	}
	for _, step := range []struct {
		document string
		want     []string
	}{
		{text("first", 7), []string{"7 published first"}},
		{text("first", 7), []string{"7 published first"}},
		{text("second", 7), []string{"7 earlier first", "8 published second"}},
		{text("second", 12), []string{"7 earlier first", "8 earlier second", "12 published second"}},
		{"service: a\ntemplates: {story: {subject: s, text: third}}", []string{"7 earlier first", "8 earlier second", "12 earlier second", "13 published third"}},
	} {
		apply(t, r, step.document)
		if got := versionsOf(r, "a"); !slices.Equal(got, step.want) {
			t.Errorf("after %s: %q, want %q", step.document, got, step.want)
		}
	}
}
