package render

import (
	"maps"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/liquid"
	"fanfare.dev/fanfare/internal/render/mime"
)

// Limits of the files of a template.
const (
	MaxAttached = 20
	MaxShown    = 50
)

// replaceFiles returns the files of a template with those of a variant in their place: its
// attachments replace all attachments, an image replaces the image of the same name.
func replaceFiles(of, own []fanfare.File) []fanfare.File {
	if len(own) == 0 {
		return of
	}
	files := slices.DeleteFunc(slices.Clone(of), func(f fanfare.File) bool {
		if f.Image == "" {
			return len(fanfare.Attached(own)) > 0
		}
		return slices.ContainsFunc(own, func(o fanfare.File) bool { return o.Image == f.Image })
	})
	return append(files, own...)
}

// fileSet returns the files of the messages of the template, with more files attached. A
// template without HTML shows no images.
func (t *Template) fileSet(more []fanfare.File) mime.FileSet {
	files := t.files
	if t.html == nil {
		files = fanfare.Attached(files)
	}
	if len(more) > 0 {
		files = slices.Concat(files, more)
	}
	return mime.FileSet{Files: files, Alternative: t.text != nil && t.html != nil}
}

// Files lists the files of the template and of all its variants.
func (t *Template) Files() (all []fanfare.File) {
	for _, one := range t.withVariants() {
		for _, f := range one.files {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	return all
}

// CheckFiles returns what is wrong with the files of a template: an image that the HTML refers
// to and that does not exist, too many files, or more than most bytes when encoded. It is
// called when a template is applied; older versions are sent without it.
func (t *Template) CheckFiles(most int) error {
	var wrong []*fanfare.Error
	for _, one := range t.withVariants() {
		wrong = append(wrong, one.checkFiles(most)...)
	}
	return joinErrors(wrong)
}

func (t *Template) checkFiles(most int) (wrong []*fanfare.Error) {
	if t.html != nil && t.html.owner == t {
		for _, lost := range t.html.MissingImages {
			at := *lost.Error
			if at.Pointer == "" {
				at.Pointer = t.pointer("html")
			}
			at.Pointer = t.variantPointer(at.Pointer)
			wrong = append(wrong, &at)
		}
	}
	if t.inheritsFiles {
		return wrong
	}
	fail := func(member, hint, format string, args ...any) {
		err := invalid(0, hint, format, args...)
		err.Pointer = t.pointer(t.path + member)
		wrong = append(wrong, err)
	}
	attached, shown := fanfare.Attached(t.files), fanfare.Shown(t.files)
	names := map[string]bool{}
	for _, f := range attached {
		if folded := strings.ToLower(f.Name); names[folded] {
			fail("attachments", "rename one of them", "two files are named %q", f.Name)
		} else {
			names[folded] = true
		}
	}
	if len(attached) > MaxAttached {
		fail("attachments", "merge them, or link to them", "the template has %d files; at most %d are allowed", len(attached), MaxAttached)
	}
	if len(shown) > MaxShown {
		fail("images", "merge them, or link to them", "the template has %d images; at most %d are allowed", len(shown), MaxShown)
	}
	if t.html == nil && len(shown) > 0 {
		fail("images", "attach them instead, or add html or markdown to the template", "the template has images, but no HTML in which to show them")
	}
	if t.subject == nil && len(t.files) > 0 {
		fail("attachments", "add a subject and a text, or remove the files", "a template for webhooks cannot have files")
	}
	if size := mime.EncodedSize(t.files); size > most {
		member := "attachments"
		if len(attached) == 0 {
			member = "images"
		}
		fail(member, "link to large files, or raise the server setting max_attachments if the relays accept larger messages", "the files take up %d bytes in a message; at most %d are allowed", size, most)
	}
	for _, err := range wrong {
		if strings.HasPrefix(err.Message, "the files take up") {
			err.Code = fanfare.TooLarge
		}
	}
	return wrong
}

// UnusedImages returns the names of the images that the template does not show.
func (t *Template) UnusedImages() (names []string) {
	all := map[string]bool{}
	for _, f := range t.Files() {
		if f.Image != "" {
			all[f.Image] = true
		}
	}
	for _, part := range t.allParts() {
		for _, name := range part.ShownImages {
			delete(all, name)
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// contentIDs returns the Content-IDs of the images of a template by name.
func contentIDs(files []fanfare.File) map[string]string {
	ids := map[string]string{}
	for i := range files {
		if f := &files[i]; f.Image != "" {
			ids[f.Image] = f.ContentID()
		}
	}
	return ids
}

// locateMissingImages sets the positions of the missing images in the source that the author
// wrote, if the HTML was generated: only lines with Liquid have an origin.
func (p *templatePart) locateMissingImages(src Source, pointer func(string) string) {
	written := [][2]string{{"markdown", src.Markdown}, {"html", src.HTML}, {"page", src.Page}}
	for _, name := range slices.Sorted(maps.Keys(src.Partials)) {
		written = append(written, [2]string{"partials/" + name, src.Partials[name]})
	}
	for _, lost := range p.MissingImages {
		for _, one := range written {
			text := "cid:" + lost.Name
			if at := strings.Index(one[1], text); at >= 0 && lost.Error.Pointer == "" {
				lost.Error.Pointer, lost.Error.Line = pointer(one[0]), 1+strings.Count(one[1][:at], "\n")
				liquid.SetColumn(one[1], lost.Error, text)
			}
		}
	}
}
