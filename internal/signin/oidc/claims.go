package oidc

import (
	"encoding/json"
	"net/mail"
	"strings"

	"fanfare.dev/fanfare/internal/catalog"
)

// maxValues is the maximum number of values of one claim that are read.
const maxValues = 10_000

// claims are what an issuer states about a person, as JSON.
type claims map[string]json.RawMessage

// find returns a claim by its name. A name with dots that no claim has leads into objects: realm_access.roles.
func (c claims) find(name string) json.RawMessage {
	if value, ok := c[name]; ok {
		return value
	}
	outer, inner, ok := strings.Cut(name, ".")
	var object claims
	if !ok || json.Unmarshal(c[outer], &object) != nil {
		return nil
	}
	return object.find(inner)
}

// values returns the texts of a claim: of a single value, or of each element of a list.
func (c claims) values(name string) (list []string) {
	raw := c.find(name)
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		elements = []json.RawMessage{raw}
	}
	for _, element := range elements[:min(len(elements), maxValues)] {
		if text, ok := scalar(element); ok && text != "" && len(text) <= catalog.MaxClaimedBytes {
			list = append(list, text)
		}
	}
	return list
}

// scalar returns a text, a number or a boolean as text.
func scalar(raw json.RawMessage) (text string, ok bool) {
	var value any
	if len(raw) == 0 || json.Unmarshal(raw, &value) != nil {
		return "", false
	}
	switch value := value.(type) {
	case string:
		return value, true
	case float64, bool:
		return string(raw), true
	}
	return "", false
}

// text returns a claim with one value.
func (c claims) text(name string) string {
	text, _ := scalar(c.find(name))
	return text
}

// verifiedMail returns the mail address of a person if the issuer has verified it. Some issuers state true as a text or as 1.
func (c claims) verifiedMail(names *ClaimNames) string {
	switch c.text(names.MailVerified) {
	case "true", "1":
	default:
		return ""
	}
	text := c.text(names.Mail)
	if at, err := mail.ParseAddress(text); err != nil || at.Address != text || catalog.PersonName(text) != text || strings.ContainsAny(text, ` "`) {
		return ""
	}
	return text
}

// add adds the claims of another source. Those that are there already stay.
func (c claims) add(others claims) {
	for name, value := range others {
		if _, ok := c[name]; !ok {
			c[name] = value
		}
	}
}
