package liquid

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
)

// cid matches a reference to an image in HTML: in an attribute that holds an address, or in a
// style.
var cid = regexp.MustCompile(`(?i)((?:[\s"'](?:src|background|poster)\s*=\s*["']?|url\(\s*(?:["']|&[#a-z0-9]+;)?)\s*cid:)([^"'\s)>&;,]*)`)

// embedImages replaces the name of each image by its Content-ID. References to unknown images
// stay and are noted.
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

// addMissingImage notes a reference to an unknown image.
func (s *splitter) addMissingImage(name string, line int) {
	hint := "add it to the template: images: {" + name + ": {file: " + name + ".png}}"
	if known := slices.Sorted(maps.Keys(s.part.images)); len(known) > 0 {
		hint = "the images of the template are " + strings.Join(known, ", ")
	}
	wrong := invalid(line, hint, "the HTML refers to cid:%s, but the template has no image with this name", name)
	if name == "" {
		wrong.Message, wrong.Hint = "the image name after cid: must be literal", "write <img src=\"cid:logo\">, and use {% if %} to choose between images"
	}
	s.part.SetPosition(wrong, "cid:"+name)
	s.part.MissingImages = append(s.part.MissingImages, MissingImage{name, wrong})
}

// A MissingImage is a reference in HTML to an image that does not exist.
type MissingImage struct {
	Name  string
	Error *fanfare.Error
}
