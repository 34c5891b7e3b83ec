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

// progress is the last stage that a request reached.
type progress uint8

const (
	answered    progress = iota // the queue released the message; there was a reply, or the message may be lost
	unsent                      // nothing was sent, because of the receiver
	cancelled                   // nothing was sent, because the context ended
	notReleased                 // the queue did not release the message
)

// drainTimeout is the time that a receiver has to finish a response after its status.
const drainTimeout = 5 * time.Second

// The reasons for which this side ends a request.
var (
	errConnect     = errors.New("the connection timed out")
	errSend        = errors.New("response timeout")
	errNotReleased = errors.New("the queue did not release the message")
	errAborted     = errors.New("this node has lost the link to the leader")
	errStopped     = errors.New("the server is stopping or the settings of the channel have changed")
)

func now() time.Time { return time.Now().UTC() }

// An attempt is one request.
type attempt struct {
	driver  *Driver
	queue   driver.Queue
	message *driver.Message

	ctx          context.Context // of the request; after the release it outlives the context of Serve
	cancel       context.CancelCauseFunc
	limit        *time.Timer
	stopWatching func() bool // stops watching the context of Serve
	stopAborting func() bool // stops watching Config.Abort; nil: it is not set

	mu       sync.Mutex
	released bool
	deadline time.Time // after the release
	ended    bool      // the context of Serve
}

// begin starts the timeout for the connection.
func begin(ctx context.Context, d *Driver, queue driver.Queue, message *driver.Message) *attempt {
	a := &attempt{driver: d, queue: queue, message: message}
	a.ctx, a.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	a.ctx = httptrace.WithClientTrace(a.ctx, &httptrace.ClientTrace{GotConn: a.connected})
	a.limit = time.AfterFunc(d.config.ConnectTimeout+d.config.TLSTimeout, a.onDeadline)
	a.stopWatching = context.AfterFunc(ctx, a.stop)
	if d.config.Abort != nil {
		a.stopAborting = context.AfterFunc(d.config.Abort, func() { a.cancel(errAborted) })
	}
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

// stop ends a request that was not released, together with the context of Serve.
func (a *attempt) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if !a.released {
		a.cancel(errStopped)
	}
}

// The transport calls connected during run when there is a connection and nothing of the
// request was written. It releases the message. If the transport repeats a request that no
// receiver has seen, the message was released before.
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
	// HTTP/2 checks the context before it writes; HTTP/1 does not.
	if t, ok := info.Conn.(*tls.Conn); !ok || t.ConnectionState().NegotiatedProtocol != "h2" {
		_ = info.Conn.Close()
	}
}

// run sends the request and reads the response.
func (a *attempt) run(to *url.URL) (driver.Outcome, progress) {
	defer a.cancel(nil)
	defer a.limit.Stop()
	defer a.stopWatching()
	if a.stopAborting != nil {
		defer a.stopAborting()
	}
	response, err := a.driver.transport.RoundTrip(a.request(to))
	if err != nil {
		return a.failure(err)
	}
	defer func() { _ = response.Body.Close() }() // an error has no effect
	outcome := driver.Outcome{Verdict: verdictOf(response.StatusCode), Code: response.StatusCode}
	if outcome.Verdict != driver.Accepted {
		outcome.RetryAfter = retryAfter(response.Header.Get("Retry-After"), now())
	}
	outcome.Text = a.text(response)
	return outcome, answered
}

// request builds the request. Its body is a copy, since the transport may still read it
// after the response, when the queue uses the memory for another message.
func (a *attempt) request(to *url.URL) *http.Request {
	c, id, unix := &a.driver.config, a.message.Delivery.String(), now().Unix()
	body := bytes.Clone(a.message.Body)
	signature := sign(c.Keys, c.Service, a.driver.receiver(a.message), id, unix, body)
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
	if c.Authorization != "" {
		request.Header["Authorization"] = []string{c.Authorization}
	}
	return request.WithContext(a.ctx)
}

// failure returns the outcome of a request without a response.
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
		return driver.Outcome{Verdict: driver.Lost, Text: replyText("no response was received: " + err.Error()), Class: fanfare.ClassNetwork}, answered
	}
	outcome := driver.Outcome{Verdict: driver.Temporary, Text: replyText("nothing was sent: " + err.Error()), Class: fanfare.ClassNetwork}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		outcome.Verdict, outcome.Text, outcome.Class = driver.Permanent, replyText(refused.Error()), fanfare.ClassInvalid
	}
	return outcome, unsent
}

// text reads the response body and returns the text to record: the status, the target of a
// redirect, and the explanation of a refusal.
func (a *attempt) text(response *http.Response) string {
	text := http.StatusText(response.StatusCode)
	if text == "" {
		text = "status " + strconv.Itoa(response.StatusCode)
	}
	a.mu.Lock()
	a.limit.Reset(min(drainTimeout, time.Until(a.deadline)))
	a.mu.Unlock()
	var body []byte
	if response.StatusCode >= http.StatusOK { // after 101 follows another protocol and no body
		body = a.readBody(response)
	}
	switch response.StatusCode / 100 {
	case 2:
		return text
	case 3:
		return replyText(text + ": redirects are not followed; the target is " + response.Header.Get("Location"))
	}
	if len(body) > 0 {
		text += ": " + string(body)
	}
	return replyText(text)
}

// readBody reads the body up to the maximum, so that the connection can be used again, and
// returns its beginning.
func (a *attempt) readBody(response *http.Response) []byte {
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

// verdictOf returns the verdict of a status. A redirect is permanent: a signature is valid for
// one receiver, so the subscription must contain the new URL.
func verdictOf(status int) driver.Verdict {
	switch {
	case status/100 == 2:
		return driver.Accepted
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status/100 == 5:
		return driver.Temporary
	}
	return driver.Permanent
}

// maxRetryAfter is the longest wait that a receiver can ask for.
const maxRetryAfter = 7 * 24 * time.Hour

// retryAfter parses the header field Retry-After (RFC 9110, section 10.2.3): seconds or a
// date. It returns 0 if there is none, or if it has passed.
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
