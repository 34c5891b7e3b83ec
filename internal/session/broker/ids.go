package broker

import (
	"context"
	"encoding/binary"
	"hash/maphash"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// An idHash stands for the id of a request, and a contentHash for its action, user data and body. Their seeds are random, so
// that nobody can choose ids or contents that collide.
type (
	idHash      [2]uint64
	contentHash uint64
)

type hashes [3]maphash.Seed

func newHashes() hashes { return hashes{maphash.MakeSeed(), maphash.MakeSeed(), maphash.MakeSeed()} }

func (h *hashes) id(id []byte) idHash {
	return idHash{maphash.Bytes(h[0], id), maphash.Bytes(h[1], id)}
}

func (h *hashes) content(r *frame.Request) contentHash {
	var m maphash.Hash
	m.SetSeed(h[2])
	for _, part := range [][]byte{r.Action, r.UserData, r.Body} {
		var size [4]byte
		binary.LittleEndian.PutUint32(size[:], uint32(len(part))) // #nosec G115 -- a part of a frame
		_, _ = m.Write(size[:])                                   // it never fails
		_, _ = m.Write(part)                                      // it never fails
	}
	return contentHash(m.Sum64())
}

// remember notes the id of a request. It reports whether the session has the id already, and whether the content is the same.
func (s *openSession) remember(r *frame.Request) (known, same bool) {
	if s.ids == nil {
		s.ids = map[idHash]contentHash{}
	}
	h := &s.p.b.hash
	id, content := h.id(r.ID), h.content(r)
	old, known := s.ids[id]
	if !known {
		s.ids[id] = content
	}
	return known, known && old == content
}

// readIDs reads the ids of a session from the log, before its first client connects.
func (s *openSession) readIDs(ctx context.Context) error {
	p := s.p
	p.mu.Lock()
	for s.reading != nil { // another client reads them
		wait := s.reading
		p.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
		p.mu.Lock()
	}
	if s.ids != nil {
		p.mu.Unlock()
		return nil
	}
	done := make(chan struct{})
	s.reading = done
	var clients []uint32
	for _, c := range s.clients {
		if c.usesIDs {
			clients = append(clients, c.number)
		}
	}
	p.mu.Unlock()
	ids, err := s.loadIDs(ctx, clients)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.reading = nil
	close(done)
	if err == nil {
		s.ids = ids
	}
	return err
}

func (s *openSession) loadIDs(ctx context.Context, clients []uint32) (map[idHash]contentHash, error) {
	ids := map[idHash]contentHash{}
	h := &s.p.b.hash
	for _, number := range clients {
		var broken error
		err := s.p.b.Log.Entries(ctx, s.record.Number, number, session.RequestEntry, 1, 0, func(e session.Entry) bool {
			records := e.Data
			for range e.Count {
				var r frame.Request
				if records, broken = frame.NextRequest(records, &r); broken != nil {
					return false
				}
				if len(r.ID) > 0 {
					ids[h.id(r.ID)] = h.content(&r)
				}
			}
			return true
		})
		if err == nil {
			err = broken
		}
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}
