package config

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// Validate refuses values that would fail later. The error names every wrong field by its pointer
// and says how to correct it.
func (c *Config) Validate() error {
	var wrong []*fanfare.Error
	refuse := func(key, hint, format string, args ...any) {
		wrong = append(wrong, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + key, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	oneOf := func(key, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			refuse(key, "use "+strings.Join(allowed, ", "), "unknown value %q", value)
		}
	}

	if c.DataDir == "" {
		refuse("data_dir", "set it to a directory", "must not be empty")
	}
	oneOf("durability", c.Durability, "fsync", "relaxed")
	oneOf("log_level", c.LogLevel, "debug", "info", "warn", "error")
	oneOf("log_format", c.LogFormat, "text", "json")
	oneOf("access_log", c.AccessLog, "off", "errors", "all")
	if c.AuditDays < 1 || c.AuditDays > 36500 {
		refuse("audit_days", "use 1 to 36500", "%d is out of range", c.AuditDays)
	}
	if c.Retention < 1 {
		refuse("retention_days", "use 1 or more", "%d days is too short: the server would delete messages before they are sent", c.Retention)
	}
	if c.SessionRetention < time.Minute {
		refuse("session_retention", "use 1m or more", "%v is too short", c.SessionRetention)
	}
	if c.SyncInterval < 100*time.Millisecond || c.SyncInterval > time.Minute {
		refuse("sync_interval", "use 100ms to 1m", "%v is out of range", c.SyncInterval)
	}
	if c.Lease < 10*time.Second || c.Lease > time.Hour {
		refuse("lease", "use 10s to 1h", "%v is out of range", c.Lease)
	}
	if c.DrainTimeout < 0 {
		refuse("drain_timeout", "use 0s or more", "%v is negative", c.DrainTimeout)
	}
	c.validateDatabase(refuse)
	c.validateCluster(refuse)
	c.validateNotify(refuse)
	c.validateInbound(refuse)
	c.validateMailboxListeners(refuse)
	c.validateIMAP(refuse)
	c.validateReach(refuse)
	c.validateLimits(refuse)
	c.validateCapture(refuse)
	c.validateRoles(refuse)

	switch len(wrong) {
	case 0:
		return nil
	case 1:
		return wrong[0]
	}
	return &fanfare.Error{Code: fanfare.Invalid, Message: "the configuration is invalid", Details: wrong}
}

func (c *Config) validateReach(refuse func(key, hint, format string, args ...any)) {
	host, port, err := net.SplitHostPort(c.Listen)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || strings.ContainsAny(host, " /") {
		refuse("listen", "use host:port, such as 127.0.0.1:8085", "%q is not a valid listen address", c.Listen)
	}
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			refuse("public_url", "use a URL such as https://news.example.org", "%q is not an http or https URL without query, fragment and user", c.PublicURL)
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		key := "tls_key"
		if c.TLSCert == "" {
			key = "tls_cert"
		}
		refuse(key, "set both tls_cert and tls_key, or neither", "must not be empty if the other one is set")
	}
	readable(refuse, "tls_cert", c.TLSCert)
	readable(refuse, "tls_key", c.TLSKey)
	if c.NATS != "" {
		for server := range strings.SplitSeq(c.NATS, ",") {
			u, err := url.Parse(strings.TrimSpace(server))
			if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
				refuse("nats", "use a URL such as nats://nats.example.org:4222", "is not the URL of a NATS server") // the value may contain a password
			}
		}
	}
}

// readable refuses a file that is set but cannot be opened.
func readable(refuse func(key, hint, format string, args ...any), key, path string) {
	if path == "" {
		return
	}
	if file, err := os.Open(path); err != nil {
		refuse(key, "set it to a PEM file that this user can read", "%v", err)
	} else if err := file.Close(); err != nil {
		refuse(key, "set it to a PEM file that this user can read", "%v", err)
	}
}
