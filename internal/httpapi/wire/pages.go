package wire

// Pages has the appearance and the texts of the recipient pages of a service.
type Pages struct {
	Color     string                       `json:"color,omitempty" doc:"#rrggbb; text on this color is black or white, whichever is easier to read"`
	Logo      string                       `json:"logo,omitempty" doc:"data:image/png;base64,... (PNG, JPEG or WebP), at most 100 KiB"`
	Links     []PageLink                   `json:"links,omitempty" maxItems:"10" doc:"links at the foot of the page"`
	Texts     map[string]map[string]string `json:"texts,omitempty" doc:"your own texts, by language tag and name"`
	Templates map[string]string            `json:"templates,omitempty" doc:"names of the email templates: confirm, known, moved, goodbye, link"`
	Goodbye   bool                         `json:"goodbye,omitempty" doc:"send an email to confirm an unsubscribe"`
}

// PageLink is a link at the foot of a page.
type PageLink struct {
	Title string `json:"title" doc:"text of the link"`
	URL   string `json:"url" doc:"URL with https, http or mailto"`
}

// Signup has the settings of the page /s/SERVICE/TOPIC, on which people subscribe to a topic.
type Signup struct {
	Channels []string `json:"channels,omitempty" doc:"channels to choose from; default: all email channels"`
	Terms    string   `json:"terms,omitempty" doc:"version or URL of the terms that people agree to"`
	Intro    string   `json:"intro,omitempty" doc:"text above the form"`
}
