package harness

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// CommitsMetric counts the transactions in which outcomes were kept.
const CommitsMetric = "fanfare_outcome_commits_total"

// Metric reads one number of the server's own, 0 where it has none of that name.
func (s *Server) Metric(name string) (float64, error) {
	request, err := http.NewRequestWithContext(s.Env.Ctx, http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := (&http.Client{Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("/metrics answered %s", answer.Status)
	}
	return metricOf(string(text), name), nil
}

// metricOf finds a number without labels in the Prometheus text format.
func metricOf(text, name string) float64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return n
		}
	}
	return 0
}
