package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/store/control"
)

// AllFiles are those of the template and of all its variants.
func (p *TemplateParts) AllFiles() (all []TemplateFile) {
	p.MapFiles("", func(_ string, of TemplateFiles) TemplateFiles {
		all = append(all, of.all()...)
		return of
	})
	return all
}

func (f *TemplateFiles) all() []TemplateFile {
	return slices.AppendSeq(slices.Clone(f.Attachments), maps.Values(f.Images))
}

// Files lists what goes with a mail, images by their names.
func (f *TemplateFiles) Files() (all []fanfare.File) {
	for _, one := range f.Attachments {
		all = append(all, fanfare.File{Name: one.Name, Type: one.Type, Size: one.Size, Sum: one.SHA256})
	}
	for _, name := range slices.Sorted(maps.Keys(f.Images)) {
		one := f.Images[name]
		all = append(all, fanfare.File{Name: one.Name, Type: one.Type, Image: name, Size: one.Size, Sum: one.SHA256})
	}
	return all
}

// A TemplateSource is one version of a template. It never changes.
type TemplateSource struct {
	Number  uint32 `json:"-"` // for good, over all services; 0 of a draft
	Service string `json:"-"`
	Name    string `json:"-"`
	Version int    `json:"version"` // from 1, within the name
	Made
	TemplateParts
}

// TemplateFiles are the files that go with the mails of a template, or of a variant.
type TemplateFiles struct {
	Attachments []TemplateFile          `json:"attachments,omitempty"`
	Images      map[string]TemplateFile `json:"images,omitempty"` // by the name under which HTML shows it: cid:NAME
}

// A TemplateFile is one of them. A document has its bytes, or the sum of one that a
// template of the service has already; what is kept of a template has the sum alone.
type TemplateFile struct {
	Name    string      `json:"name"`
	Type    string      `json:"type,omitempty"`
	Size    int         `json:"size"`
	SHA256  fanfare.Sum `json:"sha256"`
	Content []byte      `json:"content,omitempty"` // in JSON base64
}

// MapFiles returns the parts with what f makes of their files: those of the template,
// which stand at at, and of each variant.
func (p TemplateParts) MapFiles(at string, f func(at string, of TemplateFiles) TemplateFiles) TemplateParts {
	devices := func(at string, of map[string]TemplateWords) map[string]TemplateWords {
		of = maps.Clone(of)
		for _, device := range slices.Sorted(maps.Keys(of)) {
			words := of[device]
			words.TemplateFiles = f(at+inputerror.Pointer("devices", device), words.TemplateFiles)
			of[device] = words
		}
		return of
	}
	p.TemplateFiles = f(at, p.TemplateFiles)
	p.Devices = devices(at, p.Devices)
	p.Locales = maps.Clone(p.Locales)
	for _, tag := range slices.Sorted(maps.Keys(p.Locales)) {
		at := at + inputerror.Pointer("locales", tag)
		one := p.Locales[tag]
		one.TemplateFiles = f(at, one.TemplateFiles)
		one.Devices = devices(at, one.Devices)
		p.Locales[tag] = one
	}
	return p
}

// A FileLine tells of a file of a template.
type FileLine struct {
	At   string // of which list it is, such as attachments or locales/cy/images
	Name string // in that list
	Text string // what it is
}

// FileLines returns the parts without their files, and tells of these in their order.
func (p TemplateParts) FileLines() (rest TemplateParts, lines []FileLine) {
	tell := func(at, name string, f TemplateFile) {
		lines = append(lines, FileLine{strings.TrimPrefix(at, "/"), name, fmt.Sprintf("%s, %d bytes, SHA-256 %s", f.Type, f.Size, f.SHA256)})
	}
	rest = p.MapFiles("", func(at string, of TemplateFiles) TemplateFiles {
		for _, f := range of.Attachments {
			tell(at+"/attachments", f.Name, f)
		}
		for _, name := range slices.Sorted(maps.Keys(of.Images)) {
			f := of.Images[name]
			f.Type = f.Name + ", " + f.Type
			tell(at+"/images", name, f)
		}
		return TemplateFiles{}
	})
	return rest, lines
}

// TemplateChanges compares what a template says, field by field, and file by file.
func TemplateChanges(before, after TemplateParts) []audit.FieldChange {
	was, old := before.FileLines()
	is, now := after.FileLines()
	texts := func(lines []FileLine) map[string]string {
		all := map[string]string{}
		for _, l := range lines {
			all[l.At+"/"+l.Name] = l.Text
		}
		return all
	}
	changed := slices.Concat(FieldChanges(was, is), FieldChanges(texts(old), texts(now)))
	if len(changed) == 0 {
		order := func(lines []FileLine) map[string]string {
			all := map[string]string{}
			for _, l := range lines {
				all[l.At] = strings.TrimPrefix(all[l.At]+", "+l.Name, ", ")
			}
			return all
		}
		changed = FieldChanges(order(old), order(now))
	}
	slices.SortFunc(changed, func(a, b audit.FieldChange) int { return cmp.Compare(a.Field, b.Field) })
	return changed
}

// TemplateParts is what a document says about a template.
type TemplateParts struct {
	Subject string `json:"subject,omitempty"`
	Text    string `json:"text,omitempty"`
	HTML    string `json:"html,omitempty"`
	JSON    string `json:"json,omitempty"` // for programs

	Markdown string `json:"markdown,omitempty"` // in place of HTML
	Syntax   string `json:"syntax,omitempty"`   // liquid or notify
	Layout   string `json:"layout,omitempty"`   // what stands around it
	Lang     string `json:"lang,omitempty"`     // the language that it is written in
	Page     string `json:"page,omitempty"`     // a layout of its own

	Partials map[string]string `json:"partials,omitempty"`

	TemplateFiles

	TemplateVariants
}

// TemplateBody is what is kept of one version of a template.
type TemplateBody struct {
	Version int `json:"version"`
	Made
	TemplateParts
}

func loadTemplate(s *Snapshot, svc *ServiceSnapshot, c *control.ConfigRecord) error {
	var body TemplateBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	t := &TemplateSource{Number: c.Number, Service: svc.Name, Name: c.Name, Version: body.Version, Made: body.Made, TemplateParts: body.TemplateParts}
	s.Templates[t.Number] = t
	if c.Deleted {
		delete(svc.Templates, c.Name)
	} else {
		svc.Templates[c.Name] = t // records come in the order of their numbers
	}
	return nil
}

// TemplateWords are the texts of a template variant. A missing text comes from a less specific
// variant or the template.
type TemplateWords struct {
	Subject  string `json:"subject,omitempty"`
	Text     string `json:"text,omitempty"`
	HTML     string `json:"html,omitempty"`
	JSON     string `json:"json,omitempty"`
	Markdown string `json:"markdown,omitempty"`

	TemplateFiles
}

// IsZero reports whether the variant says nothing.
func (w *TemplateWords) IsZero() bool { return reflect.ValueOf(*w).IsZero() }

// TemplateLocale is what a template says in another language.
type TemplateLocale struct {
	TemplateWords
	Devices map[string]TemplateWords `json:"devices,omitempty"` // on a device
}

// TemplateVariants are what a template says to some.
type TemplateVariants struct {
	Locales map[string]TemplateLocale `json:"locales,omitempty"` // by language tag (BCP 47)
	Devices map[string]TemplateWords  `json:"devices,omitempty"` // by what the member device of somebody's data or attributes says
}

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

// A TemplateVersion is a version of a template, and what it is now.
type TemplateVersion struct {
	*TemplateSource
	State string
	Base  int // of a draft: the version that was published when it was kept; 0: none
}

// A TemplateDraft is what a template is going to say.
type TemplateDraft struct {
	Source TemplateSource // without a number: no message is pinned to it
	Base   int
}

// A DraftSlot is where the drafts of one template are kept, one after the other.
type DraftSlot struct {
	Number uint32         // for good
	Last   int            // version of the last draft, which is not given again
	Draft  *TemplateDraft // nil: there is none
}

// A DraftKey names the template of a draft.
type DraftKey struct{ Service, Template string }

// DraftBody is what is kept of a draft; of one that is gone its version.
type DraftBody struct {
	Version int `json:"version"`
	Base    int `json:"base,omitempty"`
	Made
	TemplateParts
}

func loadDraft(s *Snapshot, svc *ServiceSnapshot, c *control.ConfigRecord) error {
	var body DraftBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	place := DraftSlot{Number: c.Number, Last: body.Version}
	if !c.Deleted {
		place.Draft = &TemplateDraft{Base: body.Base,
			Source: TemplateSource{Service: svc.Name, Name: c.Name, Version: body.Version, Made: body.Made, TemplateParts: body.TemplateParts}}
	}
	s.Drafts[DraftKey{svc.Name, c.Name}] = place
	return nil
}

// LastVersion is the highest number that a version of a template ever had.
func (s *Snapshot) LastVersion(of DraftKey) int {
	last := s.Drafts[of].Last
	for _, t := range s.Templates {
		if t.Service == of.Service && t.Name == of.Template {
			last = max(last, t.Version)
		}
	}
	return last
}

// Draft returns the draft of a template, or nil.
func (c Configuration) Draft(service, name string) *TemplateVersion {
	if c.Snapshot == nil || c.services()[service] == nil {
		return nil
	}
	d := c.Snapshot.Drafts[DraftKey{service, name}].Draft
	if d == nil {
		return nil
	}
	return &TemplateVersion{&d.Source, VersionDraft, d.Base}
}

// Drafts lists the drafts of a service, sorted by the names of their templates.
func (c Configuration) Drafts(service string) (all []*TemplateVersion) {
	if c.Snapshot == nil {
		return nil
	}
	for of := range c.Snapshot.Drafts {
		if of.Service == service {
			if d := c.Draft(service, of.Template); d != nil {
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
	if c.Snapshot == nil {
		return nil
	}
	last := map[int]*TemplateSource{}
	for _, t := range c.Snapshot.Templates {
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
			Hint: inputerror.DidYouMean(name, maps.Keys(c.of(service).Templates), "run fanfare template list to see the stored templates, or include the template in the request")}
	}
	for _, v := range all {
		if version != 0 && v.Version == version || version == 0 && (draft && v.State == VersionDraft || !draft && v.State == VersionPublished) {
			return v, nil
		}
	}
	switch {
	case version != 0:
		return nil, NoSuchVersion("/version", name, version, all)
	case draft:
		return nil, inputerror.Invalid("/draft", "to store a draft, run fanfare template draft "+name+" -f FILE", "template %s has no draft", inputerror.Quote(name))
	}
	return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "template " + inputerror.Quote(name) + " has no published version", Hint: "publish a draft or an earlier version; to list them, run fanfare template versions " + name}
}

// NoSuchVersion says which versions there are.
func NoSuchVersion(at, name string, version int, all []*TemplateVersion) error {
	numbers := make([]string, len(all))
	for i, v := range all {
		numbers[i] = strconv.Itoa(v.Version)
	}
	return inputerror.Invalid(at, "its versions are "+strings.Join(numbers[max(0, len(numbers)-20):], ", "), "template %s has no version %d", inputerror.Quote(name), version)
}
