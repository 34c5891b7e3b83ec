package pages

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"strings"

	"fanfare.dev/fanfare/internal/people/pages/words"
)

//go:embed *.html
var sources embed.FS

//go:embed style.css
var style string

// A Site is the appearance of the pages of a service.
type Site struct {
	Name  string // name of the service for people
	Color string // #rrggbb; "" is the built-in color
	Logo  string // data:image/...;base64,..., or ""
	Links []Link // in the footer
	Texts Texts  // replace the built-in ones
}

// A Link is a link in the footer.
type Link struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// A Page is one document.
type Page struct {
	Kind   Kind
	Site   *Site  // nil: a plain page
	Locale string // of the reader
	Title  Text
	Notes  []Text // paragraphs below the title
	Done   Text   // confirmation at the top
	Fault  Text   // error at the top
	Form   any    // content of the kind
}

// A Kind is a kind of page.
type Kind string

// The kinds, with the types of their Form.
const (
	Notice      Kind = "notice"      // Button, or nil
	Unsubscribe Kind = "unsubscribe" // *UnsubscribeForm
	SignUp      Kind = "signup"      // *SignUpForm
	Confirm     Kind = "confirm"     // *ConfirmForm
	Preferences Kind = "preferences" // *PreferencesForm

	MailPrograms Kind = "mailprograms" // *MailProgramsForm
	Download     Kind = "download"     // *DownloadForm
)

// A Button is a form with a button only.
type Button struct {
	Action string // relative to the page; "" is the page itself
	Label  Text
	Link   string // next to it, or ""
	Other  Text   // text of the link
}

// Texts and Text are the texts of pages.
type (
	Texts = words.Texts
	Text  = words.Text
)

// Say names a text.
func Say(name string, values ...string) Text { return Text{Name: name, Values: values} }

// A view is the data of the templates.
type view struct {
	*Page
	Lang   string
	Dir    string
	Style  template.CSS
	Script template.JS
	Logo   template.URL
	texts  func(Text) string
}

// T returns a text in the reader's language.
func (s *view) T(t Text) string { return s.texts(t) }

// Say returns a text by its name.
func (s *view) Say(name string, values ...string) string {
	return s.texts(Text{Name: name, Values: values})
}

// A Writer writes pages. It is safe for concurrent use.
type Writer struct{ templates map[Kind]*template.Template }

// NewWriter parses the templates.
func NewWriter() *Writer {
	w := &Writer{map[Kind]*template.Template{}}
	for _, k := range []Kind{Notice, Unsubscribe, SignUp, Confirm, Preferences, MailPrograms, Download} {
		w.templates[k] = template.Must(template.ParseFS(sources, "layout.html", "choices.html", string(k)+".html"))
	}
	return w
}

// Write returns a page and its Content-Security-Policy.
func (w *Writer) Write(p *Page) (body []byte, policy string, err error) {
	if p.Site == nil {
		p.Site = &Site{}
	}
	s := &view{Page: p, Style: template.CSS(brandStyle(p.Site.Color) + style), Logo: template.URL(p.Site.Logo)} //nolint:gosec // the style is ours, and the logo is checked where it is configured
	if p.Kind == SignUp {
		s.Script = template.JS(proofOfWorkScript) //nolint:gosec // it is ours
	}
	s.Lang, s.texts = p.Site.Texts.For(p.Locale)
	if rightToLeft[base(s.Lang)] {
		s.Dir = "rtl"
	}
	var b bytes.Buffer
	if err := w.templates[p.Kind].ExecuteTemplate(&b, "layout.html", s); err != nil {
		return nil, "", err
	}
	return b.Bytes(), s.policy(), nil
}

// policy allows the contents of the page, and forms that are sent to the server.
func (s *view) policy() string {
	p := "default-src 'none'; style-src " + hashOf(string(s.Style))
	if s.Script != "" {
		p += "; script-src " + hashOf(string(s.Script))
	}
	if s.Logo != "" {
		p += "; img-src data:"
	}
	return p + "; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// hashOf returns the source expression of a policy for an inline text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// rightToLeft are the languages that are written from right to left.
var rightToLeft = map[string]bool{"ar": true, "fa": true, "he": true, "ur": true, "yi": true, "ps": true, "dv": true}

func base(tag string) string {
	lang, _, _ := strings.Cut(tag, "-")
	return strings.ToLower(lang)
}
