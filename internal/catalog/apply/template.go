package apply

import (
	"maps"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/inputerror"
)

// Actions in the audit log.
const (
	actionDraft   = "draft"
	actionPublish = "publish"
	actionDiscard = "discard"
)

func (pl *Plan) template(name string, spec *document.TemplateSpec) {
	old := pl.Service.Templates[name]
	if spec = pl.templateWithFiles(name, spec); spec == nil {
		return
	}
	switch {
	case spec.Delete:
		if old != nil {
			deleteMember(pl, pl.Service.Templates, catalog.KindTemplate, name, old.Number, bodyOf(old))
		}
		if pl.discard(name) && old == nil {
			pl.Diff.Add(catalog.KindTemplate, name, actionDiscard, nil)
		}
	case spec.Action == document.ActionDiscard:
		if pl.discard(name) {
			pl.Diff.Add(catalog.KindTemplate, name, actionDiscard, nil)
		}
	case spec.Action == document.ActionDraft:
		pl.draft(name, spec)
	case spec.Action == document.ActionPublish:
		pl.publish(name, spec)
	default:
		pl.keepTemplateID(name, spec)
		src := pl.newSource(name, max(pl.To.LastVersion(pl.draftKey(name))+1, spec.MinVersion), spec.Note, spec.TemplateParts)
		switch {
		case !pl.compile(src):
		case old == nil:
			pl.Diff.Add(catalog.KindTemplate, name, "create", nil)
			pl.publishSource(src)
		default:
			changed := catalog.TemplateChanges(old.TemplateParts, spec.TemplateParts)
			if old.Version < spec.MinVersion {
				changed = append(changed, audit.FieldChange{Field: "version", Old: strconv.Itoa(old.Version), New: strconv.Itoa(src.Version)})
			}
			if len(changed) > 0 {
				pl.Diff.Add(catalog.KindTemplate, name, "update", changed)
				pl.publishSource(src)
			}
		}
	}
}

// keepTemplateID gives a template without an id the id that its name had before.
func (pl *Plan) keepTemplateID(name string, spec *document.TemplateSpec) {
	last := uint32(0)
	for number, t := range pl.To.Templates {
		if t.Service != pl.Service.Name || t.ID == "" {
			continue
		}
		switch {
		case t.Name == name && spec.ID == "" && number > last:
			last = number
		case t.Name != name && t.ID == spec.ID:
			pl.fail(inputerror.Pointer("templates", name, "id"), &fanfare.Error{Code: fanfare.Conflict, Message: "template " + inputerror.Quote(t.Name) + " has the same id", Hint: "use another id, or omit it"})
			return
		}
	}
	if last != 0 {
		spec.ID = pl.To.Templates[last].ID
	}
}

func (pl *Plan) draftKey(template string) catalog.DraftKey {
	return catalog.DraftKey{Service: pl.Service.Name, Template: template}
}

// newSource creates a version of a template with the actor and the current time.
func (pl *Plan) newSource(name string, version int, note string, parts catalog.TemplateParts) *catalog.TemplateSource {
	src := &catalog.TemplateSource{Service: pl.Service.Name, Name: name, Version: version, TemplateParts: parts,
		Made: catalog.Made{At: pl.opt.Now().UTC().Truncate(time.Millisecond), Note: note}}
	if pl.actor != nil {
		src.Key, src.KeyName = pl.actor.KeyID, pl.actor.KeyName
	}
	return src
}

func (pl *Plan) compile(src *catalog.TemplateSource) bool {
	err := pl.opt.CompileTemplate(src)
	if err != nil {
		pl.fail("", err)
	}
	return err == nil
}

// publishSource makes src the published version of the template.
func (pl *Plan) publishSource(src *catalog.TemplateSource) {
	src.Number = nextNumber(maps.Keys(pl.To.Templates))
	pl.Service.Templates[src.Name], pl.To.Templates[src.Number] = src, src
	pl.addRecord(catalog.KindTemplate, src.Number, src.Name, bodyOf(src), false)
}

func bodyOf(t *catalog.TemplateSource) catalog.TemplateBody {
	return catalog.TemplateBody{Version: t.Version, Made: t.Made, TemplateParts: t.TemplateParts}
}

// draft stores spec as the draft of the template. The dry run renders the draft instead of the
// published version (see sourceOf).
func (pl *Plan) draft(name string, spec *document.TemplateSpec) {
	pl.keepTemplateID(name, spec)
	published, place := pl.Service.Templates[name], pl.To.Drafts[pl.draftKey(name)]
	base, version := 0, pl.To.LastVersion(pl.draftKey(name))+1
	var before catalog.TemplateParts // the audit log compares the draft with this
	if published != nil {
		base, before = published.Version, published.TemplateParts
	}
	if d := place.Draft; d != nil {
		if d.Base == base && d.Source.Note == spec.Note && len(catalog.TemplateChanges(d.Source.TemplateParts, spec.TemplateParts)) == 0 {
			return
		}
		if before = d.Source.TemplateParts; d.Source.Version == version-1 {
			version = d.Source.Version // nothing was published since it was kept first
		}
	}
	src := pl.newSource(name, version, spec.Note, spec.TemplateParts)
	if !pl.compile(src) {
		return
	}
	if place.Number == 0 {
		for _, other := range pl.To.Drafts {
			place.Number = max(place.Number, other.Number)
		}
		place.Number++
	}
	place.Draft, place.Last = &catalog.TemplateDraft{Source: *src, Base: base}, version
	pl.To.Drafts[pl.draftKey(name)] = place
	pl.Diff.Add(catalog.KindTemplate, name, actionDraft, catalog.TemplateChanges(before, spec.TemplateParts))
	pl.addRecord(catalog.KindDraft, place.Number, name, catalog.DraftBody{Version: version, Base: base, Made: src.Made, TemplateParts: src.TemplateParts}, false)
}

// discard deletes the draft of a template, and reports whether there was one.
func (pl *Plan) discard(name string) bool {
	place := pl.To.Drafts[pl.draftKey(name)]
	if place.Draft == nil {
		return false
	}
	place.Draft = nil
	pl.To.Drafts[pl.draftKey(name)] = place
	pl.addRecord(catalog.KindDraft, place.Number, name, catalog.DraftBody{Version: place.Last}, true)
	return true
}

// publish publishes the draft of a template, or the given version. Publishing the published version
// changes nothing.
func (pl *Plan) publish(name string, spec *document.TemplateSpec) {
	at := inputerror.Pointer("templates", name)
	now := catalog.Configuration{Snapshot: pl.To}
	from := now.Draft(pl.Service.Name, name)
	published := pl.Service.Templates[name]
	switch {
	case spec.Version != 0:
		if from = now.TemplateVersion(pl.Service.Name, name, spec.Version); from == nil {
			pl.fail(at, catalog.NoSuchVersion("/version", name, spec.Version, now.TemplateVersions(pl.Service.Name, name)))
			return
		}
	case from == nil:
		pl.fail(at, &fanfare.Error{Code: fanfare.Conflict, Message: "template " + inputerror.Quote(name) + " has no draft",
			Hint: "to store a draft, run `fanfare template draft " + name + " -f FILE`; to publish an earlier version, use --version"})
		return
	}
	if from.State == catalog.VersionPublished {
		return
	}
	base, changed := 0, catalog.TemplateChanges(catalog.TemplateParts{}, from.TemplateParts)
	if published != nil {
		base, changed = published.Version, catalog.TemplateChanges(published.TemplateParts, from.TemplateParts)
	}
	if from.State == catalog.VersionDraft && from.Base != base {
		pl.fail(at, &fanfare.Error{Code: fanfare.Conflict, Message: "version " + strconv.Itoa(base) + " was published after the draft was stored; the draft is based on version " + strconv.Itoa(from.Base),
			Hint: "compare them with `fanfare template diff " + name + "`, and store the draft again to base it on version " + strconv.Itoa(base)})
		return
	}
	note := spec.Note
	if note == "" && from.State == catalog.VersionDraft {
		note = from.Note
	}
	src := pl.newSource(name, from.Version, note, from.TemplateParts)
	if !pl.compile(src) {
		return
	}
	versions := audit.FieldChange{Field: "version", New: strconv.Itoa(src.Version)}
	if published != nil {
		versions.Old = strconv.Itoa(published.Version)
	}
	pl.Diff.Add(catalog.KindTemplate, name, actionPublish, append([]audit.FieldChange{versions}, changed...))
	pl.publishSource(src)
	if from.State == catalog.VersionDraft {
		pl.discard(name)
	}
}

// sourceOf returns the template that the dry run renders: the draft in the document or, without
// one, the published version.
func (pl *Plan) sourceOf(name string) *catalog.TemplateSource {
	if spec := pl.Document.Templates[name]; spec != nil && spec.Action == document.ActionDraft {
		if d := pl.To.Drafts[pl.draftKey(name)].Draft; d != nil {
			return &d.Source
		}
	}
	return pl.Service.Templates[name]
}
