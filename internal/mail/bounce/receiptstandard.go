package bounce

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// standardOutcomes are the kinds of a receipt of Fanfare's own form.
var standardOutcomes = map[string]Outcome{"delivered": Delivered, "failed": Failed, "delayed": Delayed, "complained": Complained}

// standardReceipt reads {"delivery", "kind"} and what else is known.
func standardReceipt(body []byte) (ProviderReceipt, error) {
	var in struct {
		Delivery  string        `json:"delivery"`
		MessageID string        `json:"message_id"`
		Recipient string        `json:"recipient"`
		Kind      string        `json:"kind"`
		Class     fanfare.Class `json:"class"`
		Status    string        `json:"status"`
		Code      int           `json:"code"`
		Text      string        `json:"text"`
		Relay     string        `json:"relay"`
		Time      time.Time     `json:"time"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return ProviderReceipt{}, noReceipt("", "the receipt is not the JSON that is expected: "+strings.TrimPrefix(err.Error(), "json: "),
			`send {"delivery":"dlv-…","kind":"failed","class":"invalid","text":"550 5.1.1 User unknown","time":"2026-11-20T12:00:00Z"}`)
	}
	outcome, known := standardOutcomes[in.Kind]
	switch {
	case !known:
		return ProviderReceipt{}, noReceipt("/kind", fmt.Sprintf("there is no kind %q", in.Kind), "use delivered, failed, delayed or complained")
	case (in.Delivery == "") == (in.MessageID == ""):
		return ProviderReceipt{}, noReceipt("/delivery", "the receipt does not say which message it is about", "give either delivery or message_id")
	case in.Class != "" && !slices.Contains(fanfare.Classes[:], in.Class):
		return ProviderReceipt{}, noReceipt("/class", fmt.Sprintf("there is no class %q", in.Class), "use throttled, greylisted, full, busy, network, blocked, invalid, content or denied, or leave it out and give the text")
	}
	r := ProviderReceipt{Message: in.Delivery + in.MessageID, At: in.Time,
		Report: Report{Outcome: outcome, Class: in.Class, Recipient: in.Recipient, Status: in.Status, Code: in.Code, Text: in.Text, Relay: in.Relay}}
	if outcome == Complained {
		r.Report.Class, r.Report.Feedback = "", "abuse"
	}
	r.Report.Certain = in.Class == fanfare.ClassInvalid && outcome == Failed && slices.Contains(noMailbox, in.Status)
	return r, nil
}
