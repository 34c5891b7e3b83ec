package render

import "testing"

func TestTemplatesReadTheTitleOfASubscription(t *testing.T) {
	r := newRecipient()
	r.Subscriptions[0].Title, r.Subscriptions[0].Description = "Near my home", "Within 10 km"
	for text, want := range map[string]string{
		"{{ subscription.title }}: {{ subscription.description }}":                  "Near my home: Within 10 km",
		"{% for s in subscriptions %}[{{ s.title | default: 'none' }}]{% endfor %}": "[Near my home][none]",
	} {
		if p, err := rendersFor(r, text); err != nil || p.Text != want {
			t.Errorf("%s is %q, %v", text, p.Text, err)
		}
	}
}
