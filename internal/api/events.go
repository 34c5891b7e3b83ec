package api

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/api/cloudevents"
	"fanfare.dev/fanfare/internal/api/wire"
)

const (
	cloudEvent      = "application/cloudevents+json"
	cloudEventBatch = "application/cloudevents-batch+json"
)

func (a *API) eventRoutes() {
	op := func(id, path, summary, description string, extra ...*huma.Param) huma.Operation {
		o := huma.Operation{OperationID: id, Method: http.MethodPost, Path: path, Tags: []string{"events"}, Summary: summary, Description: description,
			Parameters: append(extra, service(),
				query("lane", "urgent, normal or bulk; the header X-Fanfare-Lane does the same; without it the topic's lane counts"),
				query("id", "JSON: id of the event; JSON and NDJSON: a JSON pointer to it in the data, such as /id"),
				query("time", "a JSON pointer to the event's time in the data"),
				query("source", "URI-reference of the sender, where the event has none"),
				query("format", "NDJSON: data (each line is the data of an event) or cloudevents (each line is a CloudEvent)"),
				flag("quiet", "NDJSON: answer only a summary")),
			RequestBody: body[any](a, "An event, or many", cloudEvent, cloudEventBatch, "application/json", ndjson)}
		replies[wire.Accepteds](a, &o, http.StatusAccepted, "Kept; duplicates are answered with the id of the first one. Of NDJSON: one answer (a member of events, without the rest) or a LineError on each line", "application/json", ndjson)
		orSummary[wire.EventSummary](a, &o, http.StatusAccepted)
		return o
	}
	a.handle(op("publish", "/v1/topics/{topic}/events", "Publish events of a topic",
		"CloudEvents 1.0 in the structured, batched and binary mode, plain JSON (the body is the data) and NDJSON. A batch is kept as a whole or not at all; of NDJSON each line stands by itself. "+
			"An event with the id and source of one that is known already is answered with duplicate true and not kept again.",
		param("topic", "name of the topic")), mayPublish,
		func(x *exchange, r *http.Request, c caller) error { return a.publish(x, r, c, r.PathValue("topic")) })
	a.handle(op("publish-by-type", "/v1/events", "Publish CloudEvents whose type is the name of a topic", "As /v1/topics/{topic}/events, but for plain data."), mayPublish,
		func(x *exchange, r *http.Request, c caller) error { return a.publish(x, r, c, "") })
}

// A posting is what the request says about all of its events.
type posting struct {
	service string
	topic   string // "": the type of each event
	lane    fanfare.Lane
	source  string
	mapping cloudevents.Mapping
}

func (a *API) publish(x *exchange, r *http.Request, c caller, topic string) error {
	p, err := a.posting(r, c, topic)
	if err != nil {
		return err
	}
	mt := mediaType(r.Header)
	binary := cloudevents.IsBinary(r.Header) && !strings.HasPrefix(mt, "application/cloudevents")
	if isNDJSON(mt) && !binary {
		return a.publishLines(x, r, p)
	}
	text, err := readBody(x, r)
	if err != nil {
		return err
	}
	switch {
	case mt == cloudEventBatch:
		return a.publishBatch(x, r, p, text)
	case mt == cloudEvent:
		e, err := cloudevents.Decode(text)
		if err != nil {
			return err
		}
		return a.publishOne(x, r, p, e)
	case binary:
		e, err := cloudevents.Binary(r.Header, text)
		if err != nil {
			return err
		}
		return a.publishOne(x, r, p, e)
	case mt == "" || cloudevents.IsJSON(mt):
		e, err := cloudevents.Plain(r.Header, text, p.mapping)
		if err != nil {
			return err
		}
		if id := r.URL.Query().Get("id"); e.ID == "" && p.mapping.ID == nil && id != "" {
			if err := cloudevents.Set(&e, "id", id); err != nil {
				return err
			}
		}
		return a.publishOne(x, r, p, e)
	}
	return unknownType(mt, "application/json", cloudEvent, cloudEventBatch, ndjson)
}

// posting reads what the path, the query and the headers say.
func (a *API) posting(r *http.Request, c caller, topic string) (p posting, err error) {
	p = posting{topic: topic, lane: fanfare.TopicLane}
	if p.service, err = a.oneService(c); err != nil {
		return p, err
	}
	lane := r.Header.Get("X-Fanfare-Lane")
	if r.URL.RawQuery != "" {
		q := r.URL.Query()
		if v := q.Get("lane"); v != "" {
			lane = v
		}
		if id := q.Get("id"); id != "" && id[0] == '/' {
			if p.mapping.ID, err = cloudevents.ParsePointer(id); err != nil {
				return p, err
			}
		}
		if p.mapping.Time, err = cloudevents.ParsePointer(q.Get("time")); err != nil {
			return p, err
		}
		if p.source = q.Get("source"); p.source != "" {
			if err := cloudevents.Set(&fanfare.Event{}, "source", p.source); err != nil {
				return p, err
			}
		}
	}
	if lane != "" {
		p.lane, err = fanfare.ParseLane(lane)
	}
	return p, err
}

// posted completes e with what its sender left out.
func (p *posting) posted(e fanfare.Event) (fanfare.Posted, error) {
	topic := p.topic
	if topic == "" {
		if topic = e.Type; topic == "" {
			return fanfare.Posted{}, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/type", Message: "an event without a type names no topic", Hint: "send it to /v1/topics/{topic}/events"}
		}
	}
	if e.Type == "" {
		e.Type = topic
	}
	if e.ID == "" {
		e.ID = rand.Text()
	}
	if e.Source == "" {
		if e.Source = p.source; e.Source == "" {
			e.Source = "/" + p.service
		}
	}
	return fanfare.Posted{Service: p.service, Topic: topic, Lane: p.lane, Event: e}, nil
}

func (a *API) publishOne(x *exchange, r *http.Request, p posting, e fanfare.Event) error {
	posted, err := p.posted(e)
	if err != nil {
		return err
	}
	kept, err := a.parts.Intake.Post(r.Context(), []fanfare.Posted{posted})
	if err != nil {
		return err
	}
	if kept[0].Err != nil {
		return kept[0].Err
	}
	writeKept(x, kept)
	return nil
}

// publishBatch keeps all events of a batch, or none and names all bad ones.
func (a *API) publishBatch(x *exchange, r *http.Request, p posting, text []byte) error {
	events, err := cloudevents.DecodeBatch(text)
	if err != nil {
		return err
	}
	if len(events) > fanfare.MaxGroup {
		return &fanfare.Error{Code: fanfare.TooLarge, Message: "the batch has " + strconv.Itoa(len(events)) + " events, more than " + strconv.Itoa(fanfare.MaxGroup), Hint: "send NDJSON with format=cloudevents"}
	}
	batch := make([]fanfare.Posted, len(events))
	var wrong []*fanfare.Error
	for i, e := range events {
		posted, err := p.posted(e)
		if err == nil {
			err = a.check(&posted)
		}
		if err != nil {
			wrong = append(wrong, cloudevents.AtIndex(i, err)...)
		}
		batch[i] = posted
	}
	if wrong != nil {
		return cloudevents.Refused(wrong)
	}
	var kept []Kept
	if len(batch) > 0 {
		if kept, err = a.parts.Intake.Post(r.Context(), batch); err != nil {
			return err
		}
	}
	for i := range kept {
		if kept[i].Err != nil {
			wrong = append(wrong, cloudevents.AtIndex(i, kept[i].Err)...)
		}
	}
	if wrong != nil { // all had been checked: the store failed, or a topic changed this moment
		return &fanfare.Error{Code: wrong[0].Code, Message: strconv.Itoa(len(wrong)) + " of " + strconv.Itoa(len(batch)) + " events could not be kept",
			Hint: "send the batch again: what was kept is known by its ids", Details: wrong}
	}
	writeKept(x, kept)
	return nil
}

// check tells before anything of a batch is kept what intake would refuse.
func (a *API) check(p *fanfare.Posted) error {
	topic, ok := a.parts.Topics.Topic(p.Service, p.Topic)
	if !ok {
		return notFound("topic", p.Topic)
	}
	if topic.ValidateData == nil {
		return nil
	}
	return topic.ValidateData(p.Event.Data)
}

func writeKept(x *exchange, kept []Kept) {
	out := make([]byte, 0, 32+64*len(kept))
	out = append(out, `{"events":[`...)
	for i := range kept {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendKept(out, &kept[i])
	}
	x.Header().Set("Content-Type", "application/json")
	writeAll(x, http.StatusAccepted, append(out, "]}\n"...))
}

// appendKept appends a wire.Accepted.
func appendKept(dst []byte, k *Kept) []byte {
	dst = append(dst, `{"id":"`...)
	dst = append(dst, k.Ref.String()...)
	if k.Duplicate {
		return append(dst, `","duplicate":true}`...)
	}
	return append(dst, `","duplicate":false}`...)
}

// Limits of NDJSON events.
const (
	eventLineBytes  = cloudevents.MaxDataBytes + 16<<10
	eventChunkLines = 1000
)

// publishLines keeps the event on each line of the body.
func (a *API) publishLines(x *exchange, r *http.Request, p posting) error {
	quiet, err := wantsSummary(r)
	if err != nil {
		return err
	}
	var decode func([]byte) (fanfare.Event, error)
	switch format := r.URL.Query().Get("format"); format {
	case "", "data":
		decode = p.mapping.Event
	case "cloudevents":
		decode = cloudevents.Decode
	default:
		return &fanfare.Error{Code: fanfare.Invalid, Message: "unknown format " + strconv.Quote(format), Hint: "use data or cloudevents"}
	}
	sum := wire.EventSummary{Errors: []wire.LineError{}}
	return run(a, x, r, lineWork[fanfare.Posted]{
		maxLineBytes: eventLineBytes, maxLines: eventChunkLines, status: http.StatusAccepted, quiet: quiet,
		decode: func(line []byte, posted *fanfare.Posted) error {
			e, err := decode(line)
			if err == nil {
				*posted, err = p.posted(e)
			}
			return err
		},
		keep: func(ctx context.Context, events []fanfare.Posted) (<-chan error, outcome) {
			kept, err := a.parts.Intake.Post(ctx, events)
			return over(err), func(dst []byte, i int) ([]byte, error) {
				k := &kept[i]
				switch {
				case k.Err != nil:
					return dst, k.Err
				case k.Duplicate:
					sum.Duplicates++
				default:
					sum.Accepted++
				}
				if !quiet {
					return appendKept(dst, k), nil
				}
				if sum.Last = k.Ref.String(); sum.First == "" {
					sum.First = sum.Last
				}
				return dst, nil
			}
		},
		refused: func(e wire.LineError) {
			sum.Failed++
			if len(sum.Errors) < wire.MaxErrors {
				sum.Errors = append(sum.Errors, e)
			}
		},
		summary: func() any { return sum },
	})
}
