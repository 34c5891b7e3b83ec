package selfservice

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people/pages/words"
	"fanfare.dev/fanfare/internal/people/registry"
)

// Mailer sends the emails of the pages, as direct messages in the lane urgent.
type Mailer struct {
	messages interface {
		SendAsked(ctx context.Context, service string, message *wire.MessageRequest) error
	}
	registry *registry.Registry
	base     string // public URL, without a trailing slash
}

// A pageMail is one email.
type pageMail struct {
	kind    string // of catalog.PageMails
	service string
	channel string
	to      string
	locale  string
	title   string // title of the subscription
	url     string // link to open
	expires time.Time
}

// send sends it, with the texts of the service if it has its own.
func (p *Mailer) send(ctx context.Context, m *pageMail) error {
	svc := p.registry.Configuration().Service(m.service)
	if svc == nil {
		return &fanfare.Error{Code: fanfare.NotFound, Message: "unknown service " + m.service}
	}
	site := SiteOf(p.registry, m.service)
	data := map[string]string{"title": m.title, "url": m.url, "name": site.Name}
	message := &wire.MessageRequest{Channel: m.channel, To: m.to, Lane: fanfare.Urgent.String(), Expires: m.expires, Reference: "page-" + m.kind}
	if template := svc.Pages.Templates[m.kind]; template != "" {
		message.Template = template
	} else {
		data["subject"] = site.Texts.Say(m.locale, "mail_"+m.kind+"_subject", m.title, site.Name)
		data["text"] = site.Texts.Say(m.locale, "mail_"+m.kind, m.title, site.Name)
		message.Content = &wire.MessageContent{Subject: "{{ event.subject }}", Text: textOfPages, HTML: strings.ReplaceAll(htmlOfPages, "LANG", words.Tag(site.Texts, m.locale))}
	}
	var err error
	if message.Data, err = json.Marshal(data); err != nil {
		return err
	}
	return p.messages.SendAsked(ctx, m.service, message)
}

// The built-in emails have a sentence and a link.
const (
	textOfPages = "{{ event.text }}\n{% if event.url != '' %}\n{{ event.url }}\n{% endif %}\n-- \n{{ event.name }}\n"
	htmlOfPages = `<!DOCTYPE html><html lang="LANG"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{ event.subject }}</title></head>` +
		`<body style="font:16px/1.6 sans-serif;max-width:600px;margin:0 auto;padding:16px"><p>{{ event.text }}</p>{% if event.url != '' %}<p><a href="{{ event.url }}">{{ event.url }}</a></p>{% endif %}<p>{{ event.name }}</p></body></html>`
)
