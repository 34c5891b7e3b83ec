package wire

// TemplateWords are the texts of a variant. A less exact variant or the template supplies
// missing ones: the subject and the JSON each separately, the body (text, HTML, Markdown)
// as one.
type TemplateWords struct {
	Subject  string `json:"subject,omitempty" doc:"of mail"`
	Text     string `json:"text,omitempty" doc:"plain text; default: made from the HTML of the variant, if it has HTML"`
	HTML     string `json:"html,omitempty" doc:"values are escaped"`
	JSON     string `json:"json,omitempty" doc:"for webhooks"`
	Markdown string `json:"markdown,omitempty" doc:"in place of html"`

	TemplateFiles
}

// TemplateLocale is what a template says in another language.
type TemplateLocale struct {
	TemplateWords
	Devices map[string]TemplateWords `json:"devices,omitempty" doc:"on a device"`
}

// TemplateVariants are what a template says to some of its readers.
type TemplateVariants struct {
	Locales map[string]TemplateLocale `json:"locales,omitempty" doc:"by language tag (BCP 47), such as cy or pt-BR: to subscribers of that locale, or of one in that language"`
	Devices map[string]TemplateWords  `json:"devices,omitempty" doc:"by device: what the member device of the recipient's data, the subscription's data or the subscriber's attributes says"`
}
