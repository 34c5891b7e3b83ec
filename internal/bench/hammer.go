package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A hammer sends one small JSON body after the other over kept connections. It
// speaks just enough HTTP/1.1, since it shares the machine with what it measures.
type hammer struct {
	url, key    string
	method      string // "" is POST
	path        string
	target      func(dst []byte, i int) []byte // what follows the path; may be nil
	connections int
	body        func(dst []byte, i int) []byte
}

// A blow is what came of n posts.
type blow struct {
	perSecond float64
	p50, p99  float64 // milliseconds
	longest   float64
}

// strike posts the bodies 0 to n-1 and expects each to be answered 2xx.
func (h hammer) strike(ctx context.Context, n int, progress func(done int64)) (blow, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	all := make([][]float64, h.connections)
	var wg sync.WaitGroup
	started := time.Now()
	for c := range all {
		wg.Go(func() {
			took, err := h.connection(ctx, func() (int, bool) {
				i := next.Add(1) - 1
				if d := done.Add(1); d%1024 == 0 {
					progress(d)
				}
				return int(i), i < int64(n)
			})
			if err != nil {
				cancel(err)
			}
			all[c] = took
		})
	}
	wg.Wait()
	elapsed := time.Since(started)
	if err := context.Cause(ctx); err != nil {
		return blow{}, err
	}
	sorted := slices.Concat(all...)
	slices.Sort(sorted)
	return blow{float64(n) / elapsed.Seconds(), percentile(sorted, 50), percentile(sorted, 99), percentile(sorted, 100)}, nil
}

// connection posts what next gives until there is no more.
func (h hammer) connection(ctx context.Context, next func() (int, bool)) ([]float64, error) {
	host := strings.TrimPrefix(h.url, "http://")
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	method := h.method
	if method == "" {
		method = "POST"
	}
	line := method + " " + h.path
	head := " HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + h.key +
		"\r\nX-Fanfare-Service: " + service + "\r\nContent-Type: application/json\r\nContent-Length: "
	in := bufio.NewReader(conn)
	var took []float64
	var body, request []byte
	for {
		i, ok := next()
		if !ok {
			return took, nil
		}
		body = h.body(body[:0], i)
		request = append(request[:0], line...)
		if h.target != nil {
			request = h.target(request, i)
		}
		request = append(request, head...)
		request = strconv.AppendInt(request, int64(len(body)), 10)
		request = append(append(request, "\r\n\r\n"...), body...)
		started := time.Now()
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		if err := readAnswer(in); err != nil {
			return nil, err
		}
		took = append(took, millis(time.Since(started)))
	}
}

// readAnswer reads one answer of success to its end.
func readAnswer(in *bufio.Reader) error {
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s: %s", answer.Status, text)
	}
	if answer.Close {
		return errors.New("the server closes the connection after one answer")
	}
	return nil
}
