package render

import (
	"encoding/json"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/render/jsonschema"
	"fanfare.dev/fanfare/internal/render/mime"
)

// A Preview is one message with its readable parts.
type Preview struct {
	Message             driver.Message
	Subject, Text, HTML string // as rendered; "" for a part that the template does not have
	Files               []fanfare.File
}

// Preview writes the message for r, as Write does, and returns its readable parts too.
func (w *MailWriter) Preview(r *Recipient) (Preview, error) {
	if w.byLocalization != nil {
		one, err := w.byLocalization.of(r)
		if err != nil {
			return Preview{}, err
		}
		return one.Preview(r)
	}
	message, _, err := w.Write(nil, r)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Message: message}
	if w.files != nil {
		p.Files = w.files.Set.Files
	}
	for _, one := range []struct {
		part *preparedPart
		into *string
	}{{w.textPart, &p.Text}, {w.htmlPart, &p.HTML}} {
		if one.part != nil {
			*one.into = string(one.part.AppendText(nil))
		}
	}
	// Write renders the subject only if it differs between recipients.
	if subject := w.subjectPart; w.subject != nil {
		p.Subject = string(mime.CleanSubject(append([]byte(nil), subject.Chunks[0].Text...)))
	} else {
		p.Subject = string(mime.CleanSubject(subject.AppendText(nil)))
	}
	return p, nil
}

// Sample returns event data and a recipient with which the template renders, as DryRun does:
// data that fits the schema, which may be empty, and stand-ins for other variables. Only
// Address, ID, Locale, TimeZone, Attributes and Subscriptions of the recipient are set.
func (t *Template) Sample(schema json.RawMessage) (data json.RawMessage, r Recipient, err error) {
	root, err := jsonschema.Parse(schema)
	if err != nil {
		return nil, r, err
	}
	vars, err := t.findSample(root)
	if err != nil {
		return nil, r, err
	}
	if items, ok := vars["items"].([]any); ok && t.Digest() { // the sample is the same for each item
		item, _ := items[0].(map[string]any)
		vars["event"] = item["event"]
	}
	subscriber, _ := vars["subscriber"].(map[string]any)
	subscription, _ := vars["subscription"].(map[string]any)
	text := func(from map[string]any, name string) string {
		s, _ := from[name].(string)
		return s
	}
	r = Recipient{ID: text(subscriber, "id"), Address: text(subscriber, "address"), Locale: text(subscriber, "locale"), TimeZone: text(subscriber, "time_zone")}
	one := Subscription{ID: text(subscription, "id"), Rule: text(subscription, "rule"), Title: text(subscription, "title"), Description: text(subscription, "description")}
	for _, raw := range []struct {
		value any
		into  *json.RawMessage
	}{{vars["event"], &data}, {subscriber["attributes"], &r.Attributes}, {subscription["params"], &one.Params}, {subscription["data"], &one.Data}} {
		if *raw.into, err = json.Marshal(raw.value); err != nil {
			return nil, r, invalidValue("sample", "the sample cannot be written as JSON")
		}
	}
	r.Subscriptions = []Subscription{one}
	return data, r, nil
}
