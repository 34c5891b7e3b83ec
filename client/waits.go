package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"fanfare.dev/fanfare"
)

// waits reports to a person why a call waits.
type waits struct {
	after time.Duration
	tell  func(why string)
}

// ToldOfWaits returns a client that reports waits: it calls tell if a call has had no response for
// the time after, or waits at least that long before its next attempt. why is a sentence that begins
// in lower case. tell can be called from several goroutines.
func (c *Client) ToldOfWaits(after time.Duration, tell func(why string)) *Client {
	other := *c
	other.waits = &waits{after, tell}
	return &other
}

// watch reports that a call has no answer yet, until stop is called.
func (c *Client) watch(ctx context.Context, r *request) (stop func()) {
	if c.waits == nil || r.stream != nil { // the answer to a stream comes at its end
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(c.waits.after, func() {
		why := c.whyNot(ctx)
		if ctx.Err() == nil {
			c.waits.tell("waiting for " + c.base + " to answer " + r.method + " " + r.path + ": " + why)
		}
	})
	return func() {
		timer.Stop()
		cancel()
	}
}

// readyLimit is how long the server may take to say whether it is ready.
const readyLimit = time.Second

// whyNot asks the server why a call takes long.
func (c *Client) whyNot(ctx context.Context) string {
	err := c.Ready(ctx)
	if _, silent := errors.AsType[*Unreachable](err); silent {
		return "the server does not respond"
	}
	if err != nil {
		return sentence(err)
	}
	return "the server is ready and is still processing the request"
}

// Ready asks the server whether it is ready, and returns the reason if it is not: an *Unreachable if it does not
// respond within a second. It needs no key.
func (c *Client) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return &Unreachable{c.base, err}
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return refusal(response)
	}
	_, _ = io.Copy(io.Discard, response.Body) // so that the connection can be used again
	return nil
}

// tellNextTry reports the wait before another attempt.
func (c *Client) tellNextTry(err error, wait time.Duration) {
	if c.waits != nil && wait >= c.waits.after {
		c.waits.tell("retrying in " + wait.Round(time.Second).String() + ": " + sentence(err))
	}
}

// sentence returns an error as one line, without its hint.
func sentence(err error) string {
	if told, ok := errors.AsType[*fanfare.Error](err); ok {
		return told.Message
	}
	return err.Error()
}
