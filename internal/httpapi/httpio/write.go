package httpio

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// WriteJSON writes v as the response.
func WriteJSON(w http.ResponseWriter, status int, contentType string, v any) error {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	WriteAll(w, status, body.Bytes())
	return nil
}

func WriteAll(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

// AppendString appends s as JSON. Ids hardly ever need an escape.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			quoted, _ := json.Marshal(s) // a string cannot fail
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// AllowLongResponse extends the write deadline to the time that sending a message may take.
func AllowLongResponse(w http.ResponseWriter) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(10 * time.Minute))
}

func WholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
