package pages

// A Leaving is what can be left on one page.
type Leaving struct {
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
func (l *Leaving) Single() bool { return len(l.Choices) == 1 }
