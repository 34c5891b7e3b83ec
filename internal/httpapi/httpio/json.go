package httpio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/document"
)

// ReadJSON decodes a small body into v and rejects unknown members.
func ReadJSON(w http.ResponseWriter, r *http.Request, v any) error {
	if mt := MediaType(r.Header); mt != "" && mt != "application/json" {
		return UnknownType(mt, "application/json")
	}
	text, err := ReadBody(w, r)
	if err != nil {
		return err
	}
	return DecodeStrictly(text, v)
}

// ReadTemplateJSON is readJSON for a body that may contain a template with files.
func ReadTemplateJSON(w http.ResponseWriter, r *http.Request, v any) error {
	if mt := MediaType(r.Header); mt != "" && mt != "application/json" {
		return UnknownType(mt, "application/json")
	}
	text, err := ReadUpTo(w, r, document.MaxUploadBytes)
	if err != nil {
		return err
	}
	return DecodeStrictly(text, v)
}

// DecodeStrictly decodes one JSON value and rejects unknown members.
func DecodeStrictly(text []byte, v any) error {
	if string(bytes.TrimSpace(text)) == "null" {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the body must be a JSON object, not null"}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return DecodeError(text, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the body has more than one JSON value"}
	}
	return nil
}

// DecodeError adds the position in text to the error of a decoder.
func DecodeError(text []byte, err error) error {
	e := &fanfare.Error{Code: fanfare.Invalid, Message: "the body is not valid JSON"}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var moment *time.ParseError
	switch {
	case errors.As(err, &syntax):
		e.Line, e.Column = position(text, syntax.Offset)
		e.Message += ": " + syntax.Error()
	case errors.As(err, &kind):
		e.Line, e.Column = position(text, kind.Offset)
		e.Pointer = "/" + strings.ReplaceAll(kind.Field, ".", "/")
		e.Message = "a JSON " + kind.Value + " is not allowed here"
	case errors.As(err, &moment):
		// The decoder reports only the value, not the member.
		value := strings.Trim(moment.Value, `"`)
		if at := bytes.Index(text, []byte(value)); at >= 0 {
			e.Line, e.Column = position(text, int64(at))
		}
		e.Message, e.Hint = fmt.Sprintf("%q is not a valid time", value), TimeHint
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		e.Message += ": unexpected end of the body"
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		e.Message = strings.TrimPrefix(err.Error(), "json: ")
		e.Hint = "see /openapi.json for the members"
	}
	return e
}

func position(text []byte, offset int64) (line, column int) {
	before := text[:min(int(offset), len(text))]
	return bytes.Count(before, []byte{'\n'}) + 1, max(1, len(before)-1-bytes.LastIndexByte(before, '\n'))
}

// TimeHint describes the format of a time.
const TimeHint = "write it with its time zone, such as 2026-11-20T08:00:00Z or 2026-11-20T09:00:00+01:00 (RFC 3339)"
