package httpapi

import (
	"context"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

// Receipts accepts reports of providers about messages over HTTP.
type Receipts interface {
	// TakeReceipt verifies a request for a channel, and returns when its effects are
	// durable. It returns NotFound if the channel does not exist or accepts no receipts.
	TakeReceipt(ctx context.Context, service, channel string, header http.Header, body []byte) error
}

// maxReceiptBytes limits the size of a receipt.
const maxReceiptBytes = 256 << 10

// A Receipt is a report of a provider about one message, in the form standard. Other
// forms have their own documents.
type Receipt struct {
	Delivery  string `json:"delivery,omitempty" doc:"id of the delivery; required without message_id"`
	MessageID string `json:"message_id,omitempty" doc:"Message-ID of the email; if several recipients share the message, recipient is also required"`
	Recipient string `json:"recipient,omitempty" doc:"address of the recipient"`
	Kind      string `json:"kind" enum:"delivered,failed,delayed,complained" doc:"reported state; delayed has no effect"`
	Class     string `json:"class,omitempty" enum:"throttled,greylisted,full,busy,network,blocked,invalid,content,denied" doc:"class of the failure; default: derived from the text"`
	Status    string `json:"status,omitempty" doc:"enhanced status code, such as 5.1.1"`
	Code      int    `json:"code,omitempty" doc:"SMTP reply code"`
	Text      string `json:"text,omitempty" doc:"reply of the server"`
	Relay     string `json:"relay,omitempty" doc:"host that reported it"`
	Time      string `json:"time,omitempty" format:"date-time" doc:"time of the report"`
}

// ReceiptTaken is the answer to a receipt.
type ReceiptTaken struct {
	Taken bool `json:"taken" doc:"always true: the changes are stored, if there are any"`
}

func (a *API) receiptRoutes() {
	op := huma.Operation{OperationID: "take-receipt", Method: http.MethodPost, Path: "/receipts/{service}/{channel}", Tags: []string{"traces"},
		Summary: "Accept a receipt from a provider; no key is needed because the request is signed",
		Description: "For channels with the setting receipts. The form standard is the document below, signed according to Standard Webhooks (headers webhook-id, webhook-timestamp and webhook-signature); " +
			"the form mailgun is the webhook format of Mailgun. When the server responds, the effects are stored: an entry in the record of the message and, if the rules of the service require it, a suppression.",
		Parameters:  []*huma.Param{param("service", "service of the channel"), param("channel", "name of the channel")},
		RequestBody: body[Receipt](a, "The report", "application/json")}
	replies[ReceiptTaken](a, &op, http.StatusOK, "Stored; do not send it again", "application/json")
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
