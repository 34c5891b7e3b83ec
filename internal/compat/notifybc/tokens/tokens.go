package tokens

import (
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"strings"
)

// Values are the values of tokens.
type Values struct {
	// Static values replace tokens whatever the notification contains, by name in lower case, without braces.
	Static map[string]string

	// Notification is the data of the notification as encoding/json decodes it, nil without data.
	Notification any

	// Subscription is the subscription for which Text replaces tokens, nil for none.
	Subscription *Subscription

	// Links begin with Root, the address of the API: http://host/api.
	Root string
}

// Subscription has the values of one subscription.
type Subscription struct {
	ID   string
	Code string // for the end of the subscription; "": none
	Data any    // as encoding/json decodes it, nil without data
}

// Text returns a text with the values of one subscription.
func Text(text string, v *Values) string {
	return replace(text, v, func(token, name string) (string, bool) { return v.ofSubscription(name) }, func(literal string) string { return literal })
}

// Liquid returns a text as Liquid, in which the values of each subscription are outputs. Data of the subscription is at
// subscription.data.data, and its code at subscription.data.unsubscriptionCode.
func Liquid(text string, v *Values) string {
	return replace(text, v, func(token, name string) (string, bool) { return v.output(token, name) }, escapeLiquid)
}

// replace replaces all tokens. personal returns the replacement of a token that belongs to the subscription, literal
// converts all other text.
func replace(text string, v *Values, personal func(token, name string) (string, bool), literal func(string) string) string {
	var out, plain strings.Builder
	flush := func() {
		out.WriteString(literal(plain.String()))
		plain.Reset()
	}
	for len(text) > 0 {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			plain.WriteString(text)
			break
		}
		if at > 0 && text[at-1] == '\\' {
			if inner, rest, ok := escaped(text[at+1:]); ok {
				plain.WriteString(text[:at-1] + "{" + inner + "}")
				text = rest
				continue
			}
		}
		name, rest, ok := token(text[at+1:])
		if !ok {
			plain.WriteString(text[:at+1])
			text = text[at+1:]
			continue
		}
		plain.WriteString(text[:at])
		written := text[at : len(text)-len(rest)]
		text = rest
		if value, known := v.shared(name); known {
			plain.WriteString(value)
			continue
		}
		if value, known := personal(written, name); known {
			flush()
			out.WriteString(value)
			continue
		}
		plain.WriteString(written)
	}
	flush()
	return out.String()
}

// token returns the text up to the next closing brace and the rest after it, unless another token begins or the line ends
// before.
func token(text string) (name, rest string, ok bool) {
	end := strings.IndexAny(text, "{}\r\n")
	if end <= 0 || text[end] != '}' {
		return "", "", false
	}
	return text[:end], text[end+1:], true
}

// escaped returns the text up to \} in the same line.
func escaped(text string) (inner, rest string, ok bool) {
	end := strings.IndexAny(text, "}\r\n")
	if end < 2 || text[end] != '}' || text[end-1] != '\\' {
		return "", "", false
	}
	return text[:end-1], text[end+1:], true
}

// shared returns the value of a token that is the same for all subscriptions.
func (v *Values) shared(name string) (string, bool) {
	if value, ok := v.Static[strings.ToLower(name)]; ok {
		return value, true
	}
	path, ofNotification := cutScope(name, "notification")
	if !ofNotification {
		if v.Notification == nil || isSubscription(name) {
			return "", false
		}
		path = name
	}
	return textOf(lookup(v.Notification, path))
}

// cutScope returns the path of a token with a scope.
func cutScope(name, scope string) (path string, ok bool) {
	before, path, ok := strings.Cut(name, "::")
	return path, ok && strings.EqualFold(before, scope)
}

// linkSuffixes follow the id of a subscription in the links to it.
var linkSuffixes = map[string]struct{ path, further string }{
	"unsubscription_url":           {"/unsubscribe", ""},
	"unsubscription_all_url":       {"/unsubscribe", "additionalServices=_all"},
	"unsubscription_reversion_url": {"/unsubscribe/undo", ""},
}

// isSubscription reports whether a token belongs to the subscription, whatever the data of the notification contains.
func isSubscription(name string) bool {
	if _, ok := cutScope(name, "subscription"); ok {
		return true
	}
	lower := strings.ToLower(name)
	_, link := linkSuffixes[lower]
	return link || isID(lower) || isCode(lower)
}

func isID(name string) bool   { return name == "subscription_id" || name == "subscriptionid" }
func isCode(name string) bool { return name == "unsubscription_code" || name == "unsubscriptioncode" }

// ofSubscription returns the value of a token for v.Subscription.
func (v *Values) ofSubscription(name string) (string, bool) {
	s := v.Subscription
	if s == nil {
		return "", false
	}
	lower := strings.ToLower(name)
	if link, ok := linkSuffixes[lower]; ok {
		target := v.Root + "/subscriptions/" + s.ID + link.path
		query := link.further
		if s.Code != "" {
			query = strings.TrimSuffix("unsubscriptionCode="+url.QueryEscape(s.Code)+"&"+query, "&")
		}
		if query != "" {
			target += "?" + query
		}
		return target, true
	}
	switch {
	case isID(lower):
		return s.ID, true
	case isCode(lower):
		return s.Code, s.Code != ""
	}
	path, ok := cutScope(name, "subscription")
	if !ok {
		if v.Notification != nil || strings.Contains(name, "::") {
			return "", false
		}
		path = name
	}
	return textOf(lookup(s.Data, path))
}

// output returns the output of Liquid for a token of the subscription.
func (v *Values) output(token, name string) (string, bool) {
	const id, code = "{{ subscription.id }}", "subscription.data.unsubscriptionCode"
	lower := strings.ToLower(name)
	if link, ok := linkSuffixes[lower]; ok {
		target := escapeLiquid(v.Root+"/subscriptions/") + id + link.path + "?unsubscriptionCode={{ " + code + ` | default: "" | raw }}`
		if link.further != "" {
			target += "&" + link.further
		}
		return target, true
	}
	switch {
	case isID(lower):
		return id, true
	case isCode(lower):
		return orAsWritten(code, token)
	}
	path, ok := cutScope(name, "subscription")
	if !ok {
		if v.Notification != nil || strings.Contains(name, "::") {
			return "", false
		}
		path = name
	}
	var source strings.Builder
	source.WriteString("subscription.data.data")
	steps, ok := parsePath(path)
	if !ok {
		return "", false
	}
	for _, step := range steps {
		switch {
		case step.index >= 0:
			source.WriteString("[" + strconv.Itoa(step.index) + "]")
		case isIdentifier(step.name):
			source.WriteString("." + step.name)
		case strings.ContainsAny(step.name, "\"\\"):
			return "", false
		default:
			source.WriteString(`["` + step.name + `"]`)
		}
	}
	return orAsWritten(source.String(), token)
}

// orAsWritten returns the output of a value that stays as the token is written if it is missing.
func orAsWritten(source, token string) (string, bool) {
	quote := `"`
	if strings.Contains(token, quote) {
		quote = "'"
	}
	if strings.ContainsAny(token, quote+`\`) {
		return "", false
	}
	return "{{ " + source + " | default: " + quote + token + quote + " | raw }}", true
}

// isIdentifier reports whether a name can follow a dot in Liquid. Names with a meaning of their own cannot.
func isIdentifier(name string) bool {
	switch name {
	case "size", "first", "last":
		return false
	}
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// escapeLiquid returns Liquid that writes a text.
func escapeLiquid(text string) string {
	if !strings.Contains(text, "{{") && !strings.Contains(text, "{%") && !strings.HasSuffix(text, "{") {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '{' && (i+1 == len(text) || text[i+1] == '{' || text[i+1] == '%') {
			out.WriteString(`{{ "{" | raw }}`)
			continue
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// A step is one step of a path: a name, or an index that is not negative.
type step struct {
	name  string
	index int
}

// parsePath reads a path such as a.b[0].c.
func parsePath(path string) (steps []step, ok bool) {
	for part := range strings.SplitSeq(path, ".") {
		name, indexes, indexed := strings.Cut(part, "[")
		if name != "" {
			steps = append(steps, step{name, -1})
		} else if !indexed || len(steps) == 0 {
			return nil, false
		}
		for indexed {
			var number string
			if number, indexes, ok = strings.Cut(indexes, "]"); !ok {
				return nil, false
			}
			n, err := strconv.ParseUint(number, 10, 31)
			if err != nil || indexes != "" && indexes[0] != '[' {
				return nil, false
			}
			steps = append(steps, step{index: int(n)})
			if indexed = indexes != ""; indexed {
				indexes = indexes[1:]
			}
		}
	}
	return steps, len(steps) > 0
}

// lookup returns the value at a path, or nil.
func lookup(value any, path string) any {
	steps, ok := parsePath(path)
	if !ok {
		return nil
	}
	for _, s := range steps {
		switch v := value.(type) {
		case map[string]any:
			if s.index >= 0 {
				return nil
			}
			value = v[s.name]
		case []any:
			if s.index < 0 || s.index >= len(v) {
				return nil
			}
			value = v[s.index]
		default:
			return nil
		}
	}
	return value
}

// textOf returns the text of a value. A value that is missing, empty, 0 or false has none.
func textOf(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "", false
	case string:
		return v, v != ""
	case bool:
		return "true", v
	case json.Number:
		f, err := v.Float64()
		return v.String(), err != nil || f != 0
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), v != 0 && !math.IsNaN(v)
	case []any:
		var parts []string
		for _, one := range v {
			text, _ := textOf(one)
			parts = append(parts, text)
		}
		return strings.Join(parts, ","), true
	}
	text, err := json.Marshal(value)
	return string(text), err == nil
}

// Escape returns Liquid that writes a text as it is.
func Escape(text string) string { return escapeLiquid(text) }
