package mailbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox/delta"
	"fanfare.dev/fanfare/internal/store"
)

const (
	// contentGrace is how long the bytes of a message stay after its last use, so that a copy that arrives meanwhile finds them.
	contentGrace = time.Hour
	// uploadLife is how long an upload can be used.
	uploadLife = 24 * time.Hour

	numbersAtOnce = 16 << 10 // numbers of contents that are taken together
	mergedAtOnce  = 1024     // messages of blocks that become rows in one transaction
	cleanupRows   = 256      // in one transaction
)

// A newContent has bytes that a change stores.
type newContent struct {
	data      []byte    // the bytes, or their delta to base
	size      int64     // of the bytes
	base      ContentID // 0: data has the bytes
	hash      [sha256.Size]byte
	structure []byte
	threads   []int64     // hashes of the Message-IDs that the message has or refers to
	accounts  []AccountID // that get messages with it
	uses      int
	isMessage bool // searches look at it

	reserved ContentID // its number if it is not stored yet
	id       ContentID
}

// newContent computes all that a change needs of a message, so that the transaction is short.
func (s *Store) newContent(data []byte, accounts ...AccountID) *newContent {
	tree := mimetree.Parse(data)
	return &newContent{data: data, size: int64(len(data)), hash: sha256.Sum256(data), structure: tree.Append(nil), threads: threadHashes(data, tree), accounts: accounts, uses: len(accounts), isMessage: true}
}

// numbers gives numbers to contents. It takes many at once from the database, and some are lost when the server stops. Only the goroutine of the
// change queue uses it.
type numbers struct {
	next ContentID
	end  ContentID // the first number that was not taken
}

// reserve gives a number to each content of the changes, and has some left for the messages of blocks that become rows.
func (n *numbers) reserve(part store.Part, group []*change) error {
	merges := false
	for _, c := range group {
		merges = merges || len(c.accounts)+len(c.create) > 0
		for _, content := range c.contents {
			if err := n.fill(part); err != nil {
				return err
			}
			content.reserved = n.next
			n.next++
		}
	}
	if !merges {
		return nil // a change of other rows must not make an empty database one that has data
	}
	return n.fill(part)
}

// fill takes more numbers if few are left.
func (n *numbers) fill(part store.Part) error {
	if n.end-n.next > mergedAtOnce {
		return nil
	}
	return part.Write(context.Background(), func(session store.Session) error {
		return session.Each("mailbox_numbers_take", func(r store.Row) error {
			n.end = ContentID(r.Int64(0)) + 1
			n.next = n.end - numbersAtOnce
			failpoint.Hit("before-mailbox-numbers")
			return nil
		}, "content", int64(numbersAtOnce))
	})
}

// take returns the next number.
func (n *numbers) take() ContentID {
	n.next++
	return n.next - 1
}

func sortedKeys[K cmp.Ordered, V any](all map[K]V) []K {
	return slices.Sorted(maps.Keys(all))
}

// addUses adds uses to contents that have some.
func (u *unit) addUses(uses map[ContentID]int64) error {
	for _, id := range sortedKeys(uses) {
		if err := u.session.Run("content_add_uses", uses[id], int64(id)); err != nil {
			return err
		}
	}
	return nil
}

// Content returns the bytes of a message, which never change. It fails with ErrNoMessage.
func (s *Store) Content(ctx context.Context, id AccountID, email EmailID) ([]byte, error) {
	return s.content(ctx, fmt.Sprintf("the message %d of the account %d", email, id), "content_of_email", int64(id), int64(email))
}

// Structure returns the MIME structure of a message. It fails with ErrNoMessage.
func (s *Store) Structure(ctx context.Context, id AccountID, email EmailID) (*mimetree.Part, error) {
	b, err := s.bytes(ctx, "structure_of_email", int64(id), int64(email))
	if err != nil {
		return nil, err
	}
	return mimetree.Read(b)
}

// Uploaded returns the bytes of an upload of the account. It fails with ErrNoMessage.
func (s *Store) Uploaded(ctx context.Context, id AccountID, content ContentID) ([]byte, error) {
	return s.content(ctx, fmt.Sprintf("the upload %d of the account %d", content, id), "upload_data", int64(id), int64(content))
}

// sameHash reports whether the SHA-256 of bytes is a stored one.
func sameHash(data, hash []byte) bool {
	sum := sha256.Sum256(data)
	return bytes.Equal(sum[:], hash)
}

// content reads stored bytes. If they are a delta, it also reads the base. It fails with a DamagedError if they are not those that were stored.
func (s *Store) content(ctx context.Context, subject, statement string, args ...any) (data []byte, err error) {
	found := false
	var hash []byte
	err = s.part.Snapshot(ctx, func(session store.Session) error {
		var base int64
		found = false
		err := session.Each(statement, func(r store.Row) error {
			found, data, base, hash = true, r.Bytes(0), r.Int64(1), r.Bytes(2)
			return nil
		}, args...)
		if err != nil || base == 0 {
			return err
		}
		return session.Each("content_data", func(r store.Row) error {
			data, err = delta.Expand(nil, r.Bytes(0), data)
			return err
		}, base)
	})
	switch {
	case err == nil && !found:
		return nil, noMessage()
	case err == nil && !sameHash(data, hash):
		return nil, checksum.Damaged(subject)
	}
	return data, err
}

func (s *Store) bytes(ctx context.Context, statement string, args ...any) (data []byte, err error) {
	found := false
	err = s.part.Read(ctx, func(session store.Session) error {
		found = false
		return session.Each(statement, func(r store.Row) error { found, data = true, r.Bytes(0); return nil }, args...)
	})
	if err == nil && !found {
		err = noMessage()
	}
	return data, err
}

// Upload stores bytes for later use in the account. They can be used for a day.
func (s *Store) Upload(ctx context.Context, id AccountID, data []byte) (ContentID, error) {
	if err := s.checkSize(data); err != nil {
		return 0, err
	}
	content := s.newContent(data, id)
	content.threads, content.isMessage = nil, false
	err := s.queue.do(ctx, &change{accounts: []AccountID{id}, contents: []*newContent{content}, run: func(u *unit) error {
		if _, err := u.account(id); err != nil {
			return err
		}
		known := false
		if err := u.session.Each("upload", func(store.Row) error { known = true; return nil }, int64(id), int64(content.id)); err != nil {
			return err
		}
		if known { // one use is enough
			if err := u.dropUses(content.id, 1); err != nil {
				return err
			}
		}
		return u.session.Run("upload_insert", int64(id), int64(content.id), u.now)
	}})
	return content.id, err
}

// RemoveUnused removes uploads that are too old, and contents that no message has any more. The server calls it from time to time.
func (s *Store) RemoveUnused(ctx context.Context) error {
	for {
		n, err := s.removeUploads()
		if err == nil && n < cleanupRows {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	for {
		n, err := s.removeContents()
		if err == nil && n < cleanupRows {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

func (s *Store) removeUploads() (n int, err error) {
	type upload struct{ account, content int64 }
	err = s.part.Write(context.Background(), func(session store.Session) error {
		var old []upload
		before := s.o.Clock.Now().Add(-uploadLife).Unix()
		err := session.Each("uploads_before", func(r store.Row) error { old = append(old, upload{r.Int64(0), r.Int64(1)}); return nil }, before, int64(cleanupRows))
		if err != nil {
			return err
		}
		n = len(old)
		for _, u := range old {
			gone := false
			if err := session.Each("upload_remove", func(store.Row) error { gone = true; return nil }, u.account, u.content); err != nil {
				return err
			}
			if gone {
				if err := session.Run("content_drop_uses", int64(1), int64(1), s.now(), u.content); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return n, err
}

func (s *Store) removeContents() (n int, err error) {
	err = s.part.Write(context.Background(), func(session store.Session) error {
		var old []ContentID
		before := s.o.Clock.Now().Add(-contentGrace).Unix()
		if failpoint.Fault("no-mailbox-grace") { // a crash test cannot wait for an hour
			before = s.o.Clock.Now().Unix() + 1
		}
		err := session.Each("contents_unused", func(r store.Row) error { old = append(old, ContentID(r.Int64(0))); return nil }, before, int64(cleanupRows))
		if err != nil {
			return err
		}
		n = len(old)
		for _, id := range old {
			if err := removeContent(session, id, s.now()); err != nil {
				return err
			}
		}
		if n > 0 {
			failpoint.Hit("before-contents-removed")
		}
		return nil
	})
	if n > 0 {
		failpoint.Hit("after-contents-removed")
	}
	return n, err
}

// removeContent removes a content that has no uses.
func removeContent(session store.Session, id ContentID, now int64) error {
	gone, base := false, int64(0)
	err := session.Each("content_remove", func(r store.Row) error { gone, base = true, r.Int64(0); return nil }, int64(id))
	if err != nil || !gone {
		return err
	}
	if err := session.Each("search_queue_remove", func(store.Row) error { return nil }, int64(id)); err != nil {
		return err
	}
	if err := session.Run("search_filter_remove", int64(id)); err != nil {
		return err
	}
	if err := session.Run("content_data_remove", int64(id)); err != nil || base == 0 {
		return err
	}
	return session.Run("content_drop_uses", int64(1), int64(1), now, base)
}
