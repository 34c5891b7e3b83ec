package tokens_test

import (
	"encoding/json"
	"testing"

	"fanfare.dev/fanfare/internal/compat/notifybc/tokens"
)

// decode decodes JSON, and fails the test if it is not valid.
func decode(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestTokensGetTheirValuesOrStayAsWritten(t *testing.T) {
	v := &tokens.Values{
		Static:       map[string]string{"service_name": "load", "servicename": "load", "http_host": "https://n.example"},
		Notification: decode(t, `{"title":"Storm","n":3,"zero":0,"no":false,"empty":"","none":null,"a":{"b":[{"c":"deep"},2]},"brace":"{n}","subscription_id":"not this"}`),
		Subscription: &tokens.Subscription{ID: "0123", Code: "4 5", Data: decode(t, `{"name":"Ann","title":"hers","zero":0}`)},
		Root:         "https://n.example/api",
	}
	for text, want := range map[string]string{
		"{title} in {SERVICE_NAME}":                  "Storm in load",
		"{serviceName} {http_host}":                  "load https://n.example",
		"{notification::title}, {NOTIFICATION::n}":   "Storm, 3",
		"{subscription::name} {subscription::title}": "Ann hers",
		"{name}":                                "{name}", // the notification has data
		"{a.b[0].c} {a.b[1]} {a.b[2]} {a.b[x]}": "deep 2 {a.b[2]} {a.b[x]}",
		"{zero}{no}{empty}{none}{gone}{subscription::zero}": "{zero}{no}{empty}{none}{gone}{subscription::zero}",
		"a{color:red} b {title}":                            "a{color:red} b Storm",
		"@media print { .x { color: {title} } }":            "@media print { .x { color: Storm } }",
		"{ti\ntle} {title":                                  "{ti\ntle} {title",
		`\{title\} {title}`:                                 "{title} Storm",
		"{brace}":                                           "{n}",
		"{subscription_id} {unsubscriptionCode}":            "0123 4 5",
		"{unsubscription_url}":                              "https://n.example/api/subscriptions/0123/unsubscribe?unsubscriptionCode=4+5",
		"{unsubscription_all_url}":                          "https://n.example/api/subscriptions/0123/unsubscribe?unsubscriptionCode=4+5&additionalServices=_all",
		"{unsubscription_reversion_url}":                    "https://n.example/api/subscriptions/0123/unsubscribe/undo?unsubscriptionCode=4+5",
		"{{title}} {} {{}}":                                 "{Storm} {} {{}}",
		"{other::x}":                                        "{other::x}",
	} {
		if got := tokens.Text(text, v); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	v.Notification = nil
	if got := tokens.Text("{name} {title}", v); got != "Ann hers" {
		t.Errorf("without data of the notification, tokens become %q", got)
	}
	v.Subscription = nil
	if got := tokens.Text("{name} {subscription_id} {unsubscription_url}", v); got != "{name} {subscription_id} {unsubscription_url}" {
		t.Errorf("without a subscription, tokens become %q", got)
	}
}
