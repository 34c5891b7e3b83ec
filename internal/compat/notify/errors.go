package notify

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// Names of errors.
const (
	nameAuth         = "AuthError"
	nameValidation   = "ValidationError"
	nameBadRequest   = "BadRequestError"
	nameInvalidEmail = "InvalidEmailError"
	nameInvalidPhone = "InvalidPhoneError"
	nameNoResult     = "NoResultFound"
	nameRate         = "RateLimitError"
	nameTooMany      = "TooManyRequestsError"
	nameUnavailable  = "ServiceUnavailable"
	nameTimeout      = "EventletTimeout"
	nameInternal     = "Exception"
)

// An apiError is an error as clients of GOV.UK Notify expect it.
type apiError struct {
	StatusCode int     `json:"status_code"`
	Errors     []entry `json:"errors"`

	retryAfter time.Duration // 0: no header Retry-After
}

// An entry is one problem of a request.
type entry struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

func (e *apiError) Error() string {
	texts := make([]string, len(e.Errors))
	for i := range e.Errors {
		texts[i] = e.Errors[i].Error + ": " + e.Errors[i].Message
	}
	return strings.Join(texts, "; ")
}

func refuse(status int, name, message string) *apiError {
	return &apiError{StatusCode: status, Errors: []entry{{name, message}}}
}

func badRequest(message string) *apiError {
	return refuse(http.StatusBadRequest, nameBadRequest, message)
}

func noResult() *apiError { return refuse(http.StatusNotFound, nameNoResult, "No result found") }

// invalid returns the problems of a request that breaks its schema, each once and without apostrophes; nil if there are
// none.
func invalid(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	e := &apiError{StatusCode: http.StatusBadRequest}
	for _, problem := range problems {
		one := entry{nameValidation, strings.ReplaceAll(problem, "'", "")}
		if !slices.Contains(e.Errors, one) {
			e.Errors = append(e.Errors, one)
		}
	}
	return e
}

// translate returns the error of another package in the form for clients; nil if it is not about their request.
func translate(err error) *apiError {
	if own, ok := errors.AsType[*apiError](err); ok {
		return own
	}
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return nil
	}
	text := e.Message
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	switch e.Code {
	case fanfare.Invalid, fanfare.Conflict, fanfare.TooLarge:
		return badRequest(text)
	case fanfare.NotFound:
		return noResult()
	case fanfare.Unavailable:
		unavailable := refuse(http.StatusServiceUnavailable, nameUnavailable, e.Message)
		unavailable.retryAfter = max(e.RetryAfter, time.Second)
		return unavailable
	}
	if e.Code == fanfare.DiskFull {
		return refuse(http.StatusServiceUnavailable, nameUnavailable, e.Message)
	}
	return nil
}

// write writes the error.
func (e *apiError) write(w http.ResponseWriter) {
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.retryAfter+time.Second-1)/time.Second)))
	}
	writeJSON(w, e.StatusCode, e)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"status_code":500,"errors":[{"error":"`+nameInternal+`","message":"Internal server error"}]}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the client may be gone
}

// Unavailable answers every request while the API is not open on this node.
func Unavailable(w http.ResponseWriter, _ *http.Request) {
	e := refuse(http.StatusServiceUnavailable, nameUnavailable, "The server cannot answer at the moment: try again shortly")
	e.retryAfter = time.Second
	e.write(w)
}
