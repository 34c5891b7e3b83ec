package control

import (
	"context"

	"fanfare.dev/fanfare/internal/store"
)

// A SendRecord is a message to an uploaded list.
type SendRecord struct {
	ID   string
	Body string // JSON
}

// SendRows are consecutive rows of an upload.
type SendRows struct {
	Send   string
	Upload int64
	Chunk  int64 // from 0
	First  int64 // number of the first row in the uploaded file
	Count  int64
	Rows   []byte // compressed; nil in a list
}

// SendErrors is a page of the errors of an upload.
type SendErrors struct {
	Send   string
	Upload int64
	Page   int64  // from 0
	Errors []byte // compressed
}

// A SendPart is a part of a send that was sent.
type SendPart struct {
	Send    string
	Part    int64  // chunk of the upload
	Event   string // public id; "" if all recipients were refused
	At      int64  // Unix nanoseconds
	Outcome []byte // compressed
}

// Sends returns all sends, in the order of their ids.
func (s *Store) Sends(ctx context.Context) (list []SendRecord, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		list = nil
		return session.Each("sends", func(r store.Row) error {
			list = append(list, SendRecord{r.Text(0), r.Text(1)})
			return nil
		})
	})
	return list, err
}

// PutSend stores a send and, in the same transaction, a part of it that was sent; part may be nil. It is durable when it returns.
func (s *Store) PutSend(ctx context.Context, r SendRecord, part *SendPart) error {
	return s.part.Write(ctx, func(session store.Session) error {
		if part != nil {
			if err := session.Run("send_part_put", part.Send, part.Part, part.Event, part.At, part.Outcome); err != nil {
				return err
			}
		}
		return session.Run("send_put", r.ID, r.Body)
	})
}

// ReplaceSendRows stores a send whose rows are now those of another upload, and deletes the other rows and errors of the given uploads.
func (s *Store) ReplaceSendRows(ctx context.Context, r SendRecord, uploads ...int64) error {
	return s.part.Erase(ctx, func(session store.Session) error {
		for _, upload := range uploads {
			if err := deleteUpload(session, r.ID, upload); err != nil {
				return err
			}
		}
		return session.Run("send_put", r.ID, r.Body)
	})
}

// DeleteUpload deletes the rows and errors of an upload.
func (s *Store) DeleteUpload(ctx context.Context, send string, upload int64) error {
	return s.part.Erase(ctx, func(session store.Session) error { return deleteUpload(session, send, upload) })
}

// DeleteSendRows deletes the rows of an upload, and keeps its errors.
func (s *Store) DeleteSendRows(ctx context.Context, send string, upload int64) error {
	return s.part.Erase(ctx, func(session store.Session) error { return session.Run("send_rows_delete", send, upload) })
}

func deleteUpload(session store.Session, send string, upload int64) error {
	if err := session.Run("send_rows_delete", send, upload); err != nil {
		return err
	}
	return session.Run("send_errors_delete", send, upload)
}

// DeleteSend deletes a send with its parts and the rows and errors of the given uploads.
func (s *Store) DeleteSend(ctx context.Context, id string, uploads ...int64) error {
	return s.part.Erase(ctx, func(session store.Session) error {
		for _, upload := range uploads {
			if err := deleteUpload(session, id, upload); err != nil {
				return err
			}
		}
		if err := session.Run("send_parts_delete", id); err != nil {
			return err
		}
		return session.Run("send_delete", id)
	})
}

// AddSendRows stores rows of an upload.
func (s *Store) AddSendRows(ctx context.Context, r *SendRows) error {
	return s.part.Write(ctx, func(session store.Session) error {
		return session.Run("send_rows_put", r.Send, r.Upload, r.Chunk, r.First, r.Count, r.Rows)
	})
}

// EraseSendRows replaces rows by those without a person.
func (s *Store) EraseSendRows(ctx context.Context, r *SendRows) error {
	return s.part.Erase(ctx, func(session store.Session) error {
		return session.Run("send_rows_put", r.Send, r.Upload, r.Chunk, r.First, r.Count, r.Rows)
	})
}

// SendChunks lists the chunks of all uploads of a send, in their order, without the rows.
func (s *Store) SendChunks(ctx context.Context, send string) (list []SendRows, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		list = nil
		return session.Each("send_chunks", func(r store.Row) error {
			list = append(list, SendRows{Send: send, Upload: r.Int64(0), Chunk: r.Int64(1), First: r.Int64(2), Count: r.Int64(3)})
			return nil
		}, send)
	})
	return list, err
}

// SendRows returns the rows of a chunk, or nil if there is no such chunk.
func (s *Store) SendRows(ctx context.Context, send string, upload, chunk int64) (rows []byte, err error) {
	return s.sendBlob(ctx, "send_rows", send, upload, chunk)
}

// sendBlob returns the blob of the row with a key.
func (s *Store) sendBlob(ctx context.Context, statement string, key ...any) (blob []byte, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		blob = nil
		return session.Each(statement, func(r store.Row) error {
			blob = r.Bytes(0)
			return nil
		}, key...)
	})
	return blob, err
}

// AddSendErrors stores errors of an upload.
func (s *Store) AddSendErrors(ctx context.Context, e *SendErrors) error {
	return s.part.Write(ctx, func(session store.Session) error {
		return session.Run("send_errors_put", e.Send, e.Upload, e.Page, e.Errors)
	})
}

// EraseSendErrors replaces errors by those without a person.
func (s *Store) EraseSendErrors(ctx context.Context, e *SendErrors) error {
	return s.part.Erase(ctx, func(session store.Session) error {
		return session.Run("send_errors_put", e.Send, e.Upload, e.Page, e.Errors)
	})
}

// SendErrors returns a page of the errors of an upload, or nil if there is no such page.
func (s *Store) SendErrors(ctx context.Context, send string, upload, page int64) ([]byte, error) {
	return s.sendBlob(ctx, "send_errors", send, upload, page)
}

// SendErrorPages returns the errors of all uploads of a send.
func (s *Store) SendErrorPages(ctx context.Context, send string) (list []SendErrors, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		list = nil
		return session.Each("send_error_pages", func(r store.Row) error {
			list = append(list, SendErrors{Send: send, Upload: r.Int64(0), Page: r.Int64(1), Errors: r.Bytes(2)})
			return nil
		}, send)
	})
	return list, err
}

// SendOutcome returns the outcome of a part of a send, or nil if it was not sent.
func (s *Store) SendOutcome(ctx context.Context, send string, part int64) ([]byte, error) {
	return s.sendBlob(ctx, "send_part", send, part)
}

// SendParts returns the parts of a send that were sent, in order, without their outcomes.
func (s *Store) SendParts(ctx context.Context, send string) (list []SendPart, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		list = nil
		return session.Each("send_parts", func(r store.Row) error {
			list = append(list, SendPart{Send: send, Part: r.Int64(0), Event: r.Text(1), At: r.Int64(2)})
			return nil
		}, send)
	})
	return list, err
}
