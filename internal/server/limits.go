package server

import (
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/httpapi"
)

// limitsOf is what the configuration says of how much may be asked at a time.
func limitsOf(c *config.Config) httpapi.Limits {
	return httpapi.Limits{Requests: c.MaxRequests, RequestsPerKey: c.MaxRequestsPerKey, RatePerSecond: c.RateLimit, Burst: c.RateBurst}
}
