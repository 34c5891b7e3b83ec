package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"fanfare.dev/fanfare/internal/mail/address"
)

// Limits of members.
const (
	maxReference = 1000 // characters
	maxEmail     = 320
)

// A body is the JSON object of a request, with the problems that were found in it.
type body struct {
	members  map[string]any
	problems []string
}

// parseBody reads a JSON object.
func parseBody(text []byte) (*body, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil || decoder.More() || !utf8.Valid(text) {
		return nil, badRequest("Invalid JSON supplied in POST data")
	}
	members, ok := value.(map[string]any)
	if !ok {
		return nil, invalid([]string{show(value) + " is not of type object"})
	}
	return &body{members: members}, nil
}

func (b *body) problem(format string, args ...any) {
	b.problems = append(b.problems, fmt.Sprintf(format, args...))
}

// only refuses members that are not in a list.
func (b *body) only(names ...string) {
	var others []string
	for _, name := range slices.Sorted(maps.Keys(b.members)) {
		if !slices.Contains(names, name) {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		b.problems = append(b.problems, unexpected(others...))
	}
}

// unexpected is the problem of unknown members.
func unexpected(names ...string) string {
	verb := "was"
	if len(names) > 1 {
		verb = "were"
	}
	return "Additional properties are not allowed (" + strings.Join(names, ", ") + " " + verb + " unexpected)"
}

// required reports whether the body has a member.
func (b *body) required(name string) bool {
	if _, ok := b.members[name]; ok {
		return true
	}
	b.problem("%s is a required property", name)
	return false
}

// text returns a member that is a string, or "".
func (b *body) text(name string) string {
	value, ok := b.members[name]
	if !ok {
		return ""
	}
	text, ok := value.(string)
	if !ok {
		b.problem("%s %s is not of type string", name, show(value))
	}
	return text
}

// uuid returns a member that is a UUID, in lower case, or "".
func (b *body) uuid(name string) string {
	value, ok := b.members[name]
	if !ok {
		return ""
	}
	text, isText := value.(string)
	if !isText || !isUUID(text) {
		b.problem("%s is not a valid UUID", name)
		return ""
	}
	return strings.ToLower(text)
}

func isUUID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && len(s) == len(id.String())
}

// object returns a member that is an object, or nil.
func (b *body) object(name string) map[string]any {
	value, ok := b.members[name]
	if !ok {
		return nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		b.problem("%s %s is not of type object", name, show(value))
	}
	return object
}

// reference returns the reference of a request.
func (b *body) reference() string {
	text := b.text("reference")
	if utf8.RuneCountInString(text) > maxReference {
		b.problem("reference %s is too long", show(text))
	}
	return text
}

// names returns a list of strings; null is an empty list.
func (b *body) names(name string) []string {
	value := b.members[name]
	if value == nil {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		b.problem("%s %s is not of type array, null", name, show(value))
		return nil
	}
	all := make([]string, 0, len(list))
	for _, one := range list {
		text, ok := one.(string)
		if !ok {
			b.problem("%s %s is not of type string", name, show(one))
			continue
		}
		all = append(all, text)
	}
	return all
}

// email returns the address of a request, as it was sent.
func (b *body) email() string {
	if !b.required("email_address") {
		return ""
	}
	text := b.text("email_address")
	if _, isText := b.members["email_address"].(string); isText && !validEmail(text) {
		b.problem("email_address Not a valid email address")
	}
	return text
}

// validEmail reports whether GOV.UK Notify accepts an address: its local part has no quotes, and its domain has a dot
// and ends with letters.
func validEmail(s string) bool {
	s = strings.TrimSpace(s)
	normal, err := address.Parse(s)
	if err != nil || utf8.RuneCountInString(s) > maxEmail {
		return false
	}
	at := strings.LastIndexByte(normal, '@')
	local, domain := normal[:at], normal[at+1:]
	if strings.ContainsFunc(local, func(r rune) bool { return !localCharacter(r) }) || strings.Contains(s, "..") {
		return false
	}
	dot := strings.LastIndexByte(domain, '.')
	last := domain[dot+1:]
	return dot > 0 && len(last) >= 2 && (strings.HasPrefix(last, "xn--") || strings.Trim(last, "0123456789-") == last && !strings.ContainsAny(last, "0123456789"))
}

func localCharacter(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(".!#$%&'*+/=?^_`{|}~-", r)
}

// phone returns the number of a request, as it was sent.
func (b *body) phone() string {
	if !b.required("phone_number") {
		return ""
	}
	text := b.text("phone_number")
	if _, isText := b.members["phone_number"].(string); isText {
		if problem := phoneProblem(text); problem != "" {
			b.problem("phone_number %s", problem)
		}
	}
	return text
}

// phoneProblem returns why GOV.UK Notify refuses a number, or "".
func phoneProblem(s string) string {
	if len(s) > maxEmail || strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789+()- \u00a0\t\r\n.\u200b\ufeff", r) }) {
		return "Must not contain letters or symbols"
	}
	digits := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, s)
	national := strings.HasPrefix(digits, "0") && !strings.HasPrefix(digits, "00")
	digits = strings.TrimLeft(digits, "0")
	rest, uk := strings.CutPrefix(digits, "44")
	switch {
	case uk:
		digits = strings.TrimLeft(rest, "0")
	case national, strings.HasPrefix(digits, "7") && len(digits) < 11:
	case len(digits) < 8:
		return "Not enough digits"
	case len(digits) > 15:
		return "Too many digits"
	case !hasCountryCode(digits):
		return "Not a valid country prefix"
	default:
		return ""
	}
	switch {
	case !strings.HasPrefix(digits, "7"):
		return "Not a UK mobile number"
	case len(digits) > 10:
		return "Too many digits"
	case len(digits) < 10:
		return "Not enough digits"
	}
	return ""
}

// unassigned has the beginnings of numbers that are no assigned country code (ITU-T E.164, list of assigned codes).
var unassigned = []string{"0", "210", "214", "215", "217", "219", "259", "28", "292", "293", "294", "295", "296", "384", "388", "422", "424", "425", "426", "427", "428", "429",
	"671", "693", "694", "695", "696", "697", "698", "699", "80", "83", "851", "854", "857", "858", "859", "871", "872", "873", "874", "875", "876", "877", "879", "884", "885", "887", "889",
	"89", "969", "978", "979", "990", "991", "997", "999"}

func hasCountryCode(digits string) bool {
	return !slices.ContainsFunc(unassigned, func(prefix string) bool { return strings.HasPrefix(digits, prefix) })
}

// show formats a value as GOV.UK Notify does in its messages.
func show(value any) string {
	switch v := value.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return shorten(v)
	case json.Number:
		return v.String()
	case []any:
		texts := make([]string, len(v))
		for i := range v {
			texts[i] = show(v[i])
		}
		return shorten("[" + strings.Join(texts, ", ") + "]")
	case map[string]any:
		var texts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			texts = append(texts, name+": "+show(v[name]))
		}
		return shorten("{" + strings.Join(texts, ", ") + "}")
	}
	return fmt.Sprint(value)
}

// maxShown is the maximum length of a value in a message.
const maxShown = 2000

func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "..."
}
