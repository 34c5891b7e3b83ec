package control

import (
	"bytes"
	"context"

	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/store"
)

// A LinkedFile is a file that a link in a message leads to.
type LinkedFile struct {
	ID        []byte
	Service   string
	Recipient []byte // keyed hash of the address
	ExpiresAt int64  // Unix seconds
	Content   []byte // encrypted
}

// AddLinkedFile stores a file. It is durable when it returns.
func (s *Store) AddLinkedFile(ctx context.Context, f *LinkedFile) error {
	return s.part.Write(ctx, func(session store.Session) error {
		return session.Run("linked_file_put", f.ID, f.Service, f.Recipient, f.ExpiresAt, checksum.Add(0, f.Content))
	})
}

// LinkedFile returns a file without the hash of its recipient, or nil if it is not stored.
func (s *Store) LinkedFile(ctx context.Context, id []byte) (found *LinkedFile, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		found = nil
		return session.Each("linked_file", func(r store.Row) error {
			found = &LinkedFile{ID: id, Service: r.Text(0), ExpiresAt: r.Int64(1), Content: r.Bytes(2)}
			// Its decryption detects any change. The checksum is for those who do not have the key.
			if content, valid := checksum.Verify(0, found.Content); valid {
				found.Content = content
			}
			return nil
		}, id)
	})
	return found, err
}

// LinkedFilesOf returns the ids of the files of a recipient of a service.
func (s *Store) LinkedFilesOf(ctx context.Context, service string, recipient []byte) (ids [][]byte, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		ids = nil
		return session.Each("linked_files_of", func(r store.Row) error {
			ids = append(ids, bytes.Clone(r.Bytes(0)))
			return nil
		}, service, recipient)
	})
	return ids, err
}

// ExpireLinkedFiles removes the files that expire until a time, in Unix seconds.
func (s *Store) ExpireLinkedFiles(ctx context.Context, until int64) error {
	return s.part.Erase(ctx, func(session store.Session) error { return session.Run("linked_files_expire", until) })
}

// EraseLinkedFiles removes the files of recipients of a service.
func (s *Store) EraseLinkedFiles(ctx context.Context, service string, recipients [][]byte) error {
	return s.part.Erase(ctx, func(session store.Session) error {
		for _, recipient := range recipients {
			if err := session.Run("linked_files_erase", service, recipient); err != nil {
				return err
			}
		}
		return nil
	})
}
