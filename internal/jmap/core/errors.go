package core

import (
	"encoding/json"
	"maps"
)

// A RequestError refuses a whole request (RFC 8620, section 3.6.1).
type RequestError struct {
	Type   string // without the prefix of the URN
	Status int    // of HTTP
	Detail string
	Limit  string // the limit that was exceeded, for the type limit
}

// The types of a RequestError.
const (
	UnknownCapability = "unknownCapability"
	NotJSON           = "notJSON"
	NotRequest        = "notRequest"
	LimitExceeded     = "limit"
)

// URN is the prefix of the types of a RequestError.
const URN = "urn:ietf:params:jmap:error:"

func (e *RequestError) Error() string { return e.Type + ": " + e.Detail }

// MarshalJSON writes a problem document (RFC 7807).
func (e *RequestError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type   string `json:"type"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Limit  string `json:"limit,omitempty"`
	}{URN + e.Type, e.Status, e.Detail, e.Limit})
}

// The types of a MethodError (RFC 8620, sections 3.6.2 and 5).
const (
	ServerUnavailable         = "serverUnavailable"
	ServerFail                = "serverFail"
	UnknownMethod             = "unknownMethod"
	InvalidArguments          = "invalidArguments"
	InvalidResultReference    = "invalidResultReference"
	Forbidden                 = "forbidden"
	AccountNotFound           = "accountNotFound"
	RequestTooLarge           = "requestTooLarge"
	StateMismatch             = "stateMismatch"
	CannotCalculateChanges    = "cannotCalculateChanges"
	TooManyChanges            = "tooManyChanges"
	AnchorNotFound            = "anchorNotFound"
	UnsupportedFilter         = "unsupportedFilter"
	UnsupportedSort           = "unsupportedSort"
	FromAccountNotFound       = "fromAccountNotFound"
	AccountNotSupportedByThis = "accountNotSupportedByMethod"
)

// A MethodError is the result of a call that failed.
type MethodError struct {
	Type        string
	Description string
	Extra       map[string]any // further properties
}

func (e *MethodError) Error() string { return e.Type + ": " + e.Description }

// MarshalJSON writes the arguments of the response "error".
func (e *MethodError) MarshalJSON() ([]byte, error) {
	return marshalError(e.Type, e.Description, e.Extra)
}

// Fail returns a MethodError.
func Fail(kind, description string) *MethodError {
	return &MethodError{Type: kind, Description: description}
}

// The types of a SetError (RFC 8620, section 5.3; RFC 8621, sections 2.5, 4.6, 4.8, 6.3 and 7.5).
const (
	SetForbidden            = "forbidden"
	SetOverQuota            = "overQuota"
	SetTooLarge             = "tooLarge"
	SetRateLimit            = "rateLimit"
	SetNotFound             = "notFound"
	SetInvalidPatch         = "invalidPatch"
	SetWillDestroy          = "willDestroy"
	SetInvalidProperties    = "invalidProperties"
	SetSingleton            = "singleton"
	SetAlreadyExists        = "alreadyExists"
	SetMailboxHasChild      = "mailboxHasChild"
	SetMailboxHasEmail      = "mailboxHasEmail"
	SetTooManyKeywords      = "tooManyKeywords"
	SetTooManyMailboxes     = "tooManyMailboxes"
	SetBlobNotFound         = "blobNotFound"
	SetInvalidEmail         = "invalidEmail"
	SetForbiddenFrom        = "forbiddenFrom"
	SetForbiddenMailFrom    = "forbiddenMailFrom"
	SetNoRecipients         = "noRecipients"
	SetInvalidRecipients    = "invalidRecipients"
	SetTooManyRecipients    = "tooManyRecipients"
	SetCannotUnsend         = "cannotUnsend"
	SetServerFail           = ServerFail
	SetTooManySubscriptions = "limit"
)

// A SetError says why a record was not created, changed or destroyed.
type SetError struct {
	Type        string
	Description string
	Properties  []string
	Extra       map[string]any
}

func (e *SetError) Error() string { return e.Type + ": " + e.Description }

// MarshalJSON writes a SetError object.
func (e *SetError) MarshalJSON() ([]byte, error) {
	extra := e.Extra
	if e.Properties != nil {
		extra = maps.Clone(extra)
		if extra == nil {
			extra = map[string]any{}
		}
		extra["properties"] = e.Properties
	}
	return marshalError(e.Type, e.Description, extra)
}

// Invalid returns the SetError for properties with wrong values.
func Invalid(description string, properties ...string) *SetError {
	return &SetError{Type: SetInvalidProperties, Description: description, Properties: properties}
}

func marshalError(kind, description string, extra map[string]any) ([]byte, error) {
	object := map[string]any{"type": kind}
	maps.Copy(object, extra)
	if description != "" {
		object["description"] = description
	}
	return json.Marshal(object)
}
