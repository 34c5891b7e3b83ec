package wire

// TemplateWords are the texts of a variant. Missing texts come from a less specific variant or
// from the template: the subject and the JSON separately, the body (text, HTML, Markdown)
// as a unit.
type TemplateWords struct {
	Subject  string `json:"subject,omitempty" doc:"subject of emails"`
	Text     string `json:"text,omitempty" doc:"plain text; default: derived from the HTML of the variant, if it has HTML"`
	HTML     string `json:"html,omitempty" doc:"values are escaped"`
	JSON     string `json:"json,omitempty" doc:"body of webhook requests"`
	Markdown string `json:"markdown,omitempty" doc:"source of the HTML, instead of html"`

	TemplateFiles
}

// TemplateLocale has the texts of a template in another language.
type TemplateLocale struct {
	TemplateWords
	Devices map[string]TemplateWords `json:"devices,omitempty" doc:"texts by device"`
}

// TemplateVariants has the texts of a template for some of its readers.
type TemplateVariants struct {
	Locales map[string]TemplateLocale `json:"locales,omitempty" doc:"texts by language tag (BCP 47), such as cy or pt-BR, for subscribers with that locale or language"`
	Devices map[string]TemplateWords  `json:"devices,omitempty" doc:"texts by device: the value of device in the data of the recipient or the subscription, or in the attributes of the subscriber"`
}
