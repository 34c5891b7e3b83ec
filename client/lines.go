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

// PutLines puts the subscriptions in lines (NDJSON). The lines are in memory, so PutLines sends
// them again if the connection breaks or the server is busy; the summary then counts lines that
// were already stored as updated. Errors lists every bad line.
func (c *Client) PutLines(ctx context.Context, lines []byte) (PutSummary, error) {
	return c.putLines(ctx, "/v1/subscriptions", lines)
}

// PutSubscriberLines puts subscribers like PutLines. A line with an id creates or replaces that
// subscriber; a line without an id creates one. If a line without an id is sent twice, the second
// is refused because its address is taken; use ids to avoid this.
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
	// A summary lists only the first bad lines. Putting the lines again changes nothing and returns a
	// response for each line.
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

// badLines returns the refusals from the answers to each line.
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
