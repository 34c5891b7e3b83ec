package httpapi

import (
	"context"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

// Receipts takes what providers say over HTTP of messages.
type Receipts interface {
	// TakeReceipt verifies a request for a channel, and returns when what follows from
	// it is durable. NotFound: there is no such channel, or it takes none.
	TakeReceipt(ctx context.Context, service, channel string, header http.Header, body []byte) error
}

// maxReceiptBytes is what a receipt may have.
const maxReceiptBytes = 256 << 10

// A Receipt is what a provider says of one message. It is the document of the form
// standard; others have their own.
type Receipt struct {
	Delivery  string `json:"delivery,omitempty" doc:"id of the delivery; or else message_id"`
	MessageID string `json:"message_id,omitempty" doc:"the Message-ID of the mail; recipient is needed beside it where several people share a message"`
	Recipient string `json:"recipient,omitempty" doc:"address of the recipient"`
	Kind      string `json:"kind" enum:"delivered,failed,delayed,complained" doc:"reported state; delayed has no effect"`
	Class     string `json:"class,omitempty" enum:"throttled,greylisted,full,busy,network,blocked,invalid,content,denied" doc:"class of the failure; default: derived from the text"`
	Status    string `json:"status,omitempty" doc:"enhanced status code, such as 5.1.1"`
	Code      int    `json:"code,omitempty" doc:"reply code of SMTP"`
	Text      string `json:"text,omitempty" doc:"reply of the server"`
	Relay     string `json:"relay,omitempty" doc:"host that reported it"`
	Time      string `json:"time,omitempty" format:"date-time" doc:"time of the report"`
}

// ReceiptTaken is the answer to a receipt.
type ReceiptTaken struct {
	Taken bool `json:"taken" doc:"the changes are stored; also if there are none"`
}

func (a *API) receiptRoutes() {
	op := huma.Operation{OperationID: "take-receipt", Method: http.MethodPost, Path: "/receipts/{service}/{channel}", Tags: []string{"traces"},
		Summary: "Accept a receipt of a provider; no key is needed, the request is signed",
		Description: "For channels with receipts. The form standard is the document below, signed as Standard Webhooks says (headers webhook-id, webhook-timestamp and webhook-signature); " +
			"the form mailgun is a webhook of Mailgun as it is. When it answers, what follows is kept: an entry in the record of the message, and by the rules of the service a suppression.",
		Parameters:  []*huma.Param{param("service", "of the channel"), param("channel", "name of the channel")},
		RequestBody: body[Receipt](a, "The report", "application/json")}
	replies[ReceiptTaken](a, &op, http.StatusOK, "It is kept, and need not be sent again", "application/json")
	a.handle(op, anybody, func(x *responseWriter, r *http.Request, _ caller) error {
		if mt := httpio.MediaType(r.Header); mt != "" && mt != "application/json" {
			return httpio.UnknownType(mt, "application/json")
		}
		text, err := io.ReadAll(http.MaxBytesReader(x.ResponseWriter, r.Body, maxReceiptBytes))
		if err != nil {
			return httpio.BodyError(err, maxReceiptBytes)
		}
		httpio.AllowLongResponse(x)
		if err := a.deps.Receipts.TakeReceipt(r.Context(), r.PathValue("service"), r.PathValue("channel"), r.Header, text); err != nil {
			return err
		}
		return httpio.WriteJSON(x, http.StatusOK, "application/json", ReceiptTaken{Taken: true})
	})
}
