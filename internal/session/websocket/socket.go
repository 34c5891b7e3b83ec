package websocket

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync"

	"fanfare.dev/fanfare/internal/session/frame"
)

// The parts of a WebSocket header (RFC 6455, section 5.2).
const (
	finalBinary = 0x82
	opcodeClose = 0x08
	opcodeBits  = 0x0f
	maskBit     = 0x80
	size16      = 126 // a length of 2 bytes follows
	size64      = 127 // a length of 8 bytes follows
	maxHeader   = 14
)

// writeStep is the number of bytes that one write of a masked frame takes. It is a multiple of 4, the length of a mask, and
// more than the frames of the libraries.
const writeStep = 64<<10 + 64

// A socket is the connection below a WebSocket. It writes large frames itself, because the library copies and masks them in
// a buffer of 4 KiB: a frame of 64 KiB would need up to 17 system calls, and would be copied twice. All other frames of the
// library are shorter than its buffer, so that each is one Write, and frames do not mix.
type socket struct {
	io.ReadWriteCloser

	mu     sync.Mutex
	masked bool // the frames of a client are masked
	closed bool // the frame Close was written: nothing may follow
	parts  [2][]byte
	header [maxHeader]byte
}

// Write writes a whole frame of the library.
func (s *socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p) > 0 && p[0]&opcodeBits == opcodeClose {
		s.closed = true
	}
	return s.ReadWriteCloser.Write(p)
}

// writeMessage writes a binary message.
func (s *socket) writeMessage(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	if s.masked {
		return s.writeMasked(b)
	}
	header := appendHeader(s.header[:0], len(b), 0)
	if conn, is := s.ReadWriteCloser.(*net.TCPConn); is { // one system call
		s.parts = [2][]byte{header, b}
		both := net.Buffers(s.parts[:])
		_, err := both.WriteTo(conn)
		return err
	}
	out := frame.Buffer(maxHeader + writeStep)
	defer func() { frame.Recycle(out) }()
	n := min(len(b), writeStep)
	out = append(append(out, header...), b[:n]...)
	if _, err := s.ReadWriteCloser.Write(out); err != nil || n == len(b) {
		return err
	}
	_, err := s.ReadWriteCloser.Write(b[n:])
	return err
}

// writeMasked copies and masks b in one step, because its owner may still need it.
func (s *socket) writeMasked(b []byte) error {
	var key [4]byte
	_, _ = rand.Read(key[:]) // it never fails
	out := frame.Buffer(maxHeader + writeStep)
	defer func() { frame.Recycle(out) }()
	out = append(appendHeader(out, len(b), maskBit), key[:]...)
	var m mask
	m.set(key)
	for {
		n := min(len(b), writeStep)
		out = out[:len(out)+n]
		m.copy(out[len(out)-n:], b[:n])
		if _, err := s.ReadWriteCloser.Write(out); err != nil {
			return err
		}
		if b, out = b[n:], out[:0]; len(b) == 0 {
			return nil
		}
	}
}

// appendHeader appends the header of a frame that is a whole binary message.
func appendHeader(b []byte, size int, masked byte) []byte {
	switch {
	case size < size16:
		return append(b, finalBinary, masked|byte(size))
	case size < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, finalBinary, masked|size16), uint16(size))
	}
	return binary.BigEndian.AppendUint64(append(b, finalBinary, masked|size64), uint64(size)) // #nosec G115 -- not negative
}

// A mask is the key of a frame, repeated, so that many bytes are masked at once.
type mask [1 << 10]byte

func (m *mask) set(key [4]byte) {
	copy(m[:], key[:])
	for n := len(key); n < len(m); n *= 2 {
		copy(m[n:], m[:n])
	}
}

// copy masks src, whose start is at a multiple of 4 in the payload, and writes the result to dst.
func (m *mask) copy(dst, src []byte) {
	for len(src) > 0 {
		n := subtle.XORBytes(dst, src, m[:])
		dst, src = dst[n:], src[n:]
	}
}

// A hijacker keeps the connection of an HTTP request that becomes a WebSocket.
type hijacker struct {
	http.ResponseWriter
	socket *socket // of an upgraded connection
}

type serverSocket struct {
	net.Conn
	socket *socket
}

func (c *serverSocket) Write(p []byte) (int, error) { return c.socket.Write(p) }

// Hijack implements http.Hijacker for the library.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, both, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.socket = &socket{ReadWriteCloser: conn}
	both.Writer.Reset(h.socket)
	return &serverSocket{conn, h.socket}, both, nil
}

// send writes a message. When the context ends, it closes the connection, as the library does.
func (c *Conn) send(ctx context.Context, b []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.ws.CloseNow() }) // it ends the write
	defer stop()
	return c.socket.writeMessage(b)
}
