package registry

import (
	"maps"
	"regexp"
)

// A document says its layouts and partials once, and its templates name them. What
// a template names is kept with it: a version that was made is whole, and a change
// of a partial makes a new version of each template of the document that has it.

// shared is what templates of a document may name.
type shared struct {
	partials map[string]string
	layouts  map[string]string
}

var rendered = regexp.MustCompile(`\{%-?\s*render\s+["']([^"']+)["']`)

// sharedFields reads the partials and layouts of a document, which stand apart from
// its templates.
func (p *documentReader) sharedFields(all fields) {
	p.shared = shared{map[string]string{}, map[string]string{}}
	all["partials"] = func(v node) {
		v.members(func(name string, v node) { p.shared.partials[name] = v.source() })
	}
	all["layouts"] = func(v node) {
		v.members(func(name string, v node) { p.shared.layouts[name] = v.source() })
	}
}

// source is a text, given or in a file.
func (n node) source() (text string) {
	n.fields(fields{
		"text": func(v node) { text = v.text() },
		"file": func(v node) { text = v.file() },
	})
	n.oneOf("text", "file")
	return text
}

// share gives each template what it names.
func (p *documentReader) share() {
	if len(p.shared.partials)+len(p.shared.layouts) == 0 {
		return
	}
	for _, t := range p.doc.Templates {
		if page, ok := p.shared.layouts[t.Layout]; ok && t.Page == "" {
			t.Page = page
		}
		named := maps.Clone(t.Partials)
		if named == nil {
			named = map[string]string{}
		}
		for ahead := t.bodies(); len(ahead) > 0; ahead = ahead[1:] {
			for _, found := range rendered.FindAllStringSubmatch(ahead[0], -1) {
				text, ok := p.shared.partials[found[1]]
				if _, known := named[found[1]]; ok && !known {
					named[found[1]] = text
					ahead = append(ahead, text)
				}
			}
		}
		if len(named) > 0 {
			t.Partials = named
		}
	}
}

// bodies are the texts of a template in which partials are rendered.
func (t *TemplateSpec) bodies() []string {
	all := []string{t.Page}
	words := func(w TemplateWords) { all = append(all, w.Text, w.HTML, w.Markdown) }
	words(TemplateWords{Text: t.Text, HTML: t.HTML, Markdown: t.Markdown})
	devices := func(of map[string]TemplateWords) {
		for _, w := range of {
			words(w)
		}
	}
	devices(t.Devices)
	for _, l := range t.Locales {
		words(l.TemplateWords)
		devices(l.Devices)
	}
	return all
}

// partials reads those that are given with a template.
func (n node) partials() map[string]string {
	all := map[string]string{}
	n.members(func(name string, v node) { all[name] = v.text() })
	return all
}
