package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/cloudevents"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/ndjson"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
)

func (a *API) eventRoutes() {
	op := func(id, path, summary, description string, extra ...*huma.Param) huma.Operation {
		o := huma.Operation{OperationID: id, Method: http.MethodPost, Path: path, Tags: []string{"events"}, Summary: summary, Description: description,
			Parameters: slices.Concat(extra, ofEvents(), []*huma.Param{
				query("format", "NDJSON: data (each line is the data of an event) or cloudevents (each line is a CloudEvent)"),
				flag("quiet", "NDJSON: return only a summary")}),
			RequestBody: body[any](a, "One or more events", httpio.CloudEvent, httpio.CloudEventBatch, "application/json", httpio.NDJSON)}
		replies[wire.Accepteds](a, &o, http.StatusAccepted, "Stored; for a duplicate, the response contains the id of the first event. For NDJSON: a result (a member of events) or a LineError on each line", "application/json", httpio.NDJSON)
		orSummary[wire.EventSummary](a, &o, http.StatusAccepted)
		return o
	}
	a.handle(op("publish", "/v1/topics/{topic}/events", "Publish events of a topic",
		"CloudEvents 1.0 in the structured, batched and binary mode, plain JSON (the body is the data) and NDJSON. A batch is stored as a whole or not at all; NDJSON lines are stored independently. "+
			"An event whose id and source are already known is answered with duplicate true and not stored again.",
		param("topic", "name of the topic")), mayPublish,
		func(x *responseWriter, r *http.Request, c caller) error {
			return a.publish(x, r, c, r.PathValue("topic"))
		})
	a.handle(op("publish-by-type", "/v1/events", "Publish CloudEvents whose type is the name of a topic", "Like /v1/topics/{topic}/events, but without plain data."), mayPublish,
		func(x *responseWriter, r *http.Request, c caller) error { return a.publish(x, r, c, "") })
}

// ofEvents returns the parameters of a request that apply to all of its events.
func ofEvents() []*huma.Param {
	return []*huma.Param{service(),
		query("lane", "urgent, normal or bulk; you can also use the header X-Fanfare-Lane. Default: the lane of the topic"),
		query("id", "JSON: id of the event; JSON and NDJSON: a JSON pointer to it in the data, such as /id"),
		query("time", "JSON pointer to the time of the event in the data"),
		query("audience_filter", "CEL over subscriber (id, locale, time_zone, attributes) and sub (params); of the matching subscriptions, only those that also meet this filter get the events. A CloudEvent can set its own in the extension audiencefilter"),
		query("not_before", "RFC 3339: nothing is sent before this time, but recipients are matched immediately. A CloudEvent can set its own in the extension notbefore"),
		query("expires", "RFC 3339: nothing is sent after this time. A CloudEvent can set its own in the extension expires or expirytime"),
		query("source", "URI-reference of the sender, for events without a source")}
}

// A posting holds the settings of a request that apply to all its events.
type posting struct {
	service string
	topic   string // "": the type of each event
	lane    fanfare.Lane
	source  string
	people  string // audience filter in CEL, "" for all
	times   times
	mapping cloudevents.Mapping
}

func (a *API) publish(x *responseWriter, r *http.Request, c caller, topic string) error {
	p, err := a.posting(r, c, topic)
	if err != nil {
		return err
	}
	mt := httpio.MediaType(r.Header)
	if httpio.IsNDJSON(mt) && !cloudevents.IsBinary(r.Header) {
		return a.publishLines(x, r, p)
	}
	text, err := httpio.ReadBody(x, r)
	if err != nil {
		return err
	}
	if mt == httpio.CloudEventBatch {
		return a.publishBatch(x, r, p, text)
	}
	e, err := oneEvent(r, p, text, "application/json", httpio.CloudEvent, httpio.CloudEventBatch, httpio.NDJSON)
	if err != nil {
		return err
	}
	return a.publishOne(x, r, p, e)
}

// oneEvent reads a body with one event; types are the accepted media types.
func oneEvent(r *http.Request, p posting, text []byte, types ...string) (e fanfare.Event, err error) {
	switch mt := httpio.MediaType(r.Header); {
	case mt == httpio.CloudEvent:
		return cloudevents.Decode(text)
	case strings.HasPrefix(mt, "application/cloudevents"): // another format, even if the headers indicate binary mode
		return e, httpio.UnknownType(mt, types...)
	case cloudevents.IsBinary(r.Header):
		return cloudevents.Binary(r.Header, text)
	case mt == "" || cloudevents.IsJSON(mt):
		e, err = cloudevents.Plain(r.Header, text, p.mapping)
		if id := r.URL.Query().Get("id"); err == nil && e.ID == "" && p.mapping.ID == nil && id != "" {
			err = cloudevents.Set(&e, "id", id)
		}
		return e, err
	default:
		return e, httpio.UnknownType(mt, types...)
	}
}

// posting reads the path, the query and the headers.
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
		p.people = q.Get("audience_filter")
		if p.times, err = timesOf(q); err != nil {
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

// posted completes e with the settings that its sender omitted.
func (p *posting) posted(e fanfare.Event) (fanfare.AcceptedEvent, error) {
	topic := p.topic
	if topic == "" {
		if topic = e.Type; topic == "" {
			return fanfare.AcceptedEvent{}, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/type", Message: "the event has no type, so its topic is unknown", Hint: "set type to the name of the topic, or send the event to /v1/topics/{topic}/events"}
		}
	}
	if fanfare.ReservedTopic(topic) {
		return fanfare.AcceptedEvent{}, &fanfare.Error{Code: fanfare.Forbidden, Message: "only Fanfare itself can publish to " + topic, Hint: "use one of your own topics"}
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
	posted := fanfare.AcceptedEvent{Service: p.service, Topic: topic, Lane: p.lane, Event: e}
	if err := p.times.apply(&posted); err != nil {
		return posted, err
	}
	filter, err := audienceOf(&e, p.people)
	if filter != "" {
		posted.Audience = &fanfare.AudienceFilter{Filter: filter}
	}
	return posted, err
}

// audienceExtension is the extension attribute in which a CloudEvent sets its audience
// filter. Names of extensions consist of letters and digits only.
const audienceExtension = "audiencefilter"

// audienceOf returns the audience filter of an event, or otherwise if it has none.
func audienceOf(e *fanfare.Event, otherwise string) (filter string, err error) {
	raw, ok := e.Extensions[audienceExtension]
	if !ok {
		return otherwise, nil
	}
	if json.Unmarshal(raw, &filter) != nil {
		err = &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + audienceExtension, Message: "must be a string", Hint: "use CEL, such as subscriber.locale == 'de'"}
	}
	return filter, err
}

func (a *API) publishOne(x *responseWriter, r *http.Request, p posting, e fanfare.Event) error {
	posted, err := p.posted(e)
	if err != nil {
		return err
	}
	kept, err := a.deps.Intake.Post(r.Context(), []fanfare.AcceptedEvent{posted})
	if err != nil {
		return err
	}
	if kept[0].Err != nil {
		return kept[0].Err
	}
	writeKept(x, kept)
	return nil
}

// publishBatch stores all events of a batch, or stores none and reports all invalid ones.
func (a *API) publishBatch(x *responseWriter, r *http.Request, p posting, text []byte) error {
	events, err := cloudevents.DecodeBatch(text)
	if err != nil {
		return err
	}
	if len(events) > fanfare.MaxGroup {
		return &fanfare.Error{Code: fanfare.TooLarge, Message: "the batch has " + strconv.Itoa(len(events)) + " events; the maximum is " + strconv.Itoa(fanfare.MaxGroup), Hint: "send NDJSON with format=cloudevents"}
	}
	batch := make([]fanfare.AcceptedEvent, len(events))
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
	var kept []ingest.Result
	if len(batch) > 0 {
		if kept, err = a.deps.Intake.Post(r.Context(), batch); err != nil {
			return err
		}
	}
	for i := range kept {
		if kept[i].Err != nil {
			wrong = append(wrong, cloudevents.AtIndex(i, kept[i].Err)...)
		}
	}
	if wrong != nil { // all were checked before: the store failed, or a topic changed in the meantime
		return &fanfare.Error{Code: wrong[0].Code, Message: strconv.Itoa(len(wrong)) + " of " + strconv.Itoa(len(batch)) + " events could not be stored",
			Hint: "send the batch again: the server recognizes stored events by their ids", Details: wrong}
	}
	writeKept(x, kept)
	return nil
}

// check returns the error with which intake would reject an event, before anything of its
// batch is stored.
func (a *API) check(p *fanfare.AcceptedEvent) error {
	topic, ok := a.deps.Topics.Topic(p.Service, p.Topic)
	if !ok {
		return problem.NotFound("topic", p.Topic)
	}
	if err := ingest.CheckTimes(p, a.now()); err != nil {
		return err
	}
	if topic.ValidateData != nil {
		if err := topic.ValidateData(p.Event.Data); err != nil {
			return err
		}
	}
	if p.Audience != nil {
		return a.deps.Topics.CheckAudience(p.Service, p.Audience.Filter)
	}
	return nil
}

func writeKept(x *responseWriter, kept []ingest.Result) {
	out := make([]byte, 0, 32+64*len(kept))
	out = append(out, `{"events":[`...)
	for i := range kept {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendKept(out, &kept[i])
	}
	x.Header().Set("Content-Type", "application/json")
	httpio.WriteAll(x, http.StatusAccepted, append(out, "]}\n"...))
}

// appendKept appends a wire.Accepted.
func appendKept(dst []byte, k *ingest.Result) []byte {
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

// publishLines stores the event on each line of the body.
func (a *API) publishLines(x *responseWriter, r *http.Request, p posting) error {
	quiet, err := httpio.WantsSummary(r)
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
	return run(a, x, r, ndjson.Endpoint[fanfare.AcceptedEvent]{
		MaxLineBytes: eventLineBytes, MaxLines: eventChunkLines, Status: http.StatusAccepted, Quiet: quiet,
		Decode: func(line []byte, posted *fanfare.AcceptedEvent) error {
			e, err := decode(line)
			if err == nil {
				*posted, err = p.posted(e)
			}
			return err
		},
		Store: func(ctx context.Context, events []fanfare.AcceptedEvent) (<-chan error, ndjson.ResultFunc) {
			kept, err := a.deps.Intake.Post(ctx, events)
			return ndjson.Done(err), func(dst []byte, i int) ([]byte, error) {
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
		Rejected: func(e wire.LineError) {
			sum.Failed++
			if len(sum.Errors) < wire.MaxErrors {
				sum.Errors = append(sum.Errors, e)
			}
		},
		Summary: func() any { return sum },
	})
}
