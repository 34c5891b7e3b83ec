package sink

import (
	"bufio"
	"io"
	"strconv"
	"sync"
	"time"
)

const recordFlush = 100 * time.Millisecond

// A recorder writes one line per accepted recipient.
type recorder struct {
	mu   sync.Mutex
	out  io.Writer
	buf  *bufio.Writer
	sync bool
	err  error // the first error; nothing is written after it
	stop chan struct{}
	done chan struct{}
}

func newRecorder(out io.Writer, sync bool) *recorder {
	r := &recorder{out: out, buf: bufio.NewWriterSize(out, 64<<10), sync: sync, stop: make(chan struct{}), done: make(chan struct{})}
	go r.flushing()
	return r
}

func (r *recorder) flushing() {
	defer close(r.done)
	tick := time.NewTicker(recordFlush)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = r.write(nil, true)
		case <-r.stop:
			return
		}
	}
}

// write writes whole lines.
func (r *recorder) write(lines []byte, flush bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		_, r.err = r.buf.Write(lines)
	}
	if r.err == nil && flush {
		r.err = r.buf.Flush()
	}
	return r.err
}

func (r *recorder) close() error {
	close(r.stop)
	<-r.done
	return r.write(nil, true)
}

func appendRecord(dst []byte, at int64, event, recipient, messageID []byte) []byte {
	dst = strconv.AppendInt(dst, at, 10)
	for _, field := range [...][]byte{event, recipient, messageID} {
		dst = append(dst, '\t')
		from := len(dst)
		dst = append(dst, field...)
		for i, c := range dst[from:] {
			if c < ' ' {
				dst[from+i] = ' ' // a tab would shift the columns
			}
		}
	}
	return append(dst, '\n')
}
