package config

import (
	"net"
	"net/url"
	"strconv"
	"strings"
)

// validateNotify checks the listener for clients of GOV.UK Notify.
func (c *Config) validateNotify(refuse func(key, hint, format string, args ...any)) {
	if c.NotifyListen != "" {
		host, port, err := net.SplitHostPort(c.NotifyListen)
		if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || strings.ContainsAny(host, " /") {
			refuse("notify_listen", "use host:port, such as 127.0.0.1:8086", "%q is not a valid listen address", c.NotifyListen)
		}
	}
	if c.NotifyPublicURL == "" {
		return
	}
	if c.NotifyListen == "" {
		refuse("notify_public_url", "set notify_listen, or remove notify_public_url", "has no effect without notify_listen")
	}
	u, err := url.Parse(c.NotifyPublicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		refuse("notify_public_url", "use a URL such as https://notify.example.org", "%q is not an http or https URL without path, query, fragment and user: clients expect the API at the root of a host", c.NotifyPublicURL)
	}
}
