package codes_test

import (
	"regexp"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/compat/notifybc/codes"
)

func TestCodesMatchTheirExpression(t *testing.T) {
	for _, pattern := range []string{`\d{5}`, `[A-Z]{3}-\d{2,4}`, `(abc|de)+x?`, `\w{10}`, `.{8}`, `^[^a-z]{6}$`, `a{1,}b*`} {
		p, err := codes.Parse(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		seen := map[string]bool{}
		for range 50 {
			code, err := p.New()
			if err != nil || !regexp.MustCompile(`^(?:`+pattern+`)$`).MatchString(code) {
				t.Errorf("%s gives %q, %v", pattern, code, err)
			}
			seen[code] = true
		}
		if len(seen) < 2 {
			t.Errorf("%s gives only %v", pattern, seen)
		}
	}
}

func TestExpressionsWithoutCodesAreRefused(t *testing.T) {
	for _, pattern := range []string{"", "(", `\d{1000}`, `(\d{100}){100}`, `é{4}`, "^$", strings.Repeat("a", 300), `\d{60}\d{60}`} {
		if _, err := codes.Parse(pattern); err == nil {
			t.Errorf("%.20q is accepted", pattern)
		}
	}
}
