package bodies

import (
	"cmp"
	_ "embed"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Layouts are the names of the built-in layouts: plain has an unsubscribe link below the
// content, the other does not.
var Layouts = [...]string{"letter", "plain"}

//go:embed layouts/page.html
var layoutPage string

//go:embed layouts/notify.html
var notifyPage string

// notifyStyle keeps text with styles of its own readable in dark mode.
const notifyStyle = "<style>@media (prefers-color-scheme: dark) {\n" +
	".notify p, .notify li, .notify h2, .notify h3, .notify td, .notify div { color: #e6e9ed !important }\n" +
	".notify a { color: #8ab8f0 !important }\n}\n</style>\n"

//go:embed layouts/page.css
var layoutStyle string

//go:embed layouts/blocks.css
var blockStyle string

// rightToLeft are the languages that are written from right to left.
var rightToLeft = []string{"ar", "arc", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi"}

// unsubscribeLabels has the text of the unsubscribe link by language.
var unsubscribeLabels = map[string]string{
	"ar": "إلغاء الاشتراك", "cs": "Odhlásit odběr", "cy": "Dad-danysgrifio", "da": "Afmeld", "de": "Abmelden", "en": "Unsubscribe",
	"es": "Cancelar la suscripción", "fa": "لغو اشتراک", "fi": "Peruuta tilaus", "fr": "Se désabonner", "he": "ביטול הרשמה", "it": "Annulla l’iscrizione",
	"ja": "配信停止", "ko": "수신 거부", "nl": "Afmelden", "nb": "Meld deg av", "pl": "Anuluj subskrypcję", "pt": "Cancelar a subscrição",
	"ru": "Отписаться", "sv": "Avsluta prenumerationen", "tr": "Abonelikten çık", "uk": "Відписатися", "ur": "ان سبسکرائب کریں", "zh": "退订",
}

var languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$`)

var wholeOutput = regexp.MustCompile(`^\{\{-?\s*([\w.]+)\s*-?\}\}$`)

// hasValidLang reports whether Lang is a language tag or an output.
func (s *Source) hasValidLang() bool {
	return s.Lang == "" || languageTag.MatchString(s.Lang) || wholeOutput.MatchString(s.Lang)
}

// byLanguage returns the value for a language. If an output tells the language, it returns a
// Liquid case over all of them.
func byLanguage(language string, names []string, value func(language string) string) string {
	if found := wholeOutput.FindStringSubmatch(language); found != nil {
		var out strings.Builder
		out.WriteString("{% case " + found[1] + " %}")
		for _, name := range names {
			if v := value(name); v != value("en") {
				out.WriteString(`{% when "` + name + `" %}` + v)
			}
		}
		return out.String() + "{% else %}" + value("en") + "{% endcase %}"
	}
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	return value(base)
}

func direction(language string) string {
	if slices.Contains(rightToLeft, language) {
		return "rtl"
	}
	return "ltr"
}

func unsubscribeLabel(language string) string {
	if w := unsubscribeLabels[language]; w != "" {
		return w
	}
	return unsubscribeLabels["en"]
}

// styleElement matches a style element, which belongs into the head of the page.
var styleElement = regexp.MustCompile(`(?s)<style>(.*?)</style>\n?`)

// inBuiltinLayout puts the content into a built-in layout.
func (b *builder) inBuiltinLayout(src Source, content, page string) string {
	title := b.replaceLiquid(src.file("subject", src.Subject))
	language := b.replaceLiquid(&File{src.Name, "lang", cmp.Or(src.Lang, "en")})
	var styles []string
	content = styleElement.ReplaceAllStringFunc(content, func(found string) string {
		styles = append(styles, styleElement.FindStringSubmatch(found)[1])
		return ""
	})
	given := map[string]string{
		"style": layoutStyle + strings.Join(styles, ""), "content": content, "title": html.EscapeString(title), "lang": html.EscapeString(language),
		"dir": b.replaceGenerated(byLanguage(src.Lang, rightToLeft, direction)),
	}
	foot := ""
	if src.Layout == "plain" {
		foot = `<tr><td class="foot"><a href="` + b.replaceGenerated("{{ unsubscribe_url }}") + `">` +
			b.replaceGenerated(byLanguage(src.Lang, slices.Sorted(maps.Keys(unsubscribeLabels)), unsubscribeLabel)) + `</a></td></tr>`
	}
	given["foot"] = foot
	if src.Outputs != nil {
		given["preheader"] = b.replaceGenerated(src.Outputs.Preheader)
	}
	var pairs []string
	for name, text := range given {
		pairs = append(pairs, "@@"+name+"@@", text)
	}
	return strings.NewReplacer(pairs...).Replace(page)
}

// inCustomLayout puts the content into a layout of the author's own.
func (b *builder) inCustomLayout(src Source, content string) string {
	if len(b.errors) > 0 {
		return ""
	}
	page := &File{src.Name, "page", src.CustomLayout}
	text, placed := b.replaceLiquid(page), false
	given := map[string]func() string{
		"content": func() string { placed = true; return content },
		"title":   func() string { return html.EscapeString(b.replaceLiquid(src.file("subject", src.Subject))) },
		"lang": func() string {
			return html.EscapeString(b.replaceLiquid(&File{src.Name, "lang", cmp.Or(src.Lang, "en")}))
		},
		"dir": func() string { return b.replaceGenerated(byLanguage(src.Lang, rightToLeft, direction)) },
	}
	text = b.pattern.ReplaceAllStringFunc(text, func(word string) string {
		if m := b.at(word); m.tag == "" && given[strings.TrimSpace(m.args)] != nil {
			return given[strings.TrimSpace(m.args)]()
		}
		return word
	})
	if !placed {
		b.fail(page.fault(0, "add {{ content }} where the content belongs", "the layout has no {{ content }}"))
	}
	return text
}

// replaceGenerated replaces the Liquid of a generated text, which has no origin, by
// placeholders.
func (b *builder) replaceGenerated(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	out := b.replaceLiquid(&File{Text: text})
	for i := range b.placeholders {
		if m := &b.placeholders[i]; m.file != nil && m.file.Part == "" {
			m.origin = origin{}
		}
	}
	return out
}
