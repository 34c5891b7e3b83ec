package wire

import "encoding/json"

// A PreviewRequest asks what a template would say. Everything may be left out:
// data then fit the topic's schema, and the recipient is made up.
type PreviewRequest struct {
	Template     *TemplateDraft  `json:"template,omitempty" doc:"a template that is not stored, in place of the stored one"`
	Draft        bool            `json:"draft,omitempty" doc:"use the draft of the template, in place of the published version"`
	Version      int             `json:"version,omitempty" minimum:"0" doc:"use this version; 0: the published version"`
	Topic        string          `json:"topic,omitempty" doc:"whose schema and rules count; without it that of the event, of the subscription, or the first that uses the template"`
	Channel      string          `json:"channel,omitempty" doc:"whose From and headers count; without it that of the subscription, or the first of the service"`
	Event        string          `json:"event,omitempty" doc:"take this event: evt-..., or the id that the sender gave"`
	Events       []string        `json:"events,omitempty" maxItems:"100" doc:"of a template of digests: the further events that it tells of, in this order"`
	Data         json.RawMessage `json:"data,omitempty" doc:"the event's data, in place of the event's own"`
	Subscription string          `json:"subscription,omitempty" doc:"write for this subscription: its person, params and data"`
	Subscriber   string          `json:"subscriber,omitempty" doc:"write for this person: an address or an id"`
	To           string          `json:"to,omitempty" doc:"the address to show, in place of the person's own"`
	Locale       string          `json:"locale,omitempty" doc:"language tag to write for, in place of the person's own"`
	TimeZone     string          `json:"time_zone,omitempty" doc:"on whose clock, in place of the person's own"`
	Device       string          `json:"device,omitempty" doc:"device to write for, in place of the person's own"`
}

// A TemplateDraft is a template that is not stored.
type TemplateDraft struct {
	TemplateParts
}

// A Preview is what a template says.
type Preview struct {
	Template string          `json:"template" doc:"name@version, with (draft) behind it where it is one; name (draft) of one that came with the request"`
	Topic    string          `json:"topic,omitempty"`
	To       string          `json:"to" doc:"the address that it is written to"`
	Subject  string          `json:"subject"`
	Text     string          `json:"text,omitempty" doc:"the plain text"`
	HTML     string          `json:"html,omitempty" doc:"the HTML"`
	Raw      string          `json:"raw" doc:"the whole message (RFC 5322); its unsubscribe link leads nowhere"`
	Data     json.RawMessage `json:"data,omitempty" doc:"the event's data that were taken; of a digest a list of those of all events"`

	Attachments []Attachment `json:"attachments,omitempty" doc:"the files that go with it; raw has them"`

	Sample bool `json:"sample" doc:"the data are made up"`
}
