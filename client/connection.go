package client

import "net/http"

// Connection returns the URL of the server, the headers with the key and the service, and the HTTP client. The packages
// session and worker open their streams with them.
func (c *Client) Connection() (baseURL string, header http.Header, h *http.Client) {
	header = http.Header{}
	if c.key != "" {
		header.Set("Authorization", "Bearer "+c.key)
	}
	if c.service != "" {
		header.Set("X-Fanfare-Service", c.service)
	}
	return c.base, header, c.http
}
