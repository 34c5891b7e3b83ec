package people

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/language"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/schedule/cadence"
)

// Limits of one Put, in bytes.
const (
	maxIDBytes         = 128
	MaxFilterBytes     = 4 << 10
	MaxParamsBytes     = 4 << 10
	maxDataBytes       = 16 << 10
	maxAttributesBytes = 16 << 10
)

// CheckID allows ASCII alphanumerics and . _ : @ / - but no id that looks like a generated one.
func CheckID(id string) error {
	if len(id) > maxIDBytes {
		return inputerror.TooLarge("/id", len(id), maxIDBytes)
	}
	for i := range len(id) {
		if !idByte[id[i]] {
			return inputerror.Invalid("/id", "use letters and digits, or . _ : @ / -", "id contains the invalid character %q", id[i])
		}
	}
	if fanfare.ReservedID(id) {
		return inputerror.Invalid("/id", "choose an id that does not begin with evt-, dlv- or sub-", "id %s is reserved", inputerror.Quote(id))
	}
	return nil
}

var idByte = func() (t [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@/-" {
		t[c] = true
	}
	return t
}()

// AddressProblem returns why a text is not an address. Some reasons begin with the text itself.
func AddressProblem(text, of string, err error) string {
	why := errorMessage(err)
	if strings.HasPrefix(why, inputerror.Quote(text)) {
		return why
	}
	return inputerror.Quote(text) + " is not a valid address" + of + ": " + why
}

// errorMessage returns only the message of an error, without its hint and position.
func errorMessage(err error) string {
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

func CheckFields(known *FieldCache, p *SubscriptionPut) error {
	if p.State != "" && p.State != StateActive && p.State != StatePaused {
		return inputerror.Invalid("/state", "use active or paused; to end the subscription, delete it", "state must not be %s", inputerror.Quote(p.State))
	}
	if err := checkLabels(p); err != nil {
		return err
	}
	if err := checkObject("/data", p.Data, maxDataBytes, p.decoded); err != nil {
		return err
	}
	if err := checkObject("/attributes", p.Attributes, maxAttributesBytes, p.decoded); err != nil {
		return err
	}
	if p.Locale != "" {
		if _, err := known.locales.Check(p.Locale, checkLocale); err != nil {
			return err
		}
	}
	if p.TimeZone != "" {
		_, err := known.zones.Check(p.TimeZone, checkTimeZone)
		return err
	}
	return nil
}

// checkLabels checks the title and the description.
func checkLabels(p *SubscriptionPut) error {
	for _, of := range [...]struct {
		pointer, text string
		longest       int
	}{{"/title", p.Title, catalog.MaxLabelTitle}, {"/description", p.Description, catalog.MaxLabelDescription}} {
		if of.text == "" {
			continue
		}
		if problem, hint := catalog.CheckLabel(of.text, of.longest); problem != "" {
			return inputerror.Invalid(of.pointer, hint, "%s", problem)
		}
	}
	return nil
}

// FieldCache has the locales, time zones and cadences that were found valid.
type FieldCache struct {
	locales, zones catalog.CheckedTexts[struct{}]
	Cadences       catalog.CheckedTexts[cadence.Cadence]
}

func checkLocale(s string) (found struct{}, err error) {
	if _, err := language.Parse(s); err != nil || len(s) > 64 {
		return found, inputerror.Invalid("/locale", "use a language tag such as en, pt-BR or zh-Hant", "unknown locale %s", inputerror.Quote(s))
	}
	return found, nil
}

func checkTimeZone(s string) (found struct{}, err error) {
	if _, err := time.LoadLocation(s); err != nil || s == "Local" {
		return found, inputerror.Invalid("/time_zone", "use a name such as Europe/Berlin or America/Vancouver", "unknown time zone %s", inputerror.Quote(s))
	}
	return found, nil
}

// checkObject checks an object that a client sent; valid means that it is known to be valid JSON.
func checkObject(pointer string, b json.RawMessage, limit int, valid bool) error {
	switch {
	case len(b) == 0:
		return nil
	case len(b) > limit:
		return inputerror.TooLarge(pointer, len(b), limit)
	case !IsObject(b):
		return inputerror.Invalid(pointer, "", "%s must be a JSON object", pointer[1:])
	case !valid && !json.Valid(b):
		return inputerror.Invalid(pointer, "", "%s is not valid JSON", pointer[1:])
	case !utf8.Valid(b):
		return inputerror.Invalid(pointer, "", "%s is not valid UTF-8", pointer[1:])
	}
	return nil
}

func IsObject(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == '{'
}
