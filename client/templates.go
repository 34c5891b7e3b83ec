package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// The types of templates, their versions and their drafts.
type (
	// A Publication specifies the version of a template to publish; its zero value means the draft.
	Publication = wire.Publication
	// A TemplateDiff is the difference between two versions of a template.
	TemplateDiff = wire.TemplateDiff
	// A VersionRef names a version.
	VersionRef = wire.VersionRef
	// A PartDiff is the difference of one part of a template, as a unified diff.
	PartDiff = wire.PartDiff
)

// Templates returns the templates of the service, in their published versions.
func (c *Client) Templates() Collection[Template] {
	return Collection[Template]{c, "/v1/templates", "templates"}
}

// TemplateVersions yields all versions of a template, the oldest first, and its draft.
func (c *Client) TemplateVersions(ctx context.Context, template string) iter.Seq2[Template, error] {
	return List[Template](ctx, c, ofTemplate(template, "versions"), "templates", nil)
}

// Drafts yields the drafts of the service, by the names of their templates.
func (c *Client) Drafts(ctx context.Context) iter.Seq2[Template, error] {
	return List[Template](ctx, c, "/v1/templates", "templates", url.Values{"state": {"draft"}})
}

// Draft returns the draft of a template.
func (c *Client) Draft(ctx context.Context, template string) (draft Kept[Template], err error) {
	r := get(ofTemplate(template, "draft"), nil)
	r.tag = &draft.ETag
	err = c.call(ctx, r, nil, &draft.Value)
	return draft, err
}

// PutDraft stores a draft beside the published version of a template. The draft is checked like a
// published version, but no message uses it. If given has an ETag, the call is refused if the
// draft was changed since it was read.
func (c *Client) PutDraft(ctx context.Context, template string, given Kept[Template]) (now Kept[Template], err error) {
	r := request{method: http.MethodPut, path: ofTemplate(template, "draft"), header: ifMatch(given.ETag), tag: &now.ETag, repeatable: given.ETag == ""}
	err = c.call(ctx, r, given.Value, &now.Value)
	return now, err
}

// DiscardDraft deletes the draft of a template. It succeeds if there is no draft. etag may be "".
func (c *Client) DiscardDraft(ctx context.Context, template, etag string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: ofTemplate(template, "draft"), header: ifMatch(etag), repeatable: etag == ""}, nil, nil)
}

// PublishTemplate publishes the draft of a template, or one of its earlier versions again.
// Events accepted after it has returned use that version. If etag is not "", it must be the
// ETag of the published version; the server refuses the call if another version was published
// since.
func (c *Client) PublishTemplate(ctx context.Context, template string, what Publication, etag string) (now Kept[Template], err error) {
	r := request{method: http.MethodPost, path: ofTemplate(template, "publish"), header: ifMatch(etag), tag: &now.ETag, repeatable: what.Version != 0 && etag == ""}
	err = c.call(ctx, r, what, &now.Value)
	return now, err
}

// DiffTemplate returns the difference between two versions of a template, each a number, draft or
// published. Without versions, it returns what the draft would change or, if there is no draft,
// what the last publication changed.
func (c *Client) DiffTemplate(ctx context.Context, template, from, to string) (diff TemplateDiff, err error) {
	query := url.Values{}
	if from != "" {
		query.Set("from", from)
	}
	if to != "" {
		query.Set("to", to)
	}
	err = c.call(ctx, get(ofTemplate(template, "diff"), query), nil, &diff)
	return diff, err
}

func ofTemplate(name, what string) string {
	return "/v1/templates/" + url.PathEscape(name) + "/" + what
}
