package doctor

import (
	"errors"

	"fanfare.dev/fanfare"
)

// replies looks at the operator's rules for answers.
func (o *Options) replies(r *Report) {
	file := o.Config.ReplyRules
	if file == "" {
		return
	}
	rules, err := o.Rules(file)
	if err == nil {
		r.ok("replies", "%d rules of %s go before the built-in ones", rules, file)
		return
	}
	mend := "name a file in reply_rules that the user of the server may read"
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		if mend = e.Hint; mend == "" {
			mend = "fanfare replies list --rules " + file + " says what is wrong"
		}
	}
	r.wrong("replies", mend, "the rules of %s are not in force: %v", file, err)
}
