package jmap

import (
	"encoding/json"
	"fmt"
	"net/http"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/jmap/core"
)

// limitExceeded is the error of a request that exceeds a limit of the core capability.
func limitExceeded(status int, limit, detail string) *core.RequestError {
	return &core.RequestError{Type: core.LimitExceeded, Status: status, Limit: limit, Detail: detail}
}

// writeRequestError writes the problem document of JMAP.
func writeRequestError(w http.ResponseWriter, err *core.RequestError) {
	text, _ := json.Marshal(err) // plain values: cannot fail
	w.Header().Set("Content-Type", problem.MediaType)
	w.Header().Set("Cache-Control", "no-store")
	if err.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	httpio.WriteAll(w, err.Status, text)
}

// api makes the calls of a request (RFC 8620, section 3).
func (s *Server) api(w http.ResponseWriter, r *http.Request, c *call) error {
	release, ok := s.acquire(c.account.ID, requests, maxRequests)
	if !ok {
		return limitExceeded(http.StatusTooManyRequests, "maxConcurrentRequests", fmt.Sprintf("the account has %d requests running, which is the maximum", maxRequests))
	}
	defer release()
	if kind := httpio.MediaType(r.Header); kind != "application/json" {
		return &core.RequestError{Type: core.NotJSON, Status: http.StatusBadRequest, Detail: fmt.Sprintf("the Content-Type is %.80q; it must be application/json", kind)}
	}
	text, err := httpio.ReadUpTo(w, r, maxRequestBytes)
	if err != nil {
		if fanfare.CodeOf(err) == fanfare.TooLarge {
			return limitExceeded(http.StatusRequestEntityTooLarge, "maxSizeRequest", fmt.Sprintf("the request is larger than %d bytes", maxRequestBytes))
		}
		return err
	}
	request, refused := core.ParseRequest(text)
	if refused != nil {
		return refused
	}
	request.Login = core.Login{Credential: c.credential, Until: c.until}
	response, refused := s.core.Run(r.Context(), c.id, request, sessionState(c))
	if refused != nil {
		return refused
	}
	if err := r.Context().Err(); err != nil {
		return err
	}
	body, err := json.Marshal(response)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	httpio.AllowLongResponse(w)
	httpio.WriteAll(w, http.StatusOK, body)
	return nil
}
