package registry

import (
	"maps"
	"time"

	"fanfare.dev/fanfare/internal/catalog/audit"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// A templateDeed is what a document does to a template.
type templateDeed int

const (
	applies   templateDeed = iota // publishes what the document says
	drafts                        // keeps what it says as a draft
	publishes                     // publishes the draft, or an earlier version again
	discards                      // takes the draft away
)

// What the audit calls them.
const (
	actionDraft   = "draft"
	actionPublish = "publish"
	actionDiscard = "discard"
)

func (pl *plan) template(name string, spec *TemplateSpec) {
	old := pl.svc.templates[name]
	if spec = pl.filed(name, spec); spec == nil {
		return
	}
	switch {
	case spec.Delete:
		if old != nil {
			delete(pl.svc.templates, name)
			pl.diff.add(kindTemplate, name, "delete", nil)
			pl.record(kindTemplate, old.Number, name, bodyOf(old), true)
		}
		if pl.discard(name) && old == nil {
			pl.diff.add(kindTemplate, name, actionDiscard, nil)
		}
	case spec.does == discards:
		if pl.discard(name) {
			pl.diff.add(kindTemplate, name, actionDiscard, nil)
		}
	case spec.does == drafts:
		pl.draft(name, spec)
	case spec.does == publishes:
		pl.publish(name, spec)
	default:
		src := pl.source(name, pl.to.lastVersion(pl.draftKey(name))+1, spec.note, spec.TemplateParts)
		switch {
		case !pl.compiles(src):
		case old == nil:
			pl.diff.add(kindTemplate, name, "create", nil)
			pl.release(src)
		default:
			if changed := templateChanges(old.TemplateParts, spec.TemplateParts); len(changed) > 0 {
				pl.diff.add(kindTemplate, name, "update", changed)
				pl.release(src)
			}
		}
	}
}

func (pl *plan) draftKey(template string) draftKey { return draftKey{pl.svc.name, template} }

// source makes a version of a template of what the actor says now.
func (pl *plan) source(name string, version int, note string, parts TemplateParts) *TemplateSource {
	src := &TemplateSource{Service: pl.svc.name, Name: name, Version: version, TemplateParts: parts,
		Made: Made{At: pl.r.opt.Now().UTC().Truncate(time.Millisecond), Note: note}}
	if pl.actor != nil {
		src.Key, src.KeyName = pl.actor.KeyID, pl.actor.KeyName
	}
	return src
}

func (pl *plan) compiles(src *TemplateSource) bool {
	err := pl.r.opt.CompileTemplate(src)
	if err != nil {
		pl.fail("", err)
	}
	return err == nil
}

// release makes src what the template says.
func (pl *plan) release(src *TemplateSource) {
	src.Number = nextNumber(maps.Keys(pl.to.templates))
	pl.svc.templates[src.Name], pl.to.templates[src.Number] = src, src
	pl.record(kindTemplate, src.Number, src.Name, bodyOf(src), false)
}

func bodyOf(t *TemplateSource) templateBody { return templateBody{t.Version, t.Made, t.TemplateParts} }

// draft keeps what spec says beside what is published. It is tried in the place of
// that (sourceOf).
func (pl *plan) draft(name string, spec *TemplateSpec) {
	published, place := pl.svc.templates[name], pl.to.drafts[pl.draftKey(name)]
	base, version := 0, pl.to.lastVersion(pl.draftKey(name))+1
	var before TemplateParts // what the draft is compared with, for the audit
	if published != nil {
		base, before = published.Version, published.TemplateParts
	}
	if d := place.draft; d != nil {
		if d.base == base && d.source.Note == spec.note && len(templateChanges(d.source.TemplateParts, spec.TemplateParts)) == 0 {
			return
		}
		if before = d.source.TemplateParts; d.source.Version == version-1 {
			version = d.source.Version // nothing was published since it was kept first
		}
	}
	src := pl.source(name, version, spec.note, spec.TemplateParts)
	if !pl.compiles(src) {
		return
	}
	if place.number == 0 {
		for _, other := range pl.to.drafts {
			place.number = max(place.number, other.number)
		}
		place.number++
	}
	place.draft, place.last = &draft{*src, base}, version
	pl.to.drafts[pl.draftKey(name)] = place
	pl.diff.add(kindTemplate, name, actionDraft, templateChanges(before, spec.TemplateParts))
	pl.record(kindDraft, place.number, name, draftBody{version, base, src.Made, src.TemplateParts}, false)
}

// discard takes the draft of a template away, and tells whether there was one.
func (pl *plan) discard(name string) bool {
	place := pl.to.drafts[pl.draftKey(name)]
	if place.draft == nil {
		return false
	}
	place.draft = nil
	pl.to.drafts[pl.draftKey(name)] = place
	pl.record(kindDraft, place.number, name, draftBody{Version: place.last}, true)
	return true
}

// publish makes the draft what the template says, or the version that is named.
// Publishing what is published changes nothing.
func (pl *plan) publish(name string, spec *TemplateSpec) {
	at := inputerror.Pointer("templates", name)
	now := Configuration{pl.to}
	from := now.Draft(pl.svc.name, name)
	published := pl.svc.templates[name]
	switch {
	case spec.version != 0:
		if from = now.TemplateVersion(pl.svc.name, name, spec.version); from == nil {
			pl.fail(at, noVersion("/version", name, spec.version, now.TemplateVersions(pl.svc.name, name)))
			return
		}
	case from == nil:
		pl.fail(at, &fanfare.Error{Code: fanfare.Conflict, Message: "template " + inputerror.Quote(name) + " has no draft",
			Hint: "keep one with `fanfare template draft " + name + " -f FILE`, or name the version to publish again with --version"})
		return
	}
	if from.State == VersionPublished {
		return
	}
	base, changed := 0, templateChanges(TemplateParts{}, from.TemplateParts)
	if published != nil {
		base, changed = published.Version, templateChanges(published.TemplateParts, from.TemplateParts)
	}
	if from.State == VersionDraft && from.Base != base {
		pl.fail(at, &fanfare.Error{Code: fanfare.Conflict, Message: "version " + itoa(base) + " was published since the draft was kept, over version " + itoa(from.Base),
			Hint: "look at the difference (`fanfare template diff " + name + "`) and keep the draft again, which takes it as one over version " + itoa(base)})
		return
	}
	note := spec.note
	if note == "" && from.State == VersionDraft {
		note = from.Note
	}
	src := pl.source(name, from.Version, note, from.TemplateParts)
	if !pl.compiles(src) {
		return
	}
	versions := audit.FieldChange{Field: "version", New: itoa(src.Version)}
	if published != nil {
		versions.Old = itoa(published.Version)
	}
	pl.diff.add(kindTemplate, name, actionPublish, append([]audit.FieldChange{versions}, changed...))
	pl.release(src)
	if from.State == VersionDraft {
		pl.discard(name)
	}
}

// sourceOf is the template that is tried: a draft that the document keeps, else what
// is published.
func (pl *plan) sourceOf(name string) *TemplateSource {
	if spec := pl.doc.Templates[name]; spec != nil && spec.does == drafts {
		if d := pl.to.drafts[pl.draftKey(name)].draft; d != nil {
			return &d.source
		}
	}
	return pl.svc.templates[name]
}
