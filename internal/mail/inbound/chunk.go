package inbound

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

// chunk executes BDAT of a server for mailboxes (RFC 3030). The bytes of a chunk follow the command and are read in any case, because they
// would be commands otherwise.
func (s *session) chunk(arg string) {
	if s.server.options.Kind == Returns {
		s.refuse(502, "5.5.1", "BDAT is not supported")
		return
	}
	count, last, hasLast := strings.Cut(strings.TrimSpace(arg), " ")
	size, err := strconv.ParseUint(count, 10, 32)
	if err != nil || hasLast && !strings.EqualFold(last, "LAST") {
		s.over = true // the bytes that follow cannot be told from commands
		s.server.counters.broken.Add(1)
		s.reply(501, "5.5.4", "syntax: BDAT 1000, or BDAT 1000 LAST")
		return
	}
	s.receiving(true)
	defer s.receiving(false)
	if s.mail == nil || len(s.mail.to) == 0 {
		if s.skip(int64(size)) {
			s.refuse(503, "5.5.1", "send RCPT first")
		}
		return
	}
	if s.chunks == nil {
		s.chunks = &incoming{server: s.server}
	}
	if !s.readChunk(int64(size)) {
		return
	}
	m, in := s.mail, s.chunks
	if in.refused == nil && !hasLast {
		s.reply(250, "2.0.0", "%d bytes received", size)
		return
	}
	s.mail, s.chunks = nil, nil
	defer in.done()
	s.messages++
	switch {
	case in.refused == nil:
		s.deliverChunks(m, in.text)
	case !hasLast:
		s.refuseChunk(in.refused)
	default:
		s.refuseMessage(m, in.refused)
	}
}

// refuseChunk refuses a chunk that is not the last one, and with it the message.
func (s *session) refuseChunk(err error) {
	if errors.Is(err, errTooLarge) {
		s.server.counters.tooLarge.Add(1)
		s.refuse(552, "5.3.4", "%s", s.server.tooLarge())
		return
	}
	s.server.counters.notNow.Add(1)
	s.reply(452, "4.3.1", "%v; try again later", err)
}

// readChunk adds the bytes of a chunk to the message. It reports whether all were read.
func (s *session) readChunk(size int64) bool {
	const step = 16 << 10
	for size > 0 {
		part := make([]byte, min(size, step))
		if _, err := io.ReadFull(s.in.in, part); err != nil {
			s.end(err)
			return false
		}
		size -= int64(len(part))
		if s.chunks.addRaw(part); s.chunks.refused != nil {
			return s.skip(size)
		}
	}
	return true
}

// skip reads bytes that nobody wants. It ends the session if there are too many.
func (s *session) skip(size int64) bool {
	if size > maxExcessBytes {
		s.over = true
		s.reply(552, "5.3.4", "%s", s.server.tooLarge())
		return false
	}
	if _, err := io.CopyN(io.Discard, s.in.in, size); err != nil {
		s.end(err)
		return false
	}
	return true
}

// deliverChunks delivers a message that was sent in chunks, if it has the lines that a message sent with DATA has.
func (s *session) deliverChunks(m *mail, text []byte) {
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\r\n")) {
		text = append(text, "\r\n"...)
	}
	for line := range bytes.SplitSeq(text, []byte("\r\n")) {
		if len(line) > maxTextBytes-2 {
			s.refuseData(m, 554, "5.6.0", "a line of the message is too long")
			return
		}
		if bytes.IndexByte(line, '\r') >= 0 || bytes.IndexByte(line, '\n') >= 0 {
			s.refuseData(m, 554, "5.6.0", "lines of the message must end in CR LF and must not contain a bare CR or LF")
			return
		}
	}
	s.deliverToMailboxes(m, text)
}
