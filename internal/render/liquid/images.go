package liquid

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
)

// cid finds where HTML shows a file: in an attribute that is an address of one, or in a
// style.
var cid = regexp.MustCompile(`(?i)((?:[\s"'](?:src|background|poster)\s*=\s*["']?|url\(\s*(?:["']|&[#a-z0-9]+;)?)\s*cid:)([^"'\s)>&;,]*)`)

// embedImages puts the Content-ID of each image in the place of its name. What is not there
// stays as it is written, and is noted.
func (s *splitter) embedImages(text string, line int) string {
	if s.mode != HTML || !strings.Contains(text, "cid:") && !strings.Contains(text, "CID:") {
		return text
	}
	var b strings.Builder
	rest := 0
	for _, m := range cid.FindAllStringSubmatchIndex(text, -1) {
		name := text[m[4]:m[5]]
		id, known := s.part.images[name]
		if !known {
			s.addMissingImage(name, line+strings.Count(text[:m[4]], "\n"))
			continue
		}
		if !slices.Contains(s.part.ShownImages, name) {
			s.part.ShownImages = append(s.part.ShownImages, name)
		}
		b.WriteString(text[rest:m[4]] + id)
		rest = m[5]
	}
	return b.String() + text[rest:]
}

// addMissingImage notes an image that is not there.
func (s *splitter) addMissingImage(name string, line int) {
	hint := "give it to the template: images: {" + name + ": {file: " + name + ".png}}"
	if known := slices.Sorted(maps.Keys(s.part.images)); len(known) > 0 {
		hint = "its images are " + strings.Join(known, ", ")
	}
	wrong := invalid(line, hint, "the HTML shows cid:%s, and the template has no such image", name)
	if name == "" {
		wrong.Message, wrong.Hint = "the name of an image that the HTML shows is written out, and is no value", "write <img src=\"cid:logo\">, and {% if %} around what depends"
	}
	s.part.SetPosition(wrong, "cid:"+name)
	s.part.MissingImages = append(s.part.MissingImages, MissingImage{name, wrong})
}

// A lostImage is one that HTML shows and that is not there.
type MissingImage struct {
	Name  string
	Error *fanfare.Error
}
