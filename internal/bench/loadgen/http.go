package loadgen

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

	"fanfare.dev/fanfare/internal/bench/report"
)

// An HTTPLoad sends small JSON bodies one after the other over kept connections. It
// implements only the part of HTTP/1.1 that it needs, since it shares the machine with
// the server under test.
type HTTPLoad struct {
	URL, Key    string
	Method      string // "" is POST
	Path        string
	Target      func(dst []byte, i int) []byte // what follows the path; may be nil
	Connections int
	Body        func(dst []byte, i int) []byte
}

// An httpResult is the result of a number of requests.
type HTTPResult struct {
	PerSecond float64
	P50, P99  float64 // milliseconds
	Longest   float64
}

// Run posts the bodies 0 to n-1 and expects a 2xx answer to each.
func (h HTTPLoad) Run(ctx context.Context, n int, progress func(done int64)) (HTTPResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	all := make([][]float64, h.Connections)
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
		return HTTPResult{}, err
	}
	sorted := slices.Concat(all...)
	slices.Sort(sorted)
	return HTTPResult{float64(n) / elapsed.Seconds(), report.Percentile(sorted, 50), report.Percentile(sorted, 99), report.Percentile(sorted, 100)}, nil
}

// connection posts the bodies that next returns over one connection.
func (h HTTPLoad) connection(ctx context.Context, next func() (int, bool)) ([]float64, error) {
	host := strings.TrimPrefix(h.URL, "http://")
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	method := h.Method
	if method == "" {
		method = "POST"
	}
	line := method + " " + h.Path
	head := " HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + h.Key +
		"\r\nX-Fanfare-Service: " + Service + "\r\nContent-Type: application/json\r\nContent-Length: "
	in := bufio.NewReader(conn)
	var took []float64
	var body, request []byte
	for {
		i, ok := next()
		if !ok {
			return took, nil
		}
		body = h.Body(body[:0], i)
		request = append(request[:0], line...)
		if h.Target != nil {
			request = h.Target(request, i)
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
		took = append(took, report.Millis(time.Since(started)))
	}
}

// readAnswer reads one successful answer to its end.
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
		return fmt.Errorf("the server returned %s: %s", answer.Status, text)
	}
	if answer.Close {
		return errors.New("the server closes the connection after one response")
	}
	return nil
}
