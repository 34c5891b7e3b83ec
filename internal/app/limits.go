package app

import (
	"fanfare.dev/fanfare/internal/api"
	"fanfare.dev/fanfare/internal/config"
)

// limitsOf is what the configuration says of how much may be asked at a time.
func limitsOf(c *config.Config) api.Limits {
	return api.Limits{Requests: c.MaxRequests, RequestsPerKey: c.MaxRequestsPerKey, RatePerSecond: c.RateLimit, Burst: c.RateBurst}
}
