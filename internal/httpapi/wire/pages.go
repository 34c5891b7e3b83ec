package wire

// Pages is how the pages of a service look that recipients see, and what they say.
type Pages struct {
	Color     string                       `json:"color,omitempty" doc:"#rrggbb; text on it is black or white, whichever is easier to read"`
	Logo      string                       `json:"logo,omitempty" doc:"data:image/png;base64,... (png, jpeg or webp), 100 KiB at most"`
	Links     []PageLink                   `json:"links,omitempty" maxItems:"10" doc:"at the foot"`
	Texts     map[string]map[string]string `json:"texts,omitempty" doc:"texts of your own, by language tag, by name"`
	Templates map[string]string            `json:"templates,omitempty" doc:"names of templates of mails: confirm, known, moved, goodbye, link"`
	Goodbye   bool                         `json:"goodbye,omitempty" doc:"send a mail that confirms an unsubscribe"`
}

// PageLink leads from a page to somewhere else.
type PageLink struct {
	Title string `json:"title" doc:"what it is called"`
	URL   string `json:"url" doc:"https, http or mailto"`
}

// Signup is how people subscribe to a topic by themselves, at /s/SERVICE/TOPIC.
type Signup struct {
	Channels []string `json:"channels,omitempty" doc:"to choose from; without: all that send mail"`
	Terms    string   `json:"terms,omitempty" doc:"version or URL of the terms that they agree to"`
	Intro    string   `json:"intro,omitempty" doc:"text above the form"`
}
