package notifybc

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/compat/notifybc/settings"
	"fanfare.dev/fanfare/internal/compat/notifybc/tokens"
	"fanfare.dev/fanfare/internal/jmespath"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/store/control"
)

// The states of a notification.
const (
	stateNew     = "new"
	stateSending = "sending"
	stateSent    = "sent"
	stateError   = "error"
	stateRead    = "read"
)

// The kinds of records.
const (
	kindNotification = "notification"
	kindPending      = "pending" // a notification that is not finished has a second record, with the same id
)

// A notification is a notification of NotifyBC.
type notification struct {
	id string

	// As it is stored.
	Members    Members  `json:"members"`              // as clients see them, without id and dispatch
	Host       string   `json:"host,omitempty"`       // start of links
	Event      string   `json:"event,omitempty"`      // public id of the event; "": not posted
	Candidates []string `json:"candidates,omitempty"` // ids of the subscriptions to which a broadcast went, as far as they fit
	Round      int      `json:"round,omitempty"`      // number of times that a client asked to dispatch it again
}

// A message has the parts of a notification that are sent.
type message struct {
	From     json.RawMessage `json:"from"`
	Subject  string          `json:"subject"`
	TextBody string          `json:"textBody"`
	HTMLBody string          `json:"htmlBody"`
}

func (a *API) notificationRoutes() []Route {
	return []Route{
		{http.MethodPost, "/notifications", Admins, a.createNotification},
		{http.MethodGet, "/notifications", SignedIn, a.listNotifications},
		{http.MethodGet, "/notifications/count", SignedIn, a.countNotifications},
		{http.MethodGet, "/notifications/{id}", SignedIn, a.getNotification},
		{http.MethodGet, "/notifications/{id}/dispatch", Admins, a.listDispatch},
		{http.MethodPatch, "/notifications/{id}", SignedIn, a.patchNotification},
		{http.MethodPut, "/notifications/{id}", Admins, a.replaceNotification},
		{http.MethodDelete, "/notifications/{id}", SignedIn, a.deleteNotification},
	}
}

// createNotification stores a notification and sends it.
func (a *API) createNotification(x *Exchange) error {
	body, err := x.Body()
	if err != nil {
		return err
	}
	n := &notification{id: newID(a.Clock.Now()), Members: body}
	for _, name := range append([]string{"id", "state", "dispatch", "readBy", "deletedBy"}, fixedMembers...) {
		delete(body, name)
	}
	x.stamp(body, "created", "createdBy")
	body["updated"], body["updatedBy"] = body["created"], body["createdBy"]
	body.set("state", stateNew)
	if err := n.check(); err != nil {
		return err
	}
	body.set("channel", n.channel())
	body.set("isBroadcast", n.isBroadcast())
	return a.accept(x, n)
}

// accept stores a notification and sends it, unless it is not due yet.
func (a *API) accept(x *Exchange, n *notification) error {
	ctx := x.Request.Context()
	if n.Host = strings.TrimRight(n.text("httpHost"), "/"); n.Host == "" {
		n.Host = x.httpHost()
	}
	if n.channel() == channelInApp {
		if err := a.keep(ctx, n); err != nil {
			return err
		}
		a.putIntoMailbox(ctx, n)
		return x.JSON(n.record())
	}
	var to *subscription
	if !n.isBroadcast() {
		var err error
		if to, err = a.recipient(ctx, n); err != nil {
			return err
		}
	}
	if err := a.checkContent(n); err != nil {
		return err
	}
	if err := a.keepPending(ctx, n); err != nil {
		return err
	}
	if n.dueAt().After(a.Clock.Now()) {
		a.work.add(n.id, n.dueAt())
		return x.JSON(n.record())
	}
	if !n.isBroadcast() {
		if err := a.sendUnicast(ctx, n, to); err != nil {
			return err
		}
		return x.JSON(n.record())
	}
	if n.async() {
		created := n.record()
		a.work.start(func(ctx context.Context) { a.finish(ctx, n) })
		return x.JSON(created)
	}
	return a.answerWhenSent(x, n)
}

// check refuses members with values of the wrong type.
func (n *notification) check() error {
	m := n.Members
	for _, name := range []string{"serviceName", "channel", "userChannelId", "userId", "state", "httpHost", "broadcastPushNotificationSubscriptionFilter", "invalidBefore", "validTill"} {
		if _, err := m.text(name); err != nil {
			return err
		}
	}
	for _, name := range []string{"isBroadcast", "skipSubscriptionConfirmationCheck"} {
		if _, err := m.flag(name); err != nil {
			return err
		}
	}
	if n.text("serviceName") == "" {
		return Bad("serviceName is required")
	}
	if _, ok := m["data"]; ok && !m.isObject("data") {
		return Bad("data must be an object")
	}
	if !m.isObject("message") && (m["message"] != nil || n.channel() != channelInApp) {
		return Bad("message must be an object")
	}
	if host := n.text("httpHost"); host != "" {
		if problem := settings.CheckHost(strings.TrimRight(host, "/")); problem != "" {
			return Bad("httpHost: " + problem)
		}
	}
	for _, name := range []string{"invalidBefore", "validTill"} {
		if text := n.text(name); text != "" {
			if _, ok := parseTime(text); !ok {
				return Bad(name + " " + quote(text) + " is not a date: write it as in ISO 8601")
			}
		}
	}
	if n.channel() == channelInApp {
		return nil
	}
	if n.channel() != channelEmail && n.channel() != channelSMS {
		return Bad("channel " + quote(n.channel()) + " is not one of inApp, email and sms")
	}
	if _, err := jmespath.CompileFilter(n.text("broadcastPushNotificationSubscriptionFilter")); n.isBroadcast() && err != nil {
		return Bad("broadcastPushNotificationSubscriptionFilter")
	}
	if raw, ok := m["asyncBroadcastPushNotification"]; ok {
		var target string
		if _, err := m.flag("asyncBroadcastPushNotification"); err != nil && json.Unmarshal(raw, &target) != nil {
			return Bad("asyncBroadcastPushNotification must be true, false or a URL")
		}
		if target != "" {
			if u, err := url.Parse(target); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return Bad("asyncBroadcastPushNotification must be true, false or a URL")
			}
		}
	}
	return nil
}

// parseTime reads a date of ISO 8601.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// text returns a text, whose type check has verified.
func (n *notification) text(name string) string {
	text, _ := n.Members.text(name)
	return text
}

func (n *notification) channel() string { return cmp.Or(n.text("channel"), channelInApp) }

func (n *notification) isBroadcast() bool {
	yes, _ := n.Members.flag("isBroadcast")
	return yes
}

// async reports whether the answer does not wait for the broadcast.
func (n *notification) async() bool {
	raw := string(n.Members["asyncBroadcastPushNotification"])
	return raw != "" && raw != "false" && raw != `""`
}

// callback returns the URL to which the finished notification is posted, or "".
func (n *notification) callback() string {
	target, _ := n.Members.text("asyncBroadcastPushNotification")
	return target
}

// dueAt returns when the notification is dispatched; the zero time is at once.
func (n *notification) dueAt() time.Time {
	at, _ := parseTime(n.text("invalidBefore"))
	return at
}

// record returns the notification as clients see it, without dispatch.
func (n *notification) record() Members {
	r := Members{}
	for name, value := range n.Members {
		r[name] = value
	}
	r.set("id", n.id)
	return r
}

// message returns the message of the notification.
func (n *notification) message() (m message, err error) {
	if err := json.Unmarshal(n.Members["message"], &m); err != nil {
		return m, Bad("message: from, subject, textBody and htmlBody must be strings")
	}
	return m, nil
}

// sender returns a sender, which may be an object with name and address.
func sender(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var text string
	var parts struct{ Name, Address string }
	switch {
	case json.Unmarshal(raw, &text) == nil:
	case json.Unmarshal(raw, &parts) == nil && parts.Address != "":
		text = (&mail.Address{Name: parts.Name, Address: parts.Address}).String()
	default:
		return "", Bad("message.from is not an address")
	}
	if text == "" {
		return "", nil
	}
	if _, err := mail.ParseAddress(text); err != nil {
		return "", Bad("message.from " + quote(text) + " is not an address")
	}
	return text, nil
}

// content returns the content of the messages. Tokens of subscriptions become outputs of Liquid; for one subscription, or
// none, they get its values.
func (a *API) content(n *notification, to *subscription) (*fanfare.EventContent, error) {
	m, err := n.message()
	if err != nil {
		return nil, err
	}
	from, err := sender(m.From)
	if err != nil {
		return nil, err
	}
	v := &tokens.Values{Static: a.staticTokens(n.text("serviceName"), n.Host), Root: n.Host + a.Settings.Root, Notification: n.Members.decoded("data")}
	if object, ok := v.Notification.(map[string]any); ok && len(object) == 0 {
		v.Notification = nil
	}
	write := func(text string) string { return tokens.Liquid(text, v) }
	c := &fanfare.EventContent{AsIs: true, From: cmp.Or(from, a.Settings.Email.DefaultFrom)}
	if n.isBroadcast() {
		c.Leaving = &fanfare.SubscriptionLink{Before: v.Root + "/subscriptions/", After: "/unsubscribe", Query: "?unsubscriptionCode=", Code: "unsubscriptionCode"}
	} else {
		if to != nil {
			v.Subscription = &tokens.Subscription{ID: to.id, Code: to.code(), Data: to.members.decoded("data")}
			c.Leaving = &fanfare.SubscriptionLink{Before: tokens.Text("{unsubscription_url}", v)}
		}
		write = func(text string) string { return tokens.Escape(tokens.Text(text, v)) }
	}
	c.Text = write(m.TextBody)
	if n.channel() == channelEmail {
		c.Subject, c.HTML = write(m.Subject), write(m.HTMLBody)
	}
	if c.Text == "" && c.HTML == "" {
		return nil, Bad("message has neither textBody nor htmlBody")
	}
	return c, nil
}

// checkContent refuses content that cannot be sent.
func (a *API) checkContent(n *notification) error {
	if a.ourChannel(n.channel()) == "" {
		return Bad("channel " + quote(n.channel()) + " is not available")
	}
	c, err := a.content(n, nil)
	if err == nil {
		_, err = render.Compile(render.Source{Name: "message", Subject: c.Subject, Text: c.Text, HTML: c.HTML, AsIs: true})
	}
	return err
}

// recipient returns the confirmed subscription that a unicast needs, or nil if it needs none.
func (a *API) recipient(ctx context.Context, n *notification) (to *subscription, err error) {
	invalidUser := &Failure{Status: http.StatusForbidden, Message: "invalid user"}
	address, user := n.text("userChannelId"), n.text("userId")
	skip, _ := n.Members.flag("skipSubscriptionConfirmationCheck")
	if address == "" && (skip || user == "") {
		return nil, invalidUser
	}
	f := people.SubscriptionFilter{Topic: topicName(n.text("serviceName")), Channel: a.ourChannel(n.channel()), Subscriber: address, State: people.StateActive}
	if _, ok := a.Topics.Topic(a.Settings.Service, f.Topic); ok && f.Channel != "" {
		err = a.each(ctx, f, func(s *subscription) bool {
			if user == "" || s.userID() == user {
				to = s
			}
			return to == nil
		})
	}
	switch {
	case err != nil:
		return nil, err
	case to == nil && !skip:
		return nil, invalidUser
	case to != nil && !skip:
		n.Members.set("userChannelId", to.address)
	}
	return to, nil
}

// load returns the notification with an id.
func (a *API) load(ctx context.Context, id string) (*notification, error) {
	if id == "" || len(id) > maxServiceNameBytes || strings.IndexByte(id, 0) >= 0 {
		return nil, errMissing
	}
	r, err := a.Records.NotifyBCRecord(ctx, control.NotifyBCKey{Service: a.Settings.Service, Kind: kindNotification, ID: id})
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, errMissing
	}
	return decodeNotification(r)
}

func decodeNotification(r *control.NotifyBCRecord) (*notification, error) {
	n := &notification{id: r.ID}
	err := json.Unmarshal([]byte(r.Body), n)
	if n.Members == nil {
		n.Members = Members{}
	}
	return n, err
}

// storedRecord returns the record of a notification.
func (a *API) storedRecord(n *notification) (r control.NotifyBCRecord, err error) {
	body, err := json.Marshal(n)
	millis := func(name string) int64 {
		at, _ := parseTime(n.text(name))
		return at.UnixMilli()
	}
	return control.NotifyBCRecord{NotifyBCKey: control.NotifyBCKey{Service: a.Settings.Service, Kind: kindNotification, ID: n.id}, Created: millis("created"), Updated: millis("updated"), Body: string(body)}, err
}

func (a *API) pendingKey(id string) control.NotifyBCKey {
	return control.NotifyBCKey{Service: a.Settings.Service, Kind: kindPending, ID: id}
}

// keep stores a notification.
func (a *API) keep(ctx context.Context, n *notification, finished ...control.NotifyBCKey) error {
	r, err := a.storedRecord(n)
	if err != nil {
		return err
	}
	return a.Records.ChangeNotifyBCRecords(ctx, []control.NotifyBCRecord{r}, finished...)
}

// keepPending stores a notification that is not finished.
func (a *API) keepPending(ctx context.Context, n *notification) error {
	r, err := a.storedRecord(n)
	if err != nil {
		return err
	}
	pending := control.NotifyBCRecord{NotifyBCKey: a.pendingKey(n.id), Created: r.Created, Updated: max(n.dueAt().UnixMilli(), 0)}
	return a.Records.ChangeNotifyBCRecords(ctx, []control.NotifyBCRecord{r, pending})
}

// isOf reports whether a user may see a notification at all.
func (n *notification) isOf(c *roles.Caller) bool {
	return n.channel() == channelInApp && (n.isBroadcast() || n.text("userId") == c.SecurityID && c.SecurityID != "" || n.text("userChannelId") == c.SecurityID && c.SecurityID != "")
}
