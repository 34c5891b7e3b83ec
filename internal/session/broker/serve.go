package broker

import (
	"context"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// closeTimeout bounds the time to send the last frames of a connection.
const closeTimeout = 10 * time.Second

// enter counts a connection, unless the broker stops.
func (b *Broker) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopping {
		return false
	}
	b.conns.Add(1)
	return true
}

// reject sends a problem on a connection that is not served, closes it and returns the error.
func (b *Broker) reject(ctx context.Context, conn session.Conn, t frame.Type, err error, code int) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = conn.Write(ctx, frame.JSON(t, document(err))) // the peer may be gone
	_ = conn.Close(code, short(err))                  // the peer may be gone
	return err
}

// refusalCode returns the code with which a connection is refused: that of a broker that is going away, if the peer should connect
// again, and otherwise the given one.
func refusalCode(err error, code int) int {
	if fanfare.CodeOf(err) == fanfare.Unavailable {
		return session.CloseGoingAway
	}
	return code
}

// serve reads and writes a connection until it ends. Take returns the frames to write, and whether there is more at once.
func (b *Broker) serve(ctx context.Context, l *link, handle func([]byte), take func(context.Context) (out [][]byte, more bool, err error), mu *sync.Mutex) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(b.ctx, cancel)
	defer stop()
	var writer sync.WaitGroup
	writer.Go(func() {
		defer cancel()
		write(ctx, l, take, mu)
	})
	for {
		f, err := l.conn.Read(ctx)
		if err != nil {
			break
		}
		handle(f)
	}
	cancel()
	writer.Wait()
	_ = l.conn.Close(session.CloseNormal, "") // it may be closed already
}

// write sends frames until the connection is closed.
func write(ctx context.Context, l *link, take func(context.Context) ([][]byte, bool, error), mu *sync.Mutex) {
	for {
		select {
		case <-l.wake:
		case <-ctx.Done():
			return
		}
		for more := true; more; {
			var out [][]byte
			var err error
			mu.Lock()
			code, reason := l.closing, l.reason
			mu.Unlock()
			if out, more, err = take(ctx); err != nil {
				return
			}
			for _, f := range out {
				if err := l.conn.Write(ctx, f); err != nil {
					return
				}
			}
			if code != 0 && !more {
				_ = l.conn.Close(code, reason) // the peer may be gone
				return
			}
		}
	}
}
