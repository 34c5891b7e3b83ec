package registry

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"

	"fanfare.dev/fanfare/internal/catalog/audit"

	"fanfare.dev/fanfare/internal/inputerror"

	"github.com/goccy/go-yaml/ast"
	"golang.org/x/text/language"

	"fanfare.dev/fanfare/internal/people/pages/words"
)

// Pages is how the pages of a service look that its recipients see, and what they and
// the mails around them say.
type Pages struct {
	Color     string                       `json:"color,omitempty"`     // #rrggbb; text on it is black or white, whichever is easier to read
	Logo      string                       `json:"logo,omitempty"`      // data:image/png;base64,...
	Links     []PageLink                   `json:"links,omitempty"`     // at the foot
	Texts     map[string]map[string]string `json:"texts,omitempty"`     // by language tag, by name
	Templates map[string]string            `json:"templates,omitempty"` // of mails, by what they are for
	Goodbye   bool                         `json:"goodbye,omitempty"`   // a mail says what has ended
}

// A PageLink leads from a page to somewhere else.
type PageLink struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// Signup is how people subscribe to a topic by themselves.
type Signup struct {
	Channels []string `json:"channels,omitempty"` // to choose from; none: all that go to mail addresses
	Terms    string   `json:"terms,omitempty"`    // version or URL of what they agree to
	Intro    string   `json:"intro,omitempty"`    // what stands above the form
}

// PageMails are the mails that a service may have templates of its own for.
var PageMails = []string{"confirm", "known", "moved", "goodbye", "link"}

// Limits of what is said of pages.
const (
	maxLogoBytes  = 100 << 10
	maxPageLinks  = 10
	maxPageTexts  = 64 << 10
	maxTermsBytes = 256
	maxIntroBytes = 2000
)

var colorPattern = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// pages reads what is said of a service.
func (n node) pages() *Pages {
	p := &Pages{}
	if n.resolved() == nil {
		return p
	}
	n.fields(fields{
		"color": func(v node) {
			if p.Color = strings.ToLower(v.text()); !colorPattern.MatchString(p.Color) {
				v.fault("write it as \"#005ea5\", in quotes", "%s is not a color", inputerror.Quote(p.Color))
			}
		},
		"logo":    func(v node) { p.Logo = v.logo() },
		"links":   func(v node) { v.each(func(v node) { p.Links = append(p.Links, v.pageLink()) }) },
		"texts":   func(v node) { p.Texts = v.pageTexts() },
		"goodbye": func(v node) { p.Goodbye = v.yes() },
		"templates": func(v node) {
			p.Templates = map[string]string{}
			known := fields{}
			for _, of := range PageMails {
				known[of] = func(v node) { p.Templates[of] = v.name() }
			}
			v.fields(known)
		},
	})
	if len(p.Links) > maxPageLinks {
		n.fault("", "%d links, at most %d may stand at the foot", len(p.Links), maxPageLinks)
	}
	return p
}

// logo reads an image that is written out: pages load nothing.
func (n node) logo() string {
	text := strings.Join(strings.Fields(n.text()), "")
	kind, data, ok := strings.Cut(text, ";base64,")
	_, err := base64.StdEncoding.DecodeString(data)
	switch {
	case !ok || err != nil || kind != "data:image/png" && kind != "data:image/jpeg" && kind != "data:image/webp":
		n.fault("write it as data:image/png;base64,... (png, jpeg or webp)", "the logo is not an image that is written out")
	case len(text) > maxLogoBytes:
		n.fault("", "the logo has %d bytes, more than %d", len(text), maxLogoBytes)
	}
	return text
}

func (n node) pageLink() (l PageLink) {
	n.fields(fields{
		"title": func(v node) { l.Title = v.line() },
		"url": func(v node) {
			l.URL = v.line()
			if u, err := url.Parse(l.URL); err != nil || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "mailto" {
				v.fault("", "%s is not a URL with https, http or mailto", inputerror.Quote(l.URL))
			}
		},
	})
	n.needs("title", "what the link is called")
	n.needs("url", "such as https://example.org/imprint")
	return l
}

// pageTexts reads texts by language. Their names are known to who writes pages.
func (n node) pageTexts() map[string]map[string]string {
	all, size := map[string]map[string]string{}, 0
	n.entries(func(tag string, v node) {
		if _, err := language.Parse(tag); err != nil || len(tag) > 64 {
			v.fault("use a language tag such as de or pt-BR", "%s is not a language", inputerror.Quote(tag))
		}
		texts := map[string]string{}
		v.entries(func(name string, v node) {
			texts[name] = v.text()
			if size += len(texts[name]); !words.Known(name) {
				v.fault("docs/reference/page-texts.md lists those that there are", "pages have no text %s", inputerror.Quote(name))
			}
		})
		all[strings.ToLower(tag)] = texts
	})
	if size > maxPageTexts {
		n.fault("", "the texts have %d bytes, more than %d", size, maxPageTexts)
	}
	return all
}

// signup reads true, or what is said of it.
func (n node) signup() *Signup {
	if text := n.word(); text != "" {
		if text == "false" {
			return nil
		}
		return &Signup{}
	}
	s := &Signup{}
	n.fields(fields{
		"channels": func(v node) { v.each(func(v node) { s.Channels = append(s.Channels, v.name()) }) },
		"terms":    func(v node) { s.Terms = v.bounded(maxTermsBytes) },
		"intro":    func(v node) { s.Intro = v.bounded(maxIntroBytes) },
	})
	return s
}

// word is what a plain yes or no says, "" for anything else.
func (n node) word() string {
	if v, ok := n.resolved().(*ast.BoolNode); ok {
		return v.GetToken().Value
	}
	return ""
}

func (n node) bounded(most int) string {
	text := n.line()
	if len(text) > most {
		n.fault("", "%d bytes, more than %d", len(text), most)
	}
	return text
}

// setPages takes over what the document says of them.
func (pl *plan) setPages() []audit.FieldChange {
	p := pl.doc.Pages
	if p == nil {
		return nil
	}
	was, is := pl.svc.pages, *p
	pl.svc.pages = is
	changes := fieldChanges(was, is)
	for i := range changes {
		changes[i].Field = "pages." + changes[i].Field
	}
	return changes
}
