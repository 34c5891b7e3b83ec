package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/render/notifytext"
)

// Limits of a message.
const (
	maxSMS  = 918       // characters, without the prefix
	maxMail = 2_000_000 // bytes of the body
)

// A sending is a request to send a message, after its checks.
type sending struct {
	sms        bool
	recipient  string // as it was sent
	normal     string // normal form of the recipient
	template   *catalog.TemplateSource
	values     map[string]any // personalisation
	reference  string
	senderID   string
	oneClick   string
	sanitise   []string
	sanitised  map[string]any // of the answer
	channel    *catalog.Channel
	replyTo    string
	sender     string // of a text message
	subject    string // as it is sent
	body       string
	templateID string
}

// kind returns the type of the message.
func (s *sending) kind() string { return typeName(s.sms) }

func typeName(sms bool) string {
	if sms {
		return catalog.TemplateSMS
	}
	return catalog.TemplateEmail
}

func (a *API) postEmail(r *http.Request, c *caller) (int, any, error) { return a.post(r, c, false) }

func (a *API) postSMS(r *http.Request, c *caller) (int, any, error) { return a.post(r, c, true) }

// post accepts a message. The order of the checks is that of GOV.UK Notify.
func (a *API) post(r *http.Request, c *caller, sms bool) (int, any, error) {
	ctx := r.Context()
	if err := a.checkRate(c); err != nil {
		return 0, nil, err
	}
	release, err := a.reserveDay(ctx, c, sms)
	if err != nil {
		return 0, nil, err
	}
	sent := false
	defer func() {
		if !sent {
			release()
		}
	}()
	s, err := a.readSending(r, sms)
	if err != nil {
		return 0, nil, err
	}
	if err := a.check(ctx, c, s); err != nil {
		return 0, nil, err
	}
	id := uuid.NewString() // of a message that is not kept
	if !simulated(s) {
		ref, err := a.send(ctx, c, s)
		if err != nil {
			return 0, nil, err
		}
		id, sent = a.ids.Of(c.service.Name, ref), true
		a.latest.Store(c.service.Name, ref)
	}
	return http.StatusCreated, a.accepted(c, s, id), nil
}

// readSending reads a request and checks its schema.
func (a *API) readSending(r *http.Request, sms bool) (*sending, error) {
	text, err := a.readBody(r)
	if err != nil {
		return nil, err
	}
	b, err := parseBody(text)
	if err != nil {
		return nil, err
	}
	s := &sending{sms: sms, sanitised: map[string]any{}}
	sender := "email_reply_to_id"
	if sms {
		sender = "sms_sender_id"
		s.recipient = b.phone()
		b.only("phone_number", "template_id", "personalisation", "reference", "scheduled_for", "sms_sender_id", "sanitise_content_for")
	} else {
		s.recipient = b.email()
		b.only("email_address", "template_id", "personalisation", "reference", "scheduled_for", "email_reply_to_id", "one_click_unsubscribe_url", "sanitise_content_for")
	}
	if b.required("template_id") {
		s.templateID = b.uuid("template_id")
	}
	s.values, s.reference, s.senderID, s.sanitise = b.object("personalisation"), b.reference(), b.uuid(sender), b.names("sanitise_content_for")
	if !sms {
		s.oneClick = b.oneClick()
	}
	if s.values == nil {
		s.values = map[string]any{}
	}
	return s, invalid(b.problems)
}

// oneClick returns the URL for one-click unsubscribe in its normal form, or "".
func (b *body) oneClick() string {
	const name = "one_click_unsubscribe_url"
	value, ok := b.members[name]
	if !ok || value == nil {
		return ""
	}
	text, _ := value.(string)
	normal, err := address.ParseURL(text)
	if u, bad := url.Parse(text); err != nil || bad != nil || u.Scheme != "https" {
		b.problem("%s is not a valid https url", name)
		return ""
	}
	return normal
}

// check checks a request against the service, and composes the content of its answer.
func (a *API) check(ctx context.Context, c *caller, s *sending) error {
	if err := a.chooseChannel(c, s); err != nil {
		return err
	}
	if err := a.chooseTemplate(c, s); err != nil {
		return err
	}
	texts := textsOf(s.template)
	if missing := notifytext.Missing(notifytext.Map(s.values), texts...); len(missing) > 0 {
		return badRequest("Missing personalisation: " + strings.Join(missing, ", "))
	}
	s.sanitiseValues()
	s.compose()
	if strings.TrimSpace(s.body) == "" {
		return badRequest("Your message is empty.")
	}
	if err := a.checkFiles(c, s); err != nil {
		return err
	}
	if err := s.chooseSender(c); err != nil {
		return err
	}
	if err := s.checkRecipient(c); err != nil {
		return err
	}
	if err := a.upload(ctx, c, s); err != nil {
		return err
	}
	return s.checkLength()
}

// chooseChannel selects the channel of the type: the one of the service, or the one that delivers nothing for a test
// key.
func (a *API) chooseChannel(c *caller, s *sending) error {
	name := c.service.Notify.Email
	if s.sms {
		name = c.service.Notify.SMS
	}
	if s.channel = c.service.Channels[name]; name == "" || s.channel == nil {
		return badRequest("Service is not allowed to send " + map[bool]string{false: "emails", true: "text messages"}[s.sms])
	}
	return nil
}

// channelName returns the channel of a message with the key of a request.
func (s *sending) channelName(c *caller) string {
	switch {
	case c.key.Type != state.NotifyTest:
		return s.channel.Name
	case s.sms:
		return catalog.NotifyTestSMS
	}
	return catalog.NotifyTestEmail
}

// chooseTemplate finds the published version of the template.
func (a *API) chooseTemplate(c *caller, s *sending) error {
	t := a.directory().templates[templateKey{c.service.Name, s.templateID}]
	switch {
	case t == nil || !usable(t):
		return badRequest("Template not found")
	case typeOf(t) != s.kind():
		return badRequest(typeOf(t) + " template is not suitable for " + s.kind() + " notification")
	case c.service.Templates[t.Name] == nil:
		return badRequest("Template " + s.templateID + " has been deleted")
	}
	s.template = c.service.Templates[t.Name]
	return nil
}

// sanitiseValues removes the markup from the values that the request names.
func (s *sending) sanitiseValues() {
	for _, name := range s.sanitise {
		for of, value := range s.values {
			text, ok := value.(string)
			if !ok || notifytext.Key(of) != notifytext.Key(name) {
				continue
			}
			if clean := notifytext.Sanitise(text); clean != text {
				s.values[of] = clean
				s.sanitised[of] = map[string]string{"unsanitised": text, "sanitised": clean}
			}
		}
	}
}

// compose inserts the values.
func (s *sending) compose() {
	s.subject, s.body = contentOf(s.template, s.values)
}

// chooseSender selects the reply address or the name of the sender.
func (s *sending) chooseSender(c *caller) error {
	list, name := c.service.Notify.ReplyTo, "email_reply_to_id"
	if s.sms {
		list, name = c.service.Notify.Senders, "sms_sender_id"
	}
	chosen, ok := catalog.ChooseSender(list, s.senderID)
	if !ok {
		return badRequest(fmt.Sprintf("%s %s does not exist in database for service id %s", name, s.senderID, c.service.Notify.ID))
	}
	if s.sms {
		s.sender = chosen.Address
	} else {
		s.replyTo = chosen.Address
	}
	return nil
}

// checkRecipient refuses recipients to whom the key or the service may not send.
func (s *sending) checkRecipient(c *caller) error {
	var err error
	if s.sms {
		s.normal, err = address.ParsePhone(strings.Map(visible, s.recipient))
	} else {
		s.normal, err = address.Parse(strings.TrimSpace(s.recipient))
	}
	if err != nil {
		name := nameInvalidEmail
		if s.sms {
			name = nameInvalidPhone
		}
		return refuse(http.StatusBadRequest, name, err.Error())
	}
	if isSimulatedAddress(s.normal) || c.key.Type == state.NotifyTest || c.service.Notify.InTeam(s.normal) {
		return nil
	}
	switch {
	case c.key.Type == state.NotifyTeam:
		return badRequest("Can’t send to this recipient using a team-only API key")
	case c.service.Notify.Trial:
		return badRequest("Can’t send to this recipient when service is in trial mode")
	}
	return nil
}

// visible removes characters without width from a phone number.
func visible(r rune) rune {
	switch r {
	case '\u200b', '\ufeff':
		return -1
	case '\t', '\r', '\n':
		return ' '
	}
	return r
}

func (s *sending) checkLength() error {
	if s.sms {
		if n := utf8.RuneCountInString(s.body); n > maxSMS {
			return badRequest(fmt.Sprintf("Your message is too long. Text messages cannot be longer than %d characters. Your message is %d characters long.", maxSMS, n))
		}
		return nil
	}
	if n := len(s.body); n > maxMail {
		return badRequest(fmt.Sprintf("Your message is too long. Emails cannot be longer than %d bytes. Your message is %d bytes long.", maxMail, n))
	}
	return nil
}

// isFile reports whether a value of a personalisation is a file.
func isFile(value any) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	_, ok = object["file"]
	return ok
}

// checkFiles refuses files in text messages, and where the service has no contact details.
func (a *API) checkFiles(c *caller, s *sending) error {
	for _, value := range s.values {
		switch {
		case !isFile(value):
		case s.sms:
			return badRequest("Can only send a file by email")
		case c.service.Notify.Contact == "" || a.options.Files == nil:
			return badRequest("Send files by email has not been set up - add contact details for your service")
		}
	}
	return nil
}

// upload stores the files of a mail, and replaces them by links.
func (a *API) upload(ctx context.Context, c *caller, s *sending) error {
	found := false
	for name, value := range s.values {
		if !isFile(value) {
			continue
		}
		link := a.url(FilesPath + "simulated")
		if !simulated(s) {
			var err error
			if link, err = a.options.Files.Upload(ctx, c.service.Name, s.normal, value, a.options.PublicURL); err != nil {
				return err
			}
		}
		s.values[name], found = link, true
	}
	if found {
		s.compose()
	}
	return nil
}

// simulatedAddresses are answered like all others, but nothing is kept.
var simulatedAddresses = []string{
	"simulate-delivered@notifications.service.gov.uk", "simulate-delivered-2@notifications.service.gov.uk", "simulate-delivered-3@notifications.service.gov.uk",
	"+447700900000", "+447700900111", "+447700900222",
}

func isSimulatedAddress(normal string) bool {
	return slices.Contains(simulatedAddresses, strings.ToLower(normal))
}

func simulated(s *sending) bool { return isSimulatedAddress(s.normal) }

// send passes the message on.
func (a *API) send(ctx context.Context, c *caller, s *sending) (fanfare.EventRef, error) {
	data, err := json.Marshal(s.values)
	if err != nil {
		return fanfare.EventRef{}, err
	}
	origin := fanfare.NotifyOrigin{Key: c.key.Type, SMS: s.sms, Sender: s.sender}
	if s.sms {
		origin.Spelling = spellingOf(s.recipient, s.normal)
	}
	if s.sms && c.service.Notify.SMSPrefix {
		origin.Prefix = titleOf(c.service) + ": "
	}
	request := &wire.MessageRequest{
		Channel: s.channelName(c), To: s.normal, Template: fmt.Sprintf("%s@%d", s.template.Name, s.template.Version), Data: data,
		Reference: s.reference, ReplyTo: s.replyTo, Unsubscribe: s.oneClick,
	}
	return a.options.Messages.SendNotify(ctx, c.service.Name, request, origin)
}

// titleOf returns the title of a service, or its name.
func titleOf(s *catalog.ServiceSnapshot) string {
	if s.Title != "" {
		return s.Title
	}
	return s.Name
}

// accepted returns the answer to a request that was accepted.
func (a *API) accepted(c *caller, s *sending, id string) any {
	content := map[string]any{"body": s.body}
	answer := map[string]any{
		"id": id, "reference": orNull(s.reference), "content": content, "uri": a.url("/v2/notifications/" + id),
		"template": map[string]any{"id": s.templateID, "version": s.template.Version, "uri": a.url("/v2/template/" + s.templateID)}, "scheduled_for": nil,
	}
	if s.sms {
		content["from_number"] = s.sender
		if s.sender == "" {
			content["from_number"] = titleOf(c.service)
		}
		return answer
	}
	content["subject"], content["one_click_unsubscribe_url"] = s.subject, orNull(s.oneClick)
	if from, err := mail.ParseAddress(s.channel.From); err == nil {
		content["from_email"] = from.Address
	}
	answer["sanitised_content"] = s.sanitised
	return answer
}

// postLetter refuses letters: no service can send them.
func (a *API) postLetter(r *http.Request, c *caller) (int, any, error) {
	if err := a.checkRate(c); err != nil {
		return 0, nil, err
	}
	text, err := a.readBody(r)
	if err != nil {
		return 0, nil, err
	}
	b, err := parseBody(text)
	if err != nil {
		return 0, nil, err
	}
	if _, precompiled := b.members["content"]; precompiled {
		b.only("content", "reference", "postage")
		b.required("reference")
	} else {
		b.only("template_id", "personalisation", "reference")
		if b.required("template_id") {
			b.uuid("template_id")
		}
		if b.required("personalisation") {
			b.object("personalisation")
		}
	}
	b.reference()
	if err := invalid(b.problems); err != nil {
		return 0, nil, err
	}
	switch {
	case c.key.Type == state.NotifyTeam:
		return 0, nil, refuse(http.StatusForbidden, nameBadRequest, "Cannot send letters with a team api key")
	case c.service.Notify.Trial && c.key.Type != state.NotifyTest:
		return 0, nil, refuse(http.StatusForbidden, nameBadRequest, "Cannot send letters when service is in trial mode")
	}
	return 0, nil, badRequest("Service is not allowed to send letters")
}
