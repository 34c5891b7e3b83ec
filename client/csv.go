package client

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"

	"fanfare.dev/fanfare"
)

// ListCSV writes a whole list as CSV, such as that of the path /v1/subscriptions, with the filters in query. It fails with Unavailable if the server
// ended the list early; the rows that were written remain.
func (c *Client) ListCSV(ctx context.Context, path string, query url.Values, to io.Writer) error {
	asked := maps.Clone(query)
	if asked == nil {
		asked = url.Values{}
	}
	asked.Set("format", "csv")
	response, err := c.do(ctx, get(path, asked))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(to, response.Body); err != nil {
		return &Unreachable{c.base, err}
	}
	if result := response.Trailer.Get("Fanfare-Export"); result != "complete" {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: fmt.Sprintf("the list is not complete (%s)", result), Hint: "use filters, or read the list page by page"}
	}
	return nil
}
