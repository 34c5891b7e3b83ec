package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// PublishOptions holds the properties of events that their data does not contain. All fields may
// be empty.
type PublishOptions struct {
	ID     string // of a single event; sending the event again is safe, because the server recognises the duplicate
	Source string // URI-reference
	Lane   string // urgent, normal or bulk; "" is the lane of the topic

	// AudienceFilter is CEL over subscriber and sub. It limits the event to the matching subscriptions
	// for which it is true.
	AudienceFilter string

	NotBefore, Expires time.Time // no message is sent before NotBefore or after Expires; zero: no limit

	IDPointer   string // JSON pointer to the id in the data, such as /id
	TimePointer string // JSON pointer to the time in the data
	CloudEvents bool   // PublishLines: each line is a CloudEvent
}

func (o PublishOptions) query() url.Values {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("source", o.Source)
	set("lane", o.Lane)
	set("audience_filter", o.AudienceFilter)
	setTime(q, "not_before", o.NotBefore)
	setTime(q, "expires", o.Expires)
	set("time", o.TimePointer)
	if o.IDPointer != "" {
		q.Set("id", o.IDPointer)
	} else {
		set("id", o.ID)
	}
	if o.CloudEvents {
		q.Set("format", "cloudevents")
	}
	return q
}

// safe reports whether sending the event twice stores it once.
func (o PublishOptions) safe() bool { return o.ID != "" || o.IDPointer != "" }

func topicPath(topic string) string {
	if topic == "" {
		return "/v1/events" // the type of each event names its topic
	}
	return "/v1/topics/" + url.PathEscape(topic) + "/events"
}

// Publish publishes one event with data, which is encoded as JSON.
func (c *Client) Publish(ctx context.Context, topic string, data any, o PublishOptions) (Accepted, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return Accepted{}, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/data", Message: "cannot be encoded as JSON: " + err.Error()}
	}
	all, err := c.PublishBody(ctx, topic, "application/json", text, o)
	if err != nil {
		return Accepted{}, err
	}
	return all[0], nil
}

// PublishEvents publishes CloudEvents, either all of them or none.
func (c *Client) PublishEvents(ctx context.Context, topic string, events []fanfare.Event, o PublishOptions) ([]Accepted, error) {
	type cloudEvent struct {
		Version string     `json:"specversion"`
		Time    *time.Time `json:"time,omitempty"` // hides the field of the event, because a zero time must be omitted
		fanfare.Event
	}
	batch := make([]cloudEvent, len(events))
	for i, e := range events {
		batch[i] = cloudEvent{"1.0", nil, e}
		if !e.Time.IsZero() {
			batch[i].Time = &e.Time
		}
	}
	text, err := json.Marshal(batch)
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "cannot be encoded as JSON: " + err.Error()}
	}
	o.ID = "-" // every event has an id of its own: the batch is safe to repeat
	return c.publish(ctx, topic, "application/cloudevents-batch+json", text, o, url.Values{})
}

// PublishBody publishes an encoded body: plain JSON (application/json), a CloudEvent or a batch.
func (c *Client) PublishBody(ctx context.Context, topic, contentType string, body []byte, o PublishOptions) ([]Accepted, error) {
	return c.publish(ctx, topic, contentType, body, o, o.query())
}

func (c *Client) publish(ctx context.Context, topic, contentType string, body []byte, o PublishOptions, query url.Values) ([]Accepted, error) {
	if o.Lane != "" {
		query.Set("lane", o.Lane)
	}
	if o.AudienceFilter != "" {
		query.Set("audience_filter", o.AudienceFilter)
	}
	setTime(query, "not_before", o.NotBefore)
	setTime(query, "expires", o.Expires)
	var out wire.Accepteds
	err := c.call(ctx, request{method: http.MethodPost, path: topicPath(topic), query: query, contentType: contentType, body: body,
		repeatable: o.safe() || contentType != "application/json"}, nil, &out)
	if err == nil && contentType != "application/cloudevents-batch+json" && len(out.Events) != 1 {
		err = &fanfare.Error{Code: fanfare.Internal, Message: fmt.Sprintf("the server returned %d results for one event", len(out.Events))}
	}
	return out.Events, err
}

// PublishLines publishes the event on each line (NDJSON). If each is not nil, it is called for
// every line in order with the result; an error from each stops publishing. A bad line does not
// stop the others.
func (c *Client) PublishLines(ctx context.Context, topic string, lines io.Reader, o PublishOptions, each func(Accepted, *LineError) error, progress func(Progress)) (EventSummary, error) {
	var sum EventSummary
	r := request{method: http.MethodPost, path: topicPath(topic), query: o.query(), contentType: ndjson, stream: counted(lines, progress)}
	if each == nil {
		r.query.Set("quiet", "true")
		return sum, c.call(ctx, r, nil, &sum)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := c.do(ctx, r)
	if err != nil {
		return sum, err
	}
	defer response.Body.Close()
	return sum, readAnswers(response.Body, &sum, each, c.base)
}

// readAnswers reads the response to each line.
func readAnswers(body io.Reader, sum *EventSummary, each func(Accepted, *LineError) error, server string) error {
	answers := json.NewDecoder(bufio.NewReaderSize(body, 64<<10))
	for {
		var a struct {
			Accepted
			Line  int     `json:"line"`
			Error *Member `json:"error"`
		}
		if err := answers.Decode(&a); err == io.EOF {
			return nil
		} else if err != nil {
			return &Unreachable{server, fmt.Errorf("the responses ended early: %w", err)}
		}
		var refused *LineError
		switch {
		case a.Error != nil:
			refused = &LineError{Line: a.Line, Error: *a.Error}
			sum.Failed++
			if len(sum.Errors) < wire.MaxErrors {
				sum.Errors = append(sum.Errors, *refused)
			}
		case a.Duplicate:
			sum.Duplicates++
		default:
			sum.Accepted++
		}
		if refused == nil {
			if sum.Last = a.ID; sum.First == "" {
				sum.First = a.ID
			}
		}
		if err := each(a.Accepted, refused); err != nil {
			return err
		}
	}
}

func setTime(q url.Values, name string, at time.Time) {
	if !at.IsZero() {
		q.Set(name, at.Format(time.RFC3339))
	}
}
