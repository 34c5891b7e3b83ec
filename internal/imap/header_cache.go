package imap

import (
	"container/list"
	"errors"
	"sync"

	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox"
)

// Limits of the cache of headers, in bytes. Longer headers are not cached.
const (
	maxHeaderCache  = 64 << 20
	maxCachedHeader = 32 << 10
	headerOverhead  = 160 // of an entry
)

// headerCache holds the headers of the contents that were searched last, because a search for a subject would otherwise read all messages of a
// mailbox in full. The bytes of a content never change, and no other one gets its number.
type headerCache struct {
	mu      sync.Mutex
	entries map[mailbox.ContentID]*list.Element // of *cachedHeader
	order   list.List                           // the last one was used first
	size    int
}

type cachedHeader struct {
	content mailbox.ContentID
	header  []byte
}

func (c *headerCache) get(content mailbox.ContentID) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[content]
	if e == nil {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cachedHeader).header, true
}

func (c *headerCache) put(content mailbox.ContentID, header []byte) {
	if content == 0 || len(header) > maxCachedHeader {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[content] != nil {
		return
	}
	if c.entries == nil {
		c.entries = map[mailbox.ContentID]*list.Element{}
	}
	c.entries[content] = c.order.PushFront(&cachedHeader{content, header})
	c.size += len(header) + headerOverhead
	for c.size > maxHeaderCache {
		last := c.order.Remove(c.order.Back()).(*cachedHeader)
		delete(c.entries, last.content)
		c.size -= len(last.header) + headerOverhead
	}
}

// contentOf returns the bytes of a message and their structure, or nil if it does not exist any more.
func (s *session) contentOf(m *mailbox.Message) ([]byte, *mimetree.Part, error) {
	data, err := s.content(m)
	if errors.Is(err, mailbox.ErrNoMessage) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return data, mimetree.Parse(data), nil
}

// headerOf returns the header of a message. ok is false if the message does not exist any more.
func (s *session) headerOf(m *mailbox.Message) (header []byte, ok bool, err error) {
	if header, ok = s.server.headers.get(m.Content); ok {
		return header, true, nil
	}
	data, tree, err := s.contentOf(m)
	if err != nil || tree == nil {
		return nil, false, err
	}
	header = append([]byte{}, data[tree.Header.From:tree.Header.To]...) // without the rest of the message
	s.server.headers.put(m.Content, header)
	return header, true, nil
}
