package imap

import (
	"net"

	"github.com/klauspost/compress/flate"

	"fanfare.dev/fanfare/internal/imap/inflate"
	"fanfare.dev/fanfare/internal/imap/syntax"
)

// compress starts compression after its response (RFC 4978).
func (s *session) compress(c *syntax.Command) status {
	a := c.Args.(*syntax.Compress)
	switch {
	case a.Algorithm != "DEFLATE":
		return no("CANNOT", "the algorithm %s is not supported: use DEFLATE", a.Algorithm)
	case s.compressed:
		return no("COMPRESSIONACTIVE", "compression is already active")
	case s.in.buffered():
		s.over = true
		return bad("wait for the response to COMPRESS before you send more")
	}
	s.syncAfter(true)
	s.tagged(c.Tag, ok("compression begins now"))
	s.server.metrics.command("COMPRESS", "OK", 0)
	if s.flush() == nil {
		s.compressed = true
		s.use(&deflated{Conn: s.stream, in: inflate.NewReader(s.stream)})
	}
	return status{}
}

// deflated is a compressed connection. The writer keeps only the last bytes between writes, because its tables would take more memory
// than the rest of a waiting session.
type deflated struct {
	net.Conn
	in   *inflate.Reader
	last []byte // written before, for references
}

const dictionaryBytes = 8 << 10

// Read returns decompressed bytes.
func (d *deflated) Read(p []byte) (int, error) { return d.in.Read(p) }

// Write sends all bytes and flushes them.
func (d *deflated) Write(p []byte) (int, error) {
	if err := flate.StatelessDeflate(d.Conn, p, false, d.last); err != nil {
		return 0, err
	}
	keep := p
	if len(keep) > dictionaryBytes {
		keep = keep[len(keep)-dictionaryBytes:]
	}
	d.last = append(d.last[max(0, min(len(d.last), len(d.last)+len(keep)-dictionaryBytes)):], keep...)
	return len(p), nil
}
