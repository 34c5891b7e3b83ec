package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

const (
	// followPause is the time after which FollowStatus connects again.
	followPause = 2 * time.Second
	// followSilence is the time without any line, after which a connection counts as broken. The server sends a comment every 15 seconds.
	followSilence = 45 * time.Second
	// maxEventBytes limits a line of a stream.
	maxEventBytes = 16 << 20
)

// FollowStatus yields the status of the server: at once, and then whenever it has changed, at most every two seconds, until ctx ends or
// the loop is left. While the server cannot compute the status, it yields the error and goes on. If the stream breaks, it connects again.
// An error of that is its last pair.
func (c *Client) FollowStatus(ctx context.Context) iter.Seq2[Status, error] {
	return func(yield func(Status, error) bool) {
		for {
			goOn, err := c.followOnce(ctx, yield)
			if err != nil {
				yield(Status{}, err)
			}
			if err != nil || !goOn {
				return
			}
			select {
			case <-ctx.Done():
				yield(Status{}, ctx.Err())
				return
			case <-time.After(followPause):
			}
		}
	}
}

// followOnce reads one stream. err is why there is none, and goOn is false if the loop was left.
func (c *Client) followOnce(ctx context.Context, yield func(Status, error) bool) (goOn bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := get("/v1/live", nil)
	r.header = http.Header{"Accept": {"text/event-stream"}}
	response, err := c.do(ctx, r)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	silence := time.AfterFunc(followSilence, cancel)
	defer silence.Stop()
	for name, data := range eventsIn(response.Body, func() { silence.Reset(followSilence) }) {
		var s Status
		var failed error
		switch name {
		case "status":
			if err := json.Unmarshal(data, &s); err != nil {
				return false, &Unreachable{c.base, fmt.Errorf("an event is not valid: %w", err)}
			}
		case "unavailable":
			var m wire.Member
			if json.Unmarshal(data, &m) != nil || m.Code == "" {
				m = wire.Member{Code: fanfare.Unavailable, Detail: "the server cannot compute its status"}
			}
			failed = m.Err()
		default:
			continue
		}
		silence.Stop() // the loop may take its time
		if !yield(s, failed) {
			return false, nil
		}
		silence.Reset(followSilence)
	}
	return true, nil
}

// eventsIn yields the names and data of server-sent events (HTML standard, section 9.2.6) until the stream ends. It calls alive for each line.
func eventsIn(stream io.Reader, alive func()) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		lines := bufio.NewScanner(stream)
		lines.Buffer(nil, maxEventBytes)
		name, data := "", []byte(nil)
		for lines.Scan() {
			alive()
			line := lines.Bytes()
			if len(line) == 0 {
				if len(data) > 0 && !yield(name, bytes.TrimSuffix(data, []byte("\n"))) {
					return
				}
				name, data = "", nil
				continue
			}
			field, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(field) {
			case "event":
				name = string(value)
			case "data":
				data = append(append(data, value...), '\n')
			}
		}
	}
}
