package mail

import (
	"context"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox"
)

// noBlob is the error for a blob that does not exist.
func noBlob(id core.ID) error {
	return fmt.Errorf("%w: %w", mailbox.ErrNoMessage, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("the blob %.80q does not exist", id), Hint: "upload the data again, or read the message again"})
}

// Blob returns the bytes of a blob of an account. The error of one that does not exist is a fanfare.NotFound error with mailbox.ErrNoMessage in its chain.
func (m *Methods) Blob(ctx context.Context, account mailbox.AccountID, id core.ID) ([]byte, error) {
	b, ok := parseBlobID(id)
	if !ok {
		return nil, noBlob(id)
	}
	var data []byte
	if b.email != 0 {
		list, _, err := m.store.Emails(ctx, account, []mailbox.EmailID{b.email})
		if err != nil {
			return nil, err
		}
		if len(list) == 0 || list[0].Flags&mailbox.Deleted != 0 {
			return nil, noBlob(id)
		}
		if data, err = m.store.Content(ctx, account, b.email); err != nil {
			return nil, err
		}
	} else {
		var err error
		if data, err = m.store.Uploaded(ctx, account, b.upload); err != nil {
			return nil, err
		}
	}
	for _, number := range b.parts {
		l := bodyOf(mimetree.Parse(data)).leaf(number)
		if l == nil {
			return nil, noBlob(id)
		}
		decoded, err := mimetree.Decode(l.Part, data)
		if err != nil { // nobody knows the encoding
			decoded = data[l.Body.From:l.Body.To]
		}
		data = decoded
	}
	return data, nil
}

// Upload stores bytes and returns the id of their blob.
func (m *Methods) Upload(ctx context.Context, account mailbox.AccountID, data []byte) (core.ID, error) {
	content, err := m.store.Upload(ctx, account, data)
	if err != nil {
		return "", err
	}
	return blob{upload: content}.id(), nil
}
