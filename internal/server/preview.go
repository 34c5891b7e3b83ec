package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// previews writes messages that nobody gets.
type previews struct {
	registry  *registry.Registry
	store     *deliveries.Store
	traces    *report.Traces
	publicURL string
	clock     clock.Clock

	attachments *compose.Attachments
	most        int // bytes that the files of a mail take, as they are sent
}

// A previewed message is one on its way to be written.
type previewed struct {
	previews
	service      string
	in           wire.PreviewRequest
	ref          fanfare.EventRef
	posted       *fanfare.AcceptedEvent // nil: no event was named
	subscription *registry.Subscription // nil: none was named
	topic        *registry.Topic        // nil: no topic has the template
	rule         *registry.Rule         // whose params the template may read, or nil
	recipient    render.Recipient
	data         json.RawMessage
	items        []*render.Item // of a template that tells of several events

	contents []control.FileRecord // of a draft
}

// Preview writes one message.
func (p previews) Preview(ctx context.Context, service, name string, in wire.PreviewRequest) (wire.Preview, error) {
	m := &previewed{previews: p, service: service, in: in}
	source, label, err := m.source(name)
	if err != nil {
		return wire.Preview{}, err
	}
	template, err := render.Compile(source)
	if err == nil {
		err = template.CheckFiles(p.most)
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
	if err := m.fill(template); err != nil {
		return wire.Preview{}, err
	}
	if err := m.address(ctx); err != nil {
		return wire.Preview{}, err
	}
	shown, err := m.write(ctx, template)
	if err != nil {
		return wire.Preview{}, err
	}
	out := wire.Preview{Template: label, To: m.recipient.Address, Subject: shown.Subject, Text: shown.Text, HTML: shown.HTML,
		Raw: string(shown.Letter.Body) + string(shown.Letter.Attachments), Attachments: filesShown(shown.Files), Data: m.data, Sample: m.posted == nil && len(in.Events) == 0 && in.Data == nil}
	out.Data = m.told()
	if m.topic != nil {
		out.Topic = m.topic.Name
	}
	return out, nil
}

// source is the template that came with the request, or the version of the stored one
// that it names.
func (m *previewed) source(name string) (source render.Source, label string, err error) {
	if m.in.Draft && m.in.Version != 0 || m.in.Template != nil && (m.in.Draft || m.in.Version != 0) {
		return source, "", &fanfare.Error{Code: fanfare.Invalid, Pointer: "/draft", Message: "it names several versions", Hint: "give one of template, draft and version"}
	}
	if d := m.in.Template; d != nil {
		parts, err := partsOf(d)
		if err == nil {
			parts, m.contents, err = m.registry.DraftFiles(m.service, name, parts)
		}
		return compose.SourceOfParts(name, parts), name + " (draft)", err
	}
	stored, err := m.registry.Configuration().PickVersion(m.service, name, m.in.Version, m.in.Draft)
	if err != nil {
		return source, "", err
	}
	label = fmt.Sprintf("%s@%d", name, stored.Version)
	if stored.State == registry.VersionDraft {
		label += " (draft)"
	}
	return compose.Source(stored.TemplateSource), label, nil
}

// find looks up what the request names.
func (m *previewed) find(ctx context.Context, template string) error {
	topic := m.in.Topic
	if m.in.Event != "" {
		var err error
		if m.ref, m.posted, err = m.event(ctx, m.in.Event); err != nil {
			return at("/event", err)
		}
		topic = cmp.Or(topic, m.posted.Topic)
	}
	if m.in.Subscription != "" {
		s, err := m.registry.Subscription(ctx, m.service, m.in.Subscription)
		if err != nil {
			return at("/subscription", err)
		}
		m.subscription = &s
		topic = cmp.Or(topic, s.Topic)
	}
	if topic != "" {
		var ok bool
		if m.topic, ok = m.registry.Topic(m.service, topic); !ok {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/topic", Message: fmt.Sprintf("the service has no topic %q", topic)}
		}
	} else {
		m.topic = m.topicOf(template)
	}
	m.rule = m.ruleOf(template)
	return nil
}

// event finds an event, whether it is matched yet or not.
func (m *previewed) event(ctx context.Context, id string) (fanfare.EventRef, *fanfare.AcceptedEvent, error) {
	ref, err := m.traces.FindEvent(ctx, m.service, id)
	if err != nil {
		return ref, nil, err
	}
	posted, _, err := report.Accepted(ctx, m.traces.Queue, m.store, ref)
	return ref, posted, err
}

// topicOf is the first topic that uses a template, or nil.
func (m *previewed) topicOf(template string) *registry.Topic {
	for _, t := range m.registry.Topics(m.service) {
		if t.Template == template || t.Digest.Template == template || slices.ContainsFunc(t.Rules, func(r registry.Rule) bool { return r.Template == template }) {
			return t
		}
	}
	return nil
}

// ruleOf is the rule of the subscription, or the first that has the template.
func (m *previewed) ruleOf(template string) *registry.Rule {
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

// fill checks the template as an apply does, and makes data and a person.
func (m *previewed) fill(template *render.Template) error {
	if err := m.try(template); err != nil {
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

// schema is that of the topic at hand, or nil.
func (m *previewed) schema() json.RawMessage {
	if m.topic == nil {
		return nil
	}
	return m.topic.Schema
}

// try checks the template as an apply does: it is rendered for every kind of recipient
// that can occur.
func (m *previewed) try(t *render.Template) error {
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

// address puts real people in the place of the one that was made up.
func (m *previewed) address(ctx context.Context) error {
	var place fanfare.RowID
	switch {
	case m.subscription != nil:
		place = m.subscription.Owner
	case m.in.Subscriber != "":
		var err error
		if place, err = m.registry.FindSubscriber(ctx, m.service, m.in.Subscriber); err != nil {
			return at("/subscriber", err)
		}
	}
	if place != 0 {
		err := m.registry.Subscribers(ctx, []fanfare.RowID{place}, func(r *registry.SubscriberRow) error {
			m.recipient.ID, m.recipient.Address, m.recipient.Locale, m.recipient.TimeZone = r.ID, r.Address, r.Locale, r.TimeZone
			m.recipient.Attributes = slices.Clone(r.Attributes)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if s := m.subscription; s != nil {
		m.recipient.Subscriptions = []render.Subscription{{Place: s.Place, ID: s.ID, Rule: s.Rule, Params: s.Params, Data: s.Data}}
	} else if place != 0 && m.posted != nil {
		if err := m.asMatched(ctx, place); err != nil {
			return err
		}
	}
	m.recipient.Address = cmp.Or(m.in.To, m.recipient.Address)
	return m.speakTo()
}

// asMatched takes the subscriptions with which the person got the event, where
// they did.
func (m *previewed) asMatched(ctx context.Context, place fanfare.RowID) error {
	manifest, err := m.store.ManifestOf(ctx, m.ref, place.Partition())
	if gone(err) || err == nil && manifest == nil { // nobody gets it, or it is not matched yet
		return nil
	}
	if err != nil {
		return err
	}
	positions := manifest.PositionsOf(place)
	if len(positions) == 0 {
		return nil
	}
	_, member, _ := manifest.At(positions[0]) // of the channel that stands first
	m.recipient.Subscriptions = nil
	err = m.registry.Subscriptions(ctx, member.Subscriptions, func(r *registry.SubscriptionRow) error {
		m.recipient.Subscriptions = append(m.recipient.Subscriptions,
			render.Subscription{Place: r.Place, ID: r.ID, Rule: r.Rule, Params: slices.Clone(r.Params), Data: slices.Clone(r.Data)})
		return nil
	})
	if err != nil || m.topic == nil {
		return err
	}
	ranking := &mailing{topic: m.topic}
	slices.SortStableFunc(m.recipient.Subscriptions, func(a, b render.Subscription) int {
		return ranking.rank(a.Rule) - ranking.rank(b.Rule)
	})
	return nil
}

// sampleReceiver stands for the address of somebody who has none.
const sampleReceiver = "https://receiver.example.org/"

// sampleFrom is the sender where the service has no channel yet.
const sampleFrom = "Preview <preview@example.org>"

// write makes the message. Its link is one that nobody signed: whoever follows it
// unsubscribes no one.
func (m *previewed) write(ctx context.Context, template *render.Template) (render.Preview, error) {
	channel, err := m.channel()
	if err != nil {
		return render.Preview{}, err
	}
	if channel.Driver == "webhook" {
		return m.document(template)
	}
	from, err := mail.ParseAddress(channel.From)
	if err != nil {
		return render.Preview{}, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/channel", Message: "its From is not an address: " + channel.From}
	}
	now := m.clock.Now()
	mailing := render.Mailing{Template: template, From: *from, ReplyTo: channel.ReplyTo, Sender: compose.Sender(channel, from), Domain: compose.MessageIDDomain(channel, from),
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
		mailing.Digest, mailing.Event = m.collect(mailing.Event), nil
	}
	if m.publicURL != "" {
		mailing.Unsubscribe = func(dst []byte, _ *render.Recipient) []byte { return append(dst, m.publicURL+"/u/preview"...) }
		mailing.Preferences = func(dst []byte, _ *render.Recipient) []byte { return append(dst, m.publicURL+"/p/preview"...) }
	}
	mailing.EncodeFiles = m.attachments.Read(m.content(ctx))
	writer, err := mailing.Writer()
	if err != nil {
		return render.Preview{}, err
	}
	return writer.Preview(&m.recipient)
}

// content reads the files of a draft, and those that are kept.
func (m *previewed) content(ctx context.Context) func(*fanfare.File) ([]byte, error) {
	return func(f *fanfare.File) ([]byte, error) {
		for i := range m.contents {
			if m.contents[i].Sum == f.Sum {
				return m.contents[i].Content, nil
			}
		}
		return m.registry.File(ctx, f.Sum)
	}
}

// filesShown are files as people are told of them.
func filesShown(files []fanfare.File) (list []wire.Attachment) {
	for _, f := range files {
		list = append(list, wire.Attachment{Name: f.Name, Type: f.Type, Size: f.Size, CID: f.Image, SHA256: f.Sum.String()})
	}
	return list
}

// document makes what a webhook would post.
func (m *previewed) document(template *render.Template) (render.Preview, error) {
	now := m.clock.Now()
	event := fanfare.Event{ID: "preview", Source: "/preview", Time: now}
	m.recipient.Delivery = fanfare.DeliveryRef{Day: fanfare.DayOf(now)}
	posting := render.Posting{Template: template, Event: &event, EventRef: m.ref, Service: m.service}
	if m.topic != nil {
		posting.Topic, event.Type = m.topic.Name, m.topic.Name
	}
	if m.posted != nil {
		event = m.posted.Event
	}
	event.Data = m.data
	if template.Digest() {
		posting.Digest, posting.Event = m.collect(&event), nil
	}
	if _, err := address.ParseURL(m.recipient.Address); err != nil { // it was made up, or is a mail address
		m.recipient.Address = sampleReceiver
	}
	writer, err := posting.Writer()
	if err != nil {
		return render.Preview{}, err
	}
	letter, _, err := writer.Write(nil, &m.recipient)
	return render.Preview{Letter: letter}, err
}

// channel is the one that is named, that of the subscription, or the first.
func (m *previewed) channel() (*registry.Channel, error) {
	name := m.in.Channel
	if name == "" && m.subscription != nil {
		name = m.subscription.Channel
	}
	if name != "" {
		if c, ok := m.registry.ChannelNamed(m.service, name); ok {
			return c, nil
		}
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/channel", Message: fmt.Sprintf("the service has no channel %q", name)}
	}
	for _, c := range m.registry.Channels() {
		if c.Service == m.service && c.From != "" {
			return c, nil
		}
	}
	return &registry.Channel{Service: m.service, ChannelSettings: registry.ChannelSettings{From: sampleFrom}}, nil
}

// at says where in the request the name stands that led to err.
func at(pointer string, err error) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok || e.Code != fanfare.NotFound && e.Code != fanfare.Invalid {
		return err
	}
	wrong := *e
	wrong.Code, wrong.Pointer = fanfare.Invalid, pointer
	return &wrong
}
