package registry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/store/control"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// A template is published: messages are written with that version. Beside it there
// may be a draft, which nobody is written to with, and there are the versions that
// were published before. A version never changes. To publish an earlier one again is
// a record of its own, with the version's number: the last record of a name counts.

// States of a version.
const (
	VersionDraft     = "draft"
	VersionPublished = "published"
	VersionEarlier   = "earlier"
)

// Made says when a version became what it is, who made it that, and why. It is empty
// of what was made before this was kept.
type Made struct {
	At      time.Time `json:"at,omitzero"`
	Key     string    `json:"key,omitempty"`      // id
	KeyName string    `json:"key_name,omitempty"` // as it was then
	Note    string    `json:"note,omitempty"`
}

// maxNoteBytes is how long a note may be.
const maxNoteBytes = 512

// A TemplateVersion is a version of a template, and what it is now.
type TemplateVersion struct {
	*TemplateSource
	State string
	Base  int // of a draft: the version that was published when it was kept; 0: none
}

// A draft is what a template is going to say.
type draft struct {
	source TemplateSource // without a number: no message is pinned to it
	base   int
}

// A draftPlace is where the drafts of one template are kept, one after the other.
type draftPlace struct {
	number uint32 // for good
	last   int    // version of the last draft, which is not given again
	draft  *draft // nil: there is none
}

// A draftKey names the template of a draft.
type draftKey struct{ service, template string }

// draftBody is what is kept of a draft; of one that is gone its version.
type draftBody struct {
	Version int `json:"version"`
	Base    int `json:"base,omitempty"`
	Made
	TemplateParts
}

func loadDraft(s *snapshot, svc *service, c *control.ConfigRecord) error {
	var body draftBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	place := draftPlace{number: c.Number, last: body.Version}
	if !c.Deleted {
		place.draft = &draft{base: body.Base,
			source: TemplateSource{Service: svc.name, Name: c.Name, Version: body.Version, Made: body.Made, TemplateParts: body.TemplateParts}}
	}
	s.drafts[draftKey{svc.name, c.Name}] = place
	return nil
}

// lastVersion is the highest number that a version of a template ever had.
func (s *snapshot) lastVersion(of draftKey) int {
	last := s.drafts[of].last
	for _, t := range s.templates {
		if t.Service == of.service && t.Name == of.template {
			last = max(last, t.Version)
		}
	}
	return last
}

// Draft returns the draft of a template, or nil.
func (c Configuration) Draft(service, name string) *TemplateVersion {
	if c.s == nil || c.services()[service] == nil {
		return nil
	}
	d := c.s.drafts[draftKey{service, name}].draft
	if d == nil {
		return nil
	}
	return &TemplateVersion{&d.source, VersionDraft, d.base}
}

// Drafts lists the drafts of a service, sorted by the names of their templates.
func (c Configuration) Drafts(service string) (all []*TemplateVersion) {
	if c.s == nil {
		return nil
	}
	for of := range c.s.drafts {
		if of.service == service {
			if d := c.Draft(service, of.template); d != nil {
				all = append(all, d)
			}
		}
	}
	slices.SortFunc(all, func(a, b *TemplateVersion) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// TemplateVersions lists the versions of a template, also after it was deleted, the
// oldest first, and its draft.
func (c Configuration) TemplateVersions(service, name string) []*TemplateVersion {
	if c.s == nil {
		return nil
	}
	last := map[int]*TemplateSource{}
	for _, t := range c.s.templates {
		if t.Service == service && t.Name == name && (last[t.Version] == nil || last[t.Version].Number < t.Number) {
			last[t.Version] = t
		}
	}
	published := c.Template(service, name)
	var all []*TemplateVersion
	for _, t := range last {
		v := &TemplateVersion{TemplateSource: t, State: VersionEarlier}
		if published != nil && published.Version == t.Version {
			v.State = VersionPublished
		}
		all = append(all, v)
	}
	if d := c.Draft(service, name); d != nil {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *TemplateVersion) int { return cmp.Compare(a.Version, b.Version) })
	return all
}

// TemplateVersion returns the version of a template with this number, or nil.
func (c Configuration) TemplateVersion(service, name string, version int) *TemplateVersion {
	for _, v := range c.TemplateVersions(service, name) {
		if v.Version == version {
			return v
		}
	}
	return nil
}

// PickVersion returns the version of a template that a request names: by its number,
// as draft, or neither: what is published. The error has the pointer /version or
// /draft where it is wrong.
func (c Configuration) PickVersion(service, name string, version int, draft bool) (*TemplateVersion, error) {
	all := c.TemplateVersions(service, name)
	if len(all) == 0 {
		return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no template " + inputerror.Quote(name),
			Hint: inputerror.DidYouMean(name, maps.Keys(c.of(service).templates), "fanfare template list names those that it has; one that is not kept yet is sent along")}
	}
	for _, v := range all {
		if version != 0 && v.Version == version || version == 0 && (draft && v.State == VersionDraft || !draft && v.State == VersionPublished) {
			return v, nil
		}
	}
	switch {
	case version != 0:
		return nil, noVersion("/version", name, version, all)
	case draft:
		return nil, inputerror.Invalid("/draft", "fanfare template draft "+name+" -f FILE keeps one", "template %s has no draft", inputerror.Quote(name))
	}
	return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "nothing of template " + inputerror.Quote(name) + " is published", Hint: "it has a draft or earlier versions: fanfare template versions " + name}
}

// noVersion says which versions there are.
func noVersion(at, name string, version int, all []*TemplateVersion) error {
	numbers := make([]string, len(all))
	for i, v := range all {
		numbers[i] = itoa(v.Version)
	}
	return inputerror.Invalid(at, "there are "+strings.Join(numbers[max(0, len(numbers)-20):], ", "), "template %s has no version %d", inputerror.Quote(name), version)
}

// draftNotes say of which templates in the document a draft stands beside what it
// publishes.
func (pl *plan) draftNotes() (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(pl.doc.Templates)) {
		d, published := (Configuration{pl.to}).Draft(pl.svc.name, name), pl.svc.templates[name]
		if d == nil || published == nil || pl.doc.Templates[name].does != applies {
			continue
		}
		note := fmt.Sprintf("template %s has a draft, version %d, which stays beside what is applied: `fanfare template diff %s`", name, d.Version, name)
		if d.Base != published.Version {
			note += fmt.Sprintf("; it was kept over version %d, and is published only when it is kept again", d.Base)
		}
		notes = append(notes, note)
	}
	return notes
}
