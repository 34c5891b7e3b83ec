package notify

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

const (
	pageSize = 250
	// searchTime bounds the search for notifications with a status. A page that is not full then ends early.
	searchTime = 10 * time.Second
	// latestTime bounds the wait for a message that was accepted just before.
	latestTime = 5 * time.Second
)

// listStatuses are the values of the parameter status.
var listStatuses = []string{"cancelled", "created", "sending", "sent", "delivered", "pending", "failed", "technical-failure", "temporary-failure", "permanent-failure",
	"pending-virus-check", "validation-failed", "virus-scan-failed", "returned-letter", "accepted", "received"}

// A filter selects notifications of the type of the calling key.
type filter struct {
	types     []string // none: all
	statuses  []string // none: all
	reference string
	filtered  bool // by a reference, which may be ""
	before    fanfare.EventRef
	none      bool // the page is empty
}

// list answers with a page of notifications, the newest first.
func (a *API) list(r *http.Request, c *caller) (int, any, error) {
	query := r.URL.Query()
	f, err := a.readFilter(query, c)
	if err != nil {
		return 0, nil, err
	}
	found := []*notification{}
	if !f.none {
		if f.before == (fanfare.EventRef{}) {
			a.awaitLatest(r.Context(), c.service.Name)
		}
		if found, err = a.search(r.Context(), c, f); err != nil {
			return 0, nil, err
		}
		if err := a.addAddresses(r.Context(), found); err != nil {
			return 0, nil, err
		}
	}
	links := map[string]string{"current": a.url(r.URL.RequestURI())}
	if len(found) > 0 {
		links["next"] = a.url("/v2/notifications?" + nextQuery(query, found[len(found)-1].ID))
	}
	return http.StatusOK, map[string]any{"notifications": found, "links": links}, nil
}

// awaitLatest waits until the store has the last message that this process accepted for a service, but not for long: a
// client finds in the list what it has just sent.
func (a *API) awaitLatest(ctx context.Context, service string) {
	latest, ok := a.latest.Load(service)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, latestTime)
	defer cancel()
	again := time.NewTicker(latestTime / 500)
	defer again.Stop()
	for {
		if posted, err := a.options.Store.Posted(ctx, latest.(fanfare.EventRef)); err == nil && posted != nil || ctx.Err() != nil {
			a.latest.CompareAndDelete(service, latest)
			return
		}
		select {
		case <-ctx.Done():
		case <-again.C:
		}
	}
}

// nextQuery returns the query of the next page. older_than comes first: clients take the first UUID of the link, and a
// reference may be one.
func nextQuery(query url.Values, last string) string {
	others := url.Values{}
	for name, values := range query {
		if name != "older_than" {
			others[name] = values
		}
	}
	next := "older_than=" + last
	if len(others) > 0 {
		next += "&" + others.Encode()
	}
	return next
}

// readFilter reads the query.
func (a *API) readFilter(query url.Values, c *caller) (*filter, error) {
	f := &filter{}
	var problems, others []string
	names := make([]string, 0, len(query))
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names)
	oneOf := func(name string, allowed []string) {
		for _, value := range query[name] {
			if !slices.Contains(allowed, value) {
				problems = append(problems, name+" "+show(value)+" is not one of ["+strings.Join(allowed, ", ")+"]")
			}
		}
	}
	for _, name := range names {
		switch value := query.Get(name); name {
		case "template_type":
			oneOf(name, []string{"sms", "email", "letter"})
			f.types = query[name]
		case "status":
			oneOf(name, listStatuses)
			f.statuses = expand(query[name])
		case "include_jobs":
			oneOf(name, []string{"true", "True"})
		case "reference":
			f.reference, f.filtered = value, true
		case "older_than":
			if !isUUID(value) {
				problems = append(problems, "older_than is not a valid UUID")
			} else if ref, ok := a.ids.Parse(c.service.Name, strings.ToLower(value)); ok {
				f.before = ref
			} else {
				f.none = true
			}
		default:
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		problems = append(problems, unexpected(others...))
	}
	return f, invalid(problems)
}

// expand returns the statuses that the values of a filter stand for.
func expand(values []string) (all []string) {
	for _, value := range values {
		switch value {
		case "failed":
			all = append(all, statusTechnical, statusTemporary, statusPermanent)
		case "accepted":
			all = append(all, statusCreated, statusSending)
		case "received":
			all = append(all, statusDelivered)
		default:
			all = append(all, value)
		}
	}
	return all
}

// labels returns the labels of the messages that a list may contain.
func (f *filter) labels(key string) (all []string) {
	for _, sms := range []bool{false, true} {
		if len(f.types) == 0 || slices.Contains(f.types, typeName(sms)) {
			all = append(all, deliveries.NotifyLabel(key, sms))
		}
	}
	return all
}

// search returns a page.
func (a *API) search(ctx context.Context, c *caller, f *filter) (found []*notification, err error) {
	found = []*notification{}
	labels := f.labels(c.key.Type)
	if len(labels) == 0 {
		return found, nil
	}
	days, err := a.options.Store.Days(ctx)
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(searchTime)
	for _, day := range days {
		if f.before.Day != 0 && day > f.before.Day {
			continue
		}
		var before fanfare.EventSeq
		if day == f.before.Day {
			before = f.before.Seq
		}
		for more := true; more; {
			var seqs []fanfare.EventSeq
			if seqs, more, err = a.candidates(ctx, c, f, day, labels, before); err != nil {
				return nil, err
			}
			for _, seq := range seqs {
				before = seq
				n, err := a.candidate(ctx, c, f, fanfare.EventRef{Day: day, Seq: seq})
				if err != nil {
					return nil, err
				}
				if n != nil {
					found = append(found, n)
				}
				if len(found) == pageSize {
					return found, nil
				}
			}
			if time.Now().After(end) {
				if len(found) > 0 {
					return found, nil
				}
				return nil, refuse(http.StatusGatewayTimeout, nameTimeout, "Timed out")
			}
		}
	}
	return found, nil
}

// candidates returns messages of a day before one of them, newest first, and whether there may be more.
func (a *API) candidates(ctx context.Context, c *caller, f *filter, day fanfare.Day, labels []string, before fanfare.EventSeq) (seqs []fanfare.EventSeq, more bool, err error) {
	if f.filtered && f.reference != "" {
		seqs, err = a.options.Store.FindReference(ctx, day, c.service.Name, f.reference)
		seqs = slices.DeleteFunc(seqs, func(seq fanfare.EventSeq) bool { return before != 0 && seq >= before })
	} else {
		seqs, err = a.options.Store.LatestNotify(ctx, day, c.service.Name, labels, before, pageSize)
		more = len(seqs) == pageSize
	}
	if err != nil && fanfare.CodeOf(err) == fanfare.NotFound { // the day was removed in the meantime
		return nil, false, nil
	}
	return seqs, more, err
}

// candidate returns the notification of a message, or nil if the list does not contain it.
func (a *API) candidate(ctx context.Context, c *caller, f *filter, ref fanfare.EventRef) (*notification, error) {
	posted, err := a.options.Messages.Posted(ctx, c.service.Name, ref)
	if fanfare.CodeOf(err) == fanfare.NotFound && err != nil {
		return nil, nil //nolint:nilerr // another service has the same key of the index, or the day was removed
	}
	if err != nil {
		return nil, err
	}
	d := posted.Direct
	if d.Notify == nil || d.Notify.Key != c.key.Type || len(d.Recipients) == 0 || f.filtered && d.Reference != f.reference ||
		len(f.types) > 0 && !slices.Contains(f.types, typeName(d.Notify.SMS)) {
		return nil, nil
	}
	message, err := a.options.Messages.State(ctx, posted)
	if err != nil {
		return nil, err
	}
	n := a.notificationOf(c, posted, &message)
	if len(f.statuses) > 0 && !slices.Contains(f.statuses, n.Status) {
		return nil, nil
	}
	return n, nil
}
