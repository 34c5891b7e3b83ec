package mail

import (
	"fmt"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/jmap/header"
	"fanfare.dev/fanfare/internal/mail/mimetree"
)

// The properties of an Email besides header fields (RFC 8621, section 4.1), and those that are returned if none are named.
var (
	emailProperties = []string{"id", "blobId", "threadId", "mailboxIds", "keywords", "size", "receivedAt", "messageId", "inReplyTo", "references", "sender", "from", "to", "cc", "bcc",
		"replyTo", "subject", "sentAt", "hasAttachment", "preview", "bodyValues", "textBody", "htmlBody", "attachments", "bodyStructure", "headers"}
	defaultProperties     = emailProperties[:len(emailProperties)-2]
	bodyProperties        = []string{"partId", "blobId", "size", "name", "type", "charset", "disposition", "cid", "language", "location", "subParts", "headers"}
	defaultBodyProperties = bodyProperties[:len(bodyProperties)-2]
)

// convenience are the properties that stand for a header field in one form (section 4.1.3).
var convenience = map[string]string{
	"messageId": "header:Message-ID:asMessageIds", "inReplyTo": "header:In-Reply-To:asMessageIds", "references": "header:References:asMessageIds",
	"sender": "header:Sender:asAddresses", "from": "header:From:asAddresses", "to": "header:To:asAddresses", "cc": "header:Cc:asAddresses", "bcc": "header:Bcc:asAddresses",
	"replyTo": "header:Reply-To:asAddresses", "subject": "header:Subject:asText", "sentAt": "header:Date:asDate",
}

// A headerProperty is a property of the form header:Name:asForm:all.
type headerProperty struct {
	name string
	form string // asRaw, asText ...
	all  bool
}

// The forms that fields of RFC 5322 and RFC 2369 have besides asRaw (section 4.1.2). Other fields may be read in all forms.
var formsOf = func() map[string][]string {
	forms := map[string][]string{"return-path": nil, "received": nil}
	for _, f := range []struct {
		names string
		forms []string
	}{
		{"subject comments keywords list-id", []string{"asText"}},
		{"from sender reply-to to cc bcc resent-from resent-sender resent-reply-to resent-to resent-cc resent-bcc", []string{"asAddresses", "asGroupedAddresses"}},
		{"message-id in-reply-to references resent-message-id", []string{"asMessageIds"}},
		{"date resent-date", []string{"asDate"}},
		{"list-help list-unsubscribe list-subscribe list-post list-owner list-archive", []string{"asURLs"}},
	} {
		for name := range strings.FieldsSeq(f.names) {
			forms[name] = f.forms
		}
	}
	return forms
}()

var allForms = []string{"asRaw", "asText", "asAddresses", "asGroupedAddresses", "asMessageIds", "asDate", "asURLs"}

// parseHeaderProperty reads the name of a property that stands for a header field.
func parseHeaderProperty(property string) (p headerProperty, err error) {
	rest, ok := strings.CutPrefix(property, "header:")
	if !ok {
		return p, fmt.Errorf("%.80q is not a property", property)
	}
	tokens := strings.Split(rest, ":")
	p.name, p.form = tokens[0], "asRaw"
	tokens = tokens[1:]
	if len(tokens) > 0 && tokens[0] != "all" {
		p.form, tokens = tokens[0], tokens[1:]
	}
	if len(tokens) > 0 && tokens[0] == "all" {
		p.all, tokens = true, tokens[1:]
	}
	if len(tokens) > 0 || p.name == "" || strings.ContainsFunc(p.name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return p, fmt.Errorf("%.80q is not a property: use header:Name, header:Name:asForm or header:Name:asForm:all", property)
	}
	if !slices.Contains(allForms, p.form) {
		return p, fmt.Errorf("%.80q is not a form of a header field; use one of %s", p.form, strings.Join(allForms, ", "))
	}
	if forms, restricted := formsOf[strings.ToLower(p.name)]; restricted && p.form != "asRaw" && !slices.Contains(forms, p.form) {
		return p, fmt.Errorf("the field %s has no form %s", p.name, p.form)
	}
	return p, nil
}

// value reads a header property from a header. A field that is missing is nil, or with all an empty list.
func (p headerProperty) value(block []byte) any {
	all := []any{}
	for f := range mimetree.Fields(block) {
		if strings.EqualFold(f.Name, p.name) {
			all = append(all, p.read(string(f.Value)))
		}
	}
	if p.all {
		return all
	}
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

func (p headerProperty) read(value string) any {
	switch p.form {
	case "asText":
		return header.Text(value)
	case "asAddresses":
		return header.Addresses(value)
	case "asGroupedAddresses":
		return header.Groups(value)
	case "asMessageIds":
		if ids := header.MessageIDs(value); ids != nil {
			return ids
		}
		return nil
	case "asURLs":
		if urls := header.URLs(value); urls != nil {
			return urls
		}
		return nil
	case "asDate":
		if at, ok := header.Date(value); ok {
			return header.FormatDate(at)
		}
		return nil
	}
	return header.Raw(value)
}

// headerList returns the property headers.
func headerList(block []byte) any {
	type field struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	list := []field{}
	for f := range mimetree.Fields(block) {
		list = append(list, field{validText(f.Name), header.Raw(string(f.Value))})
	}
	return list
}

// fetchArguments say which properties of messages a client wants.
type fetchArguments struct {
	Properties     *[]string        `json:"properties"`
	BodyProperties *[]string        `json:"bodyProperties"`
	FetchText      bool             `json:"fetchTextBodyValues"`
	FetchHTML      bool             `json:"fetchHTMLBodyValues"`
	FetchAll       bool             `json:"fetchAllBodyValues"`
	MaxBytes       core.UnsignedInt `json:"maxBodyValueBytes"`
}

// A fetch is what is read of each message.
type fetch struct {
	properties []string
	headers    map[string]headerProperty // by the name of the property
	body       []string
	bodyFields map[string]headerProperty
	fetchArguments
	needsContent bool // more than the digest
	needsDigest  bool
}

// maxProperties limits the properties that are asked for.
const maxProperties = 200

// newFetch checks the properties.
func newFetch(a fetchArguments) (*fetch, error) {
	f := &fetch{properties: defaultProperties, body: defaultBodyProperties, fetchArguments: a, headers: map[string]headerProperty{}, bodyFields: map[string]headerProperty{}}
	if a.Properties != nil {
		f.properties = *a.Properties
	}
	if a.BodyProperties != nil {
		f.body = *a.BodyProperties
	}
	for _, list := range []struct {
		argument   string
		properties []string
		known      []string
		headers    map[string]headerProperty
	}{{"properties", f.properties, emailProperties, f.headers}, {"bodyProperties", f.body, bodyProperties, f.bodyFields}} {
		if len(list.properties) > maxProperties {
			return nil, core.Fail(core.InvalidArguments, fmt.Sprintf("%s has more than %d properties", list.argument, maxProperties))
		}
		for _, property := range list.properties {
			name := property
			if of, ok := convenience[property]; ok && list.argument == "properties" {
				name = of
			} else if slices.Contains(list.known, property) {
				continue
			}
			p, err := parseHeaderProperty(name)
			if err != nil {
				return nil, core.Fail(core.InvalidArguments, list.argument+": "+err.Error())
			}
			list.headers[property] = p
		}
	}
	f.needsDigest = len(f.headers) > 0
	for _, property := range f.properties {
		switch property {
		case "bodyValues", "textBody", "htmlBody", "attachments", "bodyStructure":
			f.needsContent = true
		case "hasAttachment", "preview", "headers":
			f.needsDigest = true
		}
	}
	return f, nil
}
