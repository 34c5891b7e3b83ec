package wire

import (
	"encoding/json"
	"time"

	"fanfare.dev/fanfare"
)

// Limits of sends.
const (
	MaxSendRows      = 1_000_000
	MaxSendBytes     = 256 << 20
	MaxSendRowBytes  = 64 << 10
	MaxSendColumns   = 200
	MaxSendDataBytes = 64 << 10
	MaxSendNameBytes = 200
)

// A SendRequest is a message to an uploaded list, without the list.
type SendRequest struct {
	Name        string          `json:"name,omitempty" maxLength:"200" doc:"name of the send, for people" example:"Invitation to the spring party"`
	Channel     string          `json:"channel" doc:"name of the channel" example:"email"`
	Template    string          `json:"template" doc:"name of a template, or name@version; a name without a version is fixed to the current version when the send is submitted" example:"invitation"`
	Data        json.RawMessage `json:"data,omitempty" doc:"object: the value of event in the template, the same for all recipients; at most 64 KiB"`
	SendAt      time.Time       `json:"send_at,omitzero" doc:"when to send; absent: as soon as the send is approved"`
	Lane        string          `json:"lane,omitempty" enum:"urgent,normal,bulk" doc:"default: bulk"`
	Reference   string          `json:"reference,omitempty" maxLength:"200" doc:"your own reference of its messages; default: the id of the send"`
	SkipInvalid bool            `json:"skip_invalid,omitempty" doc:"send without the invalid rows, which the report lists; default: a list with an invalid row is refused"`
}

// A SendPatch changes a send (JSON Merge Patch, RFC 7396): absent members do not change, null resets a member.
type SendPatch struct {
	Name        string          `json:"name,omitempty" maxLength:"200"`
	Channel     string          `json:"channel,omitempty"`
	Template    string          `json:"template,omitempty"`
	Data        json.RawMessage `json:"data,omitempty" doc:"object: the value of event in the template, the same for all recipients; at most 64 KiB"`
	SendAt      time.Time       `json:"send_at,omitzero" doc:"null: as soon as the send is approved"`
	Lane        string          `json:"lane,omitempty" enum:"urgent,normal,bulk"`
	Reference   string          `json:"reference,omitempty" maxLength:"200"`
	SkipInvalid bool            `json:"skip_invalid,omitempty"`
}

// The states of sends.
const (
	SendDraft     = "draft"
	SendSubmitted = "submitted"
	SendScheduled = "scheduled"
	SendSending   = "sending"
	SendPaused    = "paused"
	SendCompleted = "completed"
	SendCancelled = "cancelled"
)

// SendStates lists the states in the order in which a send takes them.
var SendStates = []string{SendDraft, SendSubmitted, SendScheduled, SendSending, SendPaused, SendCompleted, SendCancelled}

// A Send is a message to an uploaded list.
type Send struct {
	ID          string          `json:"id" doc:"public id (snd-...)"`
	Service     string          `json:"service"`
	Name        string          `json:"name,omitempty"`
	Channel     string          `json:"channel"`
	Template    string          `json:"template" doc:"name, or name@version; always name@version when the send was submitted"`
	Data        json.RawMessage `json:"data,omitempty" doc:"object: the value of event in the template"`
	SendAt      time.Time       `json:"send_at,omitzero" doc:"when to send; absent: as soon as the send is approved"`
	Lane        string          `json:"lane"`
	Reference   string          `json:"reference,omitempty"`
	SkipInvalid bool            `json:"skip_invalid"`

	State  string `json:"state" enum:"draft,submitted,scheduled,sending,paused,completed,cancelled" doc:"draft: it can be changed; submitted: it waits for approval; scheduled: it waits for send_at; sending; paused; completed; cancelled"`
	Reason string `json:"reason,omitempty" doc:"why it is paused or was cancelled"`

	Recipients *SendList `json:"recipients,omitempty" doc:"the uploaded list; absent: none was uploaded"`
	Refused    *SendList `json:"refused,omitempty" doc:"the last upload, if it was refused because of invalid rows; the list before it, if any, is unchanged"`

	Digest        string `json:"digest,omitempty" doc:"digest of everything that is approved: content, recipients and time; an approval names it. Absent in a draft"`
	CannotApprove string `json:"cannot_approve,omitempty" doc:"why the caller cannot approve the send; absent: the caller can, or it does not wait for approval"`

	CreatedAt   time.Time `json:"created_at"`
	CreatedBy   string    `json:"created_by" doc:"who created it: the key, or the person"`
	ChangedAt   time.Time `json:"changed_at" doc:"when its content, list or time changed last"`
	Authors     []string  `json:"authors" doc:"who created it or changed it since; none of them can approve it"`
	SubmittedAt time.Time `json:"submitted_at,omitzero"`
	SubmittedBy string    `json:"submitted_by,omitempty"`
	ApprovedAt  time.Time `json:"approved_at,omitzero"`
	ApprovedBy  string    `json:"approved_by,omitempty" doc:"who approved it; absent although it is approved: the service requires no approval"`
	StartedAt   time.Time `json:"started_at,omitzero" doc:"when sending began"`
	EndedAt     time.Time `json:"ended_at,omitzero" doc:"when it was completed or cancelled"`
	DeletesAt   time.Time `json:"deletes_at,omitzero" doc:"when it is deleted with its list"`

	Estimate *DryRunChannel `json:"estimate,omitempty" doc:"how long sending takes at the rate of the channel"`
	Progress *SendProgress  `json:"progress,omitempty" doc:"absent until sending begins"`
}

// A SendList describes an uploaded list.
type SendList struct {
	UploadedAt time.Time `json:"uploaded_at"`
	Address    string    `json:"address" doc:"name of the column with the addresses, or with the ids of subscribers"`
	Columns    []string  `json:"columns" doc:"names of the other columns, each of which is a value sub.COLUMN of the template"`
	Rows       int64     `json:"rows" doc:"number of rows, without the header and empty ones"`
	Valid      int64     `json:"valid" doc:"number of rows to which a message is sent"`
	Invalid    int64     `json:"invalid"`
	Suppressed int64     `json:"suppressed" doc:"number of valid rows whose addresses were on the suppression list at that time; their deliveries are settled as suppressed"`
}

// A SendProgress is the progress of a send that has begun.
type SendProgress struct {
	Recipients int64          `json:"recipients" doc:"number of valid rows"`
	Started    int64          `json:"started" doc:"number of rows whose messages are on their way or settled"`
	Settled    int64          `json:"settled" doc:"number of settled deliveries, and of rows that were refused when they were to be sent"`
	Refused    int64          `json:"refused" doc:"number of rows that were valid in the list and invalid when they were to be sent"`
	Counts     fanfare.Counts `json:"deliveries" doc:"number of deliveries by state"`
	Rate       float64        `json:"rate_per_second,omitempty" doc:"deliveries settled per second"`
	End        time.Time      `json:"estimated_end,omitzero" doc:"expected time of the last outcome at this rate"`
	Broadcasts int            `json:"broadcasts" doc:"number of broadcasts into which the send was divided so far"`
	Latest     []string       `json:"latest_broadcasts,omitempty" doc:"event ids (evt-...) of the latest ones"`
}

// A SendPage is a page of sends, the latest first.
type SendPage struct {
	Sends []Send `json:"sends"`
	Next  string `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// A SendUpload is the result of an upload.
type SendUpload struct {
	Send   Send        `json:"send"`
	Errors []SendError `json:"errors" doc:"the first errors of rows that are skipped, at most 100"`
}

// A SendError is an error in an uploaded list.
type SendError struct {
	Row    int64  `json:"row,omitempty" doc:"number of the row as a spreadsheet shows it: the header is row 1; absent: the whole list"`
	Column string `json:"column,omitempty" doc:"name of the column"`
	Detail string `json:"detail" doc:"description of the error"`
	Hint   string `json:"hint,omitempty" doc:"remedy"`
}

// A SendErrorPage is a page of the errors of the last upload.
type SendErrorPage struct {
	Errors []SendError `json:"errors"`
	Next   string      `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// A SendRow is a row of an uploaded list.
type SendRow struct {
	Row        int64           `json:"row" doc:"number of the row as a spreadsheet shows it"`
	To         string          `json:"to,omitempty" doc:"address"`
	Subscriber string          `json:"subscriber,omitempty" doc:"id of a subscriber, instead of an address"`
	Data       json.RawMessage `json:"data,omitempty" doc:"object: the value of sub in the template"`
	Suppressed string          `json:"suppressed,omitempty" doc:"why nothing may be sent to the address"`
	Errors     []SendError     `json:"errors,omitempty" doc:"absent: the row is valid"`
	Erased     bool            `json:"erased,omitempty" doc:"the person was erased, and the row is empty"`
}

// A SendRowPage is a page of the rows of an uploaded list.
type SendRowPage struct {
	Rows []SendRow `json:"rows"`
	Next string    `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// A SendApproval approves what the approver saw.
type SendApproval struct {
	Digest string `json:"digest" doc:"the digest of the send that the approver saw"`
}

// A SendStop pauses, resumes or cancels a send.
type SendStop struct {
	Reason string `json:"reason,omitempty" maxLength:"1000" doc:"reason, shown with the send and its broadcasts"`
}

// A SendOutcome is the result of a row.
type SendOutcome struct {
	Row     int64
	Address string
	State   string // of the delivery; invalid, refused, erased or waiting without one
	Reason  string
	At      time.Time
	Message string // id of the delivery
}
