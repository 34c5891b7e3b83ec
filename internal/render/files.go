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

// replaceFiles are the files of a template with those that a variant has in place of
// them: all that are attached, and each that is shown.
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

// fileSet is what goes with the messages of the template, and with some of them
// more. Without HTML nothing is shown.
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

// Files lists what goes with the messages of the template, and of all its variants.
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

// CheckFiles says what is wrong with the files of a template, of which a message may
// have most bytes, as they are sent: an image that the HTML shows and that is not
// there, one too many, or too much of them. A version that was taken goes on being
// sent without this.
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
			fail("attachments", "give one of them another name", "two files are named %q", f.Name)
		} else {
			names[folded] = true
		}
	}
	if len(attached) > MaxAttached {
		fail("attachments", "put them into one, or link to them", "%d files, more than %d", len(attached), MaxAttached)
	}
	if len(shown) > MaxShown {
		fail("images", "", "%d images, more than %d", len(shown), MaxShown)
	}
	if t.html == nil && len(shown) > 0 {
		fail("images", "attach them, or give the template html or markdown", "there is no HTML that could show images")
	}
	if t.subject == nil && len(t.files) > 0 {
		fail("attachments", "give it a subject and a text, or leave the files away", "the template is for programs, which get no files")
	}
	if size := mime.EncodedSize(t.files); size > most {
		member := "attachments"
		if len(attached) == 0 {
			member = "images"
		}
		fail(member, "link to what is large, or raise max_attachments of the server as far as the relays take it", "the files take %d bytes in a mail, more than %d", size, most)
	}
	for _, err := range wrong {
		if strings.HasPrefix(err.Message, "the files take") {
			err.Code = fanfare.TooLarge
		}
	}
	return wrong
}

// UnusedImages are the names of the images that nothing of the template shows.
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

// contentIDs are the images of a template: their Content-IDs by name.
func contentIDs(files []fanfare.File) map[string]string {
	ids := map[string]string{}
	for i := range files {
		if f := &files[i]; f.Image != "" {
			ids[f.Image] = f.ContentID()
		}
	}
	return ids
}

// locateMissingImages says where its author wrote what is lost in HTML that was made: the lines of
// what has no Liquid are not known.
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
