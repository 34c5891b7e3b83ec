package pages

import (
	_ "embed"
)

// A Leaving is what can be left on one page.
type UnsubscribeForm struct {
	Choices []Choice // what the person is subscribed to
	Reasons []string // names of texts, without reason_
}

// A Choice is one of them.
type Choice struct {
	ID      string
	Title   string // of the rule or of the topic
	Detail  string // what the person chose, or ""
	About   string // the description of the rule, or ""
	Paused  bool
	Checked bool // the message was about it
}

// Single reports whether there is nothing to choose from.
func (l *UnsubscribeForm) Single() bool { return len(l.Choices) == 1 }

//go:embed puzzle.js
var proofOfWorkScript string

// A SigningUp is the form to subscribe to a topic.
type SignUpForm struct {
	Token string // sealed, which says when the form was given out
	Bits  int    // how much work a proof is

	To        string
	Wrong     string // name of the field that was wrong, or ""
	Rules     []RuleChoice
	Channels  []Channel // none: there is no choice
	Channel   string
	Cadences  []string
	Cadence   string
	Locales   []string // none: there is no choice
	Locale    string
	AskZone   bool
	TimeZone  string
	Terms     string
	TermsLink bool // the terms are a URL
}

// A RuleChoice is one of the rules of a topic.
type RuleChoice struct {
	Name, Title string
	About       string // a description, or ""
	Labelled    bool   // it has a title or a description of its own
	Checked     bool
	Params      []Param
}

// A Param is a field for a param of a rule.
type Param struct {
	ID    string // of the field
	Title string
	Of    string // title of the rule, where there are several
	Kind  string // string, number, boolean or strings
	Value string
}

// A Confirming shows what is about to be confirmed.
type ConfirmForm struct {
	Facts []Fact
	Label Text
}

// A Fact is a name among the texts, and its value.
type Fact struct{ Name, Value string }

// PreferencesForm is what somebody gets, to be changed.
type PreferencesForm struct {
	List     []Preference
	Locales  []string
	Locale   string
	TimeZone string
}

// A Preference is one subscription.
type Preference struct {
	Choice
	Cadence  string
	Cadences []string // none: there is no choice
	Channel  string
	Channels []Channel
}
