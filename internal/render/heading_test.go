package render

import (
	"strings"
	"testing"
)

func TestHeadingIsUnderlinedToItsRenderedWidth(t *testing.T) {
	tests := []struct{ name, markdown, data, want string }{
		{"a short value", "# Now: {{ event.title }}", `{"title":"Storm"}`, "Now: Storm\n=========="},
		{"a long value", "## {{ event.title }}", `{"title":"A long title of the day"}`, "A long title of the day\n-----------------------"},
		{"wide characters", "### {{ event.title }}", `{"title":"熊本"}`, "熊本\n~~~~"},
		{"a number", "# {{ event.title }}", `{"title":1234}`, "1234\n===="},
		{"a value of the recipient", "# For {{ subscriber.attributes.name }}", `{}`, "For Ada & Co\n============"},
		{"a value with markup", "# {{ event.title | raw }}", `{"title":"<b>Storm</b>"}`, "Storm\n====="},
		{"a value written by language", "# {{ event.title | number }}", `{"title":1234567}`, "1,234,567\n========="},
		{"a condition that holds", "# {% if event.title %}Level {{ event.title }}{% else %}None{% endif %}", `{"title":"red"}`, "Level red\n========="},
		{"a condition that does not hold", "# {% if event.title %}Level {{ event.title }}{% else %}None{% endif %}", `{}`, "None\n===="},
		{"a value that is wider than a line", "# {{ event.title }}", `{"title":"` + strings.Repeat("x", 100) + `"}`, strings.Repeat("x", 100) + "\n" + strings.Repeat("=", 76)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMailing(t, Source{Markdown: tt.markdown}, tt.data)
			p := parse(t, write(t, m, newRecipient()).Body)
			if got := strings.TrimSpace(p.parts["text/plain"]); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestUnderlineRefusesInvalidCharacter(t *testing.T) {
	if _, err := rendersFor(poor(), `{{ "a" | underline: "==" }}`); err == nil || !strings.Contains(err.Error(), "one ASCII character") {
		t.Errorf("got %v", err)
	}
}
