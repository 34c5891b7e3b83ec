package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// PutLines puts the subscriptions in lines (NDJSON), which lie in memory, so that
// they are sent again where the connection broke or the server was busy; of what
// was stored by then, the summary says that it was updated. Errors has every bad
// line, however many there are.
func (c *Client) PutLines(ctx context.Context, lines []byte) (PutSummary, error) {
	return c.putLines(ctx, "/v1/subscriptions", lines)
}

// PutSubscriberLines is PutLines for subscribers: a line with an id is put under
// it, one without is created. Sent twice, the second of those is refused, since
// its address is taken then: give ids where that matters.
func (c *Client) PutSubscriberLines(ctx context.Context, lines []byte) (PutSummary, error) {
	return c.putLines(ctx, "/v1/subscribers", lines)
}

func (c *Client) putLines(ctx context.Context, path string, lines []byte) (PutSummary, error) {
	var sum PutSummary
	r := request{method: http.MethodPost, path: path, contentType: ndjson, body: lines, repeatable: true}
	quiet := r
	quiet.query = url.Values{"quiet": {"true"}}
	if err := c.call(ctx, quiet, nil, &sum); err != nil || sum.Failed <= int64(len(sum.Errors)) {
		return sum, err
	}
	// A summary names the first bad lines alone. Putting a line again changes
	// nothing, and then each has its answer.
	response, err := c.do(ctx, r)
	if err != nil {
		return sum, err
	}
	defer response.Body.Close()
	sum.Errors, err = badLines(response.Body)
	if err != nil {
		return sum, &Unreachable{c.base, fmt.Errorf("the responses ended early: %w", err)}
	}
	return sum, nil
}

// badLines picks the refusals out of the answers to each line.
func badLines(answers io.Reader) ([]LineError, error) {
	var bad []LineError
	for d := json.NewDecoder(answers); ; {
		var one struct {
			Line  int             `json:"line"`
			Error json.RawMessage `json:"error"`
		}
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return bad, nil
		}
		if err != nil {
			return bad, err
		}
		if len(one.Error) == 0 || bytes.Equal(one.Error, []byte("null")) {
			continue
		}
		refused := LineError{Line: one.Line}
		if err := json.Unmarshal(one.Error, &refused.Error); err != nil {
			return bad, err
		}
		bad = append(bad, refused)
	}
}
