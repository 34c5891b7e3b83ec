package notifybc

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/compat/notifybc/settings"
	"fanfare.dev/fanfare/internal/compat/notifybc/tokens"
	"fanfare.dev/fanfare/internal/pipeline/ingest/messages"
)

// staticTokens returns the tokens that are the same for all recipients.
func (a *API) staticTokens(serviceName, host string) map[string]string {
	return map[string]string{"service_name": serviceName, "servicename": serviceName, "http_host": host, "rest_api_root": a.Settings.Root, "restapiroot": a.Settings.Root}
}

// sendTo sends a message about a subscription to its own address. services are the names of the services that the
// subscription and those that ended with it belong to.
func (a *API) sendTo(ctx context.Context, s *subscription, m *settings.Message, host string, services []string) error {
	v := &tokens.Values{Static: a.staticTokens(s.serviceName, host), Root: host + a.Settings.Root, Subscription: &tokens.Subscription{ID: s.id, Code: s.code()}}
	code, _ := s.confirmation().text("confirmationCode")
	link := v.Root + "/subscriptions/" + s.id + "/verify?confirmationCode=" + url.QueryEscape(code)
	v.Static["subscription_confirmation_url"] = link
	for _, name := range []string{"subscription_confirmation_code", "confirmation_code"} {
		v.Static[name] = code
	}
	v.Static["unsubscription_service_names"] = serviceNames(services)
	write := func(text string) string { return tokens.Escape(tokens.Text(text, v)) }
	content := fanfare.EventContent{AsIs: true, From: cmp.Or(m.From, a.Settings.Email.DefaultFrom)}
	content.Text = write(m.TextBody)
	if s.channel == channelEmail {
		content.Subject, content.HTML = write(m.Subject), write(m.HTMLBody)
	}
	_, err := a.Messages.SendContent(ctx, a.Settings.Service, &messages.ContentMessage{Channel: a.ourChannel(s.channel), To: s.address, Content: content, Asked: true})
	return err
}

// serviceNames writes names as the end of a sentence: "service a", "services a, b and c".
func serviceNames(names []string) string {
	if len(names) == 1 {
		return "service " + names[0]
	}
	last := len(names) - 1
	if last < 0 {
		return "service"
	}
	return "services " + strings.Join(names[:last], ", ") + " and " + names[last]
}
