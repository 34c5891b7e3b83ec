package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/render"
)

// Workers are asked about the recipients of a batch: filters whether a recipient gets a message, and formatters for the
// message. A request has several recipients, each with the document that a webhook would get:
//
//	{"service": "acme", "channel": "email", "template": "statement", "messages": [
//	  {"id": "dlv-20261120-40-0", "to": "a@example.org", "locale": "de", "time_zone": "Europe/Berlin", "attributes": {...},
//	   "document": {"type": "price", "timestamp": "...", "data": {"event": {...}, "subscriptions": [...], ...}}}]}
//
// The response has an object for each recipient, with the answer or an error.
//
// A fault of the worker is a failure of the batch: the batch is loaded again later, and parked after several failures. If no
// instance of the worker is connected, the batch waits beside the others, which are loaded.

// Workers pass requests to workers. A request fails at once if no instance of the worker is connected, and soon if the last one
// leaves before it has answered.
type Workers interface {
	// Ready returns an error if no instance of a worker is connected. Its code is Unavailable if one may connect later.
	Ready(service, worker string) error
	// MessageLimit returns the maximum size of a request, in bytes.
	MessageLimit(service, worker string) int
	// Format returns the response of the formatter of a template.
	Format(ctx context.Context, service, worker, template string, request []byte) ([]byte, error)
	// Filter returns the response of the filter of a topic.
	Filter(ctx context.Context, service, worker, topic string, request []byte) ([]byte, error)
}

// A workerName identifies a worker.
type workerName struct{ service, worker string }

// absent reports whether no instance of a worker is connected, but one may connect later.
func (s *Stage) absent(w workerName) bool {
	return s.Workers != nil && fanfare.CodeOf(s.Workers.Ready(w.service, w.worker)) == fanfare.Unavailable
}

const (
	maxWorkerRecipients = 200 // in a request
	maxWorkerRequests   = 8   // of one loop at the same time
	requestHeadBytes    = 1 << 10
)

// requestHead is the part of a request that its recipients share.
type requestHead struct {
	Service  string `json:"service"`
	Channel  string `json:"channel"`
	Topic    string `json:"topic,omitempty"` // for filters
	Template string `json:"template,omitempty"`
}

// A workerRequest is a request to a filter or formatter.
type workerRequest struct {
	requestHead
	worker string // as errors name it: its role and its name
	name   string

	limit      int // bytes of messages
	body       []byte
	recipients []fanfare.DeliveryRef
}

// workerRequests are the requests about a batch to the workers of a role, filter or formatter.
type workerRequests struct {
	*loader
	role    string
	channel *catalog.Channel
	all     []*workerRequest
}

// add adds a recipient of a mailing. A recipient that cannot be asked about is refused with the reason.
func (q *workerRequests) add(worker, topic string, m *mailing, r *render.Recipient) (refused string, err error) {
	one, wrong := m.requestMessage(fanfare.EventRef{Day: r.Delivery.Day, Seq: r.Delivery.Manifest.Event()}, r)
	if wrong != nil {
		return wrong.Error(), nil //nolint:nilerr // it is the reason
	}
	head := requestHead{Service: m.event.Service, Channel: q.channel.Name, Topic: topic}
	if source, ok := q.Registry.Template(m.template); ok {
		head.Template = source.Name
	}
	var last *workerRequest
	if n := len(q.all); n > 0 {
		last = q.all[n-1]
	}
	if last == nil || last.requestHead != head || last.name != worker || len(last.recipients) >= maxWorkerRecipients || len(last.body)+len(one) > last.limit {
		if last, err = q.begin(worker, head); err != nil {
			return "", err
		}
	}
	if len(one) > last.limit {
		return fmt.Sprintf("the data for %s has %d bytes, but its message_limit is %d", last.worker, len(one), last.limit+requestHeadBytes), nil
	}
	last.body = append(append(last.body, one...), ',')
	last.recipients = append(last.recipients, r.Delivery)
	return "", nil
}

func (q *workerRequests) begin(worker string, of requestHead) (*workerRequest, error) {
	name := q.role + " " + worker
	if q.Workers == nil {
		return nil, &fanfare.Error{Code: fanfare.Unavailable, Message: "this server has no broker that passes requests to " + name}
	}
	head, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	r := &workerRequest{
		requestHead: of, worker: name, name: worker, limit: q.Workers.MessageLimit(of.Service, worker) - requestHeadBytes,
		body: append(head[:len(head)-1], `,"messages":[`...),
	}
	q.all = append(q.all, r)
	return r, nil
}

// requestMessage encodes a recipient for a worker.
func (m *mailing) requestMessage(event fanfare.EventRef, r *render.Recipient) ([]byte, error) {
	if m.documents == nil {
		documents, err := m.posting(nil, event).Writer()
		if err != nil {
			return nil, err
		}
		m.documents = documents
	}
	of := *r
	of.Address = "https://worker.invalid/" // documents are for URLs
	message, _, err := m.documents.Write(nil, &of)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		ID         string          `json:"id"`
		To         string          `json:"to"`
		Locale     string          `json:"locale,omitempty"`
		TimeZone   string          `json:"time_zone,omitempty"`
		Attributes json.RawMessage `json:"attributes,omitempty"`
		Document   json.RawMessage `json:"document"`
	}{r.Delivery.String(), r.Address, r.Locale, r.TimeZone, r.Attributes, message.Body})
}

// send sends the requests, several at the same time, and passes the number of each with its response to answered, one at a
// time for each request. After an error it waits for the other responses. A request that has no response because no instance
// of its worker is connected is not an error: the loader has the worker in its list waits.
func (q *workerRequests) send(call func(r *workerRequest, body []byte) ([]byte, error), answered func(i int, response []byte) error) error {
	var mu sync.Mutex // guards the list waits
	var calls errgroup.Group
	calls.SetLimit(maxWorkerRequests)
	for i, r := range q.all {
		if len(r.recipients) == 0 {
			continue
		}
		calls.Go(func() error {
			response, err := call(r, append(bytes.TrimSuffix(r.body, []byte(",")), "]}"...))
			if to := (workerName{r.Service, r.name}); err != nil && q.absent(to) {
				mu.Lock()
				defer mu.Unlock()
				if !slices.Contains(q.waits, to) {
					q.waits = append(q.waits, to)
				}
				return nil
			}
			if err == nil {
				err = answered(i, response)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", r.worker, err)
			}
			return nil
		})
	}
	return calls.Wait()
}

// read visits the messages of a response with the index of their recipients. wrong is the error that the worker returned for
// a recipient, or "". It skips messages of unknown recipients.
func (r *workerRequest) read(response []byte, visit func(i int, message json.RawMessage, wrong string) error) error {
	var in struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(response, &in); err != nil {
		return fmt.Errorf("the response is not valid: %w", err)
	}
	at := make(map[string]int, len(r.recipients))
	for i, to := range r.recipients {
		at[to.String()] = i
	}
	for _, raw := range in.Messages {
		var one struct {
			ID    string `json:"id"`
			Error string `json:"error"`
		}
		if err := json.Unmarshal(raw, &one); err != nil {
			return fmt.Errorf("a message of the response is not valid: %w", err)
		}
		i, known := at[one.ID]
		if !known {
			continue
		}
		if one.Error != "" {
			one.Error = r.worker + ": " + string(driver.AppendText(nil, []byte(one.Error), driver.MaxTextBytes))
		}
		if err := visit(i, raw, one.Error); err != nil {
			return err
		}
	}
	return nil
}
