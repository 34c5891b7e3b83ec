package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// partsOf are the parts of a template as a request has them.
func partsOf(sent *wire.TemplateDraft) (parts catalog.TemplateParts, err error) {
	text, err := json.Marshal(sent.TemplateParts)
	if err == nil {
		err = json.Unmarshal(text, &parts)
	}
	return parts, err
}

// speakTo has the message written as the request wants it read.
func (m *previewed) speakTo() error {
	if _, err := time.LoadLocation(m.in.TimeZone); err != nil {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/time_zone", Message: fmt.Sprintf("unknown time zone %q", m.in.TimeZone), Hint: "write it as Europe/London"}
	}
	m.recipient.Locale = cmp.Or(m.in.Locale, m.recipient.Locale)
	m.recipient.TimeZone = cmp.Or(m.in.TimeZone, m.recipient.TimeZone)
	if m.in.Device == "" {
		return nil
	}
	var err error
	m.recipient.Data, err = json.Marshal(map[string]string{"device": m.in.Device}) // what is said of the recipient comes first
	return err
}
