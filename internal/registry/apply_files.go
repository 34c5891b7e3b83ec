package registry

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"fanfare.dev/fanfare/internal/store/control"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/filetype"
)

// filed is what a document says of a template, with its files as they are kept; nil
// where they cannot be.
func (pl *plan) filed(name string, spec *TemplateSpec) *TemplateSpec {
	if spec.Delete || len(spec.allFiles()) == 0 {
		return spec
	}
	before, kept := len(pl.wrong), *spec
	kept.TemplateParts = pl.files(name, spec.TemplateParts)
	if len(pl.wrong) > before {
		return nil
	}
	return &kept
}

// files checks the files of a template, and returns what is kept of it: their sums in
// place of their bytes, which are kept apart, once for all versions that have them.
func (pl *plan) files(name string, parts TemplateParts) TemplateParts {
	return parts.mapFiles(inputerror.Pointer("templates", name), pl.filesOf)
}

func (pl *plan) filesOf(at string, of TemplateFiles) (kept TemplateFiles) {
	for i := range of.Attachments {
		kept.Attachments = append(kept.Attachments, pl.file(at+inputerror.Pointer("attachments", strconv.Itoa(i)), of.Attachments[i], pl.r.opt.Files.Attachment))
	}
	for _, name := range slices.Sorted(maps.Keys(of.Images)) {
		if kept.Images == nil {
			kept.Images = map[string]TemplateFile{}
		}
		kept.Images[name] = pl.file(at+inputerror.Pointer("images", name), of.Images[name], filetype.Image)
	}
	return kept
}

// DraftFiles checks the files of a template that is not kept, and returns it as it would
// be kept, with the files that are not kept yet.
func (r *Registry) DraftFiles(service, name string, parts TemplateParts) (TemplateParts, []control.FileRecord, error) {
	pl := &plan{r: r, doc: &Document{Service: service}, from: r.config.Load()}
	parts = pl.files(name, parts)
	return parts, pl.enclosed, inputerror.Join(pl.wrong)
}

// file checks one file, and has it kept where it is not.
func (pl *plan) file(at string, f TemplateFile, typeOf func(name, declared string, content []byte) (string, error)) TemplateFile {
	known := pl.knowsFile(f.SHA256)
	if f.Content == nil && f.Size == 0 && f.SHA256 == fanfare.SumOf(nil) {
		f.Content = []byte{}
	}
	if f.Content == nil {
		var err error
		if known {
			f.Content, err = pl.r.opt.Store.File(context.Background(), f.SHA256)
		}
		switch {
		case err != nil:
			pl.fail(at, err)
			return f
		case f.Content == nil:
			pl.fail(at+"/sha256", inputerror.Invalid("", "give the file itself", "no template of the service has a file with this SHA-256"))
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
	if !known && !slices.ContainsFunc(pl.enclosed, func(r control.FileRecord) bool { return r.Sum == f.SHA256 }) {
		pl.enclosed = append(pl.enclosed, control.FileRecord{Sum: f.SHA256, Content: f.Content})
	}
	f.Content = nil
	return f
}

// knowsFile reports whether a version of a template of the service has a file, which is
// kept then.
func (pl *plan) knowsFile(sum fanfare.Sum) bool {
	has := func(t *TemplateSource) bool {
		return slices.ContainsFunc(t.allFiles(), func(f TemplateFile) bool { return f.SHA256 == sum })
	}
	for key, place := range pl.from.drafts {
		if key.service == pl.doc.Service && place.draft != nil && has(&place.draft.source) {
			return true
		}
	}
	for _, t := range pl.from.templates {
		if t.Service == pl.doc.Service && has(t) {
			return true
		}
	}
	return false
}

// allFiles are those of the template and of all its variants.
func (p *TemplateParts) allFiles() (all []TemplateFile) {
	p.mapFiles("", func(_ string, of TemplateFiles) TemplateFiles {
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

// File returns the bytes of a file that a template has.
func (r *Registry) File(ctx context.Context, sum fanfare.Sum) ([]byte, error) {
	content, err := r.opt.Store.File(ctx, sum)
	if err == nil && fanfare.SumOf(content) != sum {
		err = &fanfare.Error{Code: fanfare.NotFound, Message: "a file of the template is not kept: " + sum.String()}
	}
	return content, err
}
