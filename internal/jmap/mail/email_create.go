package mail

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare/internal/jmap/compose"
	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/jmap/header"
	"fanfare.dev/fanfare/internal/mailbox"
)

// Limits of a new message.
const (
	maxAttachments  = 40 << 20 // bytes of all blobs
	maxNewParts     = 1000
	maxNewPartDepth = 20
)

// createEmail stores a message that the client describes (RFC 8621, section 4.6).
func (m *Methods) createEmail(ctx context.Context, c *core.Call, id mailbox.AccountID, v *view, text json.RawMessage) (*mailbox.Message, *core.SetError, error) {
	properties, err := core.ParseObject(text)
	if err != nil {
		return nil, core.Invalid("the record cannot be read"), nil
	}
	d := &draft{methods: m, ctx: ctx, account: id}
	if failed := d.read(properties); failed != nil || d.err != nil {
		return nil, failed, d.err
	}
	n := mailbox.NewMessage{Received: d.record.Received.Time}
	var failed *core.SetError
	if n.Mailbox, failed = oneMailbox(c, v, d.record.Mailboxes); failed != nil {
		return nil, failed, nil
	}
	if n.Flags, n.Keywords, failed = parseKeywords(d.record.Keywords); failed != nil {
		return nil, failed, nil
	}
	root, failed := d.root()
	if failed != nil || d.err != nil {
		return nil, failed, d.err
	}
	if n.Content, err = d.message(root); err != nil {
		return nil, nil, err
	}
	return m.append(ctx, id, n)
}

// append stores a message.
func (m *Methods) append(ctx context.Context, id mailbox.AccountID, n mailbox.NewMessage) (*mailbox.Message, *core.SetError, error) {
	made, err := m.store.Append(ctx, id, []mailbox.NewMessage{n})
	if errors.Is(err, mailbox.ErrNoMailbox) {
		return nil, core.Invalid("the mailbox does not exist", "mailboxIds"), nil
	}
	if err != nil {
		return nil, setError(err), orNil(err)
	}
	return &made[0], nil, nil
}

// A draft is a message that a client describes.
type draft struct {
	methods *Methods
	ctx     context.Context
	account mailbox.AccountID
	err     error // of reading a blob

	record struct {
		Mailboxes map[core.ID]*bool   `json:"mailboxIds"`
		Keywords  map[string]*bool    `json:"keywords"`
		Received  core.UTCDate        `json:"receivedAt"`
		Structure *json.RawMessage    `json:"bodyStructure"`
		Text      *[]json.RawMessage  `json:"textBody"`
		HTML      *[]json.RawMessage  `json:"htmlBody"`
		Attached  *[]json.RawMessage  `json:"attachments"`
		Values    map[string]newValue `json:"bodyValues"`
	}
	fields []compose.Field
	names  map[string]string // lower-case name of a field -> property that set it
	parts  int
	blobs  int64 // bytes
}

// newValue is an EmailBodyValue of a new message.
type newValue struct {
	Value     *string `json:"value"`
	Problem   bool    `json:"isEncodingProblem"`
	Truncated bool    `json:"isTruncated"`
}

// read reads the properties, except the body parts.
func (d *draft) read(properties core.Object) *core.SetError {
	d.names = map[string]string{}
	var others core.Object
	for _, p := range properties {
		name := p.Name
		if of, ok := convenience[name]; ok {
			name = of
		}
		if !strings.HasPrefix(name, "header:") {
			others = append(others, p)
			continue
		}
		fields, failed := newFields(p.Name, name, p.Value)
		if failed != nil {
			return failed
		}
		for _, f := range fields {
			if strings.HasPrefix(strings.ToLower(f.Name), "content-") {
				return core.Invalid("the field "+f.Name+" belongs to a body part", p.Name)
			}
		}
		if failed := d.add(p.Name, name, fields, &d.fields); failed != nil {
			return failed
		}
	}
	if failed := core.DecodeProperties(others, &d.record); failed != nil {
		return failed
	}
	for id, value := range d.record.Values {
		if value.Value == nil || value.Problem || value.Truncated {
			return core.Invalid(fmt.Sprintf("the body value %.80q must have a value, and isEncodingProblem and isTruncated must be false", id), "bodyValues")
		}
	}
	return nil
}

// add adds the fields of a property; no other property may stand for the same field.
func (d *draft) add(property, name string, fields []compose.Field, to *[]compose.Field) *core.SetError {
	p, err := parseHeaderProperty(name)
	if err != nil {
		return core.Invalid(err.Error(), property)
	}
	lower := strings.ToLower(p.name)
	if other := d.names[lower]; other != "" {
		return core.Invalid(fmt.Sprintf("%.80s and %.80s are the same field", other, property), property)
	}
	d.names[lower] = property
	if lower == "mime-version" {
		return core.Invalid("the field MIME-Version cannot be set", property)
	}
	*to = append(*to, fields...)
	return nil
}

var fieldName = regexp.MustCompile(`^[!-9;-~]{1,76}$`)

// newFields returns the fields of a property that stands for a header field; none for null.
func newFields(property, name string, value json.RawMessage) ([]compose.Field, *core.SetError) {
	p, err := parseHeaderProperty(name)
	if err != nil {
		return nil, core.Invalid(err.Error(), property)
	}
	if !fieldName.MatchString(p.name) {
		return nil, core.Invalid(fmt.Sprintf("%.80q cannot be the name of a field", p.name), property)
	}
	values := []json.RawMessage{value}
	if p.all {
		values = nil
		if err := json.Unmarshal(value, &values); err != nil {
			return nil, core.Invalid(property+" must be a list", property)
		}
	} else if string(value) == "null" {
		return nil, nil
	}
	var fields []compose.Field
	for _, one := range values {
		text, err := p.write(one)
		if err != nil {
			return nil, core.Invalid(property+" "+core.Wrong(err), property)
		}
		fields = append(fields, compose.Field{Name: p.name, Value: text})
	}
	return fields, nil
}

// write returns the value of a field from its form.
func (p headerProperty) write(value json.RawMessage) (text string, err error) {
	var list []string
	switch p.form {
	case "asText":
		err = json.Unmarshal(value, &text)
		return compose.Text(text), err
	case "asAddresses":
		var addresses []header.Address
		if err = json.Unmarshal(value, &addresses); err == nil {
			err = checkAddresses(addresses)
		}
		return compose.Addresses(addresses), err
	case "asGroupedAddresses":
		var groups []header.Group
		err = json.Unmarshal(value, &groups)
		for _, g := range groups {
			if err == nil {
				err = checkAddresses(g.Addresses)
			}
		}
		return compose.Groups(groups), err
	case "asMessageIds":
		err = json.Unmarshal(value, &list)
		return compose.MessageIDs(list), err
	case "asURLs":
		err = json.Unmarshal(value, &list)
		return compose.URLs(list), err
	case "asDate":
		var at core.Date
		err = json.Unmarshal(value, &at)
		return compose.Date(at.Time), err
	}
	err = json.Unmarshal(value, &text)
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n ", " "), "\r\n\t", " ")
	if err == nil && strings.ContainsAny(text, "\r\n\x00") {
		err = errors.New("a line end must be followed by a space")
	}
	if err == nil && strings.ContainsFunc(text, func(r rune) bool { return r > '~' || r == utf8.RuneError }) {
		text = compose.Text(strings.TrimSpace(text))
	}
	return strings.TrimSpace(text), err
}

func checkAddresses(list []header.Address) error {
	for _, a := range list {
		if strings.ContainsAny(a.Email, "<>\r\n\x00") || strings.TrimSpace(a.Email) != a.Email || a.Email == "" {
			return fmt.Errorf("%.80q is not an address", a.Email)
		}
	}
	return nil
}

// root makes the tree of body parts.
func (d *draft) root() (*compose.Part, *core.SetError) {
	r := &d.record
	if r.Structure != nil && string(*r.Structure) != "null" {
		for name, list := range map[string]*[]json.RawMessage{"textBody": r.Text, "htmlBody": r.HTML, "attachments": r.Attached} {
			if list != nil {
				return nil, core.Invalid("bodyStructure and "+name+" cannot be given together", "bodyStructure", name)
			}
		}
		root, failed := d.part("bodyStructure", *r.Structure, "", true, 0)
		if failed != nil || d.err != nil {
			return nil, failed
		}
		return root, nil
	}
	only := func(name string, list *[]json.RawMessage, kind string) (*compose.Part, *core.SetError) {
		if list == nil || len(*list) == 0 {
			return nil, nil
		}
		if len(*list) != 1 {
			return nil, core.Invalid(name+" must have one part", name)
		}
		return d.part(name, (*list)[0], kind, false, 0)
	}
	text, failed := only("textBody", r.Text, "text/plain")
	if failed != nil {
		return nil, failed
	}
	html, failed := only("htmlBody", r.HTML, "text/html")
	if failed != nil {
		return nil, failed
	}
	var related, attached []*compose.Part
	if r.Attached != nil {
		for _, one := range *r.Attached {
			part, failed := d.part("attachments", one, "", false, 0)
			if failed != nil {
				return nil, failed
			}
			if part == nil {
				return nil, nil // d.err says why
			}
			inline := slices.ContainsFunc(part.Fields, func(f compose.Field) bool {
				return f.Name == "Content-Disposition" && strings.HasPrefix(f.Value, "inline")
			})
			if hasID := slices.ContainsFunc(part.Fields, func(f compose.Field) bool { return f.Name == "Content-ID" }); inline && hasID && html != nil {
				related = append(related, part)
			} else {
				attached = append(attached, part)
			}
		}
	}
	if d.err != nil {
		return nil, nil //nolint:nilerr // the caller looks at d.err
	}
	if len(related) > 0 {
		html = &compose.Part{Type: "multipart/related", Parameters: compose.Parameter("type", "text/html"), Children: append([]*compose.Part{html}, related...)}
	}
	root := text
	switch {
	case text != nil && html != nil:
		root = &compose.Part{Type: "multipart/alternative", Children: []*compose.Part{text, html}}
	case html != nil:
		root = html
	case text == nil && len(attached) != 1:
		root = &compose.Part{Type: "text/plain", IsUTF8Text: true}
	}
	switch {
	case root == nil:
		return attached[0], nil
	case len(attached) > 0:
		root = &compose.Part{Type: "multipart/mixed", Children: append([]*compose.Part{root}, attached...)}
	}
	return root, nil
}

var mediaType = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`{|}~-]{1,127}/[A-Za-z0-9!#$%&'*+.^_`{|}~-]{1,127}$")

// newPart is an EmailBodyPart of a new message.
type newPart struct {
	PartID      *string           `json:"partId"`
	BlobID      *core.ID          `json:"blobId"`
	Size        *core.UnsignedInt `json:"size"`
	Name        *string           `json:"name"`
	Type        *string           `json:"type"`
	Charset     *string           `json:"charset"`
	Disposition *string           `json:"disposition"`
	ID          *string           `json:"cid"`
	Language    []string          `json:"language"`
	Location    *string           `json:"location"`
	SubParts    []json.RawMessage `json:"subParts"`
}

// part makes a body part. kind is the type that it must have, or ""; the fields of the root are among those of the message. It returns nil if
// d.err is set.
func (d *draft) part(property string, text json.RawMessage, kind string, isRoot bool, depth int) (*compose.Part, *core.SetError) {
	invalid := func(format string, args ...any) (*compose.Part, *core.SetError) {
		return nil, core.Invalid(fmt.Sprintf(format, args...), property)
	}
	if d.parts++; d.parts > maxNewParts || depth > maxNewPartDepth {
		return invalid("a message must have at most %d parts, nested at most %d levels deep", maxNewParts, maxNewPartDepth)
	}
	members, err := core.ParseObject(text)
	if err != nil {
		return invalid("a body part must be an object")
	}
	part := &compose.Part{}
	own := draft{names: map[string]string{}}
	names := &own
	if isRoot {
		names = d
	}
	var others core.Object
	for _, member := range members {
		if !strings.HasPrefix(member.Name, "header:") {
			others = append(others, member)
			continue
		}
		fields, failed := newFields(member.Name, member.Name, member.Value)
		if failed == nil {
			failed = names.add(member.Name, member.Name, fields, &part.Fields)
		}
		if failed != nil {
			return invalid("%s", failed.Description)
		}
	}
	for _, f := range part.Fields {
		if name := strings.ToLower(f.Name); name == "content-type" || name == "content-disposition" || name == "content-transfer-encoding" {
			return invalid("the field %s follows from other properties", f.Name)
		}
	}
	var p newPart
	if failed := core.DecodeProperties(others, &p); failed != nil {
		return invalid("%s", failed.Description)
	}
	part.Type = "text/plain"
	switch {
	case p.Type != nil:
		part.Type = strings.ToLower(*p.Type)
	case kind != "":
		part.Type = kind
	case p.BlobID != nil:
		part.Type = "application/octet-stream"
	}
	if kind != "" && part.Type != kind {
		return invalid("the part must have the type %s", kind)
	}
	if !mediaType.MatchString(part.Type) {
		return invalid("%.80q is not a media type", part.Type)
	}
	for _, text := range []*string{p.Name, p.Charset, p.Disposition, p.ID, p.Location} {
		if text != nil && (strings.ContainsAny(*text, "\r\n\x00") || len(*text) > 1000) {
			return invalid("a property has a line end, or is longer than 1000 bytes")
		}
	}
	if failed := d.contentFields(part, &p, names); failed != "" {
		return invalid("%s", failed)
	}
	if strings.HasPrefix(part.Type, "multipart/") {
		if p.PartID != nil || p.BlobID != nil || p.Charset != nil {
			return invalid("a multipart has no partId, blobId or charset")
		}
		for _, below := range p.SubParts {
			child, failed := d.part(property, below, "", false, depth+1)
			if failed != nil || d.err != nil {
				return nil, failed
			}
			part.Children = append(part.Children, child)
		}
		if len(part.Children) == 0 {
			return invalid("a multipart must have subParts")
		}
		return part, nil
	}
	if len(p.SubParts) > 0 {
		return invalid("only a multipart has subParts")
	}
	return d.partBody(property, part, &p)
}

// contentFields adds the Content fields of a part. It says what is wrong.
func (d *draft) contentFields(part *compose.Part, p *newPart, names *draft) string {
	put := func(name, value string) bool {
		if names.names[strings.ToLower(name)] != "" {
			return false
		}
		part.Fields = append(part.Fields, compose.Field{Name: name, Value: value})
		return true
	}
	switch {
	case p.Disposition != nil || p.Name != nil:
		disposition := "attachment"
		if p.Disposition != nil {
			disposition = strings.ToLower(*p.Disposition)
		}
		if !mediaType.MatchString("x/" + disposition) {
			return "the disposition is not a word"
		}
		if p.Name != nil {
			disposition += compose.Parameter("filename", *p.Name)
		}
		put("Content-Disposition", disposition)
	}
	if p.ID != nil && !put("Content-ID", compose.MessageIDs([]string{*p.ID})) {
		return "cid and header:Content-ID are the same field"
	}
	if len(p.Language) > 0 {
		for _, language := range p.Language {
			if !mediaType.MatchString("x/" + language) {
				return fmt.Sprintf("%.80q is not a language", language)
			}
		}
		if !put("Content-Language", strings.Join(p.Language, ", ")) {
			return "language and header:Content-Language are the same field"
		}
	}
	if p.Location != nil && !put("Content-Location", compose.Text(*p.Location)) {
		return "location and header:Content-Location are the same field"
	}
	return ""
}

// partBody adds the body of a part.
func (d *draft) partBody(property string, part *compose.Part, p *newPart) (*compose.Part, *core.SetError) {
	switch {
	case p.PartID != nil && p.BlobID != nil:
		return nil, core.Invalid("a part has a partId or a blobId, and not both", property)
	case p.PartID != nil:
		value, ok := d.record.Values[*p.PartID]
		if !ok {
			return nil, core.Invalid(fmt.Sprintf("bodyValues has no value for the partId %.80q", *p.PartID), property, "bodyValues")
		}
		if p.Charset != nil || p.Size != nil {
			return nil, core.Invalid("a part with a partId has no charset and no size", property)
		}
		if !strings.HasPrefix(part.Type, "text/") {
			return nil, core.Invalid("a part with a partId must be text", property)
		}
		part.Body, part.IsUTF8Text = []byte(*value.Value), true
		return part, nil
	case p.BlobID != nil:
		data, err := d.methods.Blob(d.ctx, d.account, *p.BlobID)
		if isGone(err) {
			return nil, &core.SetError{Type: core.SetBlobNotFound, Description: fmt.Sprintf("the blob %.80q does not exist", *p.BlobID), Extra: map[string]any{"notFound": []core.ID{*p.BlobID}}}
		}
		if err != nil {
			d.err = err
			return nil, nil //nolint:nilerr // the caller looks at d.err
		}
		if d.blobs += int64(len(data)); d.blobs > maxAttachments {
			return nil, &core.SetError{Type: core.SetTooLarge, Description: fmt.Sprintf("the attachments have more than %d bytes", maxAttachments), Extra: map[string]any{"maxSize": maxAttachments}}
		}
		part.Body = data
		if p.Charset != nil {
			part.Parameters = compose.Parameter("charset", *p.Charset)
		} else if strings.HasPrefix(part.Type, "text/") && utf8.Valid(data) {
			part.Parameters = compose.Parameter("charset", "utf-8")
		}
		return part, nil
	}
	return nil, core.Invalid("a part must have a partId or a blobId", property)
}

// message writes the message. It has a Message-ID and a Date.
func (d *draft) message(root *compose.Part) ([]byte, error) {
	var first []compose.Field
	if d.names["message-id"] == "" {
		of, err := d.methods.store.Account(d.ctx, d.account)
		if err != nil {
			return nil, err
		}
		_, domain, _ := strings.Cut(of.Address, "@")
		if domain == "" {
			domain = "localhost"
		}
		first = append(first, compose.Field{Name: "Message-ID", Value: compose.MessageIDs([]string{randomText() + "@" + domain})})
	}
	if d.names["date"] == "" {
		first = append(first, compose.Field{Name: "Date", Value: compose.Date(d.methods.clock.Now().UTC())})
	}
	return compose.Message(append(first, d.fields...), root, func() string { return "=_" + randomText() }), nil
}

func randomText() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}
