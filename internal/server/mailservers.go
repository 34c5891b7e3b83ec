package server

import (
	"net"
	"net/url"
	"strconv"

	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/mail/clientconfig"
)

// mailServers returns the servers that mail programs connect to. Listeners on a free port are not among them, nor is IMAP without encryption.
func mailServers(c *config.Config) clientconfig.Servers {
	s := clientconfig.Servers{Host: c.PublicMailHost(), IMAPS: portOf(c.IMAPSListen), Submissions: portOf(c.SubmissionsListen), Submission: portOf(c.SubmissionListen)}
	if cert, _ := c.IMAPCertificate(); cert != "" {
		s.IMAP = portOf(c.IMAPListen)
	}
	if u, err := url.Parse(c.PublicURL); err == nil && u.Scheme == "https" && net.ParseIP(u.Hostname()) == nil {
		s.WebHost, s.WebPort = u.Hostname(), 443
		if port, err := strconv.Atoi(u.Port()); err == nil {
			s.WebPort = port
		}
	}
	return s
}

// portOf returns the port of a listen address, or 0.
func portOf(listen string) int {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	return n
}
