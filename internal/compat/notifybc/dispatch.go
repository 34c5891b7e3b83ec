package notifybc

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/pipeline/ingest/messages"
)

const (
	// maxDispatchIDs is the maximum number of ids in dispatch.
	maxDispatchIDs = 10_000
	// unicastPatience is how long the answer to a unicast waits for its delivery.
	unicastPatience = 10 * time.Second
	callbackTimeout = 30 * time.Second
	// maxCallbackAnswer is the part of the answer of a callback that is read.
	maxCallbackAnswer = 64 << 10
	// An event that is being sent is looked at after minPoll, and then less often, up to maxPoll.
	minPoll = 5 * time.Millisecond
	maxPoll = time.Second
	// retryPause is the time after which a notification that could not be posted is tried again.
	retryPause = 10 * time.Second
)

// work holds the notifications that are not finished: those that are not due yet, and those that a goroutine dispatches.
type work struct {
	mu      sync.Mutex
	due     map[string]time.Time // by id
	changed chan struct{}
	running sync.WaitGroup
	context context.Context // of Run
	early   []func(context.Context)
}

func (w *work) init() { w.due, w.changed = map[string]time.Time{}, make(chan struct{}, 1) }

// add makes Run dispatch a notification when it is due.
func (w *work) add(id string, at time.Time) {
	w.mu.Lock()
	w.due[id] = at
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// take removes and returns the notifications that are due, and the time of the next one.
func (w *work) take(now time.Time) (ids []string, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, at := range w.due {
		switch {
		case !at.After(now):
			ids = append(ids, id)
			delete(w.due, id)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	slices.Sort(ids)
	return ids, next
}

// start runs a function until Run ends.
func (w *work) start(run func(context.Context)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.context == nil {
		w.early = append(w.early, run)
		return
	}
	ctx := w.context
	w.running.Go(func() { run(ctx) })
}

// begin lets start run functions in a context.
func (w *work) begin(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.context = ctx
	for _, run := range w.early {
		w.running.Go(func() { run(ctx) })
	}
	w.early = nil
}

// Open reads the notifications that were not finished before the last stop. Run dispatches them.
func (a *API) Open(ctx context.Context) error {
	for after := ""; ; {
		list, err := a.Records.NotifyBCRecords(ctx, a.Settings.Service, kindPending, after, pageSize)
		if err != nil {
			return err
		}
		for i := range list {
			a.work.add(list[i].ID, time.UnixMilli(list[i].Updated))
			after = list[i].ID
		}
		if len(list) < pageSize {
			return nil
		}
	}
}

// Run dispatches notifications when they are due, until ctx ends.
func (a *API) Run(ctx context.Context) {
	a.work.begin(ctx)
	defer a.work.running.Wait()
	for {
		ids, next := a.work.take(a.Clock.Now())
		for _, id := range ids {
			a.work.start(func(ctx context.Context) { a.resume(ctx, id) })
		}
		pause := time.Minute
		if !next.IsZero() {
			pause = min(pause, max(next.Sub(a.Clock.Now()), time.Millisecond))
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-a.work.changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// resume dispatches a stored notification, or waits for its end if it was posted before.
func (a *API) resume(ctx context.Context, id string) {
	n, err := a.load(ctx, id)
	switch {
	case err == errMissing: //nolint:errorlint // load returns it as it is
		err = a.Records.ChangeNotifyBCRecords(ctx, nil, a.pendingKey(id))
	case err == nil && n.text("state") == stateDeleted:
		err = a.Records.ChangeNotifyBCRecords(ctx, nil, a.pendingKey(id))
	case err != nil:
	case n.isBroadcast():
		a.finish(ctx, n)
		return
	default:
		var to *subscription
		if to, err = a.recipient(ctx, n); err != nil {
			n.Members.set("state", stateError)
			err = a.keep(ctx, n, a.pendingKey(n.id))
			break
		}
		err = a.sendUnicast(ctx, n, to)
	}
	if err != nil {
		a.later(ctx, id, err)
	}
}

// later tries a notification again after a pause.
func (a *API) later(ctx context.Context, id string, err error) {
	if ctx.Err() != nil {
		return
	}
	a.Logger.Warn("a notification of the NotifyBC API could not be dispatched; it is tried again", "notification", id, "error", err)
	a.work.add(id, a.Clock.Now().Add(retryPause))
}

// eventID returns the id of the event of a notification.
func (n *notification) eventID() string {
	id := "notifybc-" + n.id
	if n.Round > 0 {
		id += "-" + strconv.Itoa(n.Round)
	}
	return id
}

// sendUnicast sends a notification to one address, and waits for the outcome for a while. It sets the state.
func (a *API) sendUnicast(ctx context.Context, n *notification, to *subscription) error {
	content, err := a.content(n, to)
	if err != nil {
		return err
	}
	ref, found, err := a.posted(ctx, n)
	if err != nil {
		return err
	}
	if !found {
		failpoint.Hit("before-notifybc-post")
		ref, err = a.Messages.SendContent(ctx, a.Settings.Service, &messages.ContentMessage{Key: n.eventID(), Channel: a.ourChannel(n.channel()), To: n.text("userChannelId"), Content: *content})
		failpoint.Hit("after-notifybc-post")
	}
	switch {
	case err != nil && fanfare.CodeOf(err) != fanfare.Invalid && fanfare.CodeOf(err) != fanfare.TooLarge && fanfare.CodeOf(err) != fanfare.Conflict:
		return err
	case err != nil:
		a.Logger.Info("a notification of the NotifyBC API could not be sent", "notification", n.id, "error", err)
		n.Members.set("state", stateError)
	default:
		n.Event = ref.String()
		n.Members.set("state", stateSending)
		limited, stop := context.WithTimeout(ctx, unicastPatience)
		a.settled(limited, n)
		stop()
	}
	n.Members.set("updated", a.now())
	failpoint.Hit("before-notifybc-end")
	return a.keep(context.WithoutCancel(ctx), n, a.pendingKey(n.id))
}

// posted returns the event of a notification that was posted before a kill. A new notification has none.
func (a *API) posted(ctx context.Context, n *notification) (ref fanfare.EventRef, found bool, err error) {
	if ref, ok := fanfare.ParseEventRef(n.Event); ok {
		return ref, true, nil
	}
	if created, _ := parseTime(n.text("created")); a.Clock.Now().Sub(created) < time.Minute {
		return ref, false, nil // the intake knows the ids of recent events
	}
	ref, err = a.Traces.FindEvent(ctx, a.Settings.Service, n.eventID())
	if err != nil && fanfare.CodeOf(err) == fanfare.NotFound {
		return ref, false, nil
	}
	return ref, err == nil, err
}

// post posts the event of a broadcast, once.
func (a *API) post(ctx context.Context, n *notification) error {
	ref, found, err := a.posted(ctx, n)
	if err != nil {
		return err
	}
	if found {
		n.Event = ref.String()
		return nil
	}
	content, err := a.content(n, nil)
	if err != nil {
		return err
	}
	channel, ok := a.Topics.ChannelNamed(a.Settings.Service, a.ourChannel(n.channel()))
	if !ok {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the service " + quote(a.Settings.Service) + " has no channel " + quote(a.ourChannel(n.channel()))}
	}
	content.Channel = channel.Number
	topic, err := a.ensureTopic(ctx, n.text("serviceName"))
	if err != nil {
		return err
	}
	event := fanfare.AcceptedEvent{
		Service: a.Settings.Service, Topic: topic, Lane: fanfare.TopicLane, Content: content,
		Event: fanfare.Event{ID: n.eventID(), Source: "/notifybc", Type: topic, Data: n.Members["data"]},
	}
	if filter := n.text("broadcastPushNotificationSubscriptionFilter"); filter != "" {
		event.Audience = &fanfare.AudienceFilter{Filter: "!has(data.data) || jmespath(data.data, " + literal(filter) + ")"}
	}
	failpoint.Hit("before-notifybc-post")
	results, err := a.Intake.Post(ctx, []fanfare.AcceptedEvent{event})
	failpoint.Hit("after-notifybc-post")
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return err
	}
	n.Event = results[0].Ref.String()
	return nil
}

// broadcast posts a broadcast and waits until all of its deliveries are settled, or ctx ends. The notification is then
// stored as sent.
func (a *API) broadcast(ctx context.Context, n *notification) error {
	if n.Event == "" {
		if err := a.post(ctx, n); err != nil {
			return err
		}
		n.Members.set("state", stateSending)
		n.Members.set("updated", a.now())
		var err error
		if n.Candidates, err = a.candidates(ctx, n); err != nil {
			return err
		}
		if err := a.keep(context.WithoutCancel(ctx), n); err != nil {
			return err
		}
	}
	a.settled(ctx, n)
	if n.text("state") == stateSending {
		return context.Cause(ctx)
	}
	n.Members.set("updated", a.now())
	failpoint.Hit("before-notifybc-end")
	return a.keep(context.WithoutCancel(ctx), n, a.pendingKey(n.id))
}

// candidates returns the ids of the confirmed subscriptions of a broadcast, up to one more than fit into dispatch.
func (a *API) candidates(ctx context.Context, n *notification) (ids []string, err error) {
	f := people.SubscriptionFilter{Topic: topicName(n.text("serviceName")), Channel: a.ourChannel(n.channel()), State: people.StateActive}
	for after := fanfare.RowID(0); len(ids) <= maxDispatchIDs; {
		page, next, err := a.Subscriptions.SubscriptionPage(ctx, a.Settings.Service, f, after, pageSize)
		if err != nil {
			return nil, err
		}
		for i := range page {
			ids = append(ids, page[i].ID)
		}
		if next == 0 {
			break
		}
		after = next
	}
	return ids[:min(len(ids), maxDispatchIDs+1)], nil
}

// settled waits until all deliveries of a notification are settled, or ctx ends, and sets the state.
func (a *API) settled(ctx context.Context, n *notification) {
	ref, ok := fanfare.ParseEventRef(n.Event)
	if !ok {
		return
	}
	done, forget := a.Recorder.Await(ref)
	defer forget()
	if a.setState(ctx, n); n.text("state") != stateSending {
		return
	}
	for pause := minPoll; ; pause = min(2*pause, maxPoll) { // the recorder does not report an event that matches nobody
		timer := time.NewTimer(pause)
		select {
		case <-done:
			timer.Stop()
			done = nil // it has been told
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if a.setState(ctx, n); n.text("state") != stateSending {
			return
		}
	}
}

// completedBroadcast is the state of a broadcast whose deliveries are all settled.
const completedBroadcast = "completed"

// setState sets the state of a notification that is being sent to that of its deliveries.
func (a *API) setState(ctx context.Context, n *notification) {
	ref, ok := fanfare.ParseEventRef(n.Event)
	if !ok || n.text("state") != stateSending {
		return
	}
	b, err := a.Traces.Broadcast(ctx, ref)
	switch {
	case err != nil && fanfare.CodeOf(err) == fanfare.NotFound: // it is older than the record of deliveries
		n.Members.set("state", stateSent)
	case err != nil, b.State != completedBroadcast && b.Stages.Completed.IsZero():
	case !n.isBroadcast() && b.Counts[fanfare.Accepted]+b.Counts[fanfare.Delivered] == 0:
		n.Members.set("state", stateError)
	default:
		n.Members.set("state", stateSent)
	}
}

// answerWhenSent sends a broadcast, and answers when it is sent.
func (a *API) answerWhenSent(x *Exchange, n *notification) error {
	out := http.NewResponseController(x.Writer)
	_ = out.SetReadDeadline(time.Time{}) // a connection without deadlines has none to remove
	_ = out.SetWriteDeadline(time.Time{})
	ctx, cancel := context.WithCancel(x.Request.Context())
	defer cancel()
	go func() {
		select {
		case <-a.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := a.broadcast(ctx, n); err != nil {
		if ctx.Err() != nil || fanfare.CodeOf(err) != fanfare.Invalid {
			a.work.add(n.id, a.Clock.Now()) // it goes on without the client
		}
		if ctx.Err() != nil {
			err = &Failure{Status: http.StatusServiceUnavailable, Message: "the server is stopping; the notification " + n.id + " is sent after the next start"}
		}
		return err
	}
	record, err := a.withDispatch(ctx, n, n.Host)
	if err != nil {
		return err
	}
	return x.JSON(record)
}

// finish sends a broadcast for which no client waits, and posts the result to the URL of the client.
func (a *API) finish(ctx context.Context, n *notification) {
	err := a.broadcast(ctx, n)
	if err != nil {
		a.later(ctx, n.id, err)
		return
	}
	if n.callback() == "" {
		return
	}
	record, err := a.withDispatch(ctx, n, n.Host)
	if err == nil {
		err = a.call(ctx, n.callback(), record)
	}
	if err != nil {
		a.Logger.Warn("a finished notification of the NotifyBC API could not be posted to the URL of the client", "notification", n.id, "error", err)
	}
}

// call posts a record to a URL. The answer does not matter.
func (a *API) call(ctx context.Context, target string, record Members) error {
	body, err := json.Marshal(record)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, callbackTimeout)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.Client.Do(request)
	if err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, response.Body, maxCallbackAnswer) // so that the connection can be used again
	return response.Body.Close()
}

// A dispatch has the outcomes of a broadcast.
type dispatch struct {
	Candidates []string         `json:"candidates,omitempty"`
	Successful []string         `json:"successful,omitempty"`
	Skipped    []string         `json:"skipped,omitempty"`
	Failed     []failedDispatch `json:"failed,omitempty"`
	Truncated  bool             `json:"truncated,omitempty"` // not all ids are listed
	Next       string           `json:"next,omitempty"`      // URL of the rest of the outcomes
}

type failedDispatch struct {
	SubscriptionID string        `json:"subscriptionId"`
	UserChannelID  string        `json:"userChannelId"`
	Error          dispatchError `json:"error"`
}

type dispatchError struct {
	State        string `json:"state"`
	ResponseCode int    `json:"responseCode,omitempty"`
	Response     string `json:"response,omitempty"`
}

// withDispatch returns a notification as clients see it, with the outcomes of a broadcast.
func (a *API) withDispatch(ctx context.Context, n *notification, host string) (Members, error) {
	r := n.record()
	ref, ok := fanfare.ParseEventRef(n.Event)
	if !ok || !n.isBroadcast() {
		return r, nil
	}
	d, cursor, err := a.outcomes(ctx, ref, "")
	if err != nil {
		if fanfare.CodeOf(err) == fanfare.NotFound { // it is older than the record of deliveries
			return r, nil
		}
		return nil, err
	}
	if cursor != "" {
		d.Truncated, d.Next = true, host+a.Settings.Root+"/notifications/"+n.id+"/dispatch?cursor="+cursor
	}
	d.Candidates = n.Candidates
	if len(d.Candidates) > maxDispatchIDs {
		d.Candidates, d.Truncated = d.Candidates[:maxDispatchIDs], true
	}
	if a.Settings.Notification.LogSkipped && !d.Truncated {
		d.Skipped = skipped(d)
	}
	r.set("dispatch", d)
	return r, nil
}

// skipped returns the candidates without an outcome.
func skipped(d *dispatch) (ids []string) {
	known := make(map[string]bool, len(d.Candidates))
	for _, id := range d.Successful {
		known[id] = true
	}
	for i := range d.Failed {
		known[d.Failed[i].SubscriptionID] = true
	}
	for _, id := range d.Candidates {
		if !known[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// outcomes returns the outcomes of at most maxDispatchIDs deliveries, and where the others begin.
func (a *API) outcomes(ctx context.Context, ref fanfare.EventRef, cursor string) (*dispatch, string, error) {
	d := &dispatch{}
	page, next, err := a.Traces.Deliveries(ctx, ref, cursor, maxDispatchIDs)
	if err != nil {
		return nil, "", err
	}
	for i := range page {
		d.add(&page[i])
	}
	return d, next, nil
}

// add adds the outcome of a delivery.
func (d *dispatch) add(of *fanfare.Delivery) {
	for _, id := range of.Subscriptions {
		switch of.State {
		case fanfare.Accepted.String(), fanfare.Delivered.String():
			d.Successful = append(d.Successful, id)
		case fanfare.Failed.String(), fanfare.Expired.String(), fanfare.Cancelled.String(), fanfare.Suppressed.String():
			failed := failedDispatch{SubscriptionID: id, UserChannelID: of.Address, Error: dispatchError{State: of.State}}
			if n := len(of.Attempts); n > 0 {
				failed.Error.ResponseCode, failed.Error.Response = of.Attempts[n-1].Code, of.Attempts[n-1].Text
			}
			d.Failed = append(d.Failed, failed)
		}
	}
}

// listDispatch lists the outcomes that did not fit into dispatch.
func (a *API) listDispatch(x *Exchange) error {
	n, err := a.load(x.Request.Context(), x.Request.PathValue("id"))
	if err != nil {
		return err
	}
	ref, ok := fanfare.ParseEventRef(n.Event)
	if !ok || !n.isBroadcast() {
		return errMissing
	}
	d, cursor, err := a.outcomes(x.Request.Context(), ref, x.Request.URL.Query().Get("cursor"))
	if err != nil {
		return err
	}
	if cursor != "" {
		d.Truncated, d.Next = true, x.httpHost()+a.Settings.Root+"/notifications/"+n.id+"/dispatch?cursor="+cursor
	}
	return x.JSON(d)
}
