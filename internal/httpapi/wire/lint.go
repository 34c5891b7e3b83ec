package wire

// A LintRequest asks what readers are going to mind of a template.
type LintRequest struct {
	Template *TemplateDraft `json:"template,omitempty" doc:"a template that is not stored, in place of the stored one"`
	Draft    bool           `json:"draft,omitempty" doc:"check the draft of the template, in place of the published version"`
	Version  int            `json:"version,omitempty" minimum:"0" doc:"check this version; 0: the published version"`
	Topic    string         `json:"topic,omitempty" doc:"whose schema sample data fit; without it that of the first topic that uses the template"`
}

// A Lint is what readers are going to mind of a template: hints, never errors.
type Lint struct {
	Template string    `json:"template" doc:"name@version, with (draft) behind it where it is one; name (draft) of one that came with the request"`
	Findings []Finding `json:"findings" doc:"those of the subject first; none is good"`
	More     int       `json:"more,omitempty" doc:"how many further ones there are"`
}

// A Finding is one thing that a reader of mail, a screen reader or a filter against
// spam is going to mind.
type Finding struct {
	Rule    string `json:"rule" doc:"kind of the problem, such as image-alt"`
	Pointer string `json:"pointer" doc:"part of the template, as in /templates/quake/html"`
	Line    int    `json:"line" doc:"of that part, from 1"`
	Column  int    `json:"column" doc:"of that line, from 1"`
	Message string `json:"message" doc:"description of the problem"`
	Hint    string `json:"hint" doc:"remedy"`
}
