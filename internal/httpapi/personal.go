package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/suppression"
)

// Personal exports all stored data of a person.
type Personal interface {
	Export(ctx context.Context, service, id string, visit func(*PersonalLine) error) error
}

// Merging merges two subscribers.
type Merging interface {
	MergeSubscriber(ctx context.Context, service, id, into string) (people.Subscriber, error)
}

// A PersonalLine is one part of the stored data of a person. It has the member that its
// type specifies.
type PersonalLine struct {
	Type         string                   `json:"type" enum:"subscriber,subscription,consent,suppression,delivery,message,waiting,mailbox,mail,send,file,notification,bounce,audit" doc:"the member that this line contains"`
	Subscriber   *people.Subscriber       `json:"subscriber,omitempty"`
	Subscription *people.Subscription     `json:"subscription,omitempty"`
	Suppression  *suppression.Suppression `json:"suppression,omitempty"`
	Consent      *people.Consent          `json:"consent,omitempty"`
	Delivery     *fanfare.Delivery        `json:"delivery,omitempty"`
	Message      *PersonalMessage         `json:"message,omitempty"`
	Waiting      *PersonalWaiting         `json:"waiting,omitempty"`
	Mailbox      *PersonalMailbox         `json:"mailbox,omitempty"`
	Mail         *PersonalMail            `json:"mail,omitempty"`
	Send         *PersonalSend            `json:"send,omitempty"`
	File         *PersonalFile            `json:"file,omitempty"`
	Notification json.RawMessage          `json:"notification,omitempty" doc:"object: a notification of the NotifyBC API to the person, or one that the person has read or deleted"`
	Bounce       json.RawMessage          `json:"bounce,omitempty" doc:"object: the bounces of an address of the person that the NotifyBC API counts"`
	Audit        *wire.AuditEntry         `json:"audit,omitempty"`
}

// A PersonalFile is a file that a client of GOV.UK Notify has sent to the person by link. The server can read it as long as a message with the link is stored.
type PersonalFile struct {
	Name      string    `json:"name,omitempty" doc:"name of the file; missing if the message with the link to it is not stored any more"`
	Type      string    `json:"type,omitempty" doc:"media type"`
	SizeBytes int       `json:"size_bytes" doc:"size of the file; if its name is missing, of its encrypted form"`
	ExpiresAt time.Time `json:"expires_at" doc:"when the file is removed"`
	Content   []byte    `json:"content,omitempty" doc:"the file"`
}

// A PersonalMessage is the content of a message for one person.
type PersonalMessage struct {
	ID        string          `json:"id" doc:"msg-..."`
	Reference string          `json:"reference,omitempty" doc:"reference given by the sender"`
	Data      json.RawMessage `json:"data,omitempty" doc:"object: data for all its recipients"`
	Recipient json.RawMessage `json:"recipient,omitempty" doc:"object: data for this recipient only"`
	Content   json.RawMessage `json:"content,omitempty" doc:"object: subject, text and html, if the message had its own content"`
}

// A PersonalSend is a row of the person in the list of a send.
type PersonalSend struct {
	ID string `json:"id" doc:"id of the send, snd-..."`
	wire.SendRow
}

// PersonalWaiting is an event that waits for a digest.
type PersonalWaiting struct {
	Event   string    `json:"event" doc:"evt-..."`
	Cadence string    `json:"cadence" doc:"such as daily 08:00"`
	Zone    string    `json:"time_zone,omitempty" doc:"time zone of the cadence"`
	Due     time.Time `json:"due" doc:"when the digest is sent"`
}

// A PersonalMailbox is the mailbox of an address of the person. Its messages follow as lines of their own.
type PersonalMailbox struct {
	Address      string             `json:"address" doc:"address of the mailbox"`
	Aliases      []string           `json:"aliases,omitempty" doc:"further addresses of the mailbox"`
	CreatedAt    time.Time          `json:"created_at" doc:"when it was created"`
	Folders      []PersonalFolder   `json:"folders" doc:"its folders"`
	AppPasswords []wire.AppPassword `json:"app_passwords" doc:"the app passwords, without the passwords themselves"`
}

// A PersonalFolder is a folder of a mailbox.
type PersonalFolder struct {
	Name       string `json:"name" doc:"name, with those of the folders that contain it, separated by /"`
	Role       string `json:"role,omitempty" doc:"inbox, drafts, sent, trash, junk or archive"`
	Subscribed bool   `json:"subscribed" doc:"mail programs show it"`
	Messages   int64  `json:"messages" doc:"number of messages"`
}

// A PersonalMail is a message in a mailbox of the person.
type PersonalMail struct {
	Address    string    `json:"address" doc:"address of the mailbox"`
	Folder     string    `json:"folder" doc:"folder of the message"`
	ReceivedAt time.Time `json:"received_at" doc:"when the message came to the mailbox"`
	Flags      []string  `json:"flags" doc:"such as seen, answered, flagged, deleted and draft, and the labels that the person set"`
	Content    []byte    `json:"content" doc:"the whole message (message/rfc822)"`
}

// A MergeRequest identifies the subscriber that remains.
type MergeRequest struct {
	Into string `json:"into" doc:"id of the subscriber that remains"`
}

// AuditEntryOf returns an entry of the audit log in the form of the API.
func AuditEntryOf(l *audit.Entry) wire.AuditEntry { return auditEntry(l) }

func (a *API) personalRoutes() {
	tags := []string{"subscribers"}
	merge := huma.Operation{OperationID: "merge-subscriber", Method: http.MethodPost, Path: "/v1/subscribers/{id}/merge", Tags: tags,
		Summary: "Merge a subscriber into another one",
		Description: "All addresses, subscriptions and the history of this subscriber move to the other one. The other one takes over the locale, the time zone and attributes that it lacks. " +
			"This id is no longer found; the hint of the error gives the id of the other one.",
		Parameters:  []*huma.Param{param("id", "id of the subscriber to merge"), service()},
		RequestBody: body[MergeRequest](a, "The subscriber that remains", "application/json")}
	replies[people.Subscriber](a, &merge, http.StatusOK, "The subscriber that remains, after the merge", "application/json")
	a.handle(merge, maySubscribe, func(x *responseWriter, r *http.Request, c caller) error {
		s, err := a.oneService(c)
		if err != nil {
			return err
		}
		var in MergeRequest
		if err := httpio.ReadJSON(x, r, &in); err != nil {
			return err
		}
		merged, err := a.deps.Merging.MergeSubscriber(r.Context(), s, r.PathValue("id"), in.Into)
		if err != nil {
			return err
		}
		return answerSubscriber(x, http.StatusOK, &merged)
	})

	export := huma.Operation{OperationID: "export-subscriber", Method: http.MethodGet, Path: "/v1/subscribers/{id}/export", Tags: tags,
		Summary: "Export all stored data of a person",
		Description: "A stream of lines: the subscriber, all active and ended subscriptions with their consents, all deliveries in the retention period with their attempts (the latest first), " +
			"the contents of messages, and the audit entries. Deleted subscribers are also found. It covers the data that a person can request (GDPR, articles 15 and 20).",
		Parameters: []*huma.Param{param("id", "id of the subscriber: your own id, or per-..."), service()}}
	replies[PersonalLine](a, &export, http.StatusOK, "One part on each line", httpio.NDJSON)
	a.handle(export, mayLookUp, func(x *responseWriter, r *http.Request, c caller) error {
		s, err := a.oneService(c)
		if err != nil {
			return err
		}
		out := newLineStream(x)
		if err := a.deps.Personal.Export(r.Context(), s, r.PathValue("id"), func(line *PersonalLine) error { return out.write(line) }); err != nil {
			return err
		}
		return out.flush()
	})
}
