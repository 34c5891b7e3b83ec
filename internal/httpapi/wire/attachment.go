package wire

import "fanfare.dev/fanfare"

// TemplateFiles are the files in each email of a template.
type TemplateFiles struct {
	Attachments []TemplateFile          `json:"attachments,omitempty" doc:"attached files, at most 20; in a variant they replace those of the template"`
	Images      map[string]TemplateFile `json:"images,omitempty" doc:"images by name, at most 50; the HTML refers to them as cid:name. In a variant they replace those of the same name"`
}

// A TemplateFile is a file in each email of a template. Its content is never
// returned.
type TemplateFile struct {
	Name    string `json:"name,omitempty" doc:"file name shown to readers; for an image the default is its name in the HTML" example:"terms.pdf"`
	Type    string `json:"type,omitempty" doc:"media type; default: derived from the name and the content" example:"application/pdf"`
	Size    int    `json:"size,omitempty" doc:"size in bytes; set by the server and ignored in requests"`
	SHA256  string `json:"sha256,omitempty" doc:"SHA-256 of the content; a request may give it instead of content if a template of the service already has the file"`
	Content []byte `json:"content,omitempty" doc:"content in base64; never returned"`
}

// A MessageFile is a file in one message.
type MessageFile struct {
	Name    string `json:"name" doc:"file name shown to readers" example:"receipt-4711.pdf"`
	Type    string `json:"type,omitempty" doc:"media type; default: derived from the name and the content" example:"application/pdf"`
	Content []byte `json:"content" doc:"content in base64"`
	CID     string `json:"cid,omitempty" pattern:"^[a-z0-9]([a-z0-9_.-]{0,62}[a-z0-9])?$" doc:"content ID of an inline image, which the HTML refers to as cid:NAME; only with content. Without it the file is attached"`
}

// An Attachment describes a file in an email.
type Attachment struct {
	Name   string `json:"name"`
	Type   string `json:"type" doc:"media type"`
	Size   int    `json:"size" doc:"size in bytes; about a third larger in the email"`
	CID    string `json:"cid,omitempty" doc:"content ID that the HTML refers to; absent: the file is attached"`
	SHA256 string `json:"sha256" doc:"SHA-256 of the content"`
}

// AttachmentsOf returns files in the form of the API.
func AttachmentsOf(files []fanfare.File) (list []Attachment) {
	for _, f := range files {
		list = append(list, Attachment{Name: f.Name, Type: f.Type, Size: f.Size, CID: f.Image, SHA256: f.Sum.String()})
	}
	return list
}
