package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

type (
	// A SendRequest is a message to an uploaded list, without the list.
	SendRequest = wire.SendRequest
	// A ListSend is a message to an uploaded list.
	ListSend = wire.Send
	// A SendList describes an uploaded list.
	SendList = wire.SendList
	// A SendProgress is the progress of a message to an uploaded list.
	SendProgress = wire.SendProgress
	// A SendUpload is the result of an upload.
	SendUpload = wire.SendUpload
	// A SendError is an error in an uploaded list.
	SendError = wire.SendError
	// A SendRow is a row of an uploaded list.
	SendRow = wire.SendRow
)

func sendPath(id string) string { return "/v1/sends/" + url.PathEscape(id) }

// CreateSend creates a message to a list, as a draft.
func (c *Client) CreateSend(ctx context.Context, in SendRequest) (ListSend, error) {
	var s ListSend
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/sends"}, in, &s)
	return s, err
}

// Sends yields the messages to lists in a state, or in any with "", the latest first. It ends at the first error, which is its last pair.
func (c *Client) Sends(ctx context.Context, state string) iter.Seq2[ListSend, error] {
	query := url.Values{}
	if state != "" {
		query.Set("state", state)
	}
	return List[ListSend](ctx, c, "/v1/sends", "sends", query)
}

// ListSend returns a message to a list with its progress.
func (c *Client) ListSend(ctx context.Context, id string) (ListSend, error) {
	var s ListSend
	err := c.call(ctx, get(sendPath(id), nil), nil, &s)
	return s, err
}

// ChangeSend changes a message to a list that has not begun, and makes it a draft. change has the members to change, and null for those to reset.
func (c *Client) ChangeSend(ctx context.Context, id string, change map[string]any) (ListSend, error) {
	var s ListSend
	err := c.call(ctx, request{method: http.MethodPatch, path: sendPath(id), repeatable: true}, change, &s)
	return s, err
}

// DeleteSend deletes a message to a list.
func (c *Client) DeleteSend(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: sendPath(id), repeatable: true}, nil, nil)
}

// UploadRecipients uploads the list: CSV with a header. address is the name of the column with the addresses, "" for to. The details of an error are the first errors, with
// the number of the row in Line.
func (c *Client) UploadRecipients(ctx context.Context, id, address string, csv io.Reader) (SendUpload, error) {
	query := url.Values{}
	if address != "" {
		query.Set("address", address)
	}
	var u SendUpload
	err := c.call(ctx, request{method: http.MethodPut, path: sendPath(id) + "/recipients", query: query, contentType: "text/csv", stream: csv}, nil, &u)
	return u, err
}

// SendRows yields the rows of the list. It ends at the first error, which is its last pair.
func (c *Client) SendRows(ctx context.Context, id string) iter.Seq2[SendRow, error] {
	return List[SendRow](ctx, c, sendPath(id)+"/recipients", "rows", nil)
}

// SendErrors yields the errors of the last upload. It ends at the first error, which is its last pair.
func (c *Client) SendErrors(ctx context.Context, id string) iter.Seq2[SendError, error] {
	return List[SendError](ctx, c, sendPath(id)+"/errors", "errors", nil)
}

// PreviewRow renders the message to a row, by its number as a spreadsheet shows it.
func (c *Client) PreviewRow(ctx context.Context, id string, row int64) (Preview, error) {
	var p Preview
	err := c.call(ctx, get(sendPath(id)+"/recipients/"+strconv.FormatInt(row, 10)+"/preview", nil), nil, &p)
	return p, err
}

// RowHTML returns the HTML of the message to a row. The caller closes it.
func (c *Client) RowHTML(ctx context.Context, id string, row int64) (io.ReadCloser, error) {
	return c.stream(ctx, sendPath(id)+"/recipients/"+strconv.FormatInt(row, 10)+"/html")
}

// SubmitSend submits a draft for approval.
func (c *Client) SubmitSend(ctx context.Context, id string) (ListSend, error) {
	return c.actOnSend(ctx, id, "submit", nil)
}

// ApproveSend approves a message to a list as it was seen: with its digest.
func (c *Client) ApproveSend(ctx context.Context, id, digest string) (ListSend, error) {
	return c.actOnSend(ctx, id, "approve", wire.SendApproval{Digest: digest})
}

// PauseSend pauses a message to a list that is being sent.
func (c *Client) PauseSend(ctx context.Context, id, reason string) (ListSend, error) {
	return c.actOnSend(ctx, id, "pause", wire.SendStop{Reason: reason})
}

// ResumeSend resumes a paused message to a list.
func (c *Client) ResumeSend(ctx context.Context, id, reason string) (ListSend, error) {
	return c.actOnSend(ctx, id, "resume", wire.SendStop{Reason: reason})
}

// CancelSend cancels a message to a list that has not ended.
func (c *Client) CancelSend(ctx context.Context, id, reason string) (ListSend, error) {
	return c.actOnSend(ctx, id, "cancel", wire.SendStop{Reason: reason})
}

func (c *Client) actOnSend(ctx context.Context, id, action string, in any) (ListSend, error) {
	var s ListSend
	err := c.call(ctx, request{method: http.MethodPost, path: sendPath(id) + "/" + action}, in, &s)
	return s, err
}

// SendReport streams the outcome of each row as CSV. The caller closes it.
func (c *Client) SendReport(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.stream(ctx, sendPath(id)+"/report")
}
