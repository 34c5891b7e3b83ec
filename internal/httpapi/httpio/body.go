// Package httpio reads request bodies, queries and headers, and writes responses.
package httpio

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
)

// Media types of bodies.
const (
	NDJSON          = "application/x-ndjson"
	CloudEvent      = "application/cloudevents+json"
	MergePatch      = "application/merge-patch+json"
	CloudEventBatch = "application/cloudevents-batch+json"
)

// MaxBodyBytes limits the bodies that are read into memory.
const MaxBodyBytes = 1 << 20

// maxFormBytes limits the size of a submitted form.
const maxFormBytes = 64 << 10

// ReadBody reads the whole body, up to maxBodyBytes.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return ReadUpTo(w, r, MaxBodyBytes)
}

// ReadUpTo reads the whole body, up to most bytes. It allocates memory beyond
// maxBodyBytes only as the data arrives.
func ReadUpTo(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "Content-Encoding " + enc + " is not supported", Hint: "send the body without Content-Encoding"}
	}
	if r.ContentLength > most {
		w.Header().Set("Connection", "close")
		return nil, TooLargeBody(most)
	}
	if r.ContentLength >= 0 && r.ContentLength <= MaxBodyBytes {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, BodyError(err, most)
		}
		return body, nil
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, most)); err != nil {
		return nil, BodyError(err, most)
	}
	return body.Bytes(), nil
}

// ReadForm reads the fields of a submitted form. An unreadable form counts as
// empty, because the one-click request of RFC 8058 is valid with any body.
func ReadForm(w http.ResponseWriter, r *http.Request) url.Values {
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	var err error
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		err = r.ParseMultipartForm(maxFormBytes) //nolint:gosec // the body is bounded above
	} else {
		err = r.ParseForm()
	}
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return url.Values{}
	}
	return r.PostForm
}

// BodyError converts an error of reading a request body.
func BodyError(err error, limitBytes int64) *fanfare.Error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return TooLargeBody(limitBytes)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the client sent the body too slowly"}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the connection was closed before the end of the body", Hint: "send the request again"}
	}
	return &fanfare.Error{Code: fanfare.Invalid, Message: "the body could not be read"}
}

func TooLargeBody(limitBytes int64) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.TooLarge, Message: "the body is larger than " + strconv.FormatInt(limitBytes, 10) + " bytes",
		Hint: "send many events or subscriptions as NDJSON (application/x-ndjson), which is streamed"}
}

// MediaType returns the type of the body without its parameters.
func MediaType(h http.Header) string {
	v := h.Get("Content-Type")
	if v == "application/json" {
		return v
	}
	v, _, _ = strings.Cut(v, ";")
	return strings.ToLower(strings.TrimSpace(v))
}

func IsNDJSON(mediaType string) bool {
	switch mediaType {
	case NDJSON, "application/ndjson", "application/jsonl", "application/jsonlines":
		return true
	}
	return false
}

func UnknownType(mediaType string, known ...string) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: "Content-Type " + mediaType + " is not supported",
		Hint: "set the header Content-Type to one of " + strings.Join(known, ", ")}
}
