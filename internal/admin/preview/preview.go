package preview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// A Previewer writes messages that are not sent.
type Previewer struct {
	Registry  *registry.Registry
	Store     *deliveries.Store
	Traces    *report.Traces
	PublicURL string
	Clock     clock.Clock

	Attachments *compose.Attachments
	MaxBytes    int // limit of the files of an email, in their encoded size
}

// A request is a message that is being written.
type request struct {
	Previewer
	service      string
	in           wire.PreviewRequest
	ref          fanfare.EventRef
	posted       *fanfare.AcceptedEvent // nil: the request names none
	subscription *people.Subscription   // nil: the request names none
	topic        *catalog.Topic         // nil: no topic uses the template
	rule         *catalog.Rule          // its params are available to the template; or nil
	recipient    render.Recipient
	data         json.RawMessage
	items        []*render.Item // of a digest

	contents []control.FileRecord // files of a draft
}

// Preview writes one message.
func (p Previewer) Preview(ctx context.Context, service, name string, in wire.PreviewRequest) (wire.Preview, error) {
	m := &request{Previewer: p, service: service, in: in}
	source, label, err := m.source(name)
	if err != nil {
		return wire.Preview{}, err
	}
	template, err := render.Compile(source)
	if err == nil {
		err = template.CheckFiles(p.MaxBytes)
	}
	if err != nil {
		return wire.Preview{}, err
	}
	if err := m.find(ctx, name); err != nil {
		return wire.Preview{}, err
	}
	if err := m.findEvents(ctx, template); err != nil {
		return wire.Preview{}, err
	}
	if err := m.sampleData(template); err != nil {
		return wire.Preview{}, err
	}
	if err := m.setRecipient(ctx); err != nil {
		return wire.Preview{}, err
	}
	shown, err := m.write(ctx, template)
	if err != nil {
		return wire.Preview{}, err
	}
	out := wire.Preview{Template: label, To: m.recipient.Address, Subject: shown.Subject, Text: shown.Text, HTML: shown.HTML,
		Raw: string(shown.Message.Body) + string(shown.Message.Attachments), Attachments: wire.AttachmentsOf(shown.Files), Data: m.data, Sample: m.posted == nil && len(in.Events) == 0 && in.Data == nil}
	out.Data = m.shownData()
	if m.topic != nil {
		out.Topic = m.topic.Name
	}
	return out, nil
}

// source returns the template in the request, or the stored version that it specifies.
func (m *request) source(name string) (source render.Source, label string, err error) {
	if m.in.Draft && m.in.Version != 0 || m.in.Template != nil && (m.in.Draft || m.in.Version != 0) {
		return source, "", &fanfare.Error{Code: fanfare.Invalid, Pointer: "/draft", Message: "the request must contain only one of template, draft or version", Hint: "omit the others"}
	}
	if d := m.in.Template; d != nil {
		parts, err := partsOf(d)
		if err == nil {
			parts, m.contents, err = m.Registry.DraftFiles(m.service, name, parts)
		}
		return compose.SourceOfParts(name, parts), name + " (draft)", err
	}
	stored, err := m.Registry.Configuration().PickVersion(m.service, name, m.in.Version, m.in.Draft)
	if err != nil {
		return source, "", err
	}
	label = fmt.Sprintf("%s@%d", name, stored.Version)
	if stored.State == catalog.VersionDraft {
		label += " (draft)"
	}
	return compose.Source(stored.TemplateSource), label, nil
}

// find looks up the event, subscription and topic of the request.
func (m *request) find(ctx context.Context, template string) error {
	topic := m.in.Topic
	if m.in.Event != "" {
		var err error
		if m.ref, m.posted, err = m.event(ctx, m.in.Event); err != nil {
			return atPointer("/event", err)
		}
		topic = cmp.Or(topic, m.posted.Topic)
	}
	if m.in.Subscription != "" {
		s, err := m.Registry.Subscription(ctx, m.service, m.in.Subscription)
		if err != nil {
			return atPointer("/subscription", err)
		}
		m.subscription = &s
		topic = cmp.Or(topic, s.Topic)
	}
	if topic != "" {
		var ok bool
		if m.topic, ok = m.Registry.Topic(m.service, topic); !ok {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/topic", Message: fmt.Sprintf("the service has no topic %q", topic)}
		}
	} else {
		m.topic = m.topicOf(template)
	}
	m.rule = m.ruleOf(template)
	return nil
}

// event finds an event that may not be matched yet.
func (m *request) event(ctx context.Context, id string) (fanfare.EventRef, *fanfare.AcceptedEvent, error) {
	ref, err := m.Traces.FindEvent(ctx, m.service, id)
	if err != nil {
		return ref, nil, err
	}
	posted, _, err := report.Accepted(ctx, m.Traces.Queue, m.Store, ref)
	return ref, posted, err
}

// topicOf returns the first topic that uses a template, or nil.
func (m *request) topicOf(template string) *catalog.Topic {
	for _, t := range m.Registry.Topics(m.service) {
		if t.Template == template || t.Digest.Template == template || slices.ContainsFunc(t.Rules, func(r catalog.Rule) bool { return r.Template == template }) {
			return t
		}
	}
	return nil
}

// ruleOf returns the rule of the subscription, or the first rule that uses the template.
func (m *request) ruleOf(template string) *catalog.Rule {
	if m.topic == nil {
		return nil
	}
	for i := range m.topic.Rules {
		r := &m.topic.Rules[i]
		if m.subscription != nil && m.subscription.Rule == r.Name || m.subscription == nil && r.Template == template {
			return r
		}
	}
	return nil
}

// sampleData checks the template as an apply does, and creates sample data and a sample recipient.
func (m *request) sampleData(template *render.Template) error {
	if err := m.check(template); err != nil {
		return err
	}
	var err error
	m.data, m.recipient, err = template.Sample(m.schema())
	if err != nil {
		return err
	}
	if m.rule != nil {
		m.recipient.Subscriptions[0].Rule = m.rule.Name
	}
	switch {
	case m.in.Data != nil:
		m.data = m.in.Data
	case m.posted != nil:
		m.data = m.posted.Event.Data
	}
	return nil
}

// schema returns the schema of the topic, or nil.
func (m *request) schema() json.RawMessage {
	if m.topic == nil {
		return nil
	}
	return m.topic.Schema
}

// check checks the template as an apply does: it renders it for every possible kind of recipient.
func (m *request) check(t *render.Template) error {
	if t.Digest() {
		schemas := m.schemas(t.Name)
		if err := t.CheckDigest(schemas); err != nil {
			return err
		}
		return t.DryRunDigest(schemas)
	}
	var params []string
	if m.rule != nil {
		params = slices.Sorted(maps.Keys(m.rule.Params))
	}
	if err := t.Check(m.schema(), params); err != nil {
		return err
	}
	_, _, _, err := t.DryRun(m.schema())
	return err
}

// setRecipient replaces the sample recipient with the one in the request.
func (m *request) setRecipient(ctx context.Context) error {
	var place fanfare.RowID
	switch {
	case m.subscription != nil:
		place = m.subscription.Owner
	case m.in.Subscriber != "":
		var err error
		if place, err = m.Registry.FindSubscriber(ctx, m.service, m.in.Subscriber); err != nil {
			return atPointer("/subscriber", err)
		}
	}
	if place != 0 {
		err := m.Registry.Subscribers(ctx, []fanfare.RowID{place}, func(r *people.SubscriberRow) error {
			m.recipient.ID, m.recipient.Address, m.recipient.Locale, m.recipient.TimeZone = r.ID, r.Address, r.Locale, r.TimeZone
			m.recipient.Attributes = slices.Clone(r.Attributes)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if s := m.subscription; s != nil {
		m.recipient.Subscriptions = []render.Subscription{{Row: s.Place, ID: s.ID, Rule: s.Rule, Params: s.Params, Data: s.Data}}
	} else if place != 0 && m.posted != nil {
		if err := m.asMatched(ctx, place); err != nil {
			return err
		}
	}
	m.recipient.Address = cmp.Or(m.in.To, m.recipient.Address)
	return m.applyLanguage()
}

// asMatched sets the subscriptions that matched the event, if the subscriber got it.
func (m *request) asMatched(ctx context.Context, place fanfare.RowID) error {
	manifest, err := m.Store.ManifestOf(ctx, m.ref, place.Partition())
	if fanfare.CodeOf(err) == fanfare.NotFound || err == nil && manifest == nil { // no recipients, or not matched yet
		return nil
	}
	if err != nil {
		return err
	}
	positions := manifest.PositionsOf(place)
	if len(positions) == 0 {
		return nil
	}
	_, member, _ := manifest.At(positions[0]) // of the first channel
	m.recipient.Subscriptions = nil
	err = m.Registry.Subscriptions(ctx, member.Subscriptions, func(r *people.SubscriptionRow) error {
		m.recipient.Subscriptions = append(m.recipient.Subscriptions,
			render.Subscription{Row: r.Place, ID: r.ID, Rule: r.Rule, Params: slices.Clone(r.Params), Data: slices.Clone(r.Data), Title: r.Title, Description: r.Description})
		return nil
	})
	if err != nil || m.topic == nil {
		return err
	}
	slices.SortStableFunc(m.recipient.Subscriptions, func(a, b render.Subscription) int {
		return compose.RuleRank(m.topic, a.Rule) - compose.RuleRank(m.topic, b.Rule)
	})
	return nil
}

// sampleReceiver is the address of a recipient without a URL.
const sampleReceiver = "https://receiver.example.org/"

// samplePhone is the number of a recipient without one; it is reserved for fiction.
const samplePhone = "+447700900123"

// sampleFrom is the sender if the service has no channel yet.
const sampleFrom = "Preview <preview@example.org>"

// write writes the message. Its links are not signed, so that they have no effect.
func (m *request) write(ctx context.Context, template *render.Template) (render.Preview, error) {
	channel, err := m.channel(template.IsSMS())
	if err != nil {
		return render.Preview{}, err
	}
	if channel.SendsDocuments() {
		return m.webhookDocument(template, channel)
	}
	from, err := mail.ParseAddress(channel.From)
	if err != nil {
		return render.Preview{}, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/channel", Message: "the from address of the channel is not valid: " + channel.From}
	}
	now := m.Clock.Now()
	mailing := render.MailBatch{Template: template, From: *from, ReplyTo: channel.ReplyTo, Sender: compose.Sender(channel, from), Domain: compose.MessageIDDomain(channel, from),
		Event: &fanfare.Event{ID: "preview", Source: "/preview", Time: now}, EventRef: m.ref, Service: m.service, ListID: channel.ListID}
	m.recipient.Date = now
	m.recipient.Delivery = fanfare.DeliveryRef{Day: fanfare.DayOf(now)}
	if m.topic != nil {
		mailing.Topic, mailing.Event.Type = m.topic.Name, m.topic.Name
	}
	if m.posted != nil {
		event := m.posted.Event
		mailing.Event, m.recipient.Date = &event, m.posted.ReceivedAt
	}
	mailing.Event.Data = m.data
	if template.Digest() {
		mailing.Digest, mailing.Event = m.digest(mailing.Event), nil
	}
	if m.PublicURL != "" {
		mailing.UnsubscribeURL = func(dst []byte, _ *render.Recipient) []byte { return append(dst, m.PublicURL+"/u/preview"...) }
		mailing.PreferencesURL = func(dst []byte, _ *render.Recipient) []byte { return append(dst, m.PublicURL+"/p/preview"...) }
	}
	mailing.EncodeFiles = m.Attachments.Read(m.content(ctx))
	writer, err := mailing.Writer()
	if err != nil {
		return render.Preview{}, err
	}
	return writer.Preview(&m.recipient)
}

// content reads the files of a draft and stored files.
func (m *request) content(ctx context.Context) func(*fanfare.File) ([]byte, error) {
	return func(f *fanfare.File) ([]byte, error) {
		for i := range m.contents {
			if m.contents[i].Sum == f.Sum {
				return m.contents[i].Content, nil
			}
		}
		return m.Registry.File(ctx, f.Sum)
	}
}

// webhookDocument writes the document that a webhook would post.
func (m *request) webhookDocument(template *render.Template, channel *catalog.Channel) (render.Preview, error) {
	now := m.Clock.Now()
	event := fanfare.Event{ID: "preview", Source: "/preview", Time: now}
	m.recipient.Delivery = fanfare.DeliveryRef{Day: fanfare.DayOf(now)}
	posting := render.WebhookBatch{Template: template, Event: &event, EventRef: m.ref, Service: m.service, Texts: channel.SendsTexts()}
	if m.topic != nil {
		posting.Topic, event.Type = m.topic.Name, m.topic.Name
	}
	if m.posted != nil {
		event = m.posted.Event
	}
	event.Data = m.data
	if template.Digest() {
		posting.Digest, posting.Event = m.digest(&event), nil
	}
	parse, sample := address.ParseURL, sampleReceiver
	if channel.SendsTexts() {
		parse, sample = address.ParsePhone, samplePhone
	}
	if _, err := parse(m.recipient.Address); err != nil { // a sample, or an email address
		m.recipient.Address = sample
	}
	writer, err := posting.Writer()
	if err != nil {
		return render.Preview{}, err
	}
	message, _, err := writer.Write(nil, &m.recipient)
	return render.Preview{Message: message}, err
}

// channel returns the channel of the request or of the subscription, or the first one that sends mail or text messages.
func (m *request) channel(sms bool) (*catalog.Channel, error) {
	name := m.in.Channel
	if name == "" && m.subscription != nil {
		name = m.subscription.Channel
	}
	if name != "" {
		if c, ok := m.Registry.ChannelNamed(m.service, name); ok {
			return c, nil
		}
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/channel", Message: fmt.Sprintf("the service has no channel %q", name)}
	}
	for _, c := range m.Registry.Channels() {
		if c.Service == m.service && (c.From != "" || sms) && c.SendsTexts() == sms {
			return c, nil
		}
	}
	if sms {
		return &catalog.Channel{Service: m.service, ChannelSettings: catalog.ChannelSettings{Driver: catalog.DriverSimulate, Addresses: "phone"}}, nil
	}
	return &catalog.Channel{Service: m.service, ChannelSettings: catalog.ChannelSettings{From: sampleFrom}}, nil
}

// atPointer adds the pointer of the name in the request to a lookup error.
func atPointer(pointer string, err error) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok || e.Code != fanfare.NotFound && e.Code != fanfare.Invalid {
		return err
	}
	wrong := *e
	wrong.Code, wrong.Pointer = fanfare.Invalid, pointer
	return &wrong
}

// partsOf returns the parts of the template in a request.
func partsOf(sent *wire.TemplateDraft) (parts catalog.TemplateParts, err error) {
	text, err := json.Marshal(sent.TemplateParts)
	if err == nil {
		err = json.Unmarshal(text, &parts)
	}
	if err == nil && !slices.Contains([]string{"", catalog.TemplateEmail, catalog.TemplateSMS}, parts.Type) {
		err = &fanfare.Error{Code: fanfare.Invalid, Pointer: "/template/type", Message: fmt.Sprintf("unknown type %q", parts.Type), Hint: "use email or sms"}
	}
	return parts, err
}

// applyLanguage applies the language, time zone and device of the request.
func (m *request) applyLanguage() error {
	if _, err := time.LoadLocation(m.in.TimeZone); err != nil {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/time_zone", Message: fmt.Sprintf("unknown time zone %q", m.in.TimeZone), Hint: "use a name from the IANA time zone database, such as Europe/London"}
	}
	m.recipient.Locale = cmp.Or(m.in.Locale, m.recipient.Locale)
	m.recipient.TimeZone = cmp.Or(m.in.TimeZone, m.recipient.TimeZone)
	if m.in.Device == "" {
		return nil
	}
	var err error
	m.recipient.Data, err = json.Marshal(map[string]string{"device": m.in.Device}) // data of the recipient take precedence
	return err
}
