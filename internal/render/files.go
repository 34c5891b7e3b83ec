package render

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/mime"
)

// Limits of the files of a template.
const (
	MaxAttached = 20
	MaxShown    = 50
)

// withFiles are the files of a template with those that a variant has in place of
// them: all that are attached, and each that is shown.
func withFiles(of, own []fanfare.File) []fanfare.File {
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
	for _, one := range t.every() {
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
	for _, one := range t.every() {
		wrong = append(wrong, one.checkFiles(most)...)
	}
	return gather(wrong)
}

func (t *Template) checkFiles(most int) (wrong []*fanfare.Error) {
	if t.html != nil && t.html.owner == t {
		for _, lost := range t.html.lost {
			at := *lost.error
			if at.Pointer == "" {
				at.Pointer = t.pointer("html")
			}
			at.Pointer = t.inside(at.Pointer)
			wrong = append(wrong, &at)
		}
	}
	if t.same {
		return wrong
	}
	fail := func(member, hint, format string, args ...any) {
		err := invalid(0, hint, format, args...)
		err.Pointer = t.pointer(t.within + member)
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

// Unshown are the names of the images that nothing of the template shows.
func (t *Template) Unshown() (names []string) {
	all := map[string]bool{}
	for _, f := range t.Files() {
		if f.Image != "" {
			all[f.Image] = true
		}
	}
	for _, part := range t.everyPart() {
		for _, name := range part.shows {
			delete(all, name)
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// cid finds where HTML shows a file: in an attribute that is an address of one, or in a
// style.
var cid = regexp.MustCompile(`(?i)((?:[\s"'](?:src|background|poster)\s*=\s*["']?|url\(\s*(?:["']|&[#a-z0-9]+;)?)\s*cid:)([^"'\s)>&;,]*)`)

// shows are the images of a template: their Content-IDs by name.
func shows(files []fanfare.File) map[string]string {
	ids := map[string]string{}
	for i := range files {
		if f := &files[i]; f.Image != "" {
			ids[f.Image] = f.ContentID()
		}
	}
	return ids
}

// show puts the Content-ID of each image in the place of its name. What is not there
// stays as it is written, and is noted.
func (s *splitter) show(text string, line int) string {
	if s.mode != markup || !strings.Contains(text, "cid:") && !strings.Contains(text, "CID:") {
		return text
	}
	var b strings.Builder
	rest := 0
	for _, m := range cid.FindAllStringSubmatchIndex(text, -1) {
		name := text[m[4]:m[5]]
		id, known := s.part.images[name]
		if !known {
			s.lose(name, line+strings.Count(text[:m[4]], "\n"))
			continue
		}
		if !slices.Contains(s.part.shows, name) {
			s.part.shows = append(s.part.shows, name)
		}
		b.WriteString(text[rest:m[4]] + id)
		rest = m[5]
	}
	return b.String() + text[rest:]
}

// lose notes an image that is not there.
func (s *splitter) lose(name string, line int) {
	hint := "give it to the template: images: {" + name + ": {file: " + name + ".png}}"
	if known := slices.Sorted(maps.Keys(s.part.images)); len(known) > 0 {
		hint = "its images are " + strings.Join(known, ", ")
	}
	wrong := invalid(line, hint, "the HTML shows cid:%s, and the template has no such image", name)
	if name == "" {
		wrong.Message, wrong.Hint = "the name of an image that the HTML shows is written out, and is no value", "write <img src=\"cid:logo\">, and {% if %} around what depends"
	}
	s.part.point(wrong, "cid:"+name)
	s.part.lost = append(s.part.lost, lostImage{name, wrong})
}

// A lostImage is one that HTML shows and that is not there.
type lostImage struct {
	name  string
	error *fanfare.Error
}

// findLost says where its author wrote what is lost in HTML that was made: the lines of
// what has no Liquid are not known.
func (p *part) findLost(src Source, pointer func(string) string) {
	written := [][2]string{{"markdown", src.Markdown}, {"html", src.HTML}, {"page", src.Page}}
	for _, name := range slices.Sorted(maps.Keys(src.Partials)) {
		written = append(written, [2]string{"partials/" + name, src.Partials[name]})
	}
	for _, lost := range p.lost {
		for _, one := range written {
			text := "cid:" + lost.name
			if at := strings.Index(one[1], text); at >= 0 && lost.error.Pointer == "" {
				lost.error.Pointer, lost.error.Line = pointer(one[0]), 1+strings.Count(one[1][:at], "\n")
				locate(one[1], lost.error, text)
			}
		}
	}
}
