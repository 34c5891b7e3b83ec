package harness

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// CommitsMetric is the number of transactions that stored outcomes.
const CommitsMetric = "fanfare_outcome_commits_total"

// Metric reads one metric of the server. It returns 0 if there is none with that name.
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
		return 0, fmt.Errorf("/metrics returned %s", answer.Status)
	}
	return metricOf(string(text), name), nil
}

// metricOf finds the value of a metric in the Prometheus text format. The name includes
// the labels.
func metricOf(text, name string) float64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return n
		}
	}
	return 0
}
