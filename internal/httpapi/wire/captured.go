package wire

import "time"

// A CapturedMessage is a message in a folder, without its content.
type CapturedMessage struct {
	ID        string    `json:"id" doc:"id of its delivery"`
	Service   string    `json:"service"`
	Channel   string    `json:"channel" doc:"name of the channel"`
	Kind      string    `json:"kind" doc:"mail or webhook"`
	From      string    `json:"from,omitempty" doc:"field From, decoded; absent for a webhook"`
	To        string    `json:"to,omitempty" doc:"recipient of the delivery; for a webhook, its URL"`
	Subject   string    `json:"subject,omitempty" doc:"subject, decoded; absent for a webhook"`
	At        time.Time `json:"at" doc:"time at which the message was written"`
	SizeBytes int64     `json:"size_bytes" doc:"size of the message"`
}

// CapturedPage is a page of captured messages, the newest first.
type CapturedPage struct {
	Captured      []CapturedMessage `json:"captured" doc:"messages of this page"`
	Next          string            `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
	SearchedUntil *time.Time        `json:"searched_until,omitempty" doc:"the search ended at a message of this time, because it took long; continue it with next"`
}

// CapturedContent is a captured message with its content.
type CapturedContent struct {
	CapturedMessage
	Headers       []CapturedHeader     `json:"headers" doc:"fields of the header in their order, decoded; at most 500"`
	Parts         []CapturedPart       `json:"parts" doc:"parts of the message in their order; at most 500"`
	Text          string               `json:"text,omitempty" doc:"plain text, at most 512 KiB; for a webhook, its body"`
	TextTruncated bool                 `json:"text_truncated,omitempty" doc:"the text is longer"`
	HTML          bool                 `json:"html" doc:"the message has HTML, which GET /v1/captured/{id}/html shows"`
	Links         []CapturedLink       `json:"links" doc:"links in the HTML, in their order; at most 500"`
	Attachments   []CapturedAttachment `json:"attachments" doc:"parts other than the text and the HTML; at most 500"`
}

// A CapturedHeader is a field of a header.
type CapturedHeader struct {
	Name  string `json:"name" doc:"name of the field"`
	Value string `json:"value" doc:"value, decoded"`
}

// A CapturedPart is a part of a message.
type CapturedPart struct {
	Number    string `json:"number" doc:"position, such as 1.2; empty for a message without parts"`
	Type      string `json:"type" doc:"media type"`
	Charset   string `json:"charset,omitempty" doc:"character set"`
	SizeBytes int64  `json:"size_bytes" doc:"size in the message, encoded"`
}

// A CapturedLink is a link in the HTML of a message.
type CapturedLink struct {
	URL  string `json:"url" doc:"address of the link, as it is in the message"`
	Text string `json:"text,omitempty" doc:"text of the link"`
}

// A CapturedAttachment is a part that is not the text or the HTML of a message.
type CapturedAttachment struct {
	Number    int    `json:"number" doc:"number of the attachment in GET /v1/captured/{id}/attachments/{number}"`
	Name      string `json:"name" doc:"file name, without folders and control characters"`
	Type      string `json:"type" doc:"media type, as it is in the message"`
	ContentID string `json:"content_id,omitempty" doc:"id by which the HTML refers to it"`
	SizeBytes int64  `json:"size_bytes" doc:"size, decoded"`
}
