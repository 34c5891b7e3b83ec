package render

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/bodies"
	"fanfare.dev/fanfare/internal/render/liquid"
	"fanfare.dev/fanfare/internal/render/locale"
)

// maxVariants is the largest number of variants of a template.
const maxVariants = 200

// A Variant is the form of a template for a language, a device, or both. It inherits what it
// lacks from a less specific variant, and finally from the template: the subject, the JSON, and
// the body (text, HTML, Markdown) as a whole.
type Variant struct {
	Locale string // a language tag; "": the template's language
	Device string // "": any

	Subject, Text, HTML, Markdown, JSON string

	Files []fanfare.File // attachments that replace all of the template's, and images that replace those of the same name
}

// PathPrefix returns the path of the variant in the document of its template, with a slash at
// its end.
func (v Variant) PathPrefix() string { return variantPath(v.Locale, v.Device) }

// A variant is a compiled variant with all that it inherits.
type variant struct {
	locale, device string
	template       *Template
}

// variantPath returns the path of a variant in the document of its template.
func variantPath(locale, device string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	at := ""
	if locale != "" {
		at = "locales/" + escape.Replace(locale) + "/"
	}
	if device != "" {
		at += "devices/" + escape.Replace(device) + "/"
	}
	return at
}

// compileVariants compiles the variants of a template, less specific ones first.
func (t *Template) compileVariants(src Source) error {
	if len(src.Variants) > maxVariants {
		return &fanfare.Error{Code: fanfare.TooLarge, Pointer: t.pointer("locales"), Message: "the template has more than 200 variants"}
	}
	all := slices.Clone(src.Variants)
	slices.SortFunc(all, func(a, b Variant) int {
		return cmp.Or(cmp.Compare(len(a.Locale), len(b.Locale)), cmp.Compare(a.Locale, b.Locale), cmp.Compare(a.Device, b.Device))
	})
	sources := map[*Template]Source{t: src}
	var wrong []*fanfare.Error
	for _, v := range all {
		if err := t.checkVariant(v); err != nil {
			wrong = append(wrong, err)
			continue
		}
		above := t.variantFor(v.Locale, v.Device)
		one, merged, err := above.compileVariant(sources[above], v)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		sources[one] = merged
		t.variants = append(t.variants, variant{locale.Normal(v.Locale), v.Device, one})
		t.localizedAny = max(t.localizedAny, one.localized)
		t.byDevice = t.byDevice || v.Device != ""
	}
	return joinErrors(wrong)
}

func (t *Template) checkVariant(v Variant) *fanfare.Error {
	fail := func(hint, format string, args ...any) *fanfare.Error {
		err := invalid(0, hint, format, args...)
		err.Pointer = t.pointer(strings.TrimSuffix(variantPath(v.Locale, v.Device), "/"))
		return err
	}
	tag := locale.Normal(v.Locale)
	switch {
	case v.Locale != "" && !locale.Known(tag):
		return fail("use a language tag such as cy, pt-BR or zh-Hant", "unknown language %q", v.Locale)
	case v.Locale == "" && v.Device == "":
		return fail("", "a variant must specify a language or a device")
	}
	for _, known := range t.variants {
		if known.locale == tag && known.device == v.Device {
			return fail("", "the variant %s is defined twice", v.Locale)
		}
	}
	return nil
}

// compileVariant compiles a variant that inherits from the template.
func (t *Template) compileVariant(src Source, v Variant) (*Template, Source, *fanfare.Error) {
	body := v.Text != "" || v.HTML != "" || v.Markdown != ""
	if v.Locale != "" {
		src.Lang = v.Locale
	}
	src.Subject, src.JSON = cmp.Or(v.Subject, src.Subject), cmp.Or(v.JSON, src.JSON)
	if body {
		src.Text, src.HTML, src.Markdown = v.Text, v.HTML, v.Markdown
	}
	src.Files = replaceFiles(src.Files, v.Files)
	one, err := compile(src, variantPath(v.Locale, v.Device))
	if err != nil {
		return nil, src, err
	}
	if v.Subject == "" {
		one.subject = t.subject
	}
	if v.JSON == "" {
		one.json = t.json
	}
	one.inheritsFiles = len(v.Files) == 0
	switch {
	case body:
	case len(fanfare.Shown(v.Files)) > 0 && one.html != nil: // the same text with other images
		one.text, one.html.owner = t.text, t.html.owner
	default:
		one.text, one.html = t.text, t.html
	}
	return one, src, nil
}

// variantFor returns the most specific variant for a reader: by language and device, by
// language, by device, or the template itself. A region without a variant gets the one of its
// language.
func (t *Template) variantFor(tag, device string) *Template {
	for at := range locale.Lookup(locale.Normal(tag)) {
		if one := t.exactVariant(at, device); one != nil {
			return one
		}
	}
	if tag != "" && len(t.variants) > 0 { // zh-TW matches zh-Hant
		for at := range locale.Lookup(locale.Find(tag).Tag()) {
			if locale.Language(at) == locale.Language(tag) {
				if one := t.exactVariant(at, device); one != nil {
					return one
				}
			}
		}
	}
	if one := t.exactVariant("", device); one != nil {
		return one
	}
	return t
}

// exactVariant returns the variant for a language tag and a device, or else for the tag.
func (t *Template) exactVariant(tag, device string) *Template {
	var plain *Template
	for i := range t.variants {
		v := &t.variants[i]
		switch {
		case v.locale != tag:
		case v.device == device && (device != "" || tag != ""):
			return v.template
		case v.device == "":
			plain = v.template
		}
	}
	return plain
}

// withVariants lists the template and its variants.
func (t *Template) withVariants() []*Template {
	all := []*Template{t}
	for i := range t.variants {
		all = append(all, t.variants[i].template)
	}
	return all
}

// allParts lists the parts of the template and of its variants, each once.
func (t *Template) allParts() []*templatePart {
	all := t.parts()
	for i := range t.variants {
		for _, p := range t.variants[i].template.parts() {
			if p.owner == t.variants[i].template {
				all = append(all, p)
			}
		}
	}
	return all
}

// variantPointer returns a pointer of the template as one of a variant.
func (t *Template) variantPointer(pointer string) string {
	whole := bodies.Pointer(t.Name, "") + "/"
	rest, own := strings.CutPrefix(pointer, whole)
	switch rest {
	case "subject", "text", "html", "markdown", "json":
		if own {
			return whole + t.path + rest
		}
	}
	return pointer // the part is shared by all variants
}

// prefixPointers turns the pointers of errors into those of a variant.
func (t *Template) prefixPointers(wrong []*fanfare.Error) []*fanfare.Error {
	for _, err := range wrong {
		err.Pointer = t.variantPointer(err.Pointer)
		t.prefixPointers(err.Details)
	}
	return wrong
}

// withLocalization returns variables with the default localization of the template.
func (t *Template) withLocalization(vars map[string]any) map[string]any {
	own := maps.Clone(vars)
	own[liquid.LocalizationVariable] = &t.localizationFor("", "").Localization
	return own
}

// deviceOf returns the reader's device: the member device of the message's own data, of the
// subscription's data, or of the attributes.
func deviceOf(r *Recipient) string {
	from := [][]byte{r.Data, nil, r.Attributes}
	if len(r.Subscriptions) > 0 {
		from[1] = r.Subscriptions[0].Data
	}
	for _, raw := range from {
		if found, ok := liquid.FindJSON(raw, []string{"device"}); ok && len(found) > 2 && found[0] == '"' {
			return string(found[1 : len(found)-1])
		}
	}
	return ""
}
