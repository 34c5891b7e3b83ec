package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// Call makes a request for which there is no method here, with in as JSON, if
// any, and reads the answer into out, if any. A call that changes nothing the
// second time (GET, PUT, DELETE) is tried again like any other. created tells a
// 201 from other successes.
func (c *Client) Call(ctx context.Context, method, path string, query url.Values, in, out any) (created bool, err error) {
	r := request{method: method, path: path, query: query, status: new(int),
		repeatable: slices.Contains([]string{http.MethodGet, http.MethodPut, http.MethodDelete}, method)}
	err = c.call(ctx, r, in, out)
	return *r.status == http.StatusCreated, err
}

// pageSize is how many members of a list are asked for at a time.
const pageSize = 500

// List yields the members of a list, page by page, for lists that have no method
// here: path is such as /v1/topics, and member the name under which they stand
// in the answer, such as topics. It ends at the first error, which is its last
// pair.
func List[T any](ctx context.Context, c *Client, path, member string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for cursor := ""; ; {
			list, next, err := Page[T](ctx, c, path, member, query, cursor, pageSize)
			if err != nil {
				yield(none, err)
				return
			}
			for _, one := range list {
				if !yield(one, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			cursor = next
		}
	}
}

// Page returns a part of a list: at most limit members from cursor on, which is ""
// at the start. next is the cursor of the part that follows, "" at the end.
func Page[T any](ctx context.Context, c *Client, path, member string, query url.Values, cursor string, limit int) (list []T, next string, err error) {
	q := url.Values{}
	for name, values := range query {
		q[name] = values
	}
	q.Set("limit", strconv.Itoa(limit))
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	var answer map[string]json.RawMessage
	if err := c.call(ctx, get(path, q), nil, &answer); err != nil {
		return nil, "", err
	}
	for name, into := range map[string]any{member: &list, "next": &next} {
		if raw, ok := answer[name]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				return nil, "", &Unreachable{c.base, err}
			}
		}
	}
	return list, next, nil
}
