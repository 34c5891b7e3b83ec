package jmap

import (
	"net/http"
	"net/url"
	"strconv"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/jmap/mail"
)

// maxMailboxName is the largest length of the name of a mailbox in bytes.
const maxMailboxName = 255

// baseURL returns the URL of the server without / at the end, and the same for WebSockets.
func (s *Server) baseURL(r *http.Request) (base, sockets string) {
	if s.o.PublicURL != "" && r.Host == hostOf(s.o.PublicURL) {
		base = s.o.PublicURL
	} else if r.TLS != nil {
		base = "https://" + r.Host
	} else {
		base = "http://" + r.Host
	}
	return base, "ws" + base[len("http"):]
}

// hostOf returns the host of a URL.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

// sessionState changes when the session object does: it depends on the account and on this program alone.
func sessionState(c *call) string { return strconv.FormatUint(uint64(c.account.ID), 36) + "-2" }

// session returns the Session object (RFC 8620, section 2).
func (s *Server) session(w http.ResponseWriter, r *http.Request, c *call) error {
	base, sockets := s.baseURL(r)
	empty := map[string]any{}
	capabilities := map[string]any{
		core.Capability: s.core.Limits, mail.Capability: empty, mail.QuotaCapability: empty,
		socketCapability: map[string]any{"url": sockets + socketPath, "supportsPush": true},
	}
	ofAccount := map[string]any{core.Capability: empty, mail.Capability: mail.AccountCapability(maxMailboxName), mail.QuotaCapability: empty}
	if s.o.Sender != nil {
		capabilities[mail.SubmissionCapability], ofAccount[mail.SubmissionCapability] = empty, mail.SubmissionAccountCapability()
	}
	primary := map[string]core.ID{}
	for capability := range ofAccount {
		primary[capability] = c.id
	}
	w.Header().Set("Cache-Control", "no-cache, no-store, must-revalidate")
	return httpio.WriteJSON(w, http.StatusOK, "application/json", map[string]any{
		"capabilities": capabilities,
		"accounts": map[core.ID]any{c.id: map[string]any{
			"name": c.account.Address, "isPersonal": true, "isReadOnly": false,
			"accountCapabilities": ofAccount,
		}},
		"primaryAccounts": primary,
		"username":        c.account.Address,
		"apiUrl":          base + apiPath,
		"downloadUrl":     base + blobPath + "{accountId}/{blobId}/{name}?accept={type}",
		"uploadUrl":       base + uploadPath + "{accountId}/",
		"eventSourceUrl":  base + eventPath + "?types={types}&closeafter={closeafter}&ping={ping}",
		"state":           sessionState(c),
	})
}
