package mail

import (
	"context"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mail/mimetree"
)

// emailParseArguments are those of Email/parse (RFC 8621, section 4.9).
type emailParseArguments struct {
	core.InAccount
	BlobIDs *[]core.ID `json:"blobIds"`
	fetchArguments
}

// parseProperties are the default properties of Email/parse.
var parseProperties = []string{"messageId", "inReplyTo", "references", "sender", "from", "to", "cc", "bcc", "replyTo", "subject", "sentAt", "hasAttachment", "preview",
	"bodyValues", "textBody", "htmlBody", "attachments"}

// emailParse is Email/parse.
func (m *Methods) emailParse(ctx context.Context, c *core.Call, a *emailParseArguments) (any, error) {
	if a.BlobIDs == nil {
		return nil, core.Fail(core.InvalidArguments, "the argument blobIds is missing")
	}
	if len(*a.BlobIDs) > c.Limits.MaxObjectsInGet {
		return nil, core.Fail(core.RequestTooLarge, "blobIds has more ids than maxObjectsInGet")
	}
	id, err := account(c)
	if err != nil {
		return nil, err
	}
	if a.Properties == nil {
		a.Properties = &parseProperties
	}
	f, err := newFetch(a.fetchArguments)
	if err != nil {
		return nil, err
	}
	w := &writer{fetch: f, left: c.Left()}
	parsed := map[core.ID]any{}
	var notParsable, notFound []core.ID
	for _, name := range *a.BlobIDs {
		data, err := m.Blob(ctx, id, name)
		if isGone(err) {
			notFound = append(notFound, name)
			continue
		}
		if err != nil {
			return nil, accountError(err)
		}
		at, _ := parseBlobID(name)
		if checkMessage(data) != nil || len(at.parts) >= maxBlobDepth {
			notParsable = append(notParsable, name)
			continue
		}
		object := map[string]any{}
		for _, property := range f.properties {
			switch property {
			case "id", "threadId", "mailboxIds", "keywords", "receivedAt":
				object[property] = nil
			case "blobId":
				object[property] = name
			case "size":
				object[property] = len(data)
			}
		}
		tree := mimetree.Parse(data)
		w.digest(object, newDigest(data, tree))
		if err := w.content(object, data, tree, at); err != nil {
			return nil, err
		}
		parsed[name] = object
	}
	return map[string]any{"accountId": a.AccountID, "parsed": orNull(len(parsed) > 0, parsed), "notParsable": orNull(len(notParsable) > 0, notParsable), "notFound": orNull(len(notFound) > 0, notFound)}, nil
}

func orNull(has bool, value any) any {
	if has {
		return value
	}
	return nil
}
