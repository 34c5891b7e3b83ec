package config

import (
	"net/netip"
	"net/url"
	"strings"
)

// maxRate is the highest rate that can be distinguished from no limit.
const maxRate = 1_000_000

func (c *Config) validateLimits(refuse func(key, hint, format string, args ...any)) {
	for _, f := range []struct {
		key         string
		value, most int
	}{
		{"max_requests", c.MaxRequests, maxRate},
		{"max_requests_per_key", c.MaxRequestsPerKey, maxRate},
		{"rate_limit", c.RateLimit, maxRate},
		{"rate_burst", c.RateBurst, maxRate},
	} {
		if f.value < 0 || f.value > f.most {
			refuse(f.key, "use 0 to 1000000", "%d is out of range", f.value)
		}
	}
	if c.RateBurst > 0 && c.RateLimit == 0 {
		refuse("rate_burst", "set rate_limit too", "has no effect without rate_limit")
	}
	if c.MaxAttachments < 10e3 || c.MaxAttachments > 40e6 {
		refuse("max_attachments", "use 10KB to 40MB", "%s is out of range", c.MaxAttachments)
	}
	if c.SubmissionRate < 1 || c.SubmissionRate > 100_000 {
		refuse("submission_rate", "use 1 to 100000 recipients in an hour", "%d is out of range", c.SubmissionRate)
	}
	if c.SubmissionDays < 1 || c.SubmissionDays > 3650 {
		refuse("submission_retention_days", "use 1 to 3650 days", "%d is out of range", c.SubmissionDays)
	}
	if c.MailboxQuota < 0 {
		refuse("mailbox_quota", "use 0 for no limit", "%s is out of range", c.MailboxQuota)
	}
	if c.MailboxMaxMessage < 10e3 || c.MailboxMaxMessage > 200e6 {
		refuse("mailbox_max_message", "use 10KB to 200MB", "%s is out of range", c.MailboxMaxMessage)
	}
	for _, extension := range c.AllowAttachments {
		if extension == "" || strings.ToLower(extension) != extension || strings.ContainsAny(extension, ". /*") {
			refuse("allow_attachments", "write it in lower case without a dot, such as js", "%q is not a file extension", extension)
		}
	}
	for _, origin := range c.CORSOrigins {
		if origin != "*" && !isOrigin(origin) {
			refuse("cors_origins", "use scheme://host or scheme://host:port without a path, or *", "%q is not an origin", origin)
		}
	}
	for _, f := range []struct {
		key      string
		networks []string
	}{{"trusted_proxies", c.TrustedProxies}, {"allow_networks", c.AllowNetworks}} {
		for _, network := range f.networks {
			if _, err := parseNetwork(network); err != nil {
				refuse(f.key, "use an address or a network such as 10.0.0.0/8", "%q is not a network", network)
			}
		}
	}
}

// isOrigin reports whether a browser can send the text as Origin (RFC 6454, section 6.2). Origins
// are compared as text, so it must have the spelling of browsers.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && text == u.Scheme+"://"+strings.ToLower(u.Host)
}

func parseNetwork(text string) (netip.Prefix, error) {
	if at, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(at, at.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// Proxies returns the networks of TrustedProxies.
func (c *Config) Proxies() []netip.Prefix { return networksOf(c.TrustedProxies) }

// Networks returns the networks of AllowNetworks.
func (c *Config) Networks() []netip.Prefix { return networksOf(c.AllowNetworks) }

func networksOf(texts []string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range texts {
		if network, err := parseNetwork(text); err == nil { // Validate refuses invalid networks
			list = append(list, network.Masked())
		}
	}
	return list
}
