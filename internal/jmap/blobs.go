package jmap

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mailbox"
)

// uploadTime is how long an upload may take.
const uploadTime = 10 * time.Minute

// upload stores bytes (RFC 8620, section 6.1).
func (s *Server) upload(w http.ResponseWriter, r *http.Request, c *call) error {
	if core.ID(c.rest) != c.id {
		return noAccount(c.rest)
	}
	release, ok := s.acquire(c.account.ID, uploads, maxUploads)
	if !ok {
		return limitExceeded(http.StatusTooManyRequests, "maxConcurrentUpload", fmt.Sprintf("the account has %d uploads running, which is the maximum", maxUploads))
	}
	defer release()
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime))
	data, err := httpio.ReadUpTo(w, r, s.o.MaxUploadBytes)
	if err != nil {
		if fanfare.CodeOf(err) == fanfare.TooLarge {
			return limitExceeded(http.StatusRequestEntityTooLarge, "maxSizeUpload", fmt.Sprintf("the upload is larger than %d bytes", s.o.MaxUploadBytes))
		}
		return err
	}
	id, err := s.methods.Upload(r.Context(), c.account.ID, data)
	if err != nil {
		return err
	}
	kind := r.Header.Get("Content-Type")
	if kind == "" {
		kind = "application/octet-stream"
	}
	w.Header().Set("Cache-Control", "no-store")
	return httpio.WriteJSON(w, http.StatusCreated, "application/json", map[string]any{"accountId": c.id, "blobId": id, "type": kind, "size": len(data)})
}

func noAccount(id string) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("the account %.80q does not exist", id), Hint: "the session lists the accounts of a login"}
}

var acceptable = regexp.MustCompile("^[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}(; ?[A-Za-z0-9-]{1,40}=[A-Za-z0-9_.+-]{1,80})?$")

// download returns the bytes of a blob (RFC 8620, section 6.2). Browsers neither run nor render them.
func (s *Server) download(w http.ResponseWriter, r *http.Request, c *call) error {
	account, rest, ok := strings.Cut(c.rest, "/")
	blob, name, named := strings.Cut(rest, "/")
	if !ok || !named || name == "" {
		return &fanfare.Error{Code: fanfare.NotFound, Message: "the path of a download must be " + blobPath + "ACCOUNT/BLOB/NAME", Hint: "use the downloadUrl of the session"}
	}
	if core.ID(account) != c.id {
		return noAccount(account)
	}
	kind := r.URL.Query().Get("accept")
	if kind == "" {
		kind = "application/octet-stream"
	}
	if !acceptable.MatchString(kind) {
		return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("query parameter accept: %.80q is not a media type", kind), Hint: "use a type such as image/png"}
	}
	data, err := s.methods.Blob(r.Context(), c.account.ID, core.ID(blob))
	if errors.Is(err, mailbox.ErrNoMessage) {
		return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("the blob %.80q does not exist", blob), Hint: "read the message again; uploads are kept for a day"}
	}
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", disposition(name))
	h.Set("Cache-Control", "private, immutable, max-age=31536000")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	httpio.AllowLongResponse(w)
	httpio.WriteAll(w, http.StatusOK, data)
	return nil
}

// disposition names the file of a download.
func disposition(name string) string {
	if value := mime.FormatMediaType("attachment", map[string]string{"filename": name}); value != "" {
		return value
	}
	return "attachment"
}
