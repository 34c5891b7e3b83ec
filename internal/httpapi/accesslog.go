package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Which answers the access log has.
const (
	LogNone   = "off"
	LogErrors = "errors" // 400 and above
	LogAll    = "all"
)

// maxRefusalsLogged bounds the lines for refused requests in a second: who
// floods the server shall not flood the log. What is left out is counted.
const maxRefusalsLogged = 50

// accessLog writes a line for an answered request. It names the route and not
// the path, which may hold the address of a person; never the query, and of the
// key only its id.
type accessLog struct {
	log  *slog.Logger
	what string

	mu      sync.Mutex
	second  int64
	written int
	left    int // out, since the last line
}

func (l *accessLog) answered(x *exchange, now time.Time) {
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
		if write, left = l.room(now.Unix()); !write {
			return
		}
	}
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("request_id", x.id), slog.String("method", methodOf(x.request)), slog.String("route", x.request.Pattern),
		slog.Int("status", x.status), slog.Duration("took", now.Sub(x.began).Round(time.Microsecond)))
	if x.key != "" {
		attrs = append(attrs, slog.String("key", x.key))
	}
	if left > 0 {
		attrs = append(attrs, slog.Int("refusals_not_logged", left))
	}
	l.log.LogAttrs(context.Background(), level, "request", attrs...)
}

// room reports whether there is room for another line in this second, and how
// many were left out before it.
func (l *accessLog) room(second int64) (write bool, left int) {
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

// methodOf is the method, where it is one: a client may send any word.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "other"
}
