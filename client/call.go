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

// Call makes a request for which this package has no method. It sends in as JSON and decodes the
// response into out; both can be nil. Calls that can be repeated without harm (GET, PUT, DELETE) are
// retried. created reports whether the status was 201.
func (c *Client) Call(ctx context.Context, method, path string, query url.Values, in, out any) (created bool, err error) {
	r := request{method: method, path: path, query: query, status: new(int),
		repeatable: slices.Contains([]string{http.MethodGet, http.MethodPut, http.MethodDelete}, method)}
	err = c.call(ctx, r, in, out)
	return *r.status == http.StatusCreated, err
}

// pageSize is the number of list members in one request.
const pageSize = 500

// List yields the members of a list for which this package has no method, page by page. path is,
// for example, /v1/topics, and member is the name of the list in the response, such as topics. It
// ends at the first error, which is its last pair.
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

// Page returns a page of a list: at most limit members from cursor, which is "" for the first
// page. next is the cursor of the next page, "" after the last one.
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
