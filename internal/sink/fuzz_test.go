package sink

import (
	"bytes"
	"net"
	"reflect"
	"testing"
	"time"
)

// A replay is a connection that delivers bytes in pieces and discards output.
type replay struct {
	net.Conn
	rest  []byte
	piece int
	out   bytes.Buffer
}

func (r *replay) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(p, r.rest[:min(r.piece, len(r.rest))])
	r.rest = r.rest[n:]
	return n, nil
}
func (r *replay) Write(p []byte) (int, error)      { return r.out.Write(p) }
func (r *replay) SetDeadline(time.Time) error      { return nil }
func (r *replay) SetReadDeadline(time.Time) error  { return nil }
func (r *replay) SetWriteDeadline(time.Time) error { return nil }
func (r *replay) Close() error                     { return nil }

// FuzzSession checks that any bytes get the same replies and counts however they are split,
// in whole lines that begin with a code.
func FuzzSession(f *testing.F) {
	f.Add([]byte("EHLO x\r\nMAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\nDATA\r\nX-Fanfare-Event: e\r\n\r\n..\r\n.\r\nQUIT\r\n"))
	f.Add([]byte("MAIL FROM:<>\r\nRCPT TO:<b>\r\nDATA\r\n.\r\nMAIL FROM:<> SIZE=99999999999999999999\r\n"))
	f.Add([]byte("MAIL FROM:<>\nRCPT TO:<b>\nDATA\n\r\n.\r\n\r\n.\r\nSTARTTLS\r\n\x00\r\n\r\n"))
	f.Add(append([]byte("MAIL FROM:<>\nRCPT TO:<b>\nDATA\n"), bytes.Repeat([]byte("0123456789\r\n"), 100)...))
	f.Fuzz(func(t *testing.T, wire []byte) {
		run := func(piece int) (string, Summary) {
			s := New(Config{MaxMessage: 500, KeepLast: 1})
			r := &replay{rest: wire, piece: piece}
			newSession(s, r).run()
			sum := s.Stats()
			sum.FirstAt, sum.LastAt, sum.Rate, sum.Over = time.Time{}, time.Time{}, 0, Timeline{}
			return r.out.String(), sum
		}
		whole, sum := run(1 << 20)
		for _, piece := range []int{1, 3} {
			if cut, cutSum := run(piece); cut != whole || !reflect.DeepEqual(cutSum, sum) {
				t.Fatalf("cut by %d: %q %+v, whole: %q %+v", piece, cut, cutSum, whole, sum)
			}
		}
		for _, line := range bytes.Split([]byte(whole), []byte("\r\n")) {
			if len(line) > 0 && (len(line) < 4 || line[0] < '2' || line[0] > '5' || line[3] != ' ' && line[3] != '-') {
				t.Fatalf("%q", line)
			}
		}
	})
}
