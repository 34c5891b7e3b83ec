package pages

import (
	_ "embed"
)

// An UnsubscribeForm lists subscriptions to end.
type UnsubscribeForm struct {
	Choices []Choice // subscriptions of the person
	Reasons []string // names of texts, without reason_
}

// A Choice is one subscription.
type Choice struct {
	ID      string
	Title   string // of the rule or of the topic
	Detail  string // params that the person chose, or ""
	About   string // description of the rule, or ""
	Paused  bool
	Checked bool // the message belonged to it
}

// Single reports whether there is only one subscription.
func (l *UnsubscribeForm) Single() bool { return len(l.Choices) == 1 }

//go:embed puzzle.js
var proofOfWorkScript string

// A SignUpForm is the form to subscribe to a topic.
type SignUpForm struct {
	Token string // sealed; contains the time when the form was sent out
	Bits  int    // difficulty of the proof of work

	To        string
	Wrong     string // name of the wrong field, or ""
	Rules     []RuleChoice
	Channels  []Channel // empty: no choice
	Channel   string
	Cadences  []string
	Cadence   string
	Locales   []string // empty: no choice
	Locale    string
	AskZone   bool
	TimeZone  string
	Terms     string
	TermsLink bool // the terms are a URL
}

// A RuleChoice is one rule of a topic.
type RuleChoice struct {
	Name, Title string
	About       string // description, or ""
	Labelled    bool   // it has its own title or description
	Checked     bool
	Params      []Param
}

// A Param is the field of a param.
type Param struct {
	ID    string // of the field
	Title string
	Of    string // title of the rule, if there are several rules
	Kind  string // string, number, boolean or strings
	Value string
}

// A ConfirmForm shows the facts to be confirmed.
type ConfirmForm struct {
	Facts []Fact
	Label Text
}

// A Fact is the name of a text and a value.
type Fact struct{ Name, Value string }

// A DownloadForm downloads a file.
type DownloadForm struct {
	AskAddress bool
	Address    string // as it was entered before
}

// A PreferencesForm lists the subscriptions of a person to be changed.
type PreferencesForm struct {
	List     []Preference
	Locales  []string
	Locale   string
	TimeZone string

	MailPrograms bool // the person can set up mail programs
}

// A MailProgramsForm shows what mail programs need to open a mailbox, and its app passwords.
type MailProgramsForm struct {
	User      string
	Password  string // a new app password, or ""
	Incoming  []MailServer
	Outgoing  []MailServer
	Passwords []AppPassword
	Last      string // number of the latest app password, "0" if there was none
}

// A MailServer is a server that mail programs connect to.
type MailServer struct{ Host, Port, Security string }

// An AppPassword is a password of a mail program, without the password itself.
type AppPassword struct {
	ID      string
	Name    string // given by the person, or ""
	Created string // a date
	Used    string // a date, or ""
}

// A Preference is one subscription.
type Preference struct {
	Choice
	Cadence  string
	Cadences []string // empty: no choice
	Channel  string
	Channels []Channel
}
