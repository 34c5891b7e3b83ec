package reply

import (
	_ "embed" // the built-in rules
	"fmt"
)

//go:embed smtp_codes.yaml
var builtinText []byte

// Builtin returns the built-in rules.
func Builtin() *Rules {
	rules, err := Parse(builtinText)
	if err != nil {
		panic(fmt.Sprintf("the built-in rules cannot be read: %v", err)) // a test reads them
	}
	for _, rule := range rules.list {
		rule.Builtin = true
	}
	return rules
}
