package webhook

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// verdictOf says what a status means. Redirects are for good: whoever moved has to
// say so to whoever subscribed them, since a signature is for one receiver.
func verdictOf(status int) driver.Verdict {
	switch {
	case status/100 == 2:
		return driver.Accepted
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status/100 == 5:
		return driver.Temporary
	}
	return driver.Permanent
}

// maxRetryAfter is the longest wait that is believed.
const maxRetryAfter = 7 * 24 * time.Hour

// retryAfter reads the header field of that name (RFC 9110, section 10.2.3):
// seconds or a date. 0 is none, or one that has passed.
func retryAfter(field string, now time.Time) time.Duration {
	field = strings.TrimSpace(field)
	if field == "" {
		return 0
	}
	if strings.Trim(field, "0123456789") == "" {
		seconds, err := strconv.ParseInt(field, 10, 64)
		if err != nil { // out of range
			seconds = math.MaxInt64
		}
		return time.Duration(min(seconds, int64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(field)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
