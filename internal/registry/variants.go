package registry

import (
	"reflect"
	"strings"
)

// TemplateWords are what a variant of a template says in place of it. What it lacks,
// a less exact variant or the template says.
type TemplateWords struct {
	Subject  string `json:"subject,omitempty"`
	Text     string `json:"text,omitempty"`
	HTML     string `json:"html,omitempty"`
	JSON     string `json:"json,omitempty"`
	Markdown string `json:"markdown,omitempty"`

	TemplateFiles
}

// IsZero reports whether the variant says nothing.
func (w *TemplateWords) IsZero() bool { return reflect.ValueOf(*w).IsZero() }

// TemplateLocale is what a template says in another language.
type TemplateLocale struct {
	TemplateWords
	Devices map[string]TemplateWords `json:"devices,omitempty"` // on a device
}

// TemplateVariants are what a template says to some.
type TemplateVariants struct {
	Locales map[string]TemplateLocale `json:"locales,omitempty"` // by language tag (BCP 47)
	Devices map[string]TemplateWords  `json:"devices,omitempty"` // by what the member device of somebody's data or attributes says
}

// words reads the fields of a variant, and those beside them.
func (n node) words(w *TemplateWords, beside fields) {
	known := fields{
		"subject":       func(v node) { w.Subject = v.text() },
		"subject_file":  func(v node) { w.Subject = strings.TrimRight(v.file(), "\r\n") },
		"text":          func(v node) { w.Text = v.text() },
		"text_file":     func(v node) { w.Text = v.file() },
		"html":          func(v node) { w.HTML = v.text() },
		"html_file":     func(v node) { w.HTML = v.file() },
		"json":          func(v node) { w.JSON = v.text() },
		"json_file":     func(v node) { w.JSON = v.file() },
		"markdown":      func(v node) { w.Markdown = v.text() },
		"markdown_file": func(v node) { w.Markdown = v.file() },
		"attachments":   func(v node) { w.Attachments = v.attachments() },
		"images":        func(v node) { w.Images = v.images() },
	}
	for name, read := range beside {
		known[name] = read
	}
	n.fields(known)
	for _, part := range []string{"subject", "text", "html", "json", "markdown"} {
		n.oneOf(part, part+"_file")
	}
}

// variantFields are those of a template that says who gets what.
func variantFields(v *TemplateVariants) fields {
	devices := func(into *map[string]TemplateWords) func(node) {
		return func(n node) {
			*into = map[string]TemplateWords{}
			n.members(func(name string, n node) {
				var w TemplateWords
				n.words(&w, nil)
				(*into)[name] = w
			})
		}
	}
	return fields{
		"locales": func(n node) {
			v.Locales = map[string]TemplateLocale{}
			n.entries(func(tag string, n node) { // what is a tag is for who compiles to say
				var l TemplateLocale
				n.words(&l.TemplateWords, fields{"devices": devices(&l.Devices)})
				v.Locales[tag] = l
			})
		},
		"devices": devices(&v.Devices),
	}
}
