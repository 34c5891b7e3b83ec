package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Values of AccessLog: which responses are logged.
const (
	LogNone   = "off"
	LogErrors = "errors" // status 400 and higher
	LogAll    = "all"
)

// maxRefusalsLogged limits the log lines for rejected requests in a second, so that a
// flood of requests does not flood the log. Omitted lines are counted.
const maxRefusalsLogged = 50

// accessLog writes one line for each answered request. The line has the route instead of
// the path, which may contain the address of a person, no query, and only the id of the
// key or of the sign-in.
type accessLog struct {
	log  *slog.Logger
	what string

	mu      sync.Mutex
	second  int64
	written int
	left    int // lines omitted since the last line
}

func (l *accessLog) answered(x *responseWriter, now time.Time) {
	level := slog.LevelInfo
	refused := x.status >= http.StatusBadRequest
	switch {
	case l.what == LogAll, l.what == LogErrors && refused:
	case l.log.Enabled(context.Background(), slog.LevelDebug):
		level = slog.LevelDebug
	default:
		return
	}
	left := 0
	if refused && x.status < http.StatusInternalServerError {
		var write bool
		if write, left = l.allowLine(now.Unix()); !write {
			return
		}
	}
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("request_id", x.id), slog.String("method", methodOf(x.request)), slog.String("route", x.request.Pattern),
		slog.Int("status", x.status), slog.Duration("took", now.Sub(x.began).Round(time.Microsecond)))
	if x.key != "" {
		attrs = append(attrs, slog.String("key", x.key))
	} else if x.signIn != "" {
		attrs = append(attrs, slog.String("sign_in", x.signIn)) // of a person, whose name is not in the log
	}
	if left > 0 {
		attrs = append(attrs, slog.Int("refusals_not_logged", left))
	}
	l.log.LogAttrs(context.Background(), level, "request", attrs...)
}

// allowLine reports whether another line may be written in this second, and how many lines
// were omitted before it.
func (l *accessLog) allowLine(second int64) (write bool, left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second != l.second {
		l.second, l.written = second, 0
	}
	if l.written == maxRefusalsLogged {
		l.left++
		return false, 0
	}
	l.written++
	left, l.left = l.left, 0
	return true, left
}

// methodOf returns the method if it is a standard one: clients may send any word.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "other"
}
