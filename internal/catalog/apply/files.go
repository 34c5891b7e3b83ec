package apply

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/store/control"
)

// templateWithFiles returns the parts of a template in a document, with its files in stored form,
// or nil if the files are invalid.
func (pl *Plan) templateWithFiles(name string, spec *document.TemplateSpec) *document.TemplateSpec {
	if spec.Delete || len(spec.AllFiles()) == 0 {
		return spec
	}
	before, kept := len(pl.errs), *spec
	kept.TemplateParts = pl.templateFiles(name, spec.TemplateParts)
	if len(pl.errs) > before {
		return nil
	}
	return &kept
}

// templateFiles checks the files of a template, and returns the stored form of the template. It
// contains the sums of the files. Their content is stored separately, once for all versions.
func (pl *Plan) templateFiles(name string, parts catalog.TemplateParts) catalog.TemplateParts {
	return parts.MapFiles(inputerror.Pointer("templates", name), pl.variantFiles)
}

func (pl *Plan) variantFiles(at string, of catalog.TemplateFiles) (kept catalog.TemplateFiles) {
	for i := range of.Attachments {
		kept.Attachments = append(kept.Attachments, pl.checkFile(at+inputerror.Pointer("attachments", strconv.Itoa(i)), of.Attachments[i], pl.opt.Files.Attachment))
	}
	for _, name := range slices.Sorted(maps.Keys(of.Images)) {
		if kept.Images == nil {
			kept.Images = map[string]catalog.TemplateFile{}
		}
		kept.Images[name] = pl.checkFile(at+inputerror.Pointer("images", name), of.Images[name], filetype.Image)
	}
	return kept
}

// DraftFiles checks the files of a template that is not applied. It returns the template as it
// would be stored, and the files that are not stored yet.
func DraftFiles(opt *Options, from *catalog.Snapshot, service, name string, parts catalog.TemplateParts) (catalog.TemplateParts, []control.FileRecord, error) {
	pl := &Plan{opt: opt, Document: &document.Document{Service: service}, From: from}
	parts = pl.templateFiles(name, parts)
	return parts, pl.Files, inputerror.Join(pl.errs)
}

// checkFile checks one file, and adds it to the files to store if it is new.
func (pl *Plan) checkFile(at string, f catalog.TemplateFile, typeOf func(name, declared string, content []byte) (string, error)) catalog.TemplateFile {
	known := pl.knowsFile(f.SHA256)
	if f.Content == nil && f.Size == 0 && f.SHA256 == fanfare.SumOf(nil) {
		f.Content = []byte{}
	}
	if f.Content == nil {
		var err error
		if known {
			f.Content, err = pl.opt.File(context.Background(), f.SHA256)
		}
		switch {
		case err != nil:
			pl.fail(at, err)
			return f
		case f.Content == nil:
			pl.fail(at+"/sha256", inputerror.Invalid("", "include the content of the file", "no template of the service has a file with this SHA-256"))
			return f
		}
	}
	f.SHA256 = fanfare.SumOf(f.Content)
	if f.Size = len(f.Content); f.Size == 0 {
		pl.fail(at, inputerror.Invalid("", "", "the file %s is empty", inputerror.Quote(f.Name)))
		return f
	}
	var err error
	if f.Type, err = typeOf(f.Name, f.Type, f.Content); err != nil {
		pl.fail(at, err)
	}
	if !known && !slices.ContainsFunc(pl.Files, func(r control.FileRecord) bool { return r.Sum == f.SHA256 }) {
		pl.Files = append(pl.Files, control.FileRecord{Sum: f.SHA256, Content: f.Content})
	}
	f.Content = nil
	return f
}

// knowsFile reports whether a version of a template of the service has a file, so that the file
// is already stored.
func (pl *Plan) knowsFile(sum fanfare.Sum) bool {
	has := func(t *catalog.TemplateSource) bool {
		return slices.ContainsFunc(t.AllFiles(), func(f catalog.TemplateFile) bool { return f.SHA256 == sum })
	}
	for key, place := range pl.From.Drafts {
		if key.Service == pl.Document.Service && place.Draft != nil && has(&place.Draft.Source) {
			return true
		}
	}
	for _, t := range pl.From.Templates {
		if t.Service == pl.Document.Service && has(t) {
			return true
		}
	}
	return false
}
