package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people"
)

// Subscribers stores people and machines with their addresses. Changes are durable when a
// method returns.
type Subscribers interface {
	Subscriber(ctx context.Context, service, id string) (people.Subscriber, error)
	SubscriberByAddress(ctx context.Context, service, address string) (people.Subscriber, error)
	// SubscriberPage may return fewer than limit subscribers even if next shows that more follow.
	SubscriberPage(ctx context.Context, service string, after fanfare.RowID, limit int) (page []people.Subscriber, next fanfare.RowID, err error)
	CreateSubscriber(ctx context.Context, service string, p people.SubscriberPut) (people.Subscriber, error)
	PutSubscriber(ctx context.Context, service, id string, p people.SubscriberPut, check people.SubscriberCheck) (s people.Subscriber, created bool, err error)
	// PutSubscribers sets one result per line. An error means that nothing was stored.
	PutSubscribers(ctx context.Context, service string, lines []people.ImportedSubscriber, results []people.PutResult) error
	PatchSubscriber(ctx context.Context, service, id string, patch json.RawMessage, check people.SubscriberCheck) (people.Subscriber, error)
	// DeleteSubscriber returns when no message for it can be sent any more.
	DeleteSubscriber(ctx context.Context, service, id string, check people.SubscriberCheck) error
}

// SubscriberList is a page of subscribers.
type SubscriberList struct {
	Subscribers []people.Subscriber `json:"subscribers" doc:"subscribers, in storage order"`
	Next        string              `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// OneSubscriber identifies a subscriber.
type OneSubscriber struct {
	Named
	ID string `path:"id" doc:"id of the subscriber: your own id, or per-..."`
}

type subscribersBy struct {
	Page
	ID      string `query:"id" doc:"only the subscriber with this id"`
	Address string `query:"address" doc:"only the subscriber with this address"`
	Accept  string `header:"Accept" doc:"application/x-ndjson: all subscribers as a stream; text/csv: the same as CSV"`
}

func (a *API) subscriberRoutes() {
	tags := []string{"subscribers"}
	const path, one = "/v1/subscribers", "/v1/subscribers/{id}"
	list := huma.Operation{OperationID: "list-subscribers", Method: http.MethodGet, Path: path, Tags: tags,
		Summary: "List the subscribers of a service in storage order, or stream all of them",
		Description: "A page can have fewer entries than limit even if more follow; next is then set. With Accept: application/x-ndjson, all subscribers " +
			"are streamed, one per line in the format of an import. Ids assigned by the server (per-) are omitted."}
	replies[SubscriberList](a, &list, http.StatusOK, "A page, or a stream of all subscribers", "application/json")
	list.Responses["200"].Content[httpio.NDJSON] = &huma.MediaType{Schema: schemaIn[people.ImportedSubscriber](a, httpio.NDJSON)}
	l, _ := listOf(&list, reflect.TypeFor[SubscriberList]())
	readList(a, list, mayLookUp, l, a.listSubscribers, a.subscriberLines)
	read(a, huma.Operation{OperationID: "get-subscriber", Method: http.MethodGet, Path: one, Tags: tags, Summary: "Get a subscriber with all addresses",
		Description: "A subscriber that was merged into another one is not found; the hint of the error gives the id of the other one. Use that id: the server does not redirect old ids."}, mayLookUp,
		func(ctx context.Context, c caller, in *OneSubscriber) (people.Subscriber, error) {
			s, err := a.oneService(c)
			if err != nil {
				return people.Subscriber{}, err
			}
			found, err := a.deps.Subscribers.Subscriber(ctx, s, in.ID)
			if err == nil {
				err = setTag(ctx.Value(exchangeKey{}).(*responseWriter), found)
			}
			return found, err
		})

	post := huma.Operation{OperationID: "create-subscriber", Method: http.MethodPost, Path: path, Tags: tags,
		Summary:     "Create a subscriber with an id assigned by the server or, with NDJSON, create or replace any number of subscribers",
		Description: "NDJSON is streamed: each line is stored independently, under its id if it has one, and gets a response line, in order; an invalid line does not affect the others.",
		Parameters:  []*huma.Param{service(), flag("quiet", "NDJSON: return only a summary")},
		RequestBody: body[people.SubscriberPut](a, "The subscriber; the first address of each kind is its default", "application/json")}
	post.RequestBody.Content[httpio.NDJSON] = &huma.MediaType{Schema: schemaIn[people.ImportedSubscriber](a, httpio.NDJSON)}
	replies[people.Subscriber](a, &post, http.StatusCreated, "Created", "application/json")
	replies[wire.PutSummary](a, &post, http.StatusOK, "For NDJSON: a result or an error on each line, or with quiet=true a summary", "application/json")
	post.Responses["200"].Content[httpio.NDJSON] = &huma.MediaType{Schema: schemaIn[wire.Subscribed](a, httpio.NDJSON)}
	a.handle(post, maySubscribe, a.postSubscriber)

	put := huma.Operation{OperationID: "put-subscriber", Method: http.MethodPut, Path: one, Tags: tags,
		Summary:     "Create or completely replace the subscriber with this id",
		Description: "Subscriptions to addresses that it no longer has end. An address belongs to only one subscriber; an address of another subscriber is a conflict.",
		Parameters:  []*huma.Param{param("id", "id of the subscriber: your own id, or per-..."), service(), ifMatch()},
		RequestBody: body[people.SubscriberPut](a, "The subscriber; the first address of each kind is its default", "application/json")}
	replies[people.Subscriber](a, &put, http.StatusCreated, "Created", "application/json")
	replies[people.Subscriber](a, &put, http.StatusOK, "Replaced, or unchanged", "application/json")
	a.handle(put, maySubscribe, a.putSubscriber)

	patch := huma.Operation{OperationID: "patch-subscriber", Method: http.MethodPatch, Path: one, Tags: tags,
		Summary:     "Change a subscriber with a JSON Merge Patch (RFC 7396)",
		Parameters:  []*huma.Param{param("id", "id of the subscriber: your own id, or per-..."), service(), ifMatch()},
		RequestBody: body[people.SubscriberPut](a, "The changes; null removes a member", httpio.MergePatch, "application/json")}
	replies[people.Subscriber](a, &patch, http.StatusOK, "The changed subscriber", "application/json")
	a.handle(patch, maySubscribe, a.patchSubscriber)

	del := huma.Operation{OperationID: "delete-subscriber", Method: http.MethodDelete, Path: one, Tags: tags,
		Summary:     "Delete a subscriber and end all of its subscriptions",
		Description: "The response is sent when no further message for the subscriber can be sent. The history remains; erase removes it.",
		Parameters:  []*huma.Param{param("id", "id of the subscriber: your own id, or per-..."), service(), ifMatch()}}
	replies[any](a, &del, http.StatusNoContent, "Deleted, or it did not exist")
	a.handle(del, maySubscribe, a.deleteSubscriber)
}

func ifMatch() *huma.Param {
	return &huma.Param{Name: "If-Match", In: "header", Schema: &huma.Schema{Type: "string"},
		Description: "change it only if it still has this ETag; otherwise 412"}
}

// subscriberLines returns the function that writes all subscribers in the format of an import.
func (a *API) subscriberLines(_ context.Context, c caller, in *subscribersBy) (func(context.Context, *responseWriter) error, error) {
	s, err := a.oneService(c)
	if err == nil && (in.ID != "" || in.Address != "" || in.Cursor != "") {
		err = &fanfare.Error{Code: fanfare.Invalid, Message: "an export contains all subscribers and supports neither cursor nor filters", Hint: "request application/json to get pages"}
	}
	return func(ctx context.Context, x *responseWriter) error { return a.exportSubscribers(ctx, x, s) }, err
}

func (a *API) listSubscribers(ctx context.Context, c caller, in *subscribersBy) (list SubscriberList, err error) {
	list.Subscribers = []people.Subscriber{}
	s, err := a.oneService(c)
	if err != nil {
		return list, err
	}
	if in.ID != "" || in.Address != "" {
		list.Subscribers, err = a.subscribersNamed(ctx, s, in)
		return list, err
	}
	l := listingOf("subscribers", s)
	after, err := placeAfter(l, in.Cursor)
	if err != nil {
		return list, err
	}
	page, next, err := a.deps.Subscribers.SubscriberPage(ctx, s, after, in.Limit)
	if next != 0 {
		list.Next = l.cursor(placeKey(next))
	}
	list.Subscribers = orEmpty(page)
	return list, err
}

// subscribersNamed returns a list with the subscriber that the filters identify, or an empty list.
func (a *API) subscribersNamed(ctx context.Context, service string, in *subscribersBy) ([]people.Subscriber, error) {
	var found people.Subscriber
	var err error
	if in.ID != "" {
		found, err = a.deps.Subscribers.Subscriber(ctx, service, in.ID)
	}
	if in.Address != "" && err == nil {
		byID := found.ID
		if found, err = a.deps.Subscribers.SubscriberByAddress(ctx, service, in.Address); err == nil && byID != "" && found.ID != byID {
			return []people.Subscriber{}, nil
		}
	}
	switch {
	case err == nil:
		return []people.Subscriber{found}, nil
	case fanfare.CodeOf(err) == fanfare.NotFound:
		return []people.Subscriber{}, nil
	}
	return nil, err
}

// placeKey and placeAfter convert a row id to the key of a cursor and back.
func placeKey(p fanfare.RowID) string { return strconv.FormatUint(uint64(p), 16) }

func placeAfter(l listing, cursor string) (fanfare.RowID, error) {
	key, err := l.key(cursor)
	if err != nil || key == "" {
		return 0, err
	}
	p, err := strconv.ParseUint(key, 16, 32)
	return fanfare.RowID(p), err
}

func (a *API) postSubscriber(x *responseWriter, r *http.Request, c caller) error {
	if httpio.IsNDJSON(httpio.MediaType(r.Header)) {
		service, err := a.oneService(c)
		if err != nil {
			return err
		}
		quiet, err := httpio.WantsSummary(r)
		if err != nil {
			return err
		}
		return a.importSubscribers(x, r, service, quiet)
	}
	service, p, err := a.subscriberBody(x, r, c)
	if err != nil {
		return err
	}
	s, err := a.deps.Subscribers.CreateSubscriber(r.Context(), service, p)
	if err != nil {
		return err
	}
	return answerSubscriber(x, http.StatusCreated, &s)
}

func (a *API) putSubscriber(x *responseWriter, r *http.Request, c caller) error {
	service, p, err := a.subscriberBody(x, r, c)
	if err != nil {
		return err
	}
	httpio.AllowLongResponse(x)
	s, created, err := a.deps.Subscribers.PutSubscriber(r.Context(), service, r.PathValue("id"), p, httpio.Preconditions[people.Subscriber](r))
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return answerSubscriber(x, status, &s)
}

func (a *API) patchSubscriber(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	if mt := httpio.MediaType(r.Header); mt != "" && mt != httpio.MergePatch && mt != "application/json" {
		return httpio.UnknownType(mt, httpio.MergePatch, "application/json")
	}
	text, err := httpio.ReadBody(x, r)
	if err != nil {
		return err
	}
	httpio.AllowLongResponse(x)
	s, err := a.deps.Subscribers.PatchSubscriber(r.Context(), service, r.PathValue("id"), text, httpio.Preconditions[people.Subscriber](r))
	if err != nil {
		return err
	}
	return answerSubscriber(x, http.StatusOK, &s)
}

func (a *API) deleteSubscriber(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	httpio.AllowLongResponse(x)
	if err := a.deps.Subscribers.DeleteSubscriber(r.Context(), service, r.PathValue("id"), httpio.Preconditions[people.Subscriber](r)); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) subscriberBody(x *responseWriter, r *http.Request, c caller) (service string, p people.SubscriberPut, err error) {
	if service, err = a.oneService(c); err == nil {
		err = httpio.ReadJSON(x, r, &p)
	}
	return service, p, err
}

func answerSubscriber(x *responseWriter, status int, s *people.Subscriber) error {
	if err := setTag(x, s); err != nil {
		return err
	}
	if status == http.StatusCreated {
		x.Header().Set("Location", "/v1/subscribers/"+url.PathEscape(s.ID))
	}
	return httpio.WriteJSON(x, status, "application/json", s)
}

// setTag sets the entity tag of the value in the response.
func setTag(x *responseWriter, v any) error {
	tag, err := httpio.TagOf(v)
	if err == nil {
		x.Header().Set("ETag", tag)
	}
	return err
}
