package render

import "testing"

func TestErrorsHaveLineAndColumn(t *testing.T) {
	for template, want := range map[string][2]int{
		"{{ evnt.x }}":                                                 {1, 4},
		"a\n  ü {{ event.a }}{{ evnt.x }}":                             {2, 21},
		"{{ event.a }} and {{ event.a":                                 {1, 19},
		"a\n{% if event.a %}b":                                         {2, 1},
		"{{ event.a | upcas }}":                                        {1, 14},
		"{{ event.a }}\n{{ event.ab }} {{ event.nope }}":               {2, 19},
		"{{ event.nope.nope }}{{ event.nope }}":                        {1, 4},
		"{% for s in subscriptions %}\n{{ s.parms.nope }}{% endfor %}": {2, 4},
		"x {{ subscription.dat.nope }}":                                {1, 6},
		"x {{ event.nope }}":                                           {1, 6},
		"x {{ event.nope | upcase }}":                                  {1, 6},
		"{% break %}":                                                  {1, 4},
	} {
		t.Run(template, func(t *testing.T) {
			compiled, err := Compile(Source{Name: "x", Subject: "s", Text: template})
			if err == nil {
				m := newMailing(t, Source{Text: "x"}, `{"a":1,"ab":2}`)
				m.Template, m.RefuseMissing = compiled, true
				var w *MailWriter
				if w, err = m.Writer(); err == nil {
					_, _, err = w.Write(nil, newRecipient())
				}
			}
			if err == nil {
				t.Fatal("written")
			}
			if e := problem(t, err); [2]int{e.Line, e.Column} != want {
				t.Errorf("line %d, column %d, want %v: %s", e.Line, e.Column, want, e.Message)
			}
		})
	}
}
