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

// maxVariants bounds how many a template may have.
const maxVariants = 200

// A Variant is what a template says in a language, on a device, or both. What it
// lacks is said by a less exact one, in the end by the template: the subject and the
// JSON each for itself, the body (text, HTML, Markdown) as one.
type Variant struct {
	Locale string // a language tag; "": in the template's language
	Device string // "": on any

	Subject, Text, HTML, Markdown, JSON string

	Files []fanfare.File // what is attached in place of all that the template has, and images in place of those of the same name
}

// PathPrefix is where the variant stands in the document of its template: what comes
// before the names of its parts.
func (v Variant) PathPrefix() string { return variantPath(v.Locale, v.Device) }

// A variant is a compiled one, whole.
type variant struct {
	locale, device string
	template       *Template
}

// variantPath is where a variant stands in the document of its template.
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

// compileVariants compiles the variants of a template, the less exact first.
func (t *Template) compileVariants(src Source) error {
	if len(src.Variants) > maxVariants {
		return &fanfare.Error{Code: fanfare.TooLarge, Pointer: t.pointer("locales"), Message: "more than 200 variants"}
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
		return fail("", "a variant is for a language or a device")
	}
	for _, known := range t.variants {
		if known.locale == tag && known.device == v.Device {
			return fail("", "%s is there twice", v.Locale)
		}
	}
	return nil
}

// compileVariant is the template with what a variant says in place of its own.
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
	case len(fanfare.Shown(v.Files)) > 0 && one.html != nil: // the same words, with other images
		one.text, one.html.owner = t.text, t.html.owner
	default:
		one.text, one.html = t.text, t.html
	}
	return one, src, nil
}

// variantFor is what is said to somebody: of their language and their device, of the
// language, of the device, or the template itself. Where their region has nothing of
// its own, their language has.
func (t *Template) variantFor(tag, device string) *Template {
	for at := range locale.Lookup(locale.Normal(tag)) {
		if one := t.exactVariant(at, device); one != nil {
			return one
		}
	}
	if tag != "" && len(t.variants) > 0 { // zh-TW is written as zh-Hant
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

// exactVariant is the variant of a language on a device, or of the language.
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

// variantPointer is a pointer of the template where it is one of a variant.
func (t *Template) variantPointer(pointer string) string {
	whole := bodies.Pointer(t.Name, "") + "/"
	rest, own := strings.CutPrefix(pointer, whole)
	switch rest {
	case "subject", "text", "html", "markdown", "json":
		if own {
			return whole + t.path + rest
		}
	}
	return pointer // what the template has for all of them
}

// prefixPointers puts errors where the variant stands.
func (t *Template) prefixPointers(wrong []*fanfare.Error) []*fanfare.Error {
	for _, err := range wrong {
		err.Pointer = t.variantPointer(err.Pointer)
		t.prefixPointers(err.Details)
	}
	return wrong
}

// withLocalization is the variables with the voice of a template.
func (t *Template) withLocalization(vars map[string]any) map[string]any {
	own := maps.Clone(vars)
	own[liquid.LocalizationVariable] = &t.localizationFor("", "").Localization
	return own
}

// deviceOf is on what somebody reads: what the data of the message or of the
// subscription say in the member device, or else the attributes.
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
