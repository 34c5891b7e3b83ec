package wire

import "encoding/json"

// A PreviewRequest is the input of a preview. All members are optional: the server
// generates data that fit the schema of the topic, and a recipient.
type PreviewRequest struct {
	Template     *TemplateDraft  `json:"template,omitempty" doc:"a template to use instead of the stored one"`
	Draft        bool            `json:"draft,omitempty" doc:"use the draft of the template instead of the published version"`
	Version      int             `json:"version,omitempty" minimum:"0" doc:"use this version; 0: the published version"`
	Topic        string          `json:"topic,omitempty" doc:"topic, for its schema and rules; default: the topic of the event or of the subscription, or the first topic that uses the template"`
	Channel      string          `json:"channel,omitempty" doc:"channel, for its From and other headers; default: the channel of the subscription, or the first channel of the service"`
	Event        string          `json:"event,omitempty" doc:"use this event: evt-..., or the id given by the sender"`
	Events       []string        `json:"events,omitempty" maxItems:"100" doc:"for a digest template: the further events of the digest, in order"`
	Data         json.RawMessage `json:"data,omitempty" doc:"event data, instead of the data of the event"`
	Subscription string          `json:"subscription,omitempty" doc:"use this subscription: its subscriber, params and data"`
	Subscriber   string          `json:"subscriber,omitempty" doc:"use this subscriber: an address or an id"`
	To           string          `json:"to,omitempty" doc:"address to show, instead of the subscriber's own"`
	Locale       string          `json:"locale,omitempty" doc:"language tag, instead of the subscriber's locale"`
	TimeZone     string          `json:"time_zone,omitempty" doc:"time zone, instead of the subscriber's own"`
	Device       string          `json:"device,omitempty" doc:"device, instead of the subscriber's own"`
}

// A TemplateDraft is a template that is not stored.
type TemplateDraft struct {
	TemplateParts
}

// A Preview is a rendered template.
type Preview struct {
	Template string          `json:"template" doc:"name@version, followed by (draft) for a draft; name (draft) for a template from the request"`
	Topic    string          `json:"topic,omitempty"`
	To       string          `json:"to" doc:"address of the recipient"`
	Subject  string          `json:"subject"`
	Text     string          `json:"text,omitempty" doc:"plain text"`
	HTML     string          `json:"html,omitempty" doc:"HTML"`
	Raw      string          `json:"raw" doc:"complete message (RFC 5322); its unsubscribe link does not work"`
	Data     json.RawMessage `json:"data,omitempty" doc:"event data that was used; for a digest, a list of the data of all events"`

	Attachments []Attachment `json:"attachments,omitempty" doc:"attachments; raw contains them"`

	Sample bool `json:"sample" doc:"the data is generated"`
}
