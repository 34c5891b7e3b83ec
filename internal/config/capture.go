package config

import (
	"net"
	"net/url"
	"strings"
)

// validateCapture checks the destination of captured mail and the recipients that are
// exempt from capturing.
func (c *Config) validateCapture(refuse func(key, hint, format string, args ...any)) {
	if scheme, rest, is := strings.Cut(c.Capture, "://"); is {
		u, err := url.Parse(c.Capture)
		_, _, bad := net.SplitHostPort(rest)
		if err != nil || scheme != "smtp" || bad != nil || u.Path != "" || u.User != nil || u.Hostname() == "" {
			refuse("capture", "use smtp://host:port or a directory", "%q is not a valid target for captured messages", c.Capture)
		}
	}
	for _, one := range c.CaptureFolders {
		if strings.Contains(one, "://") {
			refuse("capture_folders", "use a directory", "%q is not a folder", one)
		}
	}
	for _, one := range c.AllowRecipients {
		if strings.Trim(one, " ") != one || one == "" || one == "@" || strings.ContainsAny(one, "*/ ") {
			refuse("allow_recipients", "use an address, an @domain, or the host of a webhook", "%q is not a valid recipient", one)
		}
	}
}
