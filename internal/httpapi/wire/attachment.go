package wire

import "fanfare.dev/fanfare"

// TemplateFiles are the files that go with each mail of a template.
type TemplateFiles struct {
	Attachments []TemplateFile          `json:"attachments,omitempty" doc:"what is attached, at most 20 files; of a variant: in place of those of the template"`
	Images      map[string]TemplateFile `json:"images,omitempty" doc:"what the HTML shows as cid: and the name, at most 50; of a variant: in place of those of the same name"`
}

// A TemplateFile is a file that goes with each mail of a template. Its bytes are never
// shown.
type TemplateFile struct {
	Name    string `json:"name,omitempty" doc:"as readers see it; of an image without one: its name in the HTML" example:"terms.pdf"`
	Type    string `json:"type,omitempty" doc:"media type; default: derived from its name and its bytes" example:"application/pdf"`
	Size    int    `json:"size,omitempty" doc:"bytes; made by the server, and ignored in a request"`
	SHA256  string `json:"sha256,omitempty" doc:"of the bytes; in a request in place of content, of a file that a template of the service has"`
	Content []byte `json:"content,omitempty" doc:"the bytes, in base64; never shown"`
}

// A MessageFile is a file that goes with one message.
type MessageFile struct {
	Name    string `json:"name" doc:"as readers see it" example:"receipt-4711.pdf"`
	Type    string `json:"type,omitempty" doc:"media type; default: derived from its name and its bytes" example:"application/pdf"`
	Content []byte `json:"content" doc:"the bytes, in base64"`
	CID     string `json:"cid,omitempty" pattern:"^[a-z0-9]([a-z0-9_.-]{0,62}[a-z0-9])?$" doc:"of content: its HTML shows the image as cid: and this; without: it is attached"`
}

// An Attachment is a file that goes with a mail, as it is told of.
type Attachment struct {
	Name   string `json:"name"`
	Type   string `json:"type" doc:"media type"`
	Size   int    `json:"size" doc:"bytes; in the mail about a third more"`
	CID    string `json:"cid,omitempty" doc:"the HTML shows it under this name; absent: it is attached"`
	SHA256 string `json:"sha256" doc:"of the bytes"`
}

// AttachmentsOf returns files in the form of the API.
func AttachmentsOf(files []fanfare.File) (list []Attachment) {
	for _, f := range files {
		list = append(list, Attachment{Name: f.Name, Type: f.Type, Size: f.Size, CID: f.Image, SHA256: f.Sum.String()})
	}
	return list
}
