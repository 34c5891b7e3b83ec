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

// AllFiles returns the files of the template and of all its variants.
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

// Files lists the files of a message, images by their names.
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
	Number  uint32 `json:"-"` // permanent, unique across all services; 0 for a draft
	Service string `json:"-"`
	Name    string `json:"-"`
	Version int    `json:"version"` // from 1, within the name
	Made
	TemplateParts
}

// TemplateFiles are the files in the messages of a template, or of a variant.
type TemplateFiles struct {
	Attachments []TemplateFile          `json:"attachments,omitempty"`
	Images      map[string]TemplateFile `json:"images,omitempty"` // by the name that HTML uses: cid:NAME
}

// A TemplateFile is a file of a template. A document contains its bytes, or the sum of a file that a
// template of the service already has. A stored template contains only the sum.
type TemplateFile struct {
	Name    string      `json:"name"`
	Type    string      `json:"type,omitempty"`
	Size    int         `json:"size"`
	SHA256  fanfare.Sum `json:"sha256"`
	Content []byte      `json:"content,omitempty"` // in JSON base64
}

// MapFiles returns the parts with the files that f returns for them: for the files of the template,
// at the path at, and for those of each variant.
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

// A FileLine describes a file of a template.
type FileLine struct {
	At   string // path of its list, such as attachments or locales/cy/images
	Name string // in that list
	Text string // what it is
}

// FileLines returns the parts without their files, and the descriptions of the files in order.
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

// TemplateChanges compares two versions of a template, field by field and file by file.
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

// TemplateParts are the fields of a template in a document.
type TemplateParts struct {
	Subject string `json:"subject,omitempty"`
	Text    string `json:"text,omitempty"`
	HTML    string `json:"html,omitempty"`
	JSON    string `json:"json,omitempty"` // for programs

	ID       string `json:"id,omitempty"`       // UUID for clients of GOV.UK Notify; "": derived from the name
	Title    string `json:"title,omitempty"`    // for clients of GOV.UK Notify; "": the name
	Type     string `json:"type,omitempty"`     // email or sms; "": email, and documents for programs
	Markdown string `json:"markdown,omitempty"` // in place of HTML
	Syntax   string `json:"syntax,omitempty"`   // liquid or notify
	Layout   string `json:"layout,omitempty"`   // what stands around it
	Lang     string `json:"lang,omitempty"`     // the language that it is written in
	Page     string `json:"page,omitempty"`     // a layout of its own

	Partials map[string]string `json:"partials,omitempty"`

	Formatter string `json:"formatter,omitempty"` // the worker whose answer the parts read as formatted

	TemplateFiles

	TemplateVariants
}

// Types of templates.
const (
	TemplateEmail = "email"
	TemplateSMS   = "sms"
)

// TemplateBody is the stored form of one version of a template.
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

// IsZero reports whether the variant is empty.
func (w *TemplateWords) IsZero() bool { return reflect.ValueOf(*w).IsZero() }

// TemplateLocale is the variant of a template for a language.
type TemplateLocale struct {
	TemplateWords
	Devices map[string]TemplateWords `json:"devices,omitempty"` // on a device
}

// TemplateVariants are the variants of a template for languages and devices.
type TemplateVariants struct {
	Locales map[string]TemplateLocale `json:"locales,omitempty"` // by language tag (BCP 47)
	Devices map[string]TemplateWords  `json:"devices,omitempty"` // by the device in the recipient's data or attributes
}

// Messages use the published version of a template. A template can also have a draft, which is not
// used for messages, and earlier published versions. A version never changes. Publishing an earlier
// version again adds a record with its number; the last record of a name applies.

// States of a version.
const (
	VersionDraft     = "draft"
	VersionPublished = "published"
	VersionEarlier   = "earlier"
)

// Made says when a version got its current state, who changed it, and why. It is empty for versions
// from before this was stored.
type Made struct {
	At      time.Time `json:"at,omitzero"`
	Key     string    `json:"key,omitempty"`      // id
	KeyName string    `json:"key_name,omitempty"` // as it was then
	Note    string    `json:"note,omitempty"`
}

// A TemplateVersion is a version of a template with its current state.
type TemplateVersion struct {
	*TemplateSource
	State string
	Base  int // of a draft: the version that was published when the draft was stored; 0: none
}

// A TemplateDraft is an unpublished version of a template.
type TemplateDraft struct {
	Source TemplateSource // without a number: no message is pinned to it
	Base   int
}

// A DraftSlot holds the current draft of one template.
type DraftSlot struct {
	Number uint32         // for good
	Last   int            // version of the last draft, which is not given again
	Draft  *TemplateDraft // nil: there is none
}

// A DraftKey names the template of a draft.
type DraftKey struct{ Service, Template string }

// DraftBody is the stored form of a draft; for a deleted draft, only its version.
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

// LastVersion returns the highest number that a version of a template ever had.
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

// PickVersion returns the version of a template that a request selects: the version with a number,
// the draft, or, by default, the published version. The error has the pointer /version or /draft.
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

// NoSuchVersion returns the error for an unknown version, with the existing versions.
func NoSuchVersion(at, name string, version int, all []*TemplateVersion) error {
	numbers := make([]string, len(all))
	for i, v := range all {
		numbers[i] = strconv.Itoa(v.Version)
	}
	return inputerror.Invalid(at, "its versions are "+strings.Join(numbers[max(0, len(numbers)-20):], ", "), "template %s has no version %d", inputerror.Quote(name), version)
}
