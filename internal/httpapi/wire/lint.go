package wire

// A LintRequest selects the template to check.
type LintRequest struct {
	Template *TemplateDraft `json:"template,omitempty" doc:"a template to check instead of the stored one"`
	Draft    bool           `json:"draft,omitempty" doc:"check the draft of the template instead of the published version"`
	Version  int            `json:"version,omitempty" minimum:"0" doc:"check this version; 0: the published version"`
	Topic    string         `json:"topic,omitempty" doc:"topic whose schema defines the sample data; default: the first topic that uses the template"`
}

// A Lint lists the problems that readers may have with a template: hints, never errors.
type Lint struct {
	Template string    `json:"template" doc:"name@version, followed by (draft) for a draft; name (draft) for a template from the request"`
	Findings []Finding `json:"findings" doc:"problems, those of the subject first; empty if there are none"`
	More     int       `json:"more,omitempty" doc:"number of further problems"`
}

// A Finding is one problem with email clients, screen readers or spam
// filters.
type Finding struct {
	Rule    string `json:"rule" doc:"kind of the problem, such as image-alt"`
	Pointer string `json:"pointer" doc:"part of the template, such as /templates/quake/html"`
	Line    int    `json:"line" doc:"line in that part, from 1"`
	Column  int    `json:"column" doc:"column in that line, from 1"`
	Message string `json:"message" doc:"description of the problem"`
	Hint    string `json:"hint" doc:"remedy"`
}
