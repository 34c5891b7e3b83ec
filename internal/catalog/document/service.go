package document

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"golang.org/x/text/language"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/people/pages/words"
)

// maxHoldAbove is the maximum of hold_above, which is effectively never.
const maxHoldAbove = 1_000_000_000

// holdFields are the fields of a topic's or a service's approval.
func holdFields(above func(int), exempt func(bool)) fieldReaders {
	return fieldReaders{
		"hold_above":         func(v node) { above(v.number(1, maxHoldAbove)) },
		"hold_exempt_urgent": func(v node) { exempt(v.yes()) },
	}
}

// bounces reads the rules of a service.
func (n node) bounces() (s catalog.BounceSettings) {
	n.fields(fieldReaders{
		"unknown":   func(v node) { s.Unknown = v.bounceRule() },
		"hard":      func(v node) { s.Hard = v.bounceRule() },
		"soft":      func(v node) { s.Soft = v.bounceRule() },
		"full":      func(v node) { s.Full = v.bounceRule() },
		"complaint": func(v node) { s.Complaint = v.bounceRule() },
	})
	return s
}

// bounceRule reads one rule.
func (n node) bounceRule() (rule catalog.BounceRule) {
	n.fields(fieldReaders{
		"after":       func(v node) { rule.After = v.number(1, catalog.MaxBounces) },
		"within_days": func(v node) { rule.WithinDays = v.number(1, catalog.MaxBounceDays) },
		"over_days":   func(v node) { rule.OverDays = v.number(0, catalog.MaxBounceDays) },
		"for_days":    func(v node) { rule.ForDays = v.number(1, catalog.MaxGivenUpDays) },
		"never":       func(v node) { rule.Never = v.yes() },
	})
	if rule.Never {
		n.alone("never", true)
		return rule
	}
	n.needs("after", "such as 3, or set never: true")
	if rule.WithinDays == 0 {
		rule.WithinDays = catalog.BounceWithin
	}
	if rule.OverDays > rule.WithinDays {
		n.fault("increase within_days", "over_days is longer than within_days, so the rule could never apply")
	}
	return rule
}

// Limits of the page settings.
const (
	maxLogoBytes  = 100 << 10
	maxPageLinks  = 10
	maxPageTexts  = 64 << 10
	maxTermsBytes = 256
	maxIntroBytes = 2000
)

var colorPattern = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// pages reads the page settings of a service.
func (n node) pages() *catalog.Pages {
	p := &catalog.Pages{}
	if n.resolved() == nil {
		return p
	}
	n.fields(fieldReaders{
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
			known := fieldReaders{}
			for _, of := range catalog.PageMails {
				known[of] = func(v node) { p.Templates[of] = v.name() }
			}
			v.fields(known)
		},
	})
	if len(p.Links) > maxPageLinks {
		n.fault("", "the page footer has %d links; at most %d are allowed", len(p.Links), maxPageLinks)
	}
	return p
}

// maxMailDomains is the maximum number of mail domains of a service.
const maxMailDomains = 1000

// mailDomains reads the mail domains of a service.
func (n node) mailDomains() *[]catalog.MailDomain {
	list := []catalog.MailDomain{}
	seen := map[string]bool{}
	n.each(func(v node) {
		d := v.mailDomain()
		if seen[d.Domain] {
			v.fault("list each domain once", "the domain %s is there twice", inputerror.Quote(d.Domain))
		}
		seen[d.Domain] = true
		list = append(list, d)
	})
	if len(list) > maxMailDomains {
		n.fault("", "the service has %d mail domains; at most %d are allowed", len(list), maxMailDomains)
	}
	return &list
}

func (n node) mailDomain() (d catalog.MailDomain) {
	n.fields(fieldReaders{
		"domain": func(v node) { d.Domain = v.domain() },
		"catch_all": func(v node) {
			normal, err := address.Parse(v.line())
			if err != nil {
				v.fail(err)
			}
			d.CatchAll = normal
		},
	})
	n.needs("domain", "such as example.org")
	if d.CatchAll != "" && d.Domain != "" && address.Domain(d.CatchAll) != d.Domain {
		n.fault("use the address of a mailbox in the domain", "the catch-all %s is not in the domain %s", inputerror.Quote(d.CatchAll), d.Domain)
	}
	return d
}

// roles reads the roles of people who sign in with OpenID Connect.
func (n node) roles() *[]catalog.RoleGrant {
	list := []catalog.RoleGrant{}
	seen := map[catalog.RoleGrant]bool{}
	n.each(func(v node) {
		var g catalog.RoleGrant
		fields := map[string]node{"": v}
		read := func(name string, to *string) func(node) {
			return func(v node) { *to, fields[name] = v.text(), v }
		}
		v.fields(fieldReaders{"issuer": read("issuer", &g.Issuer), "claim": read("claim", &g.Claim), "value": read("value", &g.Value), "role": read("role", &g.Role)})
		field, problem, hint := g.Check()
		switch {
		case problem != "":
			fields[field].fault(hint, "%s", problem)
		case seen[g]:
			v.fault("list each role once", "the same role is there twice")
		}
		seen[g] = true
		list = append(list, g)
	})
	if len(list) > catalog.MaxRoleGrants {
		n.fault("", "the service has %d roles; at most %d are allowed", len(list), catalog.MaxRoleGrants)
	}
	return &list
}

// logo reads an inline image, because pages do not load other resources.
func (n node) logo() string {
	text := strings.Join(strings.Fields(n.text()), "")
	kind, data, ok := strings.Cut(text, ";base64,")
	_, err := base64.StdEncoding.DecodeString(data)
	switch {
	case !ok || err != nil || kind != "data:image/png" && kind != "data:image/jpeg" && kind != "data:image/webp":
		n.fault("write it as data:image/png;base64,... (png, jpeg or webp)", "the logo is not an inline image")
	case len(text) > maxLogoBytes:
		n.fault("", "the logo has %d bytes; at most %d are allowed", len(text), maxLogoBytes)
	}
	return text
}

func (n node) pageLink() (l catalog.PageLink) {
	n.fields(fieldReaders{
		"title": func(v node) { l.Title = v.line() },
		"url": func(v node) {
			l.URL = v.line()
			if u, err := url.Parse(l.URL); err != nil || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "mailto" {
				v.fault("", "%s is not an https, http or mailto URL", inputerror.Quote(l.URL))
			}
		},
	})
	n.needs("title", "set it to the text of the link")
	n.needs("url", "such as https://example.org/imprint")
	return l
}

// pageTexts reads texts by language. Package words knows their names.
func (n node) pageTexts() map[string]map[string]string {
	all, size := map[string]map[string]string{}, 0
	n.entries(func(tag string, v node) {
		if _, err := language.Parse(tag); err != nil || len(tag) > 64 {
			v.fault("use a language tag such as de or pt-BR", "%s is not a language tag", inputerror.Quote(tag))
		}
		texts := map[string]string{}
		v.entries(func(name string, v node) {
			texts[name] = v.text()
			if size += len(texts[name]); !words.Known(name) {
				v.fault("for the names of the texts, see docs/reference/page-texts.md", "unknown page text %s", inputerror.Quote(name))
			}
		})
		all[strings.ToLower(tag)] = texts
	})
	if size > maxPageTexts {
		n.fault("", "the texts have %d bytes; at most %d are allowed", size, maxPageTexts)
	}
	return all
}

// signup reads true, or an object with the settings.
func (n node) signup() *catalog.Signup {
	if text := n.word(); text != "" {
		if text == "false" {
			return nil
		}
		return &catalog.Signup{}
	}
	s := &catalog.Signup{}
	n.fields(fieldReaders{
		"channels": func(v node) { v.each(func(v node) { s.Channels = append(s.Channels, v.name()) }) },
		"terms":    func(v node) { s.Terms = v.bounded(maxTermsBytes) },
		"intro":    func(v node) { s.Intro = v.bounded(maxIntroBytes) },
	})
	return s
}

// word returns the text of true or false, or "" for any other value.
func (n node) word() string {
	if v, ok := n.resolved().(*ast.BoolNode); ok {
		return v.GetToken().Value
	}
	return ""
}

func (n node) bounded(most int) string {
	text := n.line()
	if len(text) > most {
		n.fault("", "the value has %d bytes; at most %d are allowed", len(text), most)
	}
	return text
}
