package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
)

// Attempts and waits of a call that can be repeated without harm, if no answer came or the server
// asks the client to retry (429, 503).
const (
	tries     = 4
	firstWait = 200 * time.Millisecond // doubled for each attempt, with jitter
	maxWait   = 30 * time.Second       // if the server asks for a longer wait, the call fails
)

// do sends r and returns a successful answer, whose body the caller closes.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	for try := 1; ; try++ {
		response, err := c.once(ctx, r)
		if err == nil || !r.repeatable || try == tries || ctx.Err() != nil {
			return response, err
		}
		wait, again := after(err, try)
		if !again {
			return nil, err
		}
		c.tellNextTry(err, wait)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

// busy says how long the server asks the client to wait.
type busy struct {
	error // a *fanfare.Error
	wait  time.Duration
}

// Unwrap returns the error for the caller.
func (e *busy) Unwrap() error { return e.error }

// busyAnswer adds the Retry-After of the answer, in seconds (RFC 9110, section 10.2.3), to a
// temporary refusal; 0 if the answer has none.
func busyAnswer(e *fanfare.Error, h http.Header) error {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		seconds = 0
	}
	return &busy{e, time.Duration(seconds) * time.Second}
}

// after returns whether and after what time a failed call should be tried again. Waits have
// jitter, so that many clients that were refused together do not return together.
func after(err error, try int) (time.Duration, bool) {
	step := firstWait << (try - 1)
	jitter := step/2 + rand.N(step/2)
	if b, ok := errors.AsType[*busy](err); ok {
		return b.wait + jitter, b.wait <= maxWait
	}
	_, unreachable := errors.AsType[*Unreachable](err)
	return jitter, unreachable
}
