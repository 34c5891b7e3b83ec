package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// An ending says how far a request came.
type progress uint8

const (
	answered    progress = iota // or lost: the queue had let it go
	unsent                      // nothing left, and the receiver is why
	cancelled                   // nothing left, and the end of the context is why
	notReleased                 // the queue did not let it go
)

// drainTimeout is how long a receiver may take for the rest of an answer whose
// status is known.
const drainTimeout = 5 * time.Second

// Why a request was ended from this side.
var (
	errConnect     = errors.New("no connection in time")
	errSend        = errors.New("no answer in time")
	errNotReleased = errors.New("the queue did not let it go")
	errStopped     = errors.New("the connection is ending")
)

func now() time.Time { return time.Now().UTC() }

// An attempt is one request on its way.
type attempt struct {
	driver  *Driver
	queue   driver.Queue
	message *driver.Message

	ctx          context.Context // of the request; it outlives that of Serve once the message was let go
	cancel       context.CancelCauseFunc
	limit        *time.Timer
	stopWatching func() bool // from the context of Serve

	mu       sync.Mutex
	released bool
	deadline time.Time // of one that is released
	ended    bool      // the context of Serve
}

// begin sets the limits under which a connection is to be found.
func begin(ctx context.Context, d *Driver, queue driver.Queue, message *driver.Message) *attempt {
	a := &attempt{driver: d, queue: queue, message: message}
	a.ctx, a.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	a.ctx = httptrace.WithClientTrace(a.ctx, &httptrace.ClientTrace{GotConn: a.connected})
	a.limit = time.AfterFunc(d.config.ConnectTimeout+d.config.TLSTimeout, a.onDeadline)
	a.stopWatching = context.AfterFunc(ctx, a.stop)
	return a
}

// onDeadline ends a request that takes too long.
func (a *attempt) onDeadline() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.released {
		a.cancel(errSend)
	} else {
		a.cancel(errConnect)
	}
}

// stop ends a request with the context of Serve, unless it was let go.
func (a *attempt) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if !a.released {
		a.cancel(errStopped)
	}
}

// connected is called by the transport, on the way of run, when there is a
// connection and nothing of the request was written. It asks the queue. A request
// that the transport repeats, which no receiver has seen, was let go before.
func (a *attempt) connected(info httptrace.GotConnInfo) {
	a.mu.Lock()
	if a.released {
		a.mu.Unlock()
		return
	}
	ended := a.ended
	a.mu.Unlock()
	why := errStopped
	if !ended {
		if a.queue.Release(a.message) {
			a.mu.Lock()
			a.released, a.deadline = true, time.Now().Add(a.driver.config.SendTimeout)
			a.limit.Reset(a.driver.config.SendTimeout)
			a.mu.Unlock()
			return
		}
		why = errNotReleased
	}
	a.cancel(why)
	// HTTP/2 looks at the context before it writes; HTTP/1 does not.
	if t, ok := info.Conn.(*tls.Conn); !ok || t.ConnectionState().NegotiatedProtocol != "h2" {
		_ = info.Conn.Close()
	}
}

// run makes the request and reads its answer.
func (a *attempt) run(to *url.URL) (driver.Outcome, progress) {
	defer a.cancel(nil)
	defer a.limit.Stop()
	defer a.stopWatching()
	response, err := a.driver.transport.RoundTrip(a.request(to))
	if err != nil {
		return a.failure(err)
	}
	defer func() { _ = response.Body.Close() }() // nothing depends on what is thrown away
	outcome := driver.Outcome{Verdict: verdictOf(response.StatusCode), Code: response.StatusCode}
	if outcome.Verdict != driver.Accepted {
		outcome.RetryAfter = retryAfter(response.Header.Get("Retry-After"), now())
	}
	outcome.Text = a.text(response)
	return outcome, answered
}

// request makes the request. Its body is a copy: the transport may go on reading
// it after a receiver has answered, when the memory of the message has another one's.
func (a *attempt) request(to *url.URL) *http.Request {
	c, id, unix := &a.driver.config, a.message.Delivery.String(), now().Unix()
	body := bytes.Clone(a.message.Body)
	signature := sign(c.Keys, c.Service, a.message.To, id, unix, body)
	request := &http.Request{
		Method: http.MethodPost, URL: to, Host: to.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type":      {"application/json"},
			"User-Agent":        {"Fanfare"},
			"Webhook-Id":        {id},
			"Webhook-Timestamp": {strconv.FormatInt(unix, 10)},
			"Webhook-Signature": {signature},
		},
		ContentLength: int64(len(body)),
		Body:          io.NopCloser(bytes.NewReader(body)),
		GetBody:       func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}
	return request.WithContext(a.ctx)
}

// failure says what came of a request without an answer.
func (a *attempt) failure(err error) (driver.Outcome, progress) {
	cause := context.Cause(a.ctx)
	a.mu.Lock()
	released := a.released
	a.mu.Unlock()
	switch {
	case errors.Is(cause, errNotReleased):
		return driver.Outcome{}, notReleased
	case errors.Is(cause, errStopped):
		return driver.Outcome{}, cancelled
	case cause != nil:
		err = cause
	}
	if released {
		return driver.Outcome{Verdict: driver.Lost, Text: replyText("there was no answer: " + err.Error()), Class: fanfare.ClassNetwork}, answered
	}
	outcome := driver.Outcome{Verdict: driver.Temporary, Text: replyText("nothing was sent: " + err.Error()), Class: fanfare.ClassNetwork}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		outcome.Verdict, outcome.Text, outcome.Class = driver.Permanent, replyText(refused.Error()), fanfare.ClassInvalid
	}
	return outcome, unsent
}

// text reads the answer's body and returns what is worth keeping: the status, where
// a redirect leads, and how the receiver explains a refusal.
func (a *attempt) text(response *http.Response) string {
	text := http.StatusText(response.StatusCode)
	if text == "" {
		text = "status " + strconv.Itoa(response.StatusCode)
	}
	a.mu.Lock()
	a.limit.Reset(min(drainTimeout, time.Until(a.deadline)))
	a.mu.Unlock()
	var said []byte
	if response.StatusCode >= http.StatusOK { // behind 101 there is no body, but another protocol
		said = a.outcomeOf(response)
	}
	switch response.StatusCode / 100 {
	case 2:
		return text
	case 3:
		return replyText(text + ": redirects are not followed, this one leads to " + response.Header.Get("Location"))
	}
	if len(said) > 0 {
		text += ": " + string(said)
	}
	return replyText(text)
}

// outcomeOf reads the body as far as it is taken, so that the connection can be used
// again, and returns its beginning.
func (a *attempt) outcomeOf(response *http.Response) []byte {
	var buffer [4096]byte
	var first []byte
	for rest := maxBodyBytes; rest > 0; {
		n, err := response.Body.Read(buffer[:min(len(buffer), rest)])
		if first == nil && n > 0 && response.StatusCode/100 > 3 {
			first = bytes.TrimSpace(bytes.Clone(buffer[:min(n, 512)]))
		}
		if rest -= n; err != nil {
			break
		}
	}
	return first
}

// verdictOf says what a status means. Redirects are for good: whoever moved has to
// say so to whoever subscribed them, since a signature is for one receiver.
func verdictOf(status int) driver.Verdict {
	switch {
	case status/100 == 2:
		return driver.Accepted
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status/100 == 5:
		return driver.Temporary
	}
	return driver.Permanent
}

// maxRetryAfter is the longest wait that is believed.
const maxRetryAfter = 7 * 24 * time.Hour

// retryAfter reads the header field of that name (RFC 9110, section 10.2.3):
// seconds or a date. 0 is none, or one that has passed.
func retryAfter(field string, now time.Time) time.Duration {
	field = strings.TrimSpace(field)
	if field == "" {
		return 0
	}
	if strings.Trim(field, "0123456789") == "" {
		seconds, err := strconv.ParseInt(field, 10, 64)
		if err != nil { // out of range
			seconds = math.MaxInt64
		}
		return time.Duration(min(seconds, int64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(field)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
